//! The component's allocator.
//!
//! A decision is mostly many small allocations, its instructions are counted, and its instance is gone
//! when it ends. So small blocks are cut off chunks and wait, once freed, in a list for the next of
//! their size: a few instructions each, where the system's allocator searches, splits and merges.
//! What is large is left to that one, which gives memory of one size back to another.

use core::ptr;

/// Alignment of every block, and the step between their sizes.
const GRAIN: usize = 16;

/// Largest small block.
const SMALL_MAX: usize = 1024;

/// What is cut into blocks at a time.
const CHUNK_BYTES: usize = 32 * 1024;

/// A freed block, which holds the next of its size.
struct Free {
    next: *mut Free,
}

/// What is left of the last chunk, and the freed blocks by size.
struct Blocks {
    next: *mut u8,
    left: usize,
    free: [*mut Free; SMALL_MAX / GRAIN],
}

/// Where in `Blocks::free` blocks of a size are, and how many bytes they have.
const fn class(size: usize) -> (usize, usize) {
    let grains = if size == 0 { 1 } else { size.div_ceil(GRAIN) };
    (grains - 1, grains * GRAIN)
}

impl Blocks {
    const fn new() -> Self {
        Self { next: ptr::null_mut(), left: 0, free: [ptr::null_mut(); SMALL_MAX / GRAIN] }
    }

    /// A block of at least so many bytes, at most `SMALL_MAX`, or null. `chunk` gives new chunks.
    ///
    /// # Safety
    ///
    /// What `chunk` answers is null, or `CHUNK_BYTES` aligned to `GRAIN` that nothing else uses.
    unsafe fn take(&mut self, size: usize, chunk: impl FnOnce() -> *mut u8) -> *mut u8 {
        let (index, bytes) = class(size);
        let Some(list) = self.free.get_mut(index) else {
            return ptr::null_mut();
        };
        let block = *list;
        if !block.is_null() {
            // SAFETY: blocks in the list are used by nobody, and hold what `give` wrote.
            *list = unsafe { (*block).next };
            return block.cast();
        }
        if self.left < bytes {
            self.next = chunk();
            self.left = if self.next.is_null() { 0 } else { CHUNK_BYTES };
        }
        if self.left < bytes {
            return ptr::null_mut();
        }
        let block = self.next;
        // SAFETY: the chunk has that many bytes left.
        self.next = unsafe { block.add(bytes) };
        self.left -= bytes;
        block
    }

    /// Puts a block into the list of its size.
    ///
    /// # Safety
    ///
    /// The block came from [`Self::take`] with a size of the same class, and is no longer used.
    unsafe fn give(&mut self, block: *mut u8, size: usize) {
        if let Some(list) = self.free.get_mut(class(size).0) {
            #[expect(clippy::cast_ptr_alignment, reason = "blocks are aligned to `GRAIN`")]
            let block = block.cast::<Free>();
            // SAFETY: a block has at least `GRAIN` bytes and that alignment.
            unsafe { block.write(Free { next: *list }) };
            *list = block;
        }
    }
}

#[cfg(target_family = "wasm")]
mod component {
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::ptr;
    use std::alloc::System;

    use super::{Blocks, CHUNK_BYTES, GRAIN, SMALL_MAX, class};

    struct Allocator(UnsafeCell<Blocks>);

    // SAFETY: the component has one thread; its features have no others.
    unsafe impl Sync for Allocator {}

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Blocks::new()));

    const fn is_small(layout: Layout) -> bool {
        layout.size() <= SMALL_MAX && layout.align() <= GRAIN
    }

    fn chunk() -> *mut u8 {
        // SAFETY: the layout has a size and an alignment that is a power of two.
        unsafe { System.alloc(Layout::from_size_align_unchecked(CHUNK_BYTES, GRAIN)) }
    }

    // SAFETY: small blocks are disjoint parts of chunks of the system's allocator, and have their
    // class's size and `GRAIN`'s alignment; the others are the system's own. A layout says which.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if is_small(layout) {
                // SAFETY: one thread, and `chunk` does not come back here.
                unsafe { (*self.0.get()).take(layout.size(), chunk) }
            } else {
                // SAFETY: the caller's promise.
                unsafe { System.alloc(layout) }
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            if is_small(layout) {
                // SAFETY: one thread; the caller promises that the block is of this layout.
                unsafe { (*self.0.get()).give(block, layout.size()) }
            } else {
                // SAFETY: the caller's promise.
                unsafe { System.dealloc(block, layout) }
            }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: the caller promises a size that makes a layout.
            let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            match (is_small(layout), is_small(wanted)) {
                // SAFETY: the caller's promise.
                (false, false) => unsafe { System.realloc(block, layout, size) },
                (true, true) if class(layout.size()) == class(size) => block,
                // SAFETY: the blocks are disjoint, each at least as long as what is copied.
                _ => unsafe {
                    let other = self.alloc(wanted);
                    if !other.is_null() {
                        ptr::copy_nonoverlapping(block, other, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    other
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_its_sizes() {
        for size in 0..=SMALL_MAX {
            let (index, bytes) = class(size);
            assert!(bytes >= size && bytes < size + 2 * GRAIN && index < SMALL_MAX / GRAIN);
        }
        assert_eq!((class(0), class(16), class(17)), ((0, 16), (0, 16), (1, 32)));
    }

    #[test]
    fn blocks_are_disjoint_and_used_again() {
        let mut chunk = vec![0_u128; CHUNK_BYTES / 16];
        let start = chunk.as_mut_ptr().cast::<u8>();
        let mut blocks = Blocks::new();
        // SAFETY: the chunk is asked for once, and every block is of it.
        unsafe {
            let one = blocks.take(20, || start);
            let two = blocks.take(1, ptr::null_mut);
            assert_eq!((one, two.addr()), (start, start.addr() + 32));
            blocks.give(one, 20);
            blocks.give(two, 1);
            assert_eq!(blocks.take(32, ptr::null_mut), one, "of the same class");
            assert_eq!(blocks.take(33, ptr::null_mut).addr(), start.addr() + 48, "of another");
            assert_eq!(blocks.take(16, ptr::null_mut), two);
            while !blocks.take(SMALL_MAX, ptr::null_mut).is_null() {}
            assert!(blocks.left < SMALL_MAX, "and no chunk is overrun");
        }
    }
}
