//! What a worker can do now, for probes and logs.
//!
//! A trouble is over when what found it finds it no more. What else answers meanwhile shows nothing: a
//! look at the target claims no step, and a session that is kept proves no isolation. So each of four
//! [finders](Finder) has a trouble of its own:
//!
//! | found by | over with |
//! |---|---|
//! | a slot on its own control session | the next answer there |
//! | a look at the target, or opening a session for a step: at the target | a look that finds it ready; a step that is applied has the target looked at at once |
//! | the same: at the control catalog, which isolation is proven against | the same; or a look that finds something else |
//! | a step's claim, where no look looks | a step that is applied; or a look that finds the target ready while no step waits for it, see `target_watch` |

use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::executor::Missing;
use crate::target::{Side, TargetError};

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
    /// What keeps it from the control catalog: nothing is claimed, and nothing is recorded yet; or the
    /// target's isolation from it cannot be proven.
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
        are_silence(&self.causes)
    }
}

fn are_silence(causes: &[Missing]) -> bool {
    causes.iter().all(|cause| is_silence(&cause.key))
}

/// Whether the code, of either side, says that no answer came.
fn is_silence(code: &str) -> bool {
    // It is found on a session that was opened just before: the server answers.
    if code == "target-statement-timeout" {
        return false;
    }
    matches!(
        code.split_once('-').map_or(code, |(_, of_any)| of_any),
        "name-not-resolved" | "unreachable" | "timed-out" | "connection-lost" | "statement-timeout"
    )
}

/// The stable code of what is wrong at a side, and one line for a person. The status page says it in the
/// same words.
pub(crate) fn reason_words(side: Side, causes: &[Missing]) -> (&'static str, &'static str) {
    match (side, are_silence(causes)) {
        (Side::Control, true) => {
            ("control-unreachable", "the control catalog does not answer: no step is carried out")
        }
        (Side::Control, false) => {
            ("control-unusable", "the control catalog is not usable: no step is carried out")
        }
        (Side::Target, true) => {
            ("target-unreachable", "the target does not answer: its steps are put off")
        }
        (Side::Target, false) => {
            ("target-unusable", "the target is not usable: its steps are put off")
        }
    }
}

/// What is wrong at each side, of what a look at the target found.
pub(crate) fn by_side(causes: Vec<Missing>) -> (Vec<Missing>, Vec<Missing>) {
    causes.into_iter().partition(|cause| TargetError::side_of(&cause.key) == Side::Target)
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
    /// Nothing is claimed, nothing is recorded yet, or no isolation is proven.
    Control(Trouble),
    /// Steps are claimed and put off.
    Target(Trouble),
}

impl NotReady {
    /// Every code there is.
    pub const CODES: &[&str] = &[
        "draining",
        "control-unreachable",
        "control-unusable",
        "target-unreachable",
        "target-unusable",
    ];

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.words().0
    }

    /// One line for a person.
    pub fn message(&self) -> &'static str {
        self.words().1
    }

    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Draining => ("draining", "told to stop: nothing new is claimed"),
            Self::Control(trouble) => reason_words(Side::Control, &trouble.causes),
            Self::Target(trouble) => reason_words(Side::Target, &trouble.causes),
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

/// What found a trouble, and so what tells that it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finder {
    /// A slot, on its own session to the control catalog.
    Link,
    /// A look at the target or opening a session to it: at the control catalog, beside it.
    Beside,
    /// The same, at the target.
    Look,
    /// A step's claim, where no look looks.
    Claim,
}

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct Watch {
    found: watch::Sender<Found>,
    /// A step was applied, so that it is worth while to look.
    applied: Notify,
}

#[derive(Debug, Default)]
struct Found {
    link: Option<Watched>,
    beside: Option<Watched>,
    look: Option<Watched>,
    claim: Option<Watched>,
}

/// A trouble, when it was last met, and what of it was said when.
#[derive(Debug)]
struct Watched {
    trouble: Trouble,
    met_at: Instant,
    said: Vec<String>,
    said_at: Instant,
}

/// What a claim met.
#[derive(Debug)]
pub(super) struct Met {
    /// The codes, which the outbox has of each step that waits for it.
    pub(super) codes: Vec<String>,
    /// When it was last met.
    pub(super) at: Instant,
}

impl Watch {
    pub(super) fn now(&self, draining: bool) -> Readiness {
        let found = self.found.borrow();
        let (control, target) = (found.trouble(Side::Control), found.trouble(Side::Target));
        Readiness { draining, control, target }
    }

    /// A slot's control session answered.
    pub(super) fn answers(&self) {
        self.is_over(Side::Control, |found| found.link.take().is_some());
    }

    /// A slot's control session did not answer, or cannot be worked with.
    pub(super) fn is_away(&self, cause: Missing) {
        self.met(Finder::Link, vec![cause]);
    }

    /// What a look at the target found missing that began then; nothing, when it found it ready. What a
    /// step met since is newer, and stays.
    pub(super) fn looked(&self, began: Instant, missing: Vec<Missing>) {
        let (target, control) = by_side(missing);
        let take = |trouble: &mut Option<Watched>| {
            trouble.take_if(|watched| watched.met_at <= began).is_some()
        };
        if control.is_empty() {
            self.is_over(Side::Control, |found| take(&mut found.beside));
            // Without the control catalog nothing was verified of the target.
            if target.is_empty() {
                self.is_over(Side::Target, |found| take(&mut found.look));
            }
        }
        self.met(Finder::Look, target);
        self.met(Finder::Beside, control);
    }

    /// No session was opened for a step, for a reason that a look would meet as well.
    pub(super) fn not_opened(&self, cause: Missing) {
        let (target, control) = by_side(vec![cause]);
        self.met(Finder::Look, target);
        self.met(Finder::Beside, control);
    }

    /// A step's claim met what no look looks at.
    pub(super) fn not_claimed(&self, cause: Missing) {
        self.met(Finder::Claim, vec![cause]);
    }

    /// A step was applied on the target, so a claim was granted. That nothing else is wrong is not shown:
    /// its session may have been opened before. A look will tell.
    pub(super) fn applied(&self) {
        self.is_over(Side::Target, |found| found.claim.take().is_some());
        self.applied.notify_one();
    }

    /// Waits until a step is applied, if none was since this was last waited for.
    pub(super) async fn until_applied(&self) {
        self.applied.notified().await;
    }

    /// What a claim met, unless that was less than `quiet` ago.
    pub(super) fn met_by_claims(&self, quiet: Duration) -> Option<Met> {
        let found = self.found.borrow();
        let claim = found.claim.as_ref().filter(|claim| claim.met_at.elapsed() >= quiet)?;
        Some(Met { codes: keys(&claim.trouble.causes), at: claim.met_at })
    }

    /// No step waits for what a claim met; if it was met again meanwhile, one does.
    pub(super) fn nothing_waits(&self, met: &Met) {
        self.is_over(Side::Target, |found| {
            let is_same = found.claim.as_ref().is_some_and(|claim| claim.met_at == met.at);
            is_same && found.claim.take().is_some()
        });
    }

    /// Whether anything keeps steps from the target.
    pub(super) fn keeps_from_target(&self) -> bool {
        self.found.borrow().keeps_from_target()
    }

    /// Waits until something does.
    pub(super) async fn until_kept_from_target(&self) {
        // It cannot close: the sender is here.
        let _ = self.found.subscribe().wait_for(Found::keeps_from_target).await;
    }

    /// Takes a trouble out. Said once, when nothing is left at its side.
    fn is_over(&self, side: Side, take: impl FnOnce(&mut Found) -> bool) {
        let mut is_over = false;
        self.found.send_if_modified(|found| {
            let was_taken = take(found);
            is_over = was_taken && found.trouble(side).is_none();
            was_taken
        });
        if is_over {
            tracing::info!(server = name(side), "the server can be used again");
        }
    }

    /// A trouble was met, if there are causes. Said when that is new or has another cause than before,
    /// and each minute that it lasts.
    fn met(&self, finder: Finder, causes: Vec<Missing>) {
        if causes.is_empty() {
            return;
        }
        let mut to_say = None;
        self.found.send_if_modified(|found| {
            to_say = Watched::meet(found.by(finder), causes);
            true
        });
        if let Some(trouble) = to_say {
            trouble.say(finder.side());
        }
    }
}

fn keys(causes: &[Missing]) -> Vec<String> {
    causes.iter().map(|cause| cause.key.clone()).collect()
}

impl Found {
    const fn by(&mut self, finder: Finder) -> &mut Option<Watched> {
        match finder {
            Finder::Link => &mut self.link,
            Finder::Beside => &mut self.beside,
            Finder::Look => &mut self.look,
            Finder::Claim => &mut self.claim,
        }
    }

    /// What is wrong at a side, whoever found it.
    fn trouble(&self, side: Side) -> Option<Trouble> {
        let found = match side {
            Side::Control => [&self.link, &self.beside],
            Side::Target => [&self.look, &self.claim],
        };
        let mut troubles = found.into_iter().flatten().map(|watched| &watched.trouble);
        let mut whole = troubles.next()?.clone();
        for other in troubles {
            whole.since = whole.since.min(other.since);
            let new = other.causes.iter().filter(|cause| !whole.causes.contains(cause));
            let new: Vec<Missing> = new.cloned().collect();
            whole.causes.extend(new);
        }
        Some(whole)
    }

    fn keeps_from_target(&self) -> bool {
        self.beside.is_some() || self.look.is_some() || self.claim.is_some()
    }
}

impl Watched {
    /// Takes the causes in; the trouble, when it is to be said.
    fn meet(watched: &mut Option<Self>, causes: Vec<Missing>) -> Option<Trouble> {
        let now = Instant::now();
        let keys = keys(&causes);
        let Some(known) = watched else {
            let trouble = Trouble { since: now, causes };
            *watched =
                Some(Self { trouble: trouble.clone(), met_at: now, said: keys, said_at: now });
            return Some(trouble);
        };
        known.trouble.causes = causes;
        known.met_at = now;
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
            server = name(side),
            code = of(|cause| &cause.key),
            for_s = self.since.elapsed().as_secs(),
            help = of(|cause| &cause.help),
            "the server {how}: {}",
            of(|cause| &cause.message)
        );
    }
}

impl Finder {
    const fn side(self) -> Side {
        match self {
            Self::Link | Self::Beside => Side::Control,
            Self::Look | Self::Claim => Side::Target,
        }
    }
}

/// What the log calls a side.
const fn name(side: Side) -> &'static str {
    match side {
        Side::Control => "control",
        Side::Target => "target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ServerFailure;

    fn one(key: &str) -> Missing {
        Missing::new(key, "what is wrong", "what to do")
    }

    fn cause(key: &str) -> Vec<Missing> {
        vec![one(key)]
    }

    fn codes(watch: &Watch) -> Vec<&'static str> {
        watch.now(false).reasons().iter().map(NotReady::code).collect()
    }

    #[test]
    fn the_first_failure_is_since_when() {
        let watch = Watch::default();
        assert!(watch.now(false).is_ready());
        watch.is_away(one("control-unreachable"));
        let since = watch.now(false).control.map(|trouble| trouble.since);
        assert!(since.is_some() && !watch.now(false).is_ready());
        watch.is_away(one("control-access-denied"));
        let now = watch.now(false).control.unwrap();
        assert_eq!(Some(now.since), since);
        assert_eq!(now.causes, cause("control-access-denied"), "the last one is told");
        watch.looked(Instant::now(), Vec::new());
        assert!(!watch.now(false).is_ready());
        watch.answers();
        assert!(watch.now(false).is_ready() && !watch.now(true).is_ready());
        assert_eq!(watch.now(false).reasons(), []);
    }

    #[test]
    fn a_server_that_answers_is_not_said_to_be_unreachable() {
        let watch = Watch::default();
        let codes =
            || -> Vec<&str> { watch.now(true).reasons().iter().map(NotReady::code).collect() };
        watch.looked(Instant::now(), cause("target-timed-out"));
        watch.is_away(one("control-statement-timeout"));
        assert_eq!(codes(), ["draining", "control-unreachable", "target-unreachable"]);
        watch.looked(Instant::now(), cause("ledger-missing"));
        watch.is_away(one("control-access-denied"));
        assert_eq!(codes(), ["draining", "control-unusable", "target-unusable"]);
        watch.looked(Instant::now(), cause("target-statement-timeout"));
        assert_eq!(codes(), ["draining", "control-unusable", "target-unusable"], "it is held up");
        assert!(codes().iter().all(|code| NotReady::CODES.contains(code)));
        let silent = |code: &&&str| is_silence(&format!("target-{code}"));
        let silent: Vec<&str> = ServerFailure::CODES.iter().filter(silent).copied().collect();
        assert_eq!(silent, ["name-not-resolved", "unreachable", "timed-out", "connection-lost"]);
    }

    #[test]
    fn what_a_claim_met_is_over_with_a_claim_or_when_no_step_waits() {
        let watch = Watch::default();
        watch.not_claimed(one("ledger-statement-refused"));
        watch.looked(Instant::now(), Vec::new());
        assert_eq!(codes(&watch), ["target-unusable"], "a look claims nothing");
        watch.applied();
        assert_eq!(codes(&watch), [""; 0]);

        watch.not_claimed(one("ledger-statement-refused"));
        assert!(watch.met_by_claims(Duration::from_mins(1)).is_none(), "it is not recorded yet");
        let met = watch.met_by_claims(Duration::ZERO).unwrap();
        assert_eq!(met.codes, ["ledger-statement-refused"]);
        watch.not_claimed(one("ledger-statement-refused"));
        watch.nothing_waits(&met);
        assert_eq!(codes(&watch), ["target-unusable"], "it was met again");
        watch.nothing_waits(&watch.met_by_claims(Duration::ZERO).unwrap());
        assert_eq!(codes(&watch), [""; 0]);
        assert!(watch.met_by_claims(Duration::ZERO).is_none());
    }

    #[test]
    fn what_a_look_finds_is_over_with_a_look() {
        let watch = Watch::default();
        for found in [
            (|watch: &Watch, causes: Vec<Missing>| watch.looked(Instant::now(), causes))
                as fn(&Watch, Vec<Missing>),
            |watch: &Watch, mut causes: Vec<Missing>| {
                watch.not_opened(causes.remove(0));
            },
        ] {
            found(&watch, cause("grants-missing"));
            watch.applied();
            assert_eq!(codes(&watch), ["target-unusable"], "a session that is kept shows nothing");
            watch.looked(Instant::now(), Vec::new());
            assert_eq!(codes(&watch), [""; 0]);
        }
    }

    #[test]
    fn a_look_that_began_earlier_does_not_end_what_a_step_met_since() {
        let watch = Watch::default();
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        watch.not_opened(one("target-unreachable"));
        watch.not_opened(one("control-unreachable"));
        watch.looked(began, Vec::new());
        assert_eq!(codes(&watch), ["control-unreachable", "target-unreachable"]);
        watch.looked(Instant::now(), Vec::new());
        assert_eq!(codes(&watch), [""; 0]);
    }

    #[tokio::test]
    async fn a_step_that_is_applied_is_worth_a_look() {
        let watch = Watch::default();
        watch.applied();
        watch.until_applied().await;
        assert!(is_pending(watch.until_applied()), "one look for it");
    }

    fn is_pending(waiting: impl Future<Output = ()>) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(waiting).poll(&mut context).is_pending()
    }

    #[test]
    fn the_control_catalog_beside_the_target_is_not_said_to_be_the_target() {
        let watch = Watch::default();
        watch.looked(Instant::now(), cause("grants-missing"));
        watch.looked(Instant::now(), cause("control-access-denied"));
        watch.answers();
        let both = ["control-unusable", "target-unusable"];
        assert_eq!(codes(&watch), both, "nothing was verified of the target");
        watch.looked(Instant::now(), cause("control-catalog-equal"));
        assert_eq!(codes(&watch), ["target-unusable"], "the target is at a wrong place");
        watch.not_opened(one("control-too-many-sessions"));
        watch.looked(Instant::now(), Vec::new());
        assert_eq!(codes(&watch), [""; 0]);
    }

    #[test]
    fn what_two_find_is_told_with_all_of_its_causes() {
        let watch = Watch::default();
        watch.not_claimed(one("ledger-statement-refused"));
        let since = watch.now(false).target.unwrap().since;
        watch.looked(Instant::now(), cause("grants-missing"));
        let target = watch.now(false).target.unwrap();
        assert_eq!(target.since, since);
        assert_eq!(keys(&target.causes), ["grants-missing", "ledger-statement-refused"]);
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
