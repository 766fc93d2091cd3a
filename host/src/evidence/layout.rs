//! Which members a bundle has, in which order, and how large they may be.
//!
//! A change here is a new version beside this one, never an edit: bundles are kept for years.

use crate::policy::COMPONENT_BYTES_MAX;
use crate::text::visible_line;

/// What `manifest.json` calls the format.
pub const EVIDENCE_FORMAT: &str = "tollgate-evidence";

/// The version of the format that this host writes and reads.
pub const EVIDENCE_VERSION: u32 = 1;

/// Bytes of a bundle, at most: the largest payload and the largest component, their statements, and
/// room for what describes them.
pub const BUNDLE_BYTES_MAX: u64 = 256 << 20;

/// Bytes of `decision.json`, at most. What is read into values takes many times its length; what is
/// compared as bytes does not.
pub const DECISION_BYTES_MAX: u64 = 16 << 20;

/// Bytes of any other member that is read into values, at most.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// Statements of a bundle, at most: their files are numbered with four digits.
pub const STATEMENT_COUNT_MAX: usize = 10_000;

pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const REQUEST: &str = "request.json";
pub(super) const PAYLOAD: &str = "payload.sql";
pub(super) const COMPONENT: &str = "policy/component.wasm";
pub(super) const WIT: &str = "policy/policy.wit";
pub(super) const PIN: &str = "policy/pin.toml";
pub(super) const DECISION: &str = "decision.json";
pub(super) const PREIMAGE: &str = "decision.bin";
pub(super) const RECEIPT: &str = "receipt.json";
pub(super) const VERSIONS: &str = "versions.json";
pub(super) const SUMS: &str = "SHA256SUMS";

/// What stands before the statements, in order.
const BEFORE: [&str; 8] = [MANIFEST, REQUEST, PAYLOAD, COMPONENT, WIT, PIN, DECISION, PREIMAGE];

/// The contract between host and policy, as this host was built with it.
pub(super) const POLICY_WIT: &str = include_str!("../../../wit/policy.wit");

/// The file of a statement.
pub(super) fn statement(index: usize) -> String {
    format!("statements/{index:04}.sql")
}

/// Bytes that a member may have; of those that are only compared, what the bundle may have.
pub(super) fn bytes_max(name: &str) -> u64 {
    match name {
        DECISION => DECISION_BYTES_MAX,
        MANIFEST | REQUEST | PIN | RECEIPT | VERSIONS | SUMS => DOCUMENT_BYTES_MAX,
        // It is compiled, which takes many times its length, too.
        COMPONENT => COMPONENT_BYTES_MAX,
        _ => BUNDLE_BYTES_MAX,
    }
}

/// A member that does not belong where it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misplaced {
    #[error("`{}` is no member of a bundle", visible_line(.0))]
    Unknown(String),
    #[error("`{}` is no plain file", visible_line(.0))]
    NoFile(String),
    #[error("`{}` is there twice", visible_line(.0))]
    Twice(String),
    #[error("`{found}` stands where `{expected}` belongs")]
    Order { expected: String, found: String },
    #[error("`{0}` is missing")]
    Missing(String),
}

/// Holds the names of the members against the only order there is.
pub(super) fn check_order(names: &[&str]) -> Result<(), Misplaced> {
    let mut expected = Expected::default();
    for (at, &name) in names.iter().enumerate() {
        if !expected.take(name) {
            if names.iter().take(at).any(|earlier| *earlier == name) {
                return Err(Misplaced::Twice(name.to_owned()));
            }
            if !is_known(name) {
                return Err(Misplaced::Unknown(name.to_owned()));
            }
            let due = expected.due();
            return Err(if names.contains(&due.as_str()) {
                Misplaced::Order { expected: due, found: name.to_owned() }
            } else {
                Misplaced::Missing(due)
            });
        }
    }
    if expected.is_complete() { Ok(()) } else { Err(Misplaced::Missing(expected.due())) }
}

/// What may come next.
#[derive(Default)]
struct Expected {
    /// Of [`BEFORE`], then 8 for statements, 9 for the versions, 10 for the sums, 11 for nothing.
    stage: usize,
    statements: usize,
}

impl Expected {
    fn take(&mut self, name: &str) -> bool {
        match self.stage {
            stage if BEFORE.get(stage) == Some(&name) => self.stage += 1,
            8 if name == statement(self.statements) && self.statements < STATEMENT_COUNT_MAX => {
                self.statements += 1;
            }
            8 if name == RECEIPT => self.stage = 9,
            8 | 9 if name == VERSIONS => self.stage = 10,
            10 if name == SUMS => self.stage = 11,
            _ => return false,
        }
        true
    }

    /// The one member without which it cannot go on.
    fn due(&self) -> String {
        match self.stage {
            stage if stage < BEFORE.len() => BEFORE.get(stage).copied().unwrap_or(SUMS).to_owned(),
            8 | 9 => VERSIONS.to_owned(),
            _ => SUMS.to_owned(),
        }
    }

    const fn is_complete(&self) -> bool {
        self.stage == 11
    }
}

fn is_known(name: &str) -> bool {
    BEFORE.contains(&name)
        || [RECEIPT, VERSIONS, SUMS].contains(&name)
        || (0..STATEMENT_COUNT_MAX).contains(&number(name).unwrap_or(usize::MAX))
}

/// The number of a statement's file.
fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("statements/")?.strip_suffix(".sql")?;
    (digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit())).then_some(())?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Vec<String> {
        let mut names: Vec<String> = BEFORE.map(str::to_owned).to_vec();
        names.extend([statement(0), statement(1)]);
        names.extend([RECEIPT, VERSIONS, SUMS].map(str::to_owned));
        names
    }

    fn check(names: &[String]) -> Result<(), Misplaced> {
        check_order(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn statements_and_the_receipt_may_be_absent_and_nothing_else() {
        assert_eq!(check(&whole()), Ok(()));
        for (at, name) in whole().iter().enumerate() {
            let mut names = whole();
            names.remove(at);
            let checked = check(&names);
            match name.as_str() {
                RECEIPT | "statements/0001.sql" => assert_eq!(checked, Ok(()), "{name}"),
                "statements/0000.sql" => assert!(checked.is_err(), "a gap in the numbers"),
                _ => assert_eq!(checked, Err(Misplaced::Missing(name.clone()))),
            }
        }
    }

    #[test]
    fn what_is_misplaced_is_named() {
        let mut names = whole();
        names.swap(0, 1);
        assert!(matches!(check(&names), Err(Misplaced::Order { .. })));
        let mut names = whole();
        names.insert(4, PAYLOAD.to_owned());
        assert_eq!(check(&names), Err(Misplaced::Twice(PAYLOAD.to_owned())));
        for stranger in ["../x", "statements/1.sql", "statements/00000.sql", "", "Manifest.json"] {
            let mut names = whole();
            names.insert(8, stranger.to_owned());
            assert_eq!(check(&names), Err(Misplaced::Unknown(stranger.to_owned())));
        }
        let mut names = whole();
        names.push("more".to_owned());
        assert_eq!(check(&names), Err(Misplaced::Unknown("more".to_owned())));
    }
}
