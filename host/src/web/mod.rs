//! What is answered over HTTP. Reads only: no route writes to a server or to a file.
//!
//! [`site()`] is the status page, made on the server of templates that are checked when the program is
//! compiled: it needs no script and loads nothing from elsewhere. [`probes()`] are a worker's.
//! [`Connections`] bounds how many may ask for either, and how slowly.

mod assets;
mod badge;
mod connections;
mod decision;
mod execution;
mod executions;
mod filter;
mod frame;
mod link;
mod metrics;
mod observer;
mod outbox;
mod probes;
mod ready;
mod security;
mod site;
mod status;

pub use connections::{Connection, Connections};
pub use observer::Observer;
pub use probes::probes;
pub use security::Exposure;
pub use site::site;
