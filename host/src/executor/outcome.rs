//! What came of a step.

use std::time::Duration;

use super::error::ExecutionError;
use crate::ids::{ExecutorCode, ExternalReceipt};
use crate::ledger::Busy;
use crate::metrics::metrics;
use crate::spans;

/// What came of a step.
#[derive(Debug)]
#[must_use]
pub enum Outcome {
    /// It was applied, now or earlier. A redelivery gives the same receipt.
    Applied(ExternalReceipt),
    /// It was not applied; see [`ExecutionError`] for what that leaves behind.
    NotApplied {
        /// Why.
        error: ExecutionError,
        /// Whether delivering it again may apply it without anyone doing anything.
        retryable: bool,
    },
    /// It is not known whether it was, or still will be, applied. It is to be delivered again and
    /// never to be reported as failed.
    Indeterminate {
        /// Why.
        reason: Uncertainty,
        /// How long to wait before delivering it again.
        retry_after: Duration,
    },
}

/// Why it is not known whether a step was applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncertainty {
    /// It cannot run now: another delivery of it does, or something of an earlier one may.
    #[error("{}", .0.reason)]
    Busy(Busy),
    /// The claim may have been written.
    #[error("the answer to the step's claim was lost")]
    ClaimUnanswered,
    /// Another holder took the step over; what this one did not commit is gone.
    #[error("the lease was lost to another holder")]
    LeaseLost,
    /// The receipt is gone from the ledger.
    #[error("the receipt is gone from the ledger")]
    ReceiptLost,
    /// The session that ran the payload may still be running it.
    #[error("the session that ran the payload may still be running statement {}", .statement + 1)]
    StillRunning {
        /// The statement, from 0.
        statement: u32,
    },
    /// The commit was not answered and the receipt could not be read.
    #[error("the answer to the payload's commit was lost and the receipt could not be read")]
    CommitUnanswered,
    /// The step failed and the failure could not be recorded: its lease runs on.
    #[error("the step failed and the failure could not be recorded")]
    FailureUnrecorded(#[source] Box<ExecutionError>),
}

impl Outcome {
    /// Not applied, for this reason.
    pub fn not_applied(error: ExecutionError) -> Self {
        let retryable = error.is_retryable();
        Self::NotApplied { error, retryable }
    }

    /// The receipt, if it was applied.
    pub fn receipt(&self) -> Option<&ExternalReceipt> {
        match self {
            Self::Applied(receipt) => Some(receipt),
            Self::NotApplied { .. } | Self::Indeterminate { .. } => None,
        }
    }

    /// `applied`, `not-applied` or `indeterminate`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Applied(_) => "applied",
            Self::NotApplied { .. } => "not-applied",
            Self::Indeterminate { .. } => "indeterminate",
        }
    }

    /// The stable code of the error or the uncertainty.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Applied(_) => None,
            Self::NotApplied { error, .. } => Some(error.code()),
            Self::Indeterminate { reason, .. } => Some(reason.code()),
        }
    }

    /// Writes the outcome to the current span and its events, and counts it.
    pub(super) fn record(&self, executor: &ExecutorCode) {
        let outcome = self.as_str();
        metrics().step(executor.as_str(), outcome, self.code().unwrap_or_default());
        match self {
            Self::Applied(receipt) => tracing::info!(outcome, external_receipt = %receipt, "step"),
            Self::NotApplied { error, retryable } => tracing::warn!(
                outcome,
                code = error.code(),
                blame = error.blame().as_str(),
                mends_itself = retryable,
                statement_index = error.statement(),
                server_error = error.server_error(),
                "step: {error}"
            ),
            Self::Indeterminate { reason, retry_after } => tracing::warn!(
                outcome,
                code = reason.code(),
                retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX),
                "step: {reason}"
            ),
        }
        let span = tracing::Span::current();
        spans::note(&span, "outcome", outcome);
        if let Some(code) = self.code() {
            spans::note(&span, "code", code);
        }
    }
}

impl Uncertainty {
    /// The stable, kebab-case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy(busy) => busy.code(),
            Self::ClaimUnanswered => "claim-unanswered",
            Self::LeaseLost => "lease-lost",
            Self::ReceiptLost => "receipt-lost",
            Self::StillRunning { .. } => "still-running",
            Self::CommitUnanswered => "commit-unanswered",
            Self::FailureUnrecorded(_) => "failure-unrecorded",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::ReceiptLost => {
                "restore the ledger's table, see what the step left, then deliver it again"
            }
            Self::Busy(_)
            | Self::ClaimUnanswered
            | Self::LeaseLost
            | Self::StillRunning { .. }
            | Self::CommitUnanswered
            | Self::FailureUnrecorded(_) => "deliver the step again after the stated time",
        }
    }
}
