//! The preimage of the decision digest: its wire format, in one place.
//!
//! `decision digest = sha256(bincode(preimage))`, with bincode 2.0.1's `legacy` configuration:
//! little endian, integers of fixed width, lengths and enum tags as `u64` and `u32`, strings as
//! their length and their UTF-8 bytes, `Option` as one byte and the value, tuples and structs as
//! their fields one after the other. Why this very version: 3.0.0 in the registry is an empty
//! tombstone, and a digest that is in receipts cannot follow a moving format.
//!
//! In the preimage: what a decision means (component, payload, catalog, protected tables, allow or
//! deny, statements, and each diagnostic's code, severity, statement and span). Not in it: wording
//! (message, help), the mechanical fix, and how much fuel was used.
//!
//! docs/decision-digest.md describes the bytes for whoever computes the digest elsewhere.
//!
//! A change here is a new format tag beside the old one, never an edit: receipts and evidence keep
//! digests for years.

use bincode::Encode;

use crate::digest::Digest;

use super::decision::{Access, Diagnostic, Operation, Outcome, Severity, Span, Statement};

/// The first field of the preimage; says which layout follows.
const FORMAT_TAG: &str = "tollgate-decision-v1";

#[derive(Encode)]
struct Preimage<'a> {
    format: &'a str,
    component: [u8; 32],
    payload: [u8; 32],
    catalog: &'a str,
    protected_tables: Vec<&'a str>,
    decision: DecisionWire<'a>,
}

/// Tags 0 and 1.
#[derive(Encode)]
enum DecisionWire<'a> {
    Allow { statements: Vec<StatementWire<'a>>, advisories: Vec<DiagnosticWire<'a>> },
    Deny { diagnostics: Vec<DiagnosticWire<'a>> },
}

#[derive(Encode)]
struct StatementWire<'a> {
    index: u32,
    operation: u32,
    text: &'a str,
    tables: Vec<TableWire<'a>>,
    span: (u32, u32),
}

#[derive(Encode)]
struct TableWire<'a> {
    catalog: &'a str,
    name: &'a str,
    access: u32,
}

#[derive(Encode)]
struct DiagnosticWire<'a> {
    code: &'a str,
    severity: u32,
    statement: Option<u32>,
    span: Option<(u32, u32)>,
}

/// What a decision digest covers besides the outcome.
pub(super) struct Subject<'a> {
    pub(super) component: Digest,
    pub(super) payload: Digest,
    pub(super) catalog: &'a str,
    pub(super) protected_tables: &'a [&'a str],
}

/// The decision digest, or `None` when it cannot be encoded, which only running out of memory could
/// cause.
pub(super) fn decision_digest(subject: &Subject<'_>, outcome: &Outcome) -> Option<Digest> {
    preimage(subject, outcome).map(Digest::of)
}

/// The bytes whose digest the decision digest is.
pub(super) fn preimage(subject: &Subject<'_>, outcome: &Outcome) -> Option<Vec<u8>> {
    let preimage = Preimage {
        format: FORMAT_TAG,
        component: *subject.component.as_bytes(),
        payload: *subject.payload.as_bytes(),
        catalog: subject.catalog,
        protected_tables: subject.protected_tables.to_vec(),
        decision: outcome.into(),
    };
    bincode::encode_to_vec(preimage, bincode::config::legacy()).ok()
}

impl<'a> From<&'a Outcome> for DecisionWire<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Allow { statements, advisories } => Self::Allow {
                statements: statements.iter().map(Into::into).collect(),
                advisories: advisories.iter().map(Into::into).collect(),
            },
            Outcome::Deny { diagnostics } => {
                Self::Deny { diagnostics: diagnostics.iter().map(Into::into).collect() }
            }
        }
    }
}

impl<'a> From<&'a Statement> for StatementWire<'a> {
    fn from(statement: &'a Statement) -> Self {
        Self {
            index: statement.index,
            operation: match statement.operation {
                Operation::CreateTable => 0,
                Operation::DropTable => 1,
                Operation::Insert => 2,
                Operation::Delete => 3,
            },
            text: &statement.text,
            tables: statement
                .tables
                .iter()
                .map(|table| TableWire {
                    catalog: &table.catalog,
                    name: &table.name,
                    access: match table.access {
                        Access::Create => 0,
                        Access::Drop => 1,
                        Access::Write => 2,
                        Access::Read => 3,
                    },
                })
                .collect(),
            span: pair(statement.span),
        }
    }
}

impl<'a> From<&'a Diagnostic> for DiagnosticWire<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        Self {
            code: &diagnostic.code,
            severity: match diagnostic.severity {
                Severity::Error => 0,
                Severity::Advisory => 1,
            },
            statement: diagnostic.statement,
            span: diagnostic.span.map(pair),
        }
    }
}

const fn pair(span: Span) -> (u32, u32) {
    (span.start, span.end)
}

#[cfg(test)]
mod tests {
    use super::super::decision::{Edit, TableAccess};
    use super::*;

    fn subject() -> Subject<'static> {
        Subject {
            component: Digest::of("component"),
            payload: Digest::of("payload"),
            catalog: "plugin_preview",
            protected_tables: &["factory_plugin_target_receipt"],
        }
    }

    fn allow() -> Outcome {
        Outcome::Allow {
            statements: vec![Statement {
                index: 0,
                operation: Operation::Insert,
                text: "INSERT IGNORE INTO `plugin_preview`.`t` (`id`) VALUES (1)".into(),
                tables: vec![TableAccess {
                    catalog: "plugin_preview".into(),
                    name: "t".into(),
                    access: Access::Write,
                }],
                span: Span { start: 0, end: 37 },
            }],
            advisories: vec![diagnostic("time-function", Severity::Advisory)],
        }
    }

    fn deny() -> Outcome {
        Outcome::Deny { diagnostics: vec![diagnostic("no-rules", Severity::Error)] }
    }

    fn diagnostic(code: &str, severity: Severity) -> Diagnostic {
        Diagnostic {
            code: code.into(),
            severity,
            message: "wording".into(),
            help: None,
            statement: Some(0),
            span: Some(Span { start: 3, end: 9 }),
            fix: None,
        }
    }

    #[test]
    fn a_deny_has_the_documented_bytes() {
        let denied = deny();
        let preimage = Preimage {
            format: FORMAT_TAG,
            component: [1; 32],
            payload: [2; 32],
            catalog: "c",
            protected_tables: vec!["r"],
            decision: (&denied).into(),
        };
        let bytes = bincode::encode_to_vec(preimage, bincode::config::legacy()).unwrap();

        let mut expected: Vec<u8> = Vec::new();
        let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        expected.extend(text("tollgate-decision-v1"));
        expected.extend([1; 32]);
        expected.extend([2; 32]);
        expected.extend(text("c"));
        expected.extend(1_u64.to_le_bytes());
        expected.extend(text("r"));
        expected.extend(1_u32.to_le_bytes()); // deny
        expected.extend(1_u64.to_le_bytes()); // one diagnostic
        expected.extend(text("no-rules"));
        expected.extend(0_u32.to_le_bytes()); // error
        expected.push(1); // about a statement
        expected.extend(0_u32.to_le_bytes());
        expected.push(1); // with a span
        expected.extend(3_u32.to_le_bytes());
        expected.extend(9_u32.to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_example_in_the_documentation_is_what_is_encoded() {
        let page = include_str!("../../../docs/decision-digest.md");
        let block = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
        let digits: String =
            block.lines().map(|line| line.split('#').next().unwrap().trim()).collect();
        let encoded = preimage(&subject(), &allow()).unwrap();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let documented: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        assert_eq!(documented, encoded);
        assert!(page.contains(&Digest::of(encoded).to_string()));
    }

    #[test]
    fn golden_digests_do_not_change() {
        let digest = |outcome| decision_digest(&subject(), &outcome).unwrap().to_string();
        assert_eq!(
            digest(allow()),
            "sha256:b1b8d80f1773b2509bf3d83c50fa7ffa699c2a65fe3e6a9ca56eeee6dfecb264"
        );
        assert_eq!(
            digest(deny()),
            "sha256:1f059ad51557027db8a3bc6bbee1352d0804d4e52e733db423721311ddeb09fa"
        );
    }

    #[test]
    fn wording_and_fixes_are_outside_the_digest() {
        let plain = decision_digest(&subject(), &deny());
        let mut reworded = diagnostic("no-rules", Severity::Error);
        reworded.message = "other words".into();
        reworded.help = Some("other help".into());
        reworded.fix = Some(Edit { span: Span { start: 3, end: 3 }, replacement: "x".into() });
        assert_eq!(
            plain,
            decision_digest(&subject(), &Outcome::Deny { diagnostics: vec![reworded] })
        );
    }

    #[test]
    fn everything_else_is_inside() {
        let plain = decision_digest(&subject(), &allow());
        for change in [
            |s: &mut Statement| s.index = 1,
            |s: &mut Statement| s.operation = Operation::Delete,
            |s: &mut Statement| s.text.push(' '),
            |s: &mut Statement| s.tables.clear(),
            |s: &mut Statement| s.tables[0].access = Access::Read,
            |s: &mut Statement| s.span.end = 36,
        ] {
            let mut changed = allow();
            if let Outcome::Allow { statements, .. } = &mut changed {
                change(&mut statements[0]);
            }
            assert_ne!(plain, decision_digest(&subject(), &changed), "{changed:?}");
        }
        let other = Subject { protected_tables: &[], ..subject() };
        assert_ne!(plain, decision_digest(&other, &allow()));
        let other = Subject { catalog: "plugin_other", ..subject() };
        assert_ne!(plain, decision_digest(&other, &allow()));
        let other = Subject { payload: Digest::of("other"), ..subject() };
        assert_ne!(plain, decision_digest(&other, &allow()));
        let other = Subject { component: Digest::of("other"), ..subject() };
        assert_ne!(plain, decision_digest(&other, &allow()));
    }
}
