//! The choices of a run, all from one number, and for how long it goes on.

use std::time::Duration;

use tollgate_tests::asked::number;

/// Choices that are the same for the same seed.
pub(crate) struct Choices(u64);

impl Choices {
    /// Those of `TOLLGATE_CHAOS_SEED`, or of a seed nobody has seen before. Printed in either case.
    pub(crate) fn of_this_run(what: &str) -> Self {
        let seed = number("TOLLGATE_CHAOS_SEED")
            .unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
        println!("{what}: TOLLGATE_CHAOS_SEED={seed}");
        Self(seed)
    }

    /// The next number: splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    /// Generators"), which is stable over versions of any crate.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index into something of this length, which is not 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// A duration between two numbers of milliseconds.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}
