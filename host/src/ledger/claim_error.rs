//! Why a claim did not come to an answer, and what of it may have been written all the same.

use std::time::Duration;

use super::claim::READS_MAX;
use super::fault::LedgerFault;
use super::receipt::{LeaseToken, PLUGIN_VERSION_CHARS_MAX};
use super::row::{Holder, LEASE_SECONDS_MAX};
use super::shape::ShapeError;
use crate::blame::Blame;

/// A claim whose answer was lost: the row may carry its token, and what its session was sent last may
/// still arrive there.
///
/// It is good for one [`Ledger::resume`](super::Ledger::resume), and for nothing after the payload's first
/// statement.
#[derive(Debug, PartialEq, Eq)]
pub struct PendingClaim {
    pub(super) token: LeaseToken,
    pub(super) holder: Holder,
}

/// A claim without an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The plugin's version is longer than a receipt can hold.
    #[error(
        "the plugin version has {length} characters, a receipt holds {PLUGIN_VERSION_CHARS_MAX}"
    )]
    PluginVersionTooLong {
        /// Its length.
        length: usize,
    },
    /// A lease of this length is not given.
    #[error("a lease of {} s is not between 1 and {LEASE_SECONDS_MAX} s", lease.as_secs())]
    LeaseOutOfBounds {
        /// The length asked for.
        lease: Duration,
    },
    /// The ledger is not what it must be.
    #[error("nothing can be claimed in this ledger")]
    Shape(#[source] ShapeError),
    /// The claim may have been written: [`Ledger::resume`](super::Ledger::resume) it on a new connection.
    #[error("the answer to the claim was lost")]
    AnswerLost {
        /// What resumes it.
        pending: PendingClaim,
        /// How it was lost.
        #[source]
        fault: LedgerFault,
    },
    /// The claim was not written.
    #[error("the step could not be claimed")]
    Fault(#[source] LedgerFault),
    /// A session that was kept open is not what it was, or is gone. Nothing was claimed: a new
    /// connection is to be asked.
    #[error("the session is not what it was verified to be")]
    NotAsKept,
    /// The row kept changing between reading and writing it.
    #[error("the receipt changed {READS_MAX} times while it was being claimed")]
    Contended,
}

impl ClaimError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PluginVersionTooLong { .. } => "plugin-version-too-long",
            Self::LeaseOutOfBounds { .. } => "lease-out-of-bounds",
            Self::Shape(error) => error.code(),
            Self::AnswerLost { .. } => "claim-answer-lost",
            Self::Fault(fault) => fault.code(),
            Self::NotAsKept => "session-not-as-kept",
            Self::Contended => "claim-contended",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::PluginVersionTooLong { .. } => Blame::Caller,
            Self::LeaseOutOfBounds { .. } => Blame::Operator,
            Self::Shape(error) => error.blame(),
            Self::AnswerLost { fault, .. } | Self::Fault(fault) => fault.blame(),
            Self::NotAsKept | Self::Contended => Blame::Server,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::PluginVersionTooLong { .. } => "shorten the version's build metadata",
            Self::LeaseOutOfBounds { .. } => {
                "set `FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS` to 30..3600"
            }
            Self::Shape(error) => error.help(),
            Self::AnswerLost { fault, .. } | Self::Fault(fault) => fault.help(),
            Self::NotAsKept | Self::Contended => "deliver the step again",
        }
    }

    /// Whether the same request may succeed later, without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::PluginVersionTooLong { .. }
            | Self::LeaseOutOfBounds { .. }
            | Self::Shape(ShapeError::Unfit(_)) => false,
            Self::Shape(ShapeError::Fault(fault)) | Self::Fault(fault) => fault.is_transient(),
            Self::AnswerLost { .. } | Self::NotAsKept | Self::Contended => true,
        }
    }
}
