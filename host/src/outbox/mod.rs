//! The control outbox: which step of which plan is to be delivered next, and what came of it.
//!
//! [`Outbox`] is the only owner of `factory_plugin_control_outbox`, a table in the control catalog. It
//! delivers nothing itself: a worker claims a step, has an executor carry it out outside any
//! transaction of this module, and reports what came of it.
//!
//! - **Order.** Only the head of a plan and direction is PENDING, all behind it are WAITING. The
//!   transaction that makes a step APPLIED makes the next one PENDING.
//! - **Cost.** A claim reads the first entry of a range of the index (`status`, `not_before`, `id`):
//!   the first due PENDING row, or the first CLAIMED row whose lease is over (`not_before` of a CLAIMED
//!   row is its lease deadline). Rows that are WAITING, APPLIED or not due are in no range it reads.
//! - **No convoy.** Where the server has `SKIP LOCKED`, claims that meet skip each other's row. Where
//!   it has not (told by the server's version), a claim reads a few candidates without locks, picks
//!   one by random rotation and takes it by a conditional UPDATE.
//! - **Fencing.** Every write of a claimed row carries its claim's token; when it changes no row, the
//!   claim was lost and nothing is written. A row keeps the token of its last claim, so that a write
//!   whose answer was lost is recognised when it is repeated.
//! - **Time** is the control server's, `UTC_TIMESTAMP(6)`, alone.
//!
//! Contention (deadlock 1213, lock wait 1205, and Galera's certification failure, which is a 1213 at
//! COMMIT) repeats the whole small transaction, a bounded number of times and after a random pause.

mod attention;
mod bootstrap;
mod claim;
mod compensate;
mod fault;
mod listing;
mod record;
mod recorded;
mod report;
mod sql;
mod status;
mod submit;

use std::time::Duration;

pub use attention::{AttentionFilter, Retried, RetryError};
pub use bootstrap::{CONTROL_SCRIPT, ControlBootstrapError, bootstrap};
pub use claim::{Claim, ClaimToken};
pub use compensate::{CompensateError, Compensated, CompensationProblem};
pub use fault::OutboxFault;
pub use listing::{Counts, ListedStep};
pub use record::{ClaimLost, Recorded};
pub use report::{Reason, Report};
pub use status::{Event, Status};
pub use submit::{ExecutorChoice, SubmitError, Submitted};

/// Bounds of the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxOptions {
    /// How long a claim holds without renewal.
    pub lease: Duration,
    /// Failed deliveries of a step, or ones in a row whose worker was never heard of again, before
    /// it needs a person.
    pub attempts_max: u32,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            // Long enough for a control server's restart, short enough that a dead worker's step is
            // not forgotten; renewed each third.
            lease: Duration::from_mins(1),
            // With the backoff of `report`, about a quarter of an hour of trying.
            attempts_max: 10,
        }
    }
}

/// The control outbox. Cheap to clone; holds no connection.
#[derive(Debug, Clone, Default)]
pub struct Outbox {
    options: OutboxOptions,
}

impl Outbox {
    /// An outbox with these bounds.
    pub fn new(options: OutboxOptions) -> Self {
        Self { options }
    }

    /// Its bounds.
    pub fn options(&self) -> &OutboxOptions {
        &self.options
    }
}
