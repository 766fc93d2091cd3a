//! What two policies make of the same payloads: what an upgrade would change.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::policy::{Decision, Diagnostic, NoDecision, Outcome, Severity, Statement};

use super::{
    Auditor, ExportedLine, ExportedReceipt, LedgerExportError, Undecided, ordered, read_payload,
    workers,
};

/// Asks two policies about the same payloads.
#[derive(Debug, Clone)]
pub struct Comparison {
    before: Auditor,
    after: Auditor,
}

/// A payload and what each of the two policies makes of it.
#[derive(Debug)]
pub struct Compared {
    /// Where it came from.
    pub path: PathBuf,
    /// Its exact bytes; empty when they could not be read.
    pub payload: Vec<u8>,
    /// The answers, or why nobody was asked.
    pub answers: Result<Answers, Undecided>,
}

/// The answers of two policies.
#[derive(Debug)]
pub struct Answers {
    /// Of the first one.
    pub before: Result<Decision, NoDecision>,
    /// Of the second one.
    pub after: Result<Decision, NoDecision>,
}

/// How two answers differ. Wording and places are no difference: what is compared is what runs, and
/// the codes that programs match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Denied before, allowed after.
    DenyToAllow,
    /// At least one of the two did not come to a decision.
    Error,
    /// Allowed before, denied after.
    AllowToDeny,
    /// Allowed by both, and something else runs.
    TextChanged,
    /// The same decision, with other codes or severities.
    CodesChanged,
    /// Nothing of these.
    Same,
}

impl Difference {
    /// Every kind, the one that needs most attention first.
    pub const ALL: [Self; 6] = [
        Self::DenyToAllow,
        Self::Error,
        Self::AllowToDeny,
        Self::TextChanged,
        Self::CodesChanged,
        Self::Same,
    ];

    /// As it is written in JSON: stable, kebab-case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DenyToAllow => "deny-to-allow",
            Self::Error => "error",
            Self::AllowToDeny => "allow-to-deny",
            Self::TextChanged => "text-changed",
            Self::CodesChanged => "codes-changed",
            Self::Same => "same",
        }
    }
}

impl Compared {
    /// How the answers differ.
    pub fn difference(&self) -> Difference {
        match &self.answers {
            Ok(Answers { before: Ok(before), after: Ok(after) }) => {
                difference(before.outcome(), after.outcome())
            }
            _ => Difference::Error,
        }
    }

    /// The digest of the payload, when it could be read.
    pub fn payload_digest(&self) -> Option<Digest> {
        self.answers.is_ok().then(|| Digest::of(&self.payload))
    }
}

impl Comparison {
    /// Compares what two policies say; both are asked for the same catalog.
    pub const fn new(before: Auditor, after: Auditor) -> Self {
        Self { before, after }
    }

    /// Decides on a payload that is at hand, twice.
    pub fn compare_payload(&self, path: PathBuf, payload: Vec<u8>) -> Compared {
        let answers =
            Answers { before: self.before.decide(&payload), after: self.after.decide(&payload) };
        Compared { path, payload, answers: Ok(answers) }
    }

    /// Reads a payload and decides on it twice.
    pub fn compare_file(&self, path: &Path) -> Compared {
        match File::open(path).map_err(Undecided::Unreadable).and_then(read_payload) {
            Ok(payload) => self.compare_payload(path.to_owned(), payload),
            Err(error) => {
                Compared { path: path.to_owned(), payload: Vec::new(), answers: Err(error) }
            }
        }
    }

    /// Compares many payloads, on all cores and within the memory of a few, as
    /// [`Auditor::audit_files`] decides on them.
    pub fn compare_files<R: Send>(
        &self,
        paths: &[PathBuf],
        render: impl Fn(Compared) -> R + Sync,
        emit: impl FnMut(R) -> ControlFlow<()>,
    ) -> io::Result<()> {
        ordered::map(paths.iter(), workers(), |path| render(self.compare_file(path)), emit)
    }

    /// Decides twice on the payload of a receipt, for the catalog it was decided for. It is called by
    /// the step's key.
    pub fn compare_receipt(&self, receipt: ExportedReceipt) -> Compared {
        let ExportedReceipt { key, catalog, content_hash, payload, missing, .. } = receipt;
        let path = PathBuf::from(key.as_str());
        let reason = match payload.map(String::into_bytes) {
            Some(payload) if Digest::of(&payload) == content_hash => {
                let of = |auditor: &Auditor| {
                    Auditor::new(auditor.policy().clone(), catalog.clone()).decide(&payload)
                };
                let answers = Answers { before: of(&self.before), after: of(&self.after) };
                return Compared { path, payload, answers: Ok(answers) };
            }
            Some(_) => "the export has another one than the receipt is about".to_owned(),
            None => missing.unwrap_or_else(|| "it does not say why".to_owned()),
        };
        Compared { path, payload: Vec::new(), answers: Err(Undecided::PayloadMissing(reason)) }
    }

    /// Decides twice on what a line of an export is about.
    fn compare_line(&self, line: ExportedLine) -> Compared {
        match line {
            ExportedLine::Receipt { receipt, .. } => self.compare_receipt(*receipt),
            ExportedLine::Damaged(row) => {
                let (path, error) = row.into_undecided();
                Compared { path, payload: Vec::new(), answers: Err(error) }
            }
        }
    }

    /// Compares what a ledger's export has, as [`Comparison::compare_files`] does with files.
    ///
    /// # Errors
    ///
    /// A thread could not be started.
    pub fn compare_export<R: Send>(
        &self,
        lines: impl Iterator<Item = Result<ExportedLine, LedgerExportError>> + Send,
        render: impl Fn(Result<Compared, LedgerExportError>) -> R + Sync,
        emit: impl FnMut(R) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let work = |line: Result<_, _>| render(line.map(|line| self.compare_line(line)));
        ordered::map(lines, workers(), work, emit)
    }
}

fn difference(before: &Outcome, after: &Outcome) -> Difference {
    match (before, after) {
        (Outcome::Deny { .. }, Outcome::Allow { .. }) => Difference::DenyToAllow,
        (Outcome::Allow { .. }, Outcome::Deny { .. }) => Difference::AllowToDeny,
        (
            Outcome::Allow { statements, advisories },
            Outcome::Allow { statements: others, advisories: other_advisories },
        ) => {
            if !statements.iter().map(what_runs).eq(others.iter().map(what_runs)) {
                Difference::TextChanged
            } else if codes(advisories).eq(codes(other_advisories)) {
                Difference::Same
            } else {
                Difference::CodesChanged
            }
        }
        (Outcome::Deny { diagnostics }, Outcome::Deny { diagnostics: others }) => {
            if codes(diagnostics).eq(codes(others)) {
                Difference::Same
            } else {
                Difference::CodesChanged
            }
        }
    }
}

/// What the host does for a statement: its text, and all that depends on its kind and tables.
fn what_runs(statement: &Statement) -> impl PartialEq + use<'_> {
    (&statement.text, statement.operation, &statement.tables)
}

fn codes(diagnostics: &[Diagnostic]) -> impl Iterator<Item = (&str, Severity)> {
    diagnostics.iter().map(|it| (it.code.as_str(), it.severity))
}
