//! Stopping a worker: no new claim, then a grace period, then what still runs is dropped.

use tokio::sync::watch;

/// Asks a worker to stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<Phase>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    Draining,
    GraceOver,
}

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Working))
    }
}

impl Drain {
    /// From now on nothing is claimed; what runs may end within the grace period.
    pub fn request(&self) {
        self.request_because("asked for");
    }

    /// The same for a reason that the log names, such as a signal.
    pub fn request_because(&self, reason: &'static str) {
        if self.reach(Phase::Draining) {
            tracing::info!(reason, "draining: nothing new is claimed");
        }
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() >= Phase::Draining
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

    /// Whether it was not reached before.
    fn reach(&self, phase: Phase) -> bool {
        // Never back: a second request changes nothing.
        self.0.send_if_modified(|now| {
            let is_further = phase > *now;
            if is_further {
                *now = phase;
            }
            is_further
        })
    }

    async fn reached(&self, phase: Phase) {
        let mut phases = self.0.subscribe();
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
        other.grace_over().await;
    }
}
