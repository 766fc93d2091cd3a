//! What a worker can do now, for probes and logs.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::executor::Missing;

/// How often a trouble that lasts is said again: whoever opens the log during it finds it there.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// How long another cause waits to be said: while a server goes down, slots find one after the other.
const SAY_CHANGE: Duration = Duration::from_secs(1);

/// What a worker can do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Readiness {
    /// A drain was asked for: it claims nothing any more.
    pub draining: bool,
    /// What keeps it from the control catalog: nothing is claimed, and nothing is recorded yet.
    pub control: Option<Trouble>,
    /// What keeps it from the target: steps are claimed and put off.
    pub target: Option<Trouble>,
}

/// What keeps a worker from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// The first failure in a row, on this machine's monotonic clock.
    pub since: Instant,
    /// What was wrong last, at least one thing, as a status names it.
    pub causes: Vec<Missing>,
}

impl Trouble {
    /// Whether nothing answers there. Otherwise what answers cannot be worked with.
    pub fn is_silence(&self) -> bool {
        self.causes.iter().all(|cause| is_silence(&cause.key))
    }
}

/// Whether the code, of either side, says that no answer came.
fn is_silence(code: &str) -> bool {
    matches!(
        code.split_once('-').map_or(code, |(_, of_any)| of_any),
        "name-not-resolved" | "unreachable" | "timed-out" | "connection-lost" | "statement-timeout"
    )
}

impl Readiness {
    /// Whether it works: neither draining nor cut off.
    pub const fn is_ready(&self) -> bool {
        !self.draining && self.control.is_none() && self.target.is_none()
    }

    /// Why it is not ready; none when it is.
    pub fn reasons(&self) -> Vec<NotReady> {
        [
            self.draining.then_some(NotReady::Draining),
            self.control.clone().map(NotReady::Control),
            self.target.clone().map(NotReady::Target),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Why a worker is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// A drain was asked for.
    Draining,
    /// Nothing is claimed, and nothing is recorded yet.
    Control(Trouble),
    /// Steps are claimed and put off.
    Target(Trouble),
}

impl NotReady {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Control(trouble) if trouble.is_silence() => "control-unreachable",
            Self::Control(_) => "control-unusable",
            Self::Target(trouble) if trouble.is_silence() => "target-unreachable",
            Self::Target(_) => "target-unusable",
        }
    }

    /// One line for a person.
    pub fn message(&self) -> &'static str {
        match self {
            Self::Draining => "told to stop: nothing new is claimed",
            Self::Control(trouble) if trouble.is_silence() => {
                "the control catalog does not answer: nothing is claimed"
            }
            Self::Control(_) => "the control catalog is not usable: nothing is claimed",
            Self::Target(trouble) if trouble.is_silence() => {
                "the target does not answer: its steps are put off"
            }
            Self::Target(_) => "the target is not usable: its steps are put off",
        }
    }

    /// For how long; nothing of a drain.
    pub fn lasting(&self) -> Option<Duration> {
        self.trouble().map(|trouble| trouble.since.elapsed())
    }

    /// What is wrong; nothing of a drain.
    pub fn causes(&self) -> &[Missing] {
        self.trouble().map_or(&[], |trouble| &trouble.causes)
    }

    const fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Draining => None,
            Self::Control(trouble) | Self::Target(trouble) => Some(trouble),
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
pub(super) struct Watch(watch::Sender<Sides>);

#[derive(Debug, Default)]
struct Sides {
    control: Option<Watched>,
    target: Option<Watched>,
}

/// A trouble, and what of it was said when.
#[derive(Debug)]
struct Watched {
    trouble: Trouble,
    said: Vec<String>,
    said_at: Instant,
}

impl Default for Watch {
    fn default() -> Self {
        Self(watch::Sender::new(Sides::default()))
    }
}

impl Watch {
    pub(super) fn now(&self, draining: bool) -> Readiness {
        let sides = self.0.borrow();
        let trouble = |side: &Option<Watched>| side.as_ref().map(|it| it.trouble.clone());
        Readiness { draining, control: trouble(&sides.control), target: trouble(&sides.target) }
    }

    /// The server answered. Said once, when it had not.
    pub(super) fn answers(&self, side: Side) {
        let changed = self.0.send_if_modified(|sides| sides.of(side).take().is_some());
        if changed {
            tracing::info!(server = side.name(), "the server answers again");
        }
    }

    /// The server did not answer, or cannot be worked with. Said when that is new or has another
    /// cause than before, and each minute that it lasts.
    pub(super) fn is_away(&self, side: Side, causes: Vec<Missing>) {
        let mut to_say = None;
        self.0.send_if_modified(|sides| {
            to_say = Watched::meet(sides.of(side), causes);
            true
        });
        if let Some(trouble) = to_say {
            trouble.say(side);
        }
    }
}

impl Watched {
    /// Takes the causes in; the trouble, when it is to be said.
    fn meet(watched: &mut Option<Self>, causes: Vec<Missing>) -> Option<Trouble> {
        let now = Instant::now();
        let keys: Vec<String> = causes.iter().map(|cause| cause.key.clone()).collect();
        let Some(known) = watched else {
            let trouble = Trouble { since: now, causes };
            *watched = Some(Self { trouble: trouble.clone(), said: keys, said_at: now });
            return Some(trouble);
        };
        known.trouble.causes = causes;
        let quiet = now.duration_since(known.said_at);
        if quiet >= SAY_AGAIN || (keys != known.said && quiet >= SAY_CHANGE) {
            (known.said, known.said_at) = (keys, now);
            return Some(known.trouble.clone());
        }
        None
    }
}

impl Trouble {
    fn say(&self, side: Side) {
        let of = |text: fn(&Missing) -> &str| {
            let mut texts: Vec<&str> = self.causes.iter().map(text).collect();
            texts.dedup();
            texts.join("; ")
        };
        let how = if self.is_silence() { "does not answer" } else { "is not usable" };
        tracing::warn!(
            server = side.name(),
            code = of(|cause| &cause.key),
            for_s = self.since.elapsed().as_secs(),
            help = of(|cause| &cause.help),
            "the server {how}: {}",
            of(|cause| &cause.message)
        );
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

impl Sides {
    fn of(&mut self, side: Side) -> &mut Option<Watched> {
        match side {
            Side::Control => &mut self.control,
            Side::Target => &mut self.target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ServerFailure;

    fn cause(key: &str) -> Vec<Missing> {
        vec![Missing::new(key, "what is wrong", "what to do")]
    }

    #[test]
    fn the_first_failure_is_since_when() {
        let watch = Watch::default();
        assert!(watch.now(false).is_ready());
        watch.is_away(Side::Control, cause("control-unreachable"));
        let since = watch.now(false).control.map(|trouble| trouble.since);
        assert!(since.is_some() && !watch.now(false).is_ready());
        watch.is_away(Side::Control, cause("control-access-denied"));
        let now = watch.now(false).control.unwrap();
        assert_eq!(Some(now.since), since);
        assert_eq!(now.causes, cause("control-access-denied"), "the last one is told");
        watch.answers(Side::Target);
        assert!(!watch.now(false).is_ready());
        watch.answers(Side::Control);
        assert!(watch.now(false).is_ready() && !watch.now(true).is_ready());
        assert_eq!(watch.now(false).reasons(), []);
    }

    #[test]
    fn a_server_that_answers_is_not_said_to_be_unreachable() {
        let watch = Watch::default();
        let codes =
            || -> Vec<&str> { watch.now(true).reasons().iter().map(NotReady::code).collect() };
        watch.is_away(Side::Target, cause("target-timed-out"));
        watch.is_away(Side::Control, cause("control-statement-timeout"));
        assert_eq!(codes(), ["draining", "control-unreachable", "target-unreachable"]);
        watch.is_away(Side::Target, cause("ledger-missing"));
        watch.is_away(Side::Control, cause("control-access-denied"));
        assert_eq!(codes(), ["draining", "control-unusable", "target-unusable"]);
        let silent = |code: &&&str| is_silence(&format!("target-{code}"));
        let silent: Vec<&str> = ServerFailure::CODES.iter().filter(silent).copied().collect();
        assert_eq!(silent, ["name-not-resolved", "unreachable", "timed-out", "connection-lost"]);
    }

    #[test]
    fn what_lasts_is_said_once_a_minute_and_at_each_change() {
        let mut watched = None;
        assert!(Watched::meet(&mut watched, cause("control-unreachable")).is_some());
        assert!(Watched::meet(&mut watched, cause("control-unreachable")).is_none());
        let said_ago = |watched: &mut Option<Watched>, ago| {
            watched.as_mut().unwrap().said_at = Instant::now().checked_sub(ago).unwrap();
        };
        assert!(Watched::meet(&mut watched, cause("control-access-denied")).is_none(), "soon");
        said_ago(&mut watched, SAY_CHANGE);
        assert!(Watched::meet(&mut watched, cause("control-access-denied")).is_some());
        said_ago(&mut watched, SAY_AGAIN / 2);
        assert!(Watched::meet(&mut watched, cause("control-access-denied")).is_none());
        said_ago(&mut watched, SAY_AGAIN);
        assert!(Watched::meet(&mut watched, cause("control-access-denied")).is_some());
    }
}
