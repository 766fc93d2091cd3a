//! The receipt ledger: who runs a step on the target, and what came of it.
//!
//! One row a step idempotency key, in the target's own catalog, so that a receipt and the payload's
//! trailing DML commit together. A [`Ledger`] claims a step under a lease, takes over from a holder that
//! died (after making sure that nothing of it still runs on the server), and completes or fails the
//! receipt by the lease's token.
//!
//! It does not run payloads, does not decide about them, and does not open connections: every
//! operation is given one. Time is the database's; the host's clock only paces waiting.

mod bootstrap;
mod claim;
mod claim_error;
mod completion;
mod consistency;
mod counterpart;
mod fault;
mod inspection;
mod lease;
mod listing;
mod overview;
mod prune;
mod receipt;
mod redact;
mod renewal;
mod request;
mod row;
mod session;
mod shape;
mod sql;
pub mod state;
mod takeover;
mod view;
mod writes;

use std::time::Duration;

pub use bootstrap::{BootstrapError, TARGET_SCRIPT, bootstrap};
pub use claim_error::{ClaimError, PendingClaim};
pub use completion::{CompleteError, FailError, Failure};
pub use fault::LedgerFault;
pub use inspection::{InspectError, Inspection};
pub use lease::Lease;
pub use listing::{Filter, ListError, PAGE_SIZE_MAX, Page, ReadError, ReleaseError, UnreadableRow};
pub use overview::{ReceiptCounts, StandingCounts};
pub use prune::PruneError;
pub use receipt::{
    DatabaseTime, IdentityField, PLUGIN_VERSION_CHARS_MAX, Receipt, Standing, Status, StepIdentity,
    UnknownStanding, UnknownStatus,
};
pub use redact::without_literals;
pub use renewal::{HoldError, RenewError};
pub use request::{Busy, BusyReason, Claim, ClaimRequest, Counterpart};
pub use shape::{SCHEMA_VERSION, ShapeError, ShapeProblem};
pub use takeover::Remains;

/// The bounds of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Longest wait for the answer to one ledger statement. Longer than a commit takes on a busy
    /// disk, shorter than the shortest lease (30 s).
    pub statement_timeout: Duration,
    /// Longest wait for a killed session to be gone, before the step is reported busy. Shorter than
    /// the shortest lease, so that the waiting actor still holds its own.
    pub previous_session_wait: Duration,
    /// How often a payload may be started before a person has to look.
    pub executions_max: u32,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self {
            statement_timeout: Duration::from_secs(10),
            previous_session_wait: Duration::from_secs(10),
            executions_max: 10,
        }
    }
}

/// The receipt ledger of a target catalog. It holds no connection.
#[derive(Debug, Default)]
pub struct Ledger {
    options: LedgerOptions,
}

impl Ledger {
    /// A ledger with these bounds.
    pub fn new(options: LedgerOptions) -> Self {
        Self { options }
    }

    /// The bounds.
    pub fn options(&self) -> &LedgerOptions {
        &self.options
    }

    /// Compares the ledger in the connection's catalog with the shape this version needs.
    ///
    /// # Errors
    ///
    /// Every difference found; [`ShapeError::is_missing`] tells a ledger that was never created.
    pub async fn check_shape(
        &self,
        connection: &mut crate::target::TargetConnection,
    ) -> Result<(), ShapeError> {
        shape::check(connection, self.options.statement_timeout).await
    }
}
