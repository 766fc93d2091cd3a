//! Executors: what carries a step out and says what came of it.
//!
//! An [`Executor`] has a stable code that recorded plans name. Two come with Tollgate: [`DryRunV1`]
//! decides and reports, and holds nothing to connect with; [`SqlJdbcV1`] runs what the pinned policy
//! allowed on the isolated target, under a lease in the receipt ledger. The [`ExecutorRegistry`]
//! knows which are installed and which policy decides for them; an embedder may install its own.
//!
//! Steps come from elsewhere: this module neither queues nor retries. A caller redelivers a step
//! whose [`Outcome`] asks for it.

mod admission;
mod classify;
mod dry_run;
mod error;
mod outcome;
mod probe;
mod receipts;
mod registry;
mod sql_jdbc;
mod status;
mod status_reader;

pub use admission::Findings;
pub use classify::{Refusal as ServerRefusal, ServerError};
pub use dry_run::{DryRunReport, DryRunV1};
pub use error::ExecutionError;
pub use outcome::{Outcome, Uncertainty};
pub use probe::STATUS_BUDGET;
pub use receipts::ReceiptUnread;
pub use registry::{ExecutorRegistry, ExecutorUnavailable, RegistryError};
pub use sql_jdbc::{Drift, SqlJdbcV1};
pub use status::{Missing, PolicyStatus, RegistryStatus, SqlTargetState};
pub use status_reader::StatusReader;

pub use crate::plan::BoxFuture;

use tracing::field::Empty;

use crate::ids::ExecutorCode;
use crate::plan::{ContributionCatalog, Step};
use crate::policy::Session;
use crate::target::SessionContract;

/// Carries out steps under a code that never changes its meaning.
///
/// An implementation answers for every step: what it cannot do is [`Outcome::NotApplied`], what it
/// cannot know is [`Outcome::Indeterminate`]. The same step may be delivered any number of times,
/// also at the same moment, and has one effect.
///
/// The future may be dropped at any point; the step is then to be delivered again.
pub trait Executor: Send + Sync {
    /// The code that plans and receipts name.
    fn code(&self) -> &ExecutorCode;

    /// Carries the step out, with the payload that `contributions` has installed for it now.
    fn execute<'a>(
        &'a self,
        step: &'a Step,
        contributions: &'a dyn ContributionCatalog,
    ) -> BoxFuture<'a, Outcome>;

    /// Ends what the step left on its way, after the future of [`Executor::execute`] was dropped in
    /// the middle, so that its next delivery need not wait. The caller bounds it and may drop it, too;
    /// an executor that leaves nothing behind, as by default, has nothing to do.
    fn abandon<'a>(&'a self, _step: &'a Step) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Lets go of what the executor keeps between steps, such as connections: a worker calls it when it
    /// has no more steps to give. Further steps are carried out all the same. By default nothing is
    /// kept.
    fn rest(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The session a policy's reading of SQL assumes, as a target pins it.
pub fn session_contract(session: &Session) -> SessionContract {
    SessionContract {
        sql_mode: session.sql_mode.clone(),
        character_set: session.character_set.clone(),
        time_zone: session.time_zone.clone(),
    }
}

/// The span of one execution. Its field names are stable: logs are searched by them.
fn step_span(step: &Step, code: &ExecutorCode) -> tracing::Span {
    tracing::info_span!(
        "step",
        step_key = %step.key,
        plugin = %step.release,
        direction = %step.direction,
        executor = %code,
        outcome = Empty,
        code = Empty,
    )
}
