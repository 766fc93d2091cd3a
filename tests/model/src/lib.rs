//! A model of the receipt's protocol: workers, a server with sessions of its own, and every fault.
//!
//! What a row may become, and on which rows a write applies, is the product's own
//! [`transition`](tollgate::ledger::state::transition) and [`guard`](tollgate::ledger::state::guard()),
//! called here and not written again. What is restated is what cannot be run in a model: in which order
//! a claim reads, writes and clears (`tollgate::ledger`, `tollgate::executor`), and what MySQL does
//! with sessions, locks and transactions.
//!
//! Two workers deliver one step and a third its compensation, again and again, in any order. At every
//! moment a worker may die, a connection may break before or after what was sent took effect, a lease
//! may end, an operator may release it, and what a dead worker sent goes on until its session is gone.
//!
//! | file | what is in it |
//! |---|---|
//! | `world` | rows, sessions, workers, and what was done to the data |
//! | `writes` | a conditional write, applied |
//! | `sight` | what one worker sees, as a state of the machine |
//! | `worker` | what a worker does next |
//! | `server` | what a session does by itself |
//! | `canonical` | one world for all that differ in names alone |
//! | `protocol` | all of it as a [`stateright::Model`], with the properties |
//! | `explore` | every state of it, visited |
//! | `reach` | from everywhere, an end can be reached without another fault |

mod canonical;
mod explore;
mod protocol;
mod reach;
mod server;
mod sight;
mod worker;
mod world;
mod writes;

pub use explore::{Exploration, Finding, explore, first_broken};
pub use protocol::{Action, Protocol};
pub use reach::{Reach, ends_are_reachable};
pub use world::{Breach, Cast, Payload, World};
