//! Turns for decisions that run at once, so that more callers than slots wait instead of failing
//! and memory stays flat.

use std::num::NonZeroU32;
use std::sync::{Condvar, Mutex, PoisonError};

/// A counting semaphore.
#[derive(Debug)]
pub(super) struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

/// A taken slot; free again when dropped.
#[derive(Debug)]
pub(super) struct Slot<'a>(&'a Slots);

impl Slots {
    pub(super) fn new(count: NonZeroU32) -> Self {
        Self { free: Mutex::new(count.get()), freed: Condvar::new() }
    }

    /// Waits for a free slot.
    pub(super) fn take(&self) -> Slot<'_> {
        // Nothing panics while it holds the lock.
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
