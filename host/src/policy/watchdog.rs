//! The infrastructure guard: a thread that makes an engine's epochs pass while guest code runs.
//!
//! Fuel decides; this is for the day fuel does not, or the machine is so slow that waiting for it
//! is no use. It is idle, without waking up, while nothing runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wasmtime::Engine;

/// How long an epoch lasts. A deadline is kept to within one of them.
const EPOCH_INTERVAL: Duration = Duration::from_millis(20);

/// Ticks an engine's epochs while at least one [`Watch`] is alive.
#[derive(Debug)]
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    watches: usize,
    stopped: bool,
}

/// Epochs pass while it lives.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    shared: &'a Shared,
}

impl Watchdog {
    /// Starts the thread.
    pub(super) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (ticking, engine) = (Arc::clone(&shared), engine.clone());
        let thread = thread::Builder::new()
            .name("tollgate-epochs".into())
            .spawn(move || ticking.tick(&engine))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Lets epochs pass until the watch is dropped.
    pub(super) fn watch(&self) -> Watch<'_> {
        let mut state = self.shared.lock();
        state.watches += 1;
        if state.watches == 1 {
            self.shared.changed.notify_all();
        }
        drop(state);
        Watch { shared: &self.shared }
    }

    /// The epochs after which a deadline has certainly passed.
    pub(super) fn epochs(deadline: Duration) -> u64 {
        let epochs = deadline.as_millis().div_ceil(EPOCH_INTERVAL.as_millis());
        // The running epoch may be nearly over.
        u64::try_from(epochs).unwrap_or(u64::MAX).saturating_add(1)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and a counter has no broken state to protect.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self, engine: &Engine) {
        let mut state = self.lock();
        while !state.stopped {
            if state.watches == 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // Woken by every new watch as well, so what counts is the clock.
            let over = Instant::now() + EPOCH_INTERVAL;
            while let Some(left) = over.checked_duration_since(Instant::now())
                && !state.stopped
            {
                let waited = self.changed.wait_timeout(state, left);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
            engine.increment_epoch();
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.watches = state.watches.saturating_sub(1);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and were it to, there would be nothing left to guard.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_cut_short() {
        assert_eq!(Watchdog::epochs(Duration::ZERO), 1);
        assert_eq!(Watchdog::epochs(Duration::from_millis(20)), 2);
        assert_eq!(Watchdog::epochs(Duration::from_millis(21)), 3);
    }

    #[test]
    fn stopping_does_not_wait_for_the_epoch_to_end() {
        let watchdog = Watchdog::start(&Engine::default()).unwrap();
        let shared = Arc::clone(&watchdog.shared);
        shared.lock().watches += 1;
        let start = Instant::now();
        drop(watchdog);
        // An epoch, were it slept through, would be most of this.
        assert!(start.elapsed() < EPOCH_INTERVAL * 3 / 4, "{:?}", start.elapsed());
    }

    #[test]
    fn a_dropped_watchdog_ends_its_thread() {
        let engine = Engine::default();
        let watchdog = Watchdog::start(&engine).unwrap();
        let weak = Arc::downgrade(&watchdog.shared);
        drop(watchdog.watch());
        drop(watchdog);
        assert_eq!(weak.strong_count(), 0);
    }
}
