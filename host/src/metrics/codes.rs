//! Labels whose values come from elsewhere, bounded in number.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Different values of a label that are not known beforehand, at most: a policy that makes up codes
/// must not fill a monitor.
pub(super) const CODES_MAX: usize = 200;

/// What a value is counted as that is one too many.
const OTHER_CODE: &str = "other";

/// The values of one label. Each label has its own: whoever uses one up takes nothing from another.
#[derive(Debug)]
pub(super) struct Codes {
    seen: Mutex<BTreeSet<String>>,
    count_max: usize,
}

impl Codes {
    /// With values that are known beforehand, and none of which is one too many.
    pub(super) fn knowing<'a>(known: impl IntoIterator<Item = &'a str>) -> Self {
        let seen: BTreeSet<String> = known.into_iter().map(str::to_owned).collect();
        let count_max = seen.len().saturating_add(CODES_MAX);
        Self { seen: Mutex::new(seen), count_max }
    }

    /// The value as a label.
    pub(super) fn label(&self, code: &str) -> String {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(code) {
            return code.to_owned();
        }
        if seen.len() >= self.count_max {
            return OTHER_CODE.to_owned();
        }
        seen.insert(code.to_owned());
        code.to_owned()
    }
}
