//! A parallel map that hands its results over in order and never runs far ahead.
//!
//! A parallel iterator that collects would keep every rendered decision of a run in memory; this
//! keeps at most a window of them, however many payloads there are.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Results per worker that may wait for an earlier one.
const WINDOW_PER_WORKER: usize = 16;

/// Native stack of a worker, in bytes: four times what guest code may use of it.
const STACK_BYTES: usize = 4 << 20;

struct Progress<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The next item to be taken.
    next: usize,
    /// The next result to be handed over.
    due: usize,
    done: BTreeMap<usize, R>,
    stopped: bool,
}

/// Maps `items` on `workers` threads; `emit` gets the results in order, on the calling thread.
pub(super) fn map<T: Sync, R: Send>(
    items: &[T],
    workers: NonZeroUsize,
    work: impl Fn(&T) -> R + Sync,
    mut emit: impl FnMut(R) -> ControlFlow<()>,
) -> io::Result<()> {
    let workers = workers.get().min(items.len());
    let window = workers * WINDOW_PER_WORKER;
    let progress = Progress {
        state: Mutex::new(State { next: 0, due: 0, done: BTreeMap::new(), stopped: false }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        // Whatever happens on this thread or another, nobody waits for someone who is gone.
        let _stop = StopOnDrop(&progress);
        for _ in 0..workers {
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                let stop = StopOnDrop(&progress);
                while let Some(index) = progress.take(items.len(), window) {
                    let Some(item) = items.get(index) else { break };
                    progress.put(index, work(item));
                }
                // Out of work is no reason to stop the others.
                std::mem::forget(stop);
            })?;
        }
        for _ in items {
            let Some(result) = progress.wait_for_due() else { break };
            if emit(result).is_break() {
                break;
            }
        }
        Ok(())
    })
}

impl<R> Progress<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<R>>) -> MutexGuard<'a, State<R>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item, once it is within the window; `None` when there is none left.
    fn take(&self, count: usize, window: usize) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.next >= count {
                return None;
            }
            if state.next < state.due + window {
                state.next += 1;
                return Some(state.next - 1);
            }
            state = self.wait(state);
        }
    }

    fn put(&self, index: usize, result: R) {
        let mut state = self.lock();
        let is_due = index == state.due;
        state.done.insert(index, result);
        drop(state);
        if is_due {
            self.changed.notify_all();
        }
    }

    /// The result that is due; `None` when it will not come.
    fn wait_for_due(&self) -> Option<R> {
        let mut state = self.lock();
        loop {
            let due = state.due;
            if let Some(result) = state.done.remove(&due) {
                state.due += 1;
                drop(state);
                self.changed.notify_all();
                return Some(result);
            }
            if state.stopped {
                return None;
            }
            state = self.wait(state);
        }
    }
}

struct StopOnDrop<'a, R>(&'a Progress<R>);

impl<R> Drop for StopOnDrop<'_, R> {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    const WORKERS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

    #[test]
    fn results_come_in_order_whatever_takes_longest() {
        let items: Vec<u64> = (0..200).collect();
        let mut got = Vec::new();
        let work = |item: &u64| {
            thread::sleep(Duration::from_micros(item % 7 * 100));
            *item
        };
        map(&items, WORKERS, work, |item| {
            got.push(item);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(got, items);
    }

    #[test]
    fn a_slow_first_item_does_not_let_the_rest_pile_up() {
        let items: Vec<usize> = (0..1_000).collect();
        let (started, furthest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |item: &usize| {
            started.fetch_add(1, Ordering::SeqCst);
            if *item == 0 {
                thread::sleep(Duration::from_millis(100));
                furthest.store(started.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        };
        map(&items, WORKERS, work, |()| ControlFlow::Continue(())).unwrap();
        let furthest = furthest.load(Ordering::SeqCst);
        assert!((2..=WORKERS.get() * WINDOW_PER_WORKER).contains(&furthest), "{furthest}");
        assert_eq!(started.load(Ordering::SeqCst), items.len());
    }

    #[test]
    fn breaking_ends_the_run_early() {
        let items: Vec<usize> = (0..10_000).collect();
        let started = AtomicUsize::new(0);
        let mut emitted = 0;
        let work = |_: &usize| started.fetch_add(1, Ordering::SeqCst);
        map(&items, WORKERS, work, |_| {
            emitted += 1;
            if emitted == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert_eq!(emitted, 3);
        assert!(started.load(Ordering::SeqCst) < items.len());
    }

    #[test]
    fn no_items_are_no_work() {
        let items: [u8; 0] = [];
        map(&items, WORKERS, |_| (), |()| ControlFlow::Continue(())).unwrap();
    }
}
