//! The points of a program with the feature: looks up what is to happen, writes it down, does it.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::Point;
use super::spec::{self, Action, Hit, Rule, SpecError};

/// The faults themselves.
const POINTS: &str = "TOLLGATE_FAULT_POINTS";
/// The seed of those that fire by chance; 0 when it is not set.
const SEED: &str = "TOLLGATE_FAULT_SEED";
/// The file to which every firing is appended, before it takes effect.
const LOG: &str = "TOLLGATE_FAULT_LOG";

/// How often a pause looks for its file.
const PAUSE_LOOK: Duration = Duration::from_millis(5);

/// Exit code of a process whose faults cannot be read, as for any wrong usage.
const EXIT_USAGE: i32 = 2;

/// The connection is lost, as a fault has it. What the caller makes of it is its own error.
pub(crate) struct Lost(());

/// A fault that took place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// Where, such as `commit`.
    pub point: &'static str,
    /// What, such as `error-after`.
    pub action: &'static str,
    /// How often the point had been reached by then, from 1.
    pub hit: u64,
}

/// Faults to come, and those that took place.
pub struct Faults {
    rules: Vec<Rule>,
    seed: u64,
    hits: Vec<AtomicU64>,
    fired: Mutex<Vec<Firing>>,
    log: Option<Mutex<File>>,
}

tokio::task_local! {
    /// The faults of one future of a test, in place of the process's.
    static OWN: Arc<Faults>;
}

impl Faults {
    /// Reads faults: `point=action`, separated by `;`. An action is `crash`, `error-before` (not
    /// sent), `error-after` (sent and answered, the answer lost), `panic:WORDS`, `pause:FILE` (until it is there) or
    /// `pause:N` (milliseconds). It happens the first time the point is reached, with `@2` the second
    /// time, with `@2..` from then on, with `%10` in ten of a hundred by the seed.
    ///
    /// # Errors
    ///
    /// What cannot be read, and what it could be instead.
    pub fn parse(text: &str, seed: u64) -> Result<Arc<Self>, SpecError> {
        Ok(Arc::new(Self::new(text, seed, None)?))
    }

    fn new(text: &str, seed: u64, log: Option<File>) -> Result<Self, SpecError> {
        let rules = spec::parse(text)?;
        let hits = Point::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        Ok(Self { rules, seed, hits, fired: Mutex::default(), log: log.map(Mutex::new) })
    }

    /// Runs a future under these faults instead of the process's. What it spawns is not under them.
    pub async fn during<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        OWN.scope(Arc::clone(self), future).await
    }

    /// What took place, in order.
    pub fn fired(&self) -> Vec<Firing> {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a hit, and writes down what it brings before that happens.
    fn hit(&self, point: Point) -> Option<Action> {
        let hit = self.hits.get(point as usize)?.fetch_add(1, Ordering::SeqCst) + 1;
        let due = |(index, rule): &(usize, &Rule)| {
            rule.point == point
                && match rule.hit {
                    Hit::Nth(nth) => hit == nth,
                    Hit::From(first) => hit >= first,
                    Hit::Chance(percent) => chance(self.seed, *index, hit) < percent,
                }
        };
        let (_, rule) = self.rules.iter().enumerate().find(due)?;
        let firing = Firing { point: point.name(), action: rule.action.name(), hit };
        if let Some(log) = &self.log {
            let line = format!("{} {} {hit}\n", firing.point, firing.action);
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            // One write to the operating system: it survives this process.
            if let Err(error) = log.write_all(line.as_bytes()) {
                give_up(&format!("a fault cannot be written down: {error}"));
            }
        }
        self.fired.lock().unwrap_or_else(PoisonError::into_inner).push(firing);
        Some(rule.action.clone())
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("fired", &self.fired()).finish_non_exhaustive()
    }
}

/// Reads the process's faults from the environment, if it has any. What cannot be read ends the
/// process: a fault that does not happen would let any test pass.
pub fn arm() {
    process();
}

/// The write, or what is to happen instead of it.
pub(crate) async fn at<T, E, F>(point: Point, write: F) -> Result<T, E>
where
    E: From<Lost>,
    F: Future<Output = Result<T, E>>,
{
    match hit(point) {
        None => write.await,
        Some(Action::ErrorBefore) => Err(Lost(()).into()),
        Some(Action::ErrorAfter) => {
            let _ = write.await;
            Err(Lost(()).into())
        }
        Some(action) => {
            stop_or_pause(action).await;
            write.await
        }
    }
}

/// A moment that is no write.
pub(crate) async fn reach(point: Point) {
    if let Some(action) = hit(point) {
        stop_or_pause(action).await;
    }
}

fn hit(point: Point) -> Option<Action> {
    match OWN.try_with(Arc::clone) {
        Ok(own) => own.hit(point),
        Err(_) => process()?.hit(point),
    }
}

async fn stop_or_pause(action: Action) {
    match action {
        Action::Crash => crash(),
        Action::Panic(words) => panic_with(words),
        Action::PauseFor(time) => tokio::time::sleep(time).await,
        Action::PauseUntil(file) => {
            while !file.exists() {
                tokio::time::sleep(PAUSE_LOOK).await;
            }
        }
        // Taken by `at`; `reach` has none, which is checked when it is read.
        Action::ErrorBefore | Action::ErrorAfter => {}
    }
}

#[expect(clippy::panic, reason = "it is the fault itself, and in no release")]
fn panic_with(words: String) -> ! {
    std::panic::panic_any(words)
}

/// Dies at once: nothing is closed, flushed or unwound.
fn crash() -> ! {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

fn process() -> Option<&'static Faults> {
    static PROCESS: OnceLock<Option<Faults>> = OnceLock::new();
    PROCESS.get_or_init(|| from_environment().unwrap_or_else(|error| give_up(&error))).as_ref()
}

fn from_environment() -> Result<Option<Faults>, String> {
    let Ok(text) = std::env::var(POINTS) else {
        return Ok(None);
    };
    let seed = match std::env::var(SEED) {
        Ok(seed) => seed.parse().map_err(|_| format!("{SEED}: `{seed}` is no number"))?,
        Err(_) => 0,
    };
    let log = match std::env::var_os(LOG).map(PathBuf::from) {
        Some(path) => Some(
            File::options()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(|error| format!("{LOG}: {}: {error}", path.display()))?,
        ),
        None => None,
    };
    Faults::new(&text, seed, log).map(Some).map_err(|error| format!("{POINTS}: {error}"))
}

fn give_up(why: &str) -> ! {
    // Where nothing else can be told, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "error: {why}");
    std::process::exit(EXIT_USAGE)
}

/// A number below 100 that only the seed, the rule and the hit decide: `SplitMix64`'s last step.
fn chance(seed: u64, rule: usize, hit: u64) -> u64 {
    let mut mixed = seed
        .wrapping_add((rule as u64).wrapping_shl(32))
        .wrapping_add(hit)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % 100
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// Counts when it is polled: a write that is not sent is not counted.
    fn write(sent: &AtomicU64) -> impl Future<Output = Result<u64, mysql_async::Error>> {
        std::future::poll_fn(|_| Poll::Ready(Ok(sent.fetch_add(1, Ordering::SeqCst))))
    }

    #[tokio::test]
    async fn an_error_is_seen_before_or_after_the_write() {
        for (spec, sent_then) in [("commit=error-before@2", 1), ("commit=error-after@2", 2)] {
            let sent = AtomicU64::new(0);
            let faults = Faults::parse(spec, 0).unwrap();
            let (first, second) = faults
                .during(async {
                    let first = at(Point::Commit, write(&sent)).await;
                    (first, at(Point::Commit, write(&sent)).await)
                })
                .await;
            assert!(first.is_ok() && second.is_err(), "{spec}");
            assert_eq!(sent.load(Ordering::SeqCst), sent_then, "{spec}");
            assert_eq!(faults.fired().len(), 1, "{spec}");
            assert_eq!(faults.fired()[0].hit, 2, "{spec}");
        }
    }

    #[tokio::test]
    async fn other_points_and_other_futures_are_left_alone() {
        let sent = AtomicU64::new(0);
        let faults = Faults::parse("commit=error-before@1..", 0).unwrap();
        assert!(faults.during(at(Point::Complete, write(&sent))).await.is_ok());
        assert!(at(Point::Commit, write(&sent)).await.is_ok());
        assert_eq!(faults.fired(), []);
    }

    #[tokio::test]
    async fn a_pause_ends_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("go");
        let faults = Faults::parse(&format!("ack=pause:{}", file.display()), 0).unwrap();
        let waiting = faults.during(reach(Point::Ack));
        let opening = async {
            tokio::task::yield_now().await;
            assert_eq!(faults.fired().len(), 1);
            std::fs::write(&file, "").unwrap();
        };
        tokio::join!(waiting, opening);
    }

    #[test]
    fn a_chance_is_the_seeds_alone_and_about_as_large_as_it_says() {
        let of = |seed| (0..1000).filter(|hit| chance(seed, 0, *hit) < 10).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert!((60..140).contains(&of(7).len()), "{}", of(7).len());
    }
}
