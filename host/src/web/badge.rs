//! How a state is shown: always with its words, and besides with a sign and a colour.

use crate::ledger::{Receipt, Standing};
use crate::outbox::{ListedStep, Status};

/// Sign and colour of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Badge {
    /// Of the style sheet.
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
}

const ATTENTION: Badge = Badge { class: "attention", glyph: "▲" };
const FAILED: Badge = Badge { class: "failed", glyph: "✕" };
const UNSURE: Badge = Badge { class: "unsure", glyph: "?" };
const RUNNING: Badge = Badge { class: "running", glyph: "▶" };
const DONE: Badge = Badge { class: "done", glyph: "✓" };
const QUIET: Badge = Badge { class: "quiet", glyph: "–" };

impl From<Standing> for Badge {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::NeedsAttention => ATTENTION,
            Standing::Failed => FAILED,
            Standing::LeaseExpired | Standing::PossiblyStillRunning => UNSURE,
            Standing::Running => RUNNING,
            Standing::Succeeded => DONE,
            Standing::NotApplicable | Standing::Pruned => QUIET,
        }
    }
}

impl From<Status> for Badge {
    fn from(status: Status) -> Self {
        match status {
            Status::NeedsAttention => ATTENTION,
            Status::Claimed => RUNNING,
            Status::Applied => DONE,
            Status::Pending | Status::Waiting | Status::Superseded => QUIET,
        }
    }
}

impl From<&ListedStep> for Badge {
    fn from(step: &ListedStep) -> Self {
        // Nobody may be at it.
        let is_unsure = step.status == Status::Claimed && step.lease_is_over;
        if is_unsure { UNSURE } else { step.status.into() }
    }
}

impl From<&Receipt> for Badge {
    fn from(receipt: &Receipt) -> Self {
        if receipt.contradiction.is_some() { FAILED } else { receipt.standing.into() }
    }
}

/// What a state of a receipt means, in a sentence.
pub(super) const fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Running => "A holder's lease is open.",
        Standing::LeaseExpired => "The lease ended without a result; its holder is not known.",
        Standing::PossiblyStillRunning => {
            "The lease ended, and the holder's session is still on the server."
        }
        Standing::Succeeded => "Done, for good.",
        Standing::NotApplicable => "A compensation of a step that never ran: nothing to reverse.",
        Standing::Failed => "The last attempt failed.",
        Standing::NeedsAttention => "It was started as often as it may be.",
        Standing::Pruned => "Done long ago; its receipt was made small.",
    }
}
