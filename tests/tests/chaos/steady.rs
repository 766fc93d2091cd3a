//! Whether what a run uses stays flat: the median of its first third against that of its last.

/// Samples of one figure, in the order they were taken.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

impl Samples {
    pub(crate) fn add(&mut self, sample: u64) {
        self.0.push(sample);
    }

    /// The medians of the first and the last third; none of fewer than nine samples.
    pub(crate) fn thirds(&self) -> Option<(u64, u64)> {
        let third = self.0.len() / 3;
        (third >= 3).then(|| (median(&self.0[..third]), median(&self.0[self.0.len() - third..])))
    }

    /// Asserts that the last third is above the first by no more than a fifth and an allowance.
    pub(crate) fn assert_flat(&self, what: &str, allowance: u64) {
        let Some((first, last)) = self.thirds() else {
            panic!("{} samples of {what} are too few", self.0.len());
        };
        assert!(last <= first + first / 5 + allowance, "{what} grew from {first} to {last}");
    }
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The resident memory of a process in KiB: `VmRSS` of proc(5); none when it is gone.
pub(crate) fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn what_grows_is_not_flat() {
    let of = |samples: &[u64]| Samples(samples.to_vec());
    of(&[10, 11, 90, 10, 10, 11, 10, 9, 12]).assert_flat("it", 0);
    let growing = of(&[10, 11, 12, 13, 14, 15, 16, 17, 18]);
    assert!(std::panic::catch_unwind(|| growing.assert_flat("it", 3)).is_err());
    growing.assert_flat("it", 5);
}
