//! Stopping a worker: no new claim, then a grace period, then what still runs is dropped.

use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

/// Asks a worker to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Drain {
    phases: watch::Sender<Phase>,
    reason: Arc<OnceLock<&'static str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    Draining,
    GraceOver,
}

impl Default for Drain {
    fn default() -> Self {
        Self { phases: watch::Sender::new(Phase::Working), reason: Arc::default() }
    }
}

impl Drain {
    /// From now on nothing is claimed; what runs may end within the grace period.
    pub fn request(&self) {
        self.request_because("asked for");
    }

    /// The same for a reason that the log names, such as a signal. The first reason counts.
    pub fn request_because(&self, reason: &'static str) {
        self.reason.get_or_init(|| reason);
        self.reach(Phase::Draining);
    }

    /// Why it was asked for; empty when it was not.
    pub(super) fn reason(&self) -> &'static str {
        self.reason.get().copied().unwrap_or_default()
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        *self.phases.borrow() >= Phase::Draining
    }

    /// Waits until it is asked for.
    pub(super) async fn requested(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Drops what still runs.
    pub(super) fn end_grace(&self) {
        self.reach(Phase::GraceOver);
    }

    /// Waits until the grace period is over.
    pub(super) async fn grace_over(&self) {
        self.reached(Phase::GraceOver).await;
    }

    fn reach(&self, phase: Phase) {
        // Never back: a second request changes nothing.
        self.phases.send_if_modified(|now| {
            let is_further = phase > *now;
            if is_further {
                *now = phase;
            }
            is_further
        });
    }

    async fn reached(&self, phase: Phase) {
        let mut phases = self.phases.subscribe();
        // It cannot close: the sender is here.
        let _ = phases.wait_for(|now| *now >= phase).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_only_goes_forward() {
        let drain = Drain::default();
        assert!(!drain.is_requested());
        let other = drain.clone();
        other.request_because("idle");
        drain.requested().await;
        drain.end_grace();
        drain.request();
        assert_eq!(drain.reason(), "idle", "the first reason counts");
        other.grace_over().await;
    }
}
