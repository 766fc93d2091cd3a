//! What a policy decided, and the proof that it allowed.
//!
//! [`Admitted`] has no constructor outside this module: a statement list that says "admitted" has
//! been through a policy component whose digest was pinned.

use std::fmt;

use serde::Serialize;

use crate::digest::Digest;
use crate::ids::Catalog;

use super::description::Session;
use super::instance::Consumption;
use super::wire::{self, Subject};

/// Byte offsets into a payload, start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `CREATE TABLE IF NOT EXISTS`
    CreateTable,
    /// `DROP TABLE IF EXISTS`
    DropTable,
    /// `INSERT IGNORE` or `INSERT … ON DUPLICATE KEY UPDATE`
    Insert,
    /// `DELETE … WHERE`
    Delete,
}

impl Operation {
    /// Whether the server commits the open transaction before and after it (MySQL manual,
    /// "Statements That Cause an Implicit Commit").
    pub const fn commits_implicitly(self) -> bool {
        matches!(self, Self::CreateTable | Self::DropTable)
    }

    /// The kebab-case name used in wit/policy.wit and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateTable => "create-table",
            Self::DropTable => "drop-table",
            Self::Insert => "insert",
            Self::Delete => "delete",
        }
    }
}

/// What a statement does to one of its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The table is created.
    Create,
    /// The table is dropped.
    Drop,
    /// Rows of the table are written or deleted.
    Write,
    /// The table is read or referenced.
    Read,
}

impl Access {
    /// The kebab-case name used in wit/policy.wit and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Drop => "drop",
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// A table a statement names, and what it does to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct TableAccess {
    /// The catalog; always the one that was asked for.
    pub catalog: String,
    /// The table as the author spelt it.
    pub name: String,
    /// What happens to it.
    pub access: Access,
}

/// A statement as it may run.
///
/// `Debug` leaves its text out: literals of a payload may be secrets, and what is printed for
/// debugging ends up in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Statement {
    /// Position in the payload, from 0.
    pub index: u32,
    /// What it does.
    pub operation: Operation,
    /// The normalised text: one statement, no comments, no trailing semicolon.
    pub text: String,
    /// The tables it names.
    pub tables: Vec<TableAccess>,
    /// Where the author's text of it stands in the payload.
    pub span: Span,
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statement")
            .field("index", &self.index)
            .field("operation", &self.operation)
            .field("tables", &self.tables)
            .field("span", &self.span)
            .finish_non_exhaustive()
    }
}

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The payload is denied.
    Error,
    /// The payload is allowed; a reviewer should know.
    Advisory,
}

impl Severity {
    /// The kebab-case name used in wit/policy.wit and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Advisory => "advisory",
        }
    }
}

/// A change of the payload that would make it acceptable without changing its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; empty for an insertion.
    pub span: Span,
    /// The text to put there.
    pub replacement: String,
}

/// One finding of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable, kebab-case, never reused.
    pub code: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What is wrong, lowercase, no full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The statement it is about, from 0; `None` when it is about the payload.
    pub statement: Option<u32>,
    /// Where it is in the payload.
    pub span: Option<Span>,
    /// Present when the repair is mechanical.
    pub fix: Option<Edit>,
}

/// The answer of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It may run.
    Allow {
        /// What to run, in order; at least one.
        statements: Vec<Statement>,
        /// What a reviewer should know; severity advisory throughout.
        advisories: Vec<Diagnostic>,
    },
    /// It may not.
    Deny {
        /// Every problem that was found; at least one of severity error.
        diagnostics: Vec<Diagnostic>,
    },
}

impl Outcome {
    /// Whether the payload may run.
    pub const fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }

    /// How it is counted: its word, and the code of the first error.
    pub(super) fn counted(&self) -> (&'static str, &str) {
        match self {
            Self::Allow { .. } => ("allow", ""),
            Self::Deny { diagnostics } => {
                let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
                let first = diagnostics.iter().find(is_error);
                ("deny", first.map_or("", |found| found.code.as_str()))
            }
        }
    }

    /// Every finding: the advisories of an allow, the diagnostics of a deny.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Allow { advisories, .. } => advisories,
            Self::Deny { diagnostics } => diagnostics,
        }
    }
}

/// What a pinned policy decided on one payload for one catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub(super) outcome: Outcome,
    pub(super) catalog: Catalog,
    pub(super) session: Session,
    pub(super) digest: Digest,
    pub(super) policy_digest: Digest,
    pub(super) payload_digest: Digest,
    pub(super) consumed: Consumption,
}

impl Decision {
    /// Allow or deny.
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The catalog it was decided for.
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The decision digest: equal wherever and whenever the same component answers the same request.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes whose SHA-256 is the decision digest, as docs/decision-digest.md has them, for the
    /// protected tables that were asked with. With others it is another preimage: a decision does not
    /// keep what it was asked.
    ///
    /// `None` only when memory ran out.
    pub fn preimage(&self, protected_tables: &[&str]) -> Option<Vec<u8>> {
        let subject = Subject {
            component: self.policy_digest,
            payload: self.payload_digest,
            catalog: self.catalog.as_str(),
            protected_tables,
        };
        wire::preimage(&subject, &self.outcome)
    }

    /// The session the policy's reading of the statements holds for.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The digest of the component that decided.
    pub const fn policy_digest(&self) -> Digest {
        self.policy_digest
    }

    /// The digest of the payload's exact bytes.
    pub const fn payload_digest(&self) -> Digest {
        self.payload_digest
    }

    /// What deciding took. It is no part of the decision digest: another engine may count otherwise.
    pub const fn consumed(&self) -> Consumption {
        self.consumed
    }

    /// Turns an allow into the proof an executor asks for.
    ///
    /// # Errors
    ///
    /// [`Denied`] with the policy's findings when it did not allow.
    pub fn admit(self) -> Result<Admitted, Denied> {
        match self.outcome {
            Outcome::Allow { statements, .. } => Ok(Admitted {
                statements,
                catalog: self.catalog,
                session: self.session,
                policy_digest: self.policy_digest,
                decision_digest: self.digest,
                payload_digest: self.payload_digest,
            }),
            Outcome::Deny { diagnostics } => {
                Err(Denied { diagnostics, decision_digest: self.digest })
            }
        }
    }
}

/// Statements a pinned policy allowed, for one catalog and one session contract.
///
/// Nothing else may reach a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    statements: Vec<Statement>,
    catalog: Catalog,
    session: Session,
    policy_digest: Digest,
    decision_digest: Digest,
    payload_digest: Digest,
}

impl Admitted {
    /// What to run, in order; at least one.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The one catalog the statements name.
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The session the policy's reading of the statements holds for.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The digest of the component that allowed them.
    pub const fn policy_digest(&self) -> Digest {
        self.policy_digest
    }

    /// The digest of the decision.
    pub const fn decision_digest(&self) -> Digest {
        self.decision_digest
    }

    /// The digest of the payload they come from.
    pub const fn payload_digest(&self) -> Digest {
        self.payload_digest
    }
}

/// The policy denied the payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy denied the payload: {}", summary(diagnostics))]
pub struct Denied {
    diagnostics: Vec<Diagnostic>,
    decision_digest: Digest,
}

impl Denied {
    /// Every problem that was found.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The digest of the decision.
    pub const fn decision_digest(&self) -> Digest {
        self.decision_digest
    }
}

/// The codes of the errors, each once: messages may quote the payload, and a denial is recorded.
fn summary(diagnostics: &[Diagnostic]) -> String {
    let mut codes: Vec<&str> = Vec::new();
    for diagnostic in diagnostics.iter().filter(|d| d.severity == Severity::Error) {
        if !codes.contains(&diagnostic.code.as_str()) {
            codes.push(&diagnostic.code);
        }
    }
    codes.join(", ")
}
