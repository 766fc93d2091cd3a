//! The one source of time in the host.
//!
//! Host time paces (how long to wait, how long something took). It never decides who owns a lease
//! and never orders anything: those read the database's clock.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time.
pub trait Clock: Send + Sync + 'static {
    /// Now, on a clock that only goes forward.
    fn now(&self) -> Instant;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;
}

/// The machine's own monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The duration, cut at random by up to half of it.
///
/// Many processes that begin to wait at the same moment do not come back at the same moment. Halving
/// at most keeps a backoff a backoff.
pub fn jittered(duration: Duration) -> Duration {
    let (_, random) = uuid::Uuid::new_v4().as_u64_pair();
    let low = u32::try_from(random & u64::from(u32::MAX)).unwrap_or_default();
    duration.mul_f64(1.0 - f64::from(low) / f64::from(u32::MAX) / 2.0)
}

/// Now on this machine's clock, UTC, to the second, such as `2026-01-31T09:30:00Z`: for people to read,
/// and nothing is ever compared with it.
pub fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Notes on a file that it was used now, so that what was used last can be told; how files are ordered
/// decides only which of them are kept.
pub(crate) fn touch(file: &File) -> io::Result<()> {
    file.set_modified(SystemTime::now())
}

/// How long ago a file was written, by this machine's clock; nothing for one of the future.
pub(crate) fn age(modified: SystemTime) -> Duration {
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

/// Seconds since 1970 as a date of the Gregorian calendar, by Howard Hinnant's `civil_from_days`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn jitter_leaves_at_least_half_and_never_adds() {
        let whole = Duration::from_secs(2);
        let waits: Vec<Duration> = (0..100).map(|_| jittered(whole)).collect();
        assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)));
        assert!(waits.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
