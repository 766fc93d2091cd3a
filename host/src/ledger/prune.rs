//! Making old receipts small, without forgetting that their steps are done.

use std::time::Duration;

use super::fault::LedgerFault;
use super::{Ledger, sql, writes};
use crate::blame::Blame;
use crate::target::TargetConnection;

/// Receipts pruned in one statement: few enough that nobody waits for its locks.
const BATCH_ROWS_MAX: u32 = 500;

/// Receipts were not pruned, or not all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipts could not be pruned")]
pub struct PruneError(#[from] LedgerFault);

impl PruneError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        self.0.code()
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        self.0.blame()
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        self.0.help()
    }
}

impl Ledger {
    /// Prunes the receipts that succeeded longer ago than this, by the database's clock; gives their
    /// number.
    ///
    /// A pruned receipt is its own tombstone. It keeps key, identity, times and external receipt, so
    /// that a late delivery of the step is refused and never runs it a second time; it loses what only
    /// someone who looks into the run would ask for, the digests of policy and decision among it. The
    /// other direction of the step is not affected.
    ///
    /// # Errors
    ///
    /// Some may have been pruned: repeat it.
    pub async fn prune(
        &self,
        connection: &mut TargetConnection,
        older_than: Duration,
    ) -> Result<u64, PruneError> {
        let statement = writes::prune(older_than, BATCH_ROWS_MAX);
        let mut count = 0;
        loop {
            let pruned =
                sql::execute(connection, self.options().statement_timeout, &statement).await?;
            count += pruned;
            if pruned < u64::from(BATCH_ROWS_MAX) {
                return Ok(count);
            }
        }
    }
}
