//! `--fix`: the repairs a policy calls mechanical.
//!
//! A repair is what the policy attached to a diagnostic; nothing is invented here. What remains
//! denied afterwards is for the author.

use std::fs;
use std::io;

use similar::TextDiff;
use tollgate::audit::{Audited, Auditor};
use tollgate::policy::{Edit, Outcome};

use super::super::replace::replace;

/// Rounds of repairing and deciding again. One is usual; a repair that lets the parser get further
/// may bring up another.
const ROUNDS_MAX: usize = 8;

/// The mechanical repairs of one payload.
pub(super) struct Repair {
    /// Edits that were made.
    pub(super) edits: usize,
    /// A unified diff from the payload to its repaired form.
    pub(super) diff: String,
    /// Whether the repaired payload is allowed.
    pub(super) allowed: bool,
    /// Whether the file now is the repaired payload.
    pub(super) written: bool,
    /// Why it could not be written.
    pub(super) write_error: Option<io::Error>,
}

/// Repairs a denied payload as far as that is mechanical.
///
/// What comes back describes the file as it then is: the repaired payload when it was written, the
/// payload as it was otherwise.
pub(super) fn repair(
    auditor: &Auditor,
    audited: Audited,
    write: bool,
) -> (Audited, Option<Repair>) {
    let Some((repaired, edits)) = repaired(auditor, &audited) else {
        return (audited, None);
    };
    let write_error = if write { write_back(&audited, &repaired.payload).err() } else { None };
    let written = write && write_error.is_none();
    let repair = Repair {
        edits,
        diff: diff(&audited, &repaired.payload),
        allowed: repaired.result.as_ref().is_ok_and(|decision| decision.outcome().is_allow()),
        written,
        write_error,
    };
    (if written { repaired } else { audited }, Some(repair))
}

fn repaired(auditor: &Auditor, audited: &Audited) -> Option<(Audited, usize)> {
    let mut current: Option<(Audited, usize)> = None;
    for _ in 0..ROUNDS_MAX {
        let (from, edits_so_far) = current.as_ref().map_or((audited, 0), |(a, n)| (a, *n));
        let Ok(decision) = &from.result else { break };
        let Some((payload, edits)) = apply(&from.payload, mechanical(decision.outcome())) else {
            break;
        };
        let next = auditor.audit_payload(audited.path.clone(), payload);
        if next.result.is_err() {
            // Better a denial one can read than a repair nobody can judge.
            break;
        }
        current = Some((next, edits_so_far + edits));
    }
    current
}

/// The edits of a denial; what is allowed needs none.
fn mechanical(outcome: &Outcome) -> Vec<&Edit> {
    match outcome {
        Outcome::Allow { .. } => Vec::new(),
        Outcome::Deny { diagnostics } => {
            diagnostics.iter().filter_map(|diagnostic| diagnostic.fix.as_ref()).collect()
        }
    }
}

/// Applies the edits in the order of their places. Of two that overlap the first is applied; the
/// next round sees whether the other is still wanted.
fn apply(payload: &[u8], mut edits: Vec<&Edit>) -> Option<(Vec<u8>, usize)> {
    edits.sort_by_key(|edit| (edit.span, &edit.replacement));
    edits.dedup();
    let mut result = Vec::with_capacity(payload.len() + 32 * edits.len());
    let (mut done, mut count) = (0, 0);
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        if count > 0 && start <= done && !(start == done && end > start) {
            continue;
        }
        result.extend_from_slice(payload.get(done..start)?);
        result.extend_from_slice(edit.replacement.as_bytes());
        (done, count) = (end, count + 1);
    }
    result.extend_from_slice(payload.get(done..)?);
    (count > 0 && result != payload).then_some((result, count))
}

fn diff(audited: &Audited, repaired: &[u8]) -> String {
    let (before, after) =
        (String::from_utf8_lossy(&audited.payload), String::from_utf8_lossy(repaired));
    let path = audited.path.to_string_lossy();
    TextDiff::from_lines(before.as_ref(), after.as_ref())
        .unified_diff()
        .context_radius(2)
        .header(&path, &path)
        .to_string()
}

/// Puts the repaired payload in the place of the one that was decided on, and of no other.
fn write_back(audited: &Audited, repaired: &[u8]) -> io::Result<()> {
    if fs::read(&audited.path)? != audited.payload {
        return Err(io::Error::other("the file changed in the meantime"));
    }
    replace(&audited.path, repaired)
}

#[cfg(test)]
mod tests {
    use tollgate::policy::Span;

    use super::*;

    fn edit(start: u32, end: u32, replacement: &str) -> Edit {
        Edit { span: Span { start, end }, replacement: replacement.into() }
    }

    fn applied(payload: &str, edits: &[Edit]) -> Option<(String, usize)> {
        let (bytes, count) = apply(payload.as_bytes(), edits.iter().collect())?;
        Some((String::from_utf8(bytes).unwrap(), count))
    }

    #[test]
    fn edits_are_applied_where_they_belong_in_any_order() {
        let edits = [edit(18, 18, " IF EXISTS"), edit(6, 6, " IGNORE")];
        let (text, count) = applied("INSERT é; DROP TAB", &edits[1..]).unwrap();
        assert_eq!((text.as_str(), count), ("INSERT IGNORE é; DROP TAB", 1));
        let (text, count) =
            applied("INSERT x; DROP TABLE t", &[edit(20, 20, " IF EXISTS"), edit(6, 6, " IGNORE")])
                .unwrap();
        assert_eq!((text.as_str(), count), ("INSERT IGNORE x; DROP TABLE IF EXISTS t", 2));
    }

    #[test]
    fn the_same_edit_twice_is_one() {
        let twice = [edit(6, 6, " IGNORE"), edit(6, 6, " IGNORE")];
        assert_eq!(applied("INSERT", &twice).unwrap(), ("INSERT IGNORE".to_owned(), 1));
    }

    #[test]
    fn of_overlapping_edits_the_first_is_applied() {
        let edits = [edit(0, 4, "x"), edit(2, 6, "y"), edit(4, 6, "z")];
        assert_eq!(applied("abcdef", &edits).unwrap(), ("xz".to_owned(), 2));
    }

    #[test]
    fn no_edits_are_no_repair() {
        assert_eq!(applied("x", &[]), None);
        assert_eq!(applied("x", &[edit(0, 1, "x")]), None);
        assert_eq!(applied("x", &[edit(5, 6, "y")]), None);
    }
}
