//! Ending a run: complete with the payload's transaction, or record its failure.

use super::fault::LedgerFault;
use super::inspection::own_row;
use super::lease::Lease;
use super::redact::ERROR_TEXT_STORED_MAX;
use super::state::{Answer, Event, transition};
use super::{Ledger, sql, writes};
use crate::blame::Blame;
use crate::fault_points::{Point, at};
use crate::ids::ExternalReceipt;
use crate::planted::{Bug, is_planted};
use crate::target::TargetConnection;

/// The step was not completed, or it is not known whether it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// Another holder has the row. What was not committed is rolled back.
    #[error("the lease of the step was lost before it was complete")]
    LeaseLost,
    /// The row is gone. What was not committed is rolled back.
    #[error("the receipt of the step is gone from the ledger")]
    RowLost,
    /// The server refused, and rolled the transaction back.
    #[error("the server rolled the completion back")]
    RolledBack(#[source] LedgerFault),
    /// The answer was lost: [`Ledger::inspect`] on a new connection tells. Never send it again.
    #[error("it is not known whether the completion took effect")]
    Unknown(#[source] LedgerFault),
}

impl CompleteError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost => "lease-lost",
            Self::RowLost => "receipt-lost",
            Self::RolledBack(_) => "completion-rolled-back",
            Self::Unknown(_) => "completion-unknown",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::LeaseLost => Blame::Server,
            Self::RowLost => Blame::Operator,
            Self::RolledBack(fault) | Self::Unknown(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::LeaseLost => {
                "deliver the step again; if this repeats, lengthen \
                 `FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS`"
            }
            Self::RowLost => {
                "find out who deleted from the ledger before delivering the step again"
            }
            Self::RolledBack(fault) | Self::Unknown(fault) => fault.help(),
        }
    }
}

/// Why a payload failed, as the receipt keeps it.
///
/// The message goes through [`without_literals`](super::without_literals) whatever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable code; kept as `a-z 0-9 -`, at most 64 characters.
    pub code: String,
    /// The statement that failed, counted from 1.
    pub statement: Option<u32>,
    /// What happened, such as the server's message.
    pub message: String,
    /// What the host found out besides, in its own words: kept as it is. Never a payload's literal.
    pub remark: Option<String>,
    /// Whether the payload's session is known to run nothing of it any more: it answered, or
    /// [`Ledger::inspect`] saw it gone. Otherwise the receipt keeps naming it, and the next holder
    /// looks for it.
    pub settled: bool,
}

impl Failure {
    fn text(&self) -> String {
        let message = super::without_literals(&self.message);
        let text = match self.statement {
            Some(index) => format!("statement {index}: {message}"),
            None => message,
        };
        match &self.remark {
            Some(remark) => {
                format!("{text}; {remark}").chars().take(ERROR_TEXT_STORED_MAX).collect()
            }
            None => text,
        }
    }
}

/// The failure was not recorded; the row stays RUNNING until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailError {
    /// Another holder has the row.
    #[error("the lease of the step was lost before its failure was recorded")]
    LeaseLost,
    /// The step is complete: a failure is never written over that.
    #[error("the step is complete, so no failure is recorded")]
    AlreadySucceeded,
    /// The row is gone.
    #[error("the receipt of the step is gone from the ledger")]
    RowLost,
    /// The server refused, or its answer was lost.
    #[error("the failure of the step could not be recorded")]
    Fault(#[from] LedgerFault),
}

impl FailError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost => "lease-lost",
            Self::AlreadySucceeded => "already-succeeded",
            Self::RowLost => "receipt-lost",
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::LeaseLost => Blame::Server,
            Self::AlreadySucceeded => Blame::Bug,
            Self::RowLost => Blame::Operator,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::LeaseLost | Self::AlreadySucceeded => "deliver the step again",
            Self::RowLost => {
                "find out who deleted from the ledger before delivering the step again"
            }
            Self::Fault(fault) => fault.help(),
        }
    }
}

impl Ledger {
    /// Completes the receipt in the payload's open transaction, and commits both.
    ///
    /// Called on the payload's session after its last statement, autocommit off. When the lease is lost
    /// everything uncommitted is rolled back.
    ///
    /// # Errors
    ///
    /// After [`CompleteError::Unknown`] the connection must be dropped and the step inspected.
    pub async fn complete(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<ExternalReceipt, CompleteError> {
        let bound = self.options().statement_timeout;
        let statement = writes::complete(&lease.key, &lease.token, &lease.receipt);
        if is_planted(Bug::CompleteOutsideTransaction) {
            sql::execute(connection, bound, "COMMIT").await.map_err(CompleteError::Unknown)?;
        }
        match at(Point::Complete, sql::execute(connection, bound, &statement)).await {
            Ok(1) => self.commit(connection, lease).await,
            Ok(_) => self.explain_loss(connection, lease).await,
            Err(fault) if fault.effect_is_unknown() => Err(CompleteError::Unknown(fault)),
            Err(fault) => {
                // Whether or not its answer comes: without a COMMIT nothing is committed.
                let _ = sql::execute(connection, bound, "ROLLBACK").await;
                if fault.is_table_lost() {
                    Err(CompleteError::RowLost)
                } else {
                    Err(CompleteError::RolledBack(fault))
                }
            }
        }
    }

    async fn commit(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<ExternalReceipt, CompleteError> {
        let bound = self.options().statement_timeout;
        match at(Point::Commit, sql::execute(connection, bound, "COMMIT")).await {
            Ok(_) => Ok(lease.receipt.clone()),
            // A cluster's certification failed: the transaction was rolled back.
            Err(fault @ LedgerFault::Refused { code: 1213, .. }) => {
                Err(CompleteError::RolledBack(fault))
            }
            Err(fault) if is_planted(Bug::UnknownCommitIsFailure) => {
                Err(CompleteError::RolledBack(fault))
            }
            Err(fault) => Err(CompleteError::Unknown(fault)),
        }
    }

    async fn explain_loss(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<ExternalReceipt, CompleteError> {
        let bound = self.options().statement_timeout;
        let end = if is_planted(Bug::LostLeaseWithoutRollback) { "COMMIT" } else { "ROLLBACK" };
        if sql::execute(connection, bound, end).await.is_err() {
            return Err(CompleteError::LeaseLost);
        }
        match own_row(self, connection, lease, "").await {
            Ok((state, _)) => match transition(state, Event::Complete).answer {
                Answer::CompletedByMe => Ok(lease.receipt.clone()),
                Answer::RowLost => Err(CompleteError::RowLost),
                _ => Err(CompleteError::LeaseLost),
            },
            Err(_) => Err(CompleteError::LeaseLost),
        }
    }

    /// Rolls back what can be and records the failure, by the lease's token.
    ///
    /// # Errors
    ///
    /// The row is another holder's, complete, or gone; or the server did not take it. Then nothing is
    /// recorded, and the row stays as it is.
    pub async fn fail(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
        failure: &Failure,
    ) -> Result<(), FailError> {
        let bound = self.options().statement_timeout;
        sql::execute(connection, bound, "ROLLBACK").await?;
        let Failure { code, settled, .. } = failure;
        let statement = writes::fail(&lease.key, &lease.token, code, &failure.text(), *settled);
        let recorded = sql::execute(connection, bound, &statement);
        let changed = match at(Point::FailRecord, recorded).await {
            Err(fault) if fault.is_table_lost() => return Err(FailError::RowLost),
            answer => answer?,
        };
        // The session may have autocommit off.
        sql::execute(connection, bound, "COMMIT").await?;
        if changed == 1 {
            return Ok(());
        }
        let (state, _) = own_row(self, connection, lease, "").await?;
        match transition(state, Event::Fail).answer {
            Answer::FailureRecorded => Ok(()),
            Answer::CompletedByMe | Answer::CompletedByOther => Err(FailError::AlreadySucceeded),
            Answer::RowLost => Err(FailError::RowLost),
            _ => Err(FailError::LeaseLost),
        }
    }
}
