//! `--summary`: what a run came to, for programs.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tollgate::audit::{Agreement, Audited, Undecided};
use tollgate::digest::Digest;
use tollgate::policy::{Decision, Policy};

use super::super::output;
use super::super::replace::{Place, Replaces, Written, replace};
use super::super::{Exit, Failure};

/// What one payload adds.
pub(super) struct Counted {
    bytes: u64,
    decision: Word,
    /// The code of every finding.
    codes: Vec<String>,
    /// Why there is no decision.
    error: Option<&'static str>,
    /// Of a line of a ledger's export: what it came to.
    receipt: Option<Came>,
}

/// What a line of a ledger's export came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Agrees,
    Differs,
    Unknown,
    Pruned,
    Damaged,
    BadLine,
}

impl Came {
    const fn of(result: &Result<Decision, Undecided>, agreement: Option<&Agreement>) -> Self {
        match (agreement, result) {
            (Some(Agreement::Agrees), _) => Self::Agrees,
            (Some(Agreement::Differs(_)), _) => Self::Differs,
            (Some(Agreement::Pruned), _) => Self::Pruned,
            (Some(Agreement::Unknown), _) => Self::Unknown,
            (None, Err(Undecided::Line(_))) => Self::BadLine,
            (None, _) => Self::Damaged,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Allow,
    Deny,
    Error,
}

impl Counted {
    pub(super) fn of(audited: &Audited) -> Self {
        let (decision, codes) = match &audited.result {
            Ok(decision) => {
                let outcome = decision.outcome();
                let codes = outcome.diagnostics().iter().map(|found| found.code.clone());
                (if outcome.is_allow() { Word::Allow } else { Word::Deny }, codes.collect())
            }
            Err(_) => (Word::Error, Vec::new()),
        };
        Self {
            bytes: audited.payload.len() as u64,
            decision,
            codes,
            error: audited.result.as_ref().err().map(Undecided::kind),
            receipt: None,
        }
    }

    /// The same of a line of a ledger's export; a row or a line that is no receipt agrees with nothing.
    pub(super) fn of_line(audited: &Audited, agreement: Option<&Agreement>) -> Self {
        Self { receipt: Some(Came::of(&audited.result, agreement)), ..Self::of(audited) }
    }
}

/// What a run came to so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    bytes: u64,
    decisions: Decisions,
    codes: BTreeMap<String, u64>,
    errors: BTreeMap<&'static str, u64>,
    /// Of a ledger's export, also when it has no receipt.
    pub(super) receipts: Option<Receipts>,
    /// How long it took, start of the sandbox included.
    pub(super) elapsed: Duration,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Decisions {
    allow: usize,
    deny: usize,
    error: usize,
}

/// A ledger's receipts by whether their decision was made again, and what kept others from it.
#[derive(Debug, Default, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Receipts {
    pub(super) agree: u64,
    pub(super) differ: u64,
    pub(super) unknown: u64,
    pub(super) pruned: u64,
    /// Rows that were no receipts when they were exported.
    pub(super) damaged: u64,
    /// Lines of the export that do not read.
    pub(super) bad_lines: u64,
    /// Whether the export's closing line says that these are all.
    pub(super) complete: bool,
}

impl Receipts {
    fn add(&mut self, came: Came) {
        *match came {
            Came::Agrees => &mut self.agree,
            Came::Differs => &mut self.differ,
            Came::Unknown => &mut self.unknown,
            Came::Pruned => &mut self.pruned,
            Came::Damaged => &mut self.damaged,
            Came::BadLine => &mut self.bad_lines,
        } += 1;
    }
}

impl Counts {
    pub(super) fn add(&mut self, counted: Counted) {
        let Counted { bytes, decision, codes, error, receipt } = counted;
        self.bytes += bytes;
        match decision {
            Word::Allow => self.decisions.allow += 1,
            Word::Deny => self.decisions.deny += 1,
            Word::Error => self.decisions.error += 1,
        }
        for code in codes {
            *self.codes.entry(code).or_default() += 1;
        }
        if let Some(kind) = error {
            *self.errors.entry(kind).or_default() += 1;
        }
        if let Some(came) = receipt {
            self.receipts.get_or_insert_default().add(came);
        }
    }

    /// Allowed, denied, and without a decision.
    pub(super) const fn words(&self) -> (usize, usize, usize) {
        let Decisions { allow, deny, error } = self.decisions;
        (allow, deny, error)
    }

    /// Writes it as one object; to `-`, which is standard error: decisions have the other one.
    pub(super) fn write(
        &self,
        path: &Path,
        exit: Exit,
        policies: &[Policy],
    ) -> Result<(), Failure> {
        let Decisions { allow, deny, error } = self.decisions;
        let policies = policies.iter().map(|policy| {
            let pin = policy.pin();
            PolicyObject {
                executor: pin.executor.as_str(),
                name: &pin.name,
                version: pin.version.to_string(),
                digest: pin.sha256,
            }
        });
        let line = output::json_line(&SummaryObject {
            payloads: allow + deny + error,
            bytes: self.bytes,
            decisions: self.decisions,
            codes: &self.codes,
            errors: &self.errors,
            receipts: self.receipts,
            policies: policies.collect(),
            elapsed_ms: u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            exit_code: exit as u8,
        });
        let written = if path == Path::new("-") {
            io::stderr().write_all(line.as_bytes())
        } else {
            replace(path, line.as_bytes())
        };
        written.map_err(|error| {
            Failure::usage(format!("the summary `{}` cannot be written: {error}", path.display()))
                .with_help("check the folder and its permissions")
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryObject<'a> {
    payloads: usize,
    bytes: u64,
    decisions: Decisions,
    codes: &'a BTreeMap<String, u64>,
    errors: &'a BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipts: Option<Receipts>,
    policies: Vec<PolicyObject<'a>>,
    elapsed_ms: u64,
    exit_code: u8,
}

#[derive(Serialize)]
struct PolicyObject<'a> {
    executor: &'a str,
    name: &'a str,
    version: String,
    digest: Digest,
}

/// A summary, as its keys tell.
const SUMMARY: Written = Written {
    name: "summary",
    begins: |bytes| {
        let value = serde_json::from_slice::<serde_json::Value>(bytes).ok();
        value.is_some_and(|it| it.get("payloads").is_some() && it.get("elapsedMs").is_some())
    },
};

/// Refuses to replace anything but an earlier summary: the option stands before the payloads, and
/// without its value the first of them would be it.
///
/// # Errors
///
/// A usage error that names the file.
pub(super) fn check_place(path: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let replaces = Replaces::Earlier(SUMMARY);
    Place { option: "--summary", path, replaces }.check(inputs)
}
