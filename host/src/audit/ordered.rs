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

struct Progress<R> {
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// Items that were taken.
    taken: usize,
    /// The next result to be handed over.
    due: usize,
    done: BTreeMap<usize, R>,
    /// There are no more items than those that were taken.
    exhausted: bool,
    stopped: bool,
}

/// Maps `items` on `workers` threads; `emit` gets the results in order, on the calling thread.
///
/// Items are asked for when there is room for their results, by one thread at a time.
pub(super) fn map<T, R: Send>(
    items: impl Iterator<Item = T> + Send,
    workers: NonZeroUsize,
    work: impl Fn(T) -> R + Sync,
    mut emit: impl FnMut(R) -> ControlFlow<()>,
) -> io::Result<()> {
    let workers = workers.get().min(items.size_hint().1.unwrap_or(usize::MAX));
    let window = workers * WINDOW_PER_WORKER;
    let items = Mutex::new(items);
    let progress = Progress {
        state: Mutex::new(State {
            taken: 0,
            due: 0,
            done: BTreeMap::new(),
            exhausted: workers == 0,
            stopped: false,
        }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        // Whatever happens on this thread or another, nobody waits for someone who is gone.
        let _stop = StopOnDrop(&progress);
        for _ in 0..workers {
            thread::Builder::new().spawn_scoped(scope, || {
                let stop = StopOnDrop(&progress);
                while let Some((index, item)) = progress.take(&items, window) {
                    progress.put(index, work(item));
                }
                // Out of work is no reason to stop the others.
                std::mem::forget(stop);
            })?;
        }
        while let Some(result) = progress.wait_for_due() {
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

    /// The next item and its place, once there is room for its result; `None` when there is none left.
    fn take<T>(&self, items: &Mutex<impl Iterator<Item = T>>, window: usize) -> Option<(usize, T)> {
        // Held until the item has its place. Whoever waits for room here keeps the others from
        // waiting for the same room, and putting a result needs no item.
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        while !state.stopped && !state.exhausted && state.taken >= state.due + window {
            state = self.wait(state);
        }
        if state.stopped || state.exhausted {
            return None;
        }
        drop(state);
        // Reading an item may take a while; results are put meanwhile.
        let item = items.next();
        let mut state = self.lock();
        let Some(item) = item else {
            state.exhausted = true;
            drop(state);
            self.changed.notify_all();
            return None;
        };
        state.taken += 1;
        Some((state.taken - 1, item))
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
            if state.stopped || (state.exhausted && due == state.taken) {
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
        map(items.iter(), WORKERS, work, |item| {
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
        map(items.iter(), WORKERS, work, |()| ControlFlow::Continue(())).unwrap();
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
        map(items.iter(), WORKERS, work, |_| {
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
        map(items.iter(), WORKERS, |_| (), |()| ControlFlow::Continue(())).unwrap();
        let unknown = std::iter::from_fn(|| None::<u8>);
        map(unknown, WORKERS, |_| (), |()| ControlFlow::Continue(())).unwrap();
    }

    #[test]
    fn items_of_an_unknown_number_are_all_mapped_and_not_read_ahead() {
        let (read, emitted) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items = std::iter::from_fn(|| {
            let index = read.fetch_add(1, Ordering::SeqCst);
            let ahead = index.saturating_sub(emitted.load(Ordering::SeqCst));
            // One result may be on its way to being counted.
            assert!(ahead <= WORKERS.get() * WINDOW_PER_WORKER + 1, "{ahead}");
            (index < 1_000).then_some(index)
        });
        let mut got = Vec::new();
        map(
            items,
            WORKERS,
            |item| item,
            |item| {
                emitted.fetch_add(1, Ordering::SeqCst);
                got.push(item);
                ControlFlow::Continue(())
            },
        )
        .unwrap();
        assert_eq!(got, (0..1_000).collect::<Vec<_>>());
    }
}
