//! What a delivery asks of the ledger, and what it is answered.

use std::time::Duration;

use super::lease::Lease;
use super::receipt::{DatabaseTime, IdentityField, Receipt, StepIdentity};
use super::takeover::Remains;
use crate::digest::Digest;
use crate::ids::{ExecutorCode, ExternalReceipt, StepKey};

/// A delivery of a step that asks to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The step.
    pub key: StepKey,
    /// What the step is.
    pub identity: StepIdentity,
    /// Of a compensation: the forward step it reverses, when the caller knows it. With it the ledger
    /// refuses to reverse what still runs or never ran, and bars the forward step from running later.
    /// Of a forward step: `None`; the ledger finds its compensation by itself.
    pub counterpart: Option<Counterpart>,
    /// Who will run it.
    pub executor: ExecutorCode,
    /// The policy component that allowed it.
    pub policy_digest: Digest,
    /// The decision that allowed it.
    pub decision_digest: Digest,
    /// Policy components that this one supersedes under the same executor code.
    pub superseded_policies: Vec<Digest>,
    /// Statements of the payload.
    pub statement_count: u32,
    /// How long the lease is, from the database's now.
    pub lease: Duration,
}

/// The step on the other side of a compensation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterpart {
    /// The forward step's key.
    pub key: StepKey,
    /// The digest of the forward payload.
    pub content_hash: Digest,
}

/// What a claim came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Run the payload under this lease.
    Granted(Lease),
    /// It was done before; nothing is to run.
    AlreadySucceeded(ExternalReceipt, Box<Receipt>),
    /// A compensation of a step that never ran: recorded as done, nothing is to run.
    NotApplicable(ExternalReceipt, Box<Receipt>),
    /// Not now.
    Busy(Busy),
    /// The key belongs to another step; the row was left as it is.
    Mismatch {
        /// The fields that differ.
        fields: Vec<IdentityField>,
        /// The receipt that has the key.
        recorded: Box<Receipt>,
    },
    /// The row was decided under another executor code, or under a policy that the requested one
    /// does not supersede; the row was left as it is.
    PinRefused {
        /// The receipt as recorded.
        recorded: Box<Receipt>,
    },
    /// The payload was started as often as it may be; a person has to look.
    NeedsAttention {
        /// The receipt, with its last error.
        recorded: Box<Receipt>,
    },
    /// The step succeeded so long ago that its receipt was pruned; it never runs again.
    Pruned {
        /// What is left of the receipt.
        recorded: Box<Receipt>,
    },
    /// The step's compensation was begun; it never runs again.
    Superseded {
        /// The compensation.
        by: Option<StepKey>,
        /// The receipt of the forward step.
        recorded: Box<Receipt>,
    },
}

impl Claim {
    /// The answer's stable word, kebab-case.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Granted(_) => "granted",
            Self::AlreadySucceeded(..) => "already-succeeded",
            Self::NotApplicable(..) => "not-applicable",
            Self::Busy(_) => "busy",
            Self::Mismatch { .. } => "identity-mismatch",
            Self::PinRefused { .. } => "pin-refused",
            Self::NeedsAttention { .. } => "needs-attention",
            Self::Pruned { .. } => "receipt-pruned",
            Self::Superseded { .. } => "superseded",
        }
    }
}

/// Why a step cannot run now, and when to ask again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Why.
    pub reason: BusyReason,
    /// When the holder's lease ends, if there is a holder.
    pub lease_deadline: Option<DatabaseTime>,
    /// How long to wait before asking again.
    pub retry_after: Duration,
}

/// Why a step cannot run now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusyReason {
    /// Another holder's lease is open.
    #[error("another delivery of the step holds its lease")]
    LeaseHeld,
    /// The plugin is moving in the other direction in this environment.
    #[error("the step `{key}` of the same plugin runs in the other direction")]
    OppositeRunning {
        /// The step that runs.
        key: StepKey,
    },
    /// The session of an earlier holder is not gone.
    #[error("an earlier session may still be running a statement of this step: {0}")]
    PreviousSession(Remains),
}

impl Busy {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match &self.reason {
            BusyReason::LeaseHeld => "lease-held",
            BusyReason::OppositeRunning { .. } => "opposite-direction-running",
            BusyReason::PreviousSession(remains) => remains.code(),
        }
    }
}
