//! Choices out of bytes.

use arbitrary::Unstructured;

/// A source of choices. Once its bytes are used up, every choice is the first one, so the first
/// alternative should be the simplest.
#[derive(Debug)]
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// The choices these bytes stand for.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // Only an empty range is an error; used-up bytes give the range's start.
        self.0.int_in_range(0..=bound - 1).expect("the range is not empty")
    }

    /// One of these, which are not empty.
    pub fn of_list<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// True once in `times`; never when the bytes are used up.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }
}
