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
