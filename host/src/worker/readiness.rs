//! What a worker can do now, for probes and logs.

use std::time::{Duration, Instant};

use tokio::sync::watch;

/// What a worker can do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Readiness {
    /// A drain was asked for: it claims nothing any more.
    pub draining: bool,
    /// Since when the control catalog does not answer, on this machine's monotonic clock.
    pub control_unreachable_since: Option<Instant>,
    /// Since when steps cannot be carried out because of their target, on the same clock.
    pub target_unreachable_since: Option<Instant>,
}

impl Readiness {
    /// Whether it works: neither draining nor cut off.
    pub const fn is_ready(&self) -> bool {
        !self.draining
            && self.control_unreachable_since.is_none()
            && self.target_unreachable_since.is_none()
    }

    /// Why it is not ready; none when it is.
    pub fn reasons(&self) -> Vec<NotReady> {
        [
            self.draining.then_some(NotReady::Draining),
            self.control_unreachable_since.map(|since| NotReady::ControlUnreachable { since }),
            self.target_unreachable_since.map(|since| NotReady::TargetUnreachable { since }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Why a worker is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// A drain was asked for.
    Draining,
    /// The control catalog does not answer: nothing is claimed, and nothing is recorded yet.
    ControlUnreachable {
        /// The first failure in a row, on this machine's monotonic clock.
        since: Instant,
    },
    /// Steps cannot be carried out because of their target: they are claimed and put off.
    TargetUnreachable {
        /// The first failure in a row, on this machine's monotonic clock.
        since: Instant,
    },
}

impl NotReady {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::ControlUnreachable { .. } => "control-unreachable",
            Self::TargetUnreachable { .. } => "target-unreachable",
        }
    }

    /// One line for a person.
    pub const fn message(&self) -> &'static str {
        match self {
            Self::Draining => "told to stop: nothing new is claimed",
            Self::ControlUnreachable { .. } => {
                "the control catalog does not answer, or its outbox is not as it must be"
            }
            Self::TargetUnreachable { .. } => "the target does not answer, or is not as it must be",
        }
    }

    /// For how long; nothing of a drain.
    pub fn lasting(&self) -> Option<Duration> {
        match self {
            Self::Draining => None,
            Self::ControlUnreachable { since } | Self::TargetUnreachable { since } => {
                Some(since.elapsed())
            }
        }
    }
}

/// Which server it is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Control,
    Target,
}

/// What the slots found last.
#[derive(Debug)]
pub(super) struct Watch(watch::Sender<Readiness>);

impl Default for Watch {
    fn default() -> Self {
        Self(watch::Sender::new(Readiness::default()))
    }
}

impl Watch {
    pub(super) fn now(&self, draining: bool) -> Readiness {
        Readiness { draining, ..*self.0.borrow() }
    }

    /// The server answered. Said once, when it had not.
    pub(super) fn answers(&self, side: Side) {
        let changed = self.0.send_if_modified(|now| since(now, side).take().is_some());
        if changed {
            tracing::info!(server = side.name(), "the server answers again");
        }
    }

    /// The server did not answer. Said once, when it had before.
    pub(super) fn is_away(&self, side: Side, code: &str) {
        let changed = self.0.send_if_modified(|now| {
            let since = since(now, side);
            let is_new = since.is_none();
            since.get_or_insert_with(Instant::now);
            is_new
        });
        if changed {
            tracing::warn!(server = side.name(), code, "the server does not answer");
        }
    }
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Target => "target",
        }
    }
}

fn since(readiness: &mut Readiness, side: Side) -> &mut Option<Instant> {
    match side {
        Side::Control => &mut readiness.control_unreachable_since,
        Side::Target => &mut readiness.target_unreachable_since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_since_when() {
        let watch = Watch::default();
        assert!(watch.now(false).is_ready());
        watch.is_away(Side::Control, "control-unreachable");
        let since = watch.now(false).control_unreachable_since;
        assert!(since.is_some() && !watch.now(false).is_ready());
        watch.is_away(Side::Control, "control-unreachable");
        assert_eq!(watch.now(false).control_unreachable_since, since);
        watch.answers(Side::Target);
        assert!(!watch.now(false).is_ready());
        watch.answers(Side::Control);
        assert!(watch.now(false).is_ready() && !watch.now(true).is_ready());
        assert_eq!(watch.now(false).reasons(), []);
        watch.is_away(Side::Target, "target-unreachable");
        let codes: Vec<&str> = watch.now(true).reasons().iter().map(NotReady::code).collect();
        assert_eq!(codes, ["draining", "target-unreachable"]);
    }
}
