//! The one source of time in the host.
//!
//! Host time paces (how long to wait, how long something took). It never decides who owns a lease
//! and never orders anything: those read the database's clock.

use std::time::{Duration, Instant};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_leaves_at_least_half_and_never_adds() {
        let whole = Duration::from_secs(2);
        let waits: Vec<Duration> = (0..100).map(|_| jittered(whole)).collect();
        assert!(waits.iter().all(|wait| (whole / 2..=whole).contains(wait)));
        assert!(waits.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
