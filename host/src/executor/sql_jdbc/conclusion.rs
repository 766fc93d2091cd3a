//! Bringing a receipt to an end: complete, failed, or as it is.
//!
//! A fact that is not known is not made up: what cannot be told stays RUNNING until its lease ends,
//! and the outcome is indeterminate.

use tracing::field::Empty;

use super::super::error::ExecutionError;
use super::super::outcome::{Outcome, Uncertainty};
use super::{SqlJdbcV1, indeterminate};
use crate::ledger::{CompleteError, FailError, Failure, HoldError, Inspection, Lease, RenewError};
use crate::spans;
use crate::target::{SessionContract, TargetConnection};

impl SqlJdbcV1 {
    /// Completes the receipt in the transaction of the trailing DML.
    pub(super) async fn complete(
        &self,
        mut connection: TargetConnection,
        lease: &Lease,
    ) -> Outcome {
        let span = tracing::debug_span!("completion", code = Empty);
        let completing = self.ledger.complete(&mut connection, lease);
        match spans::within(span, CompleteError::code, Box::pin(completing)).await {
            Ok(receipt) => {
                self.sessions.keep(connection).await;
                Outcome::Applied(receipt)
            }
            Err(CompleteError::LeaseLost) => indeterminate(Uncertainty::LeaseLost),
            Err(CompleteError::RowLost) => indeterminate(Uncertainty::ReceiptLost),
            Err(CompleteError::RolledBack(fault)) => {
                self.fail(connection, lease, ExecutionError::Commit(fault)).await
            }
            Err(CompleteError::Unknown(_)) => {
                drop(connection);
                self.settle(lease, ExecutionError::NotCommitted, Uncertainty::CommitUnanswered)
                    .await
            }
        }
    }

    /// Rolls back and records the failure, on a connection that is in order.
    pub(super) async fn fail(
        &self,
        mut connection: TargetConnection,
        lease: &Lease,
        error: ExecutionError,
    ) -> Outcome {
        match self.ledger.fail(&mut connection, lease, &failure(&error)).await {
            Ok(()) => {
                self.sessions.keep(connection).await;
                Outcome::not_applied(error)
            }
            Err(FailError::AlreadySucceeded) => Outcome::Applied(lease.external_receipt().clone()),
            Err(FailError::LeaseLost) => indeterminate(Uncertainty::LeaseLost),
            Err(FailError::RowLost) => indeterminate(Uncertainty::ReceiptLost),
            Err(FailError::Fault(fault)) => {
                tracing::warn!(code = fault.code(), "a failure could not be recorded");
                drop(connection);
                self.fail_elsewhere(lease, error).await
            }
        }
    }

    /// Records a failure that could not be recorded where it happened: once, on a new connection,
    /// unless it was recorded all the same.
    async fn fail_elsewhere(&self, lease: &Lease, error: ExecutionError) -> Outcome {
        match self.inspected(lease).await {
            Some((
                connection,
                Inspection::Completed(receipt) | Inspection::CompletedByOther(receipt),
            )) => {
                connection.close().await;
                Outcome::Applied(receipt)
            }
            Some((_, Inspection::FailureRecorded)) => Outcome::not_applied(error),
            Some((mut connection, Inspection::NotCommitted)) => {
                let recorded = self.ledger.fail(&mut connection, lease, &failure(&error)).await;
                connection.close().await;
                match recorded {
                    Ok(()) => Outcome::not_applied(error),
                    Err(_) => indeterminate(Uncertainty::FailureUnrecorded(Box::new(error))),
                }
            }
            _ => indeterminate(Uncertainty::FailureUnrecorded(Box::new(error))),
        }
    }

    /// Ends the session whose statement may still run, sees it gone, and records the failure.
    pub(super) async fn stop_and_fail(
        &self,
        connection: TargetConnection,
        lease: &Lease,
        error: ExecutionError,
    ) -> Outcome {
        // Never used again: an answer may still be on its way to it.
        drop(connection);
        let statement = error.statement().unwrap_or_default();
        self.settle(lease, error, Uncertainty::StillRunning { statement }).await
    }

    /// The lease could not be confirmed before a statement.
    pub(super) async fn not_held(
        &self,
        connection: TargetConnection,
        lease: &Lease,
        statement: u32,
        error: HoldError,
    ) -> Outcome {
        match error {
            HoldError::LeaseLost => indeterminate(Uncertainty::LeaseLost),
            HoldError::RowLost => indeterminate(Uncertainty::ReceiptLost),
            // Still ours in the ledger, but anyone may take it: it is given up in order.
            HoldError::LeaseOver => {
                self.fail(connection, lease, ExecutionError::LeaseOver { statement }).await
            }
            HoldError::Fault(fault) if fault.effect_is_unknown() => {
                self.stop_and_fail(connection, lease, ExecutionError::ConnectionLost { statement })
                    .await
            }
            HoldError::Fault(fault) => {
                self.fail(connection, lease, ExecutionError::Session(fault)).await
            }
        }
    }

    /// Renewal found the lease lost while a statement ran: the session is ended, so that the
    /// statement does not go on beside the new holder's.
    pub(super) async fn lost(
        &self,
        connection: TargetConnection,
        lease: &Lease,
        lost: &RenewError,
    ) -> Outcome {
        drop(connection);
        let reason = match lost {
            RenewError::RowLost => Uncertainty::ReceiptLost,
            _ => Uncertainty::LeaseLost,
        };
        match self.inspected(lease).await {
            Some((_, Inspection::Completed(receipt) | Inspection::CompletedByOther(receipt))) => {
                Outcome::Applied(receipt)
            }
            _ => indeterminate(reason),
        }
    }

    /// Finds out on a new connection what the lease's session left, once it is gone.
    async fn settle(&self, lease: &Lease, error: ExecutionError, unknown: Uncertainty) -> Outcome {
        let Some((connection, inspection)) = self.inspected(lease).await else {
            return indeterminate(unknown);
        };
        match inspection {
            Inspection::Completed(receipt) | Inspection::CompletedByOther(receipt) => {
                connection.close().await;
                Outcome::Applied(receipt)
            }
            Inspection::NotCommitted => Box::pin(self.fail(connection, lease, error)).await,
            Inspection::FailureRecorded => Outcome::not_applied(error),
            Inspection::LeaseLost => indeterminate(Uncertainty::LeaseLost),
            Inspection::RowLost => indeterminate(Uncertainty::ReceiptLost),
            Inspection::Unsettled(remains) => {
                tracing::warn!(
                    code = remains.code(),
                    "the payload's session is not gone: {remains}"
                );
                indeterminate(unknown)
            }
        }
    }

    pub(super) async fn inspected(&self, lease: &Lease) -> Option<(TargetConnection, Inspection)> {
        let mut connection = match self.sessions.target().open(&SessionContract::default()).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!(code = error.code(), "the receipt could not be inspected");
                return None;
            }
        };
        match self.ledger.inspect(&mut connection, lease).await {
            Ok(inspection) => Some((connection, inspection)),
            Err(error) => {
                tracing::warn!(code = error.code(), "the receipt could not be inspected");
                None
            }
        }
    }
}

/// The failure as the receipt keeps it. The payload's session runs nothing any more: it answered,
/// or was seen gone.
fn failure(error: &ExecutionError) -> Failure {
    let message = match error {
        ExecutionError::Statement { source, .. } => source.text.clone(),
        error => error.to_string(),
    };
    let remark = match error {
        ExecutionError::Statement { source, .. } => source.remark(),
        _ => None,
    };
    Failure {
        code: error.receipt_code(),
        statement: error.statement().map(|index| index.saturating_add(1)),
        message,
        remark,
        settled: true,
    }
}
