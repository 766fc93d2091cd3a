//! What a worker did, counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::outbox::Status;

/// How a worker ended: what it recorded of the steps it was given. A step that was delivered several
/// times is counted each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ended {
    /// Steps that were applied.
    pub applied: usize,
    /// Steps that a person has to look at.
    pub needs_attention: usize,
    /// Steps whose compensation was begun: they never run.
    pub superseded: usize,
    /// Deliveries that were put off: the step is delivered again.
    pub put_off: usize,
    /// Steps that were dropped because the grace period was over. They are delivered again.
    pub dropped: usize,
}

/// Counts what the slots record.
#[derive(Debug, Default)]
pub(super) struct Tally {
    applied: AtomicUsize,
    needs_attention: AtomicUsize,
    superseded: AtomicUsize,
    put_off: AtomicUsize,
    dropped: AtomicUsize,
}

impl Tally {
    /// A delivery left its step in this status.
    pub(super) fn recorded(&self, status: Status) {
        let count = match status {
            Status::Applied => &self.applied,
            Status::NeedsAttention => &self.needs_attention,
            Status::Superseded => &self.superseded,
            Status::Waiting | Status::Pending | Status::Claimed => &self.put_off,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// A step was dropped and handed back.
    pub(super) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self) -> Ended {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Ended {
            applied: of(&self.applied),
            needs_attention: of(&self.needs_attention),
            superseded: of(&self.superseded),
            put_off: of(&self.put_off),
            dropped: of(&self.dropped),
        }
    }
}
