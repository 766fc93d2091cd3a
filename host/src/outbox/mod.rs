//! The control outbox: which step of which plan is to be delivered next, and what came of it.
//!
//! [`Outbox`] is the only owner of `factory_plugin_control_outbox`, a table in the control catalog. It
//! delivers nothing itself: a worker claims a step, has an executor carry it out outside any
//! transaction of this module, and reports what came of it.
//!
//! - **Order.** Only the head of a plan and direction is PENDING, all behind it are WAITING. The
//!   transaction that makes a step APPLIED makes the next one PENDING.
//! - **Cost.** A claim reads the first entry of a range of the index (`status`,
//!   `environment_code`, `not_before`, `id`): the first due PENDING row of its environment, or the first
//!   CLAIMED one whose lease is over (`not_before` of a CLAIMED row is its lease deadline). Rows that
//!   are WAITING, APPLIED, not due or of another environment are in no range it reads.
//! - **No convoy.** Where the server has `SKIP LOCKED`, claims that meet skip each other's row. Where
//!   it has not (told by the server's version), a claim reads a few candidates without locks, picks
//!   one by random rotation and takes it by a conditional UPDATE.
//! - **Fencing.** Every write of a claimed row carries its claim's token; when it changes no row, the
//!   claim was lost and nothing is written. A row keeps the token of its last claim, so that a write
//!   whose answer was lost is recognised when it is repeated.
//! - **Shape.** Before its first write on a session the table is compared with what it must be.
//! - **Time** is the control server's, `UTC_TIMESTAMP(6)`, alone.
//!
//! Contention (deadlock 1213, lock wait 1205, and Galera's certification failure, which is a 1213 at
//! COMMIT) repeats the whole small transaction, a bounded number of times and after a random pause.

mod advice;
mod attention;
mod bootstrap;
mod claim;
mod compensate;
mod environment;
mod fault;
mod forward;
mod keys;
mod listing;
mod record;
mod recorded;
mod report;
mod rights;
mod shape;
mod sql;
mod status;
mod submit;
mod take_back;

use std::time::Duration;

use crate::config::Config;
use crate::ids::EnvironmentCode;

pub use attention::{AttentionFilter, Retried, RetryError};
pub use bootstrap::{CONTROL_SCRIPT, ControlBootstrapError, bootstrap};
pub use claim::{Claim, ClaimToken};
pub use compensate::{CompensateError, Compensated, CompensationProblem};
pub use environment::Belonging;
pub use fault::OutboxFault;
pub use forward::FORWARD_RECEIPT_LOST;
pub use listing::{Counts, ListedStep, NeedingAttention, UnreadableStep};
pub use record::{ClaimLost, Recorded};
pub use report::{Reason, Report};
pub use rights::{RIGHTS, WORKER_RIGHTS};
pub use shape::{OutboxProblem, SCHEMA_VERSION};
pub use status::{Event, Status};
pub use submit::{ExecutorChoice, SubmitError, Submitted};

/// Whose outbox it is, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxOptions {
    /// The environment whose plans it submits, claims and takes back; none where no target is
    /// configured, which is a place of its own. Of the default.
    pub environment: Option<EnvironmentCode>,
    /// How long a claim holds without renewal.
    pub lease: Duration,
    /// Failed deliveries of a step, or ones in a row whose worker was never heard of again, before
    /// it needs a person.
    pub attempts_max: u32,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            environment: None,
            // Long enough for a control server's restart, short enough that a dead worker's step is
            // not forgotten; renewed each third.
            lease: Duration::from_mins(1),
            // With the backoff of `report`, about a quarter of an hour of trying.
            attempts_max: 10,
        }
    }
}

impl From<&Config> for OutboxOptions {
    fn from(config: &Config) -> Self {
        Self {
            environment: config.environment().cloned(),
            lease: config.worker.lease,
            attempts_max: config.worker.attempts_max,
        }
    }
}

/// The control outbox. Cheap to clone; holds no connection.
#[derive(Debug, Clone, Default)]
pub struct Outbox {
    options: OutboxOptions,
}

impl Outbox {
    /// The outbox of a configuration.
    pub fn of(config: &Config) -> Self {
        Self::new(OutboxOptions::from(config))
    }

    /// An outbox of this environment, with these bounds.
    pub fn new(options: OutboxOptions) -> Self {
        Self { options }
    }

    /// Whose it is, and its bounds.
    pub fn options(&self) -> &OutboxOptions {
        &self.options
    }
}
