//! How often a worker looks for work.

use std::time::Duration;

use crate::clock::jittered;

/// The first wait after a look that found nothing.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest one: how late a step may be noticed that another process made due.
const INTERVAL_MAX: Duration = Duration::from_secs(5);

/// The interval of looking: none after work, then from [`INTERVAL_MIN`], doubling up to
/// [`INTERVAL_MAX`].
#[derive(Debug, Default)]
pub(super) struct Pace(Option<Duration>);

impl Pace {
    /// Work was found: there may be more.
    pub(super) fn found_work(&mut self) {
        self.0 = None;
    }

    /// Nothing was found: how long to wait, jitter included.
    pub(super) fn found_nothing(&mut self) -> Duration {
        let next = self.0.map_or(INTERVAL_MIN, |last| (last * 2).min(INTERVAL_MAX));
        self.0 = Some(next);
        jittered(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_asks_ever_less_often() {
        let mut pace = Pace::default();
        let waits: Vec<Duration> = (0..20).map(|_| pace.found_nothing()).collect();
        assert!(waits[0] <= INTERVAL_MIN && waits[0] >= INTERVAL_MIN / 2);
        assert!(waits[19] <= INTERVAL_MAX && waits[19] >= INTERVAL_MAX / 2);
        pace.found_work();
        assert!(pace.found_nothing() <= INTERVAL_MIN);
    }
}
