//! `--summary`: what a run came to, for programs.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tollgate::audit::{Agreement, Audited};
use tollgate::digest::Digest;
use tollgate::policy::Policy;

use super::super::output;
use super::super::replace::replace;
use super::super::{Exit, Failure};

/// What one payload adds.
pub(super) struct Counted {
    bytes: u64,
    decision: Word,
    /// The code of every finding.
    codes: Vec<String>,
    /// Why there is no decision.
    error: Option<&'static str>,
    /// Of a receipt: whether it agrees.
    agreement: Option<Agreement>,
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
            error: audited.result.as_ref().err().map(tollgate::audit::Undecided::kind),
            agreement: None,
        }
    }

    /// The same of a receipt.
    pub(super) fn of_receipt(audited: &Audited, agreement: Agreement) -> Self {
        Self { agreement: Some(agreement), ..Self::of(audited) }
    }
}

/// What a run came to so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    bytes: u64,
    decisions: Decisions,
    codes: BTreeMap<String, u64>,
    errors: BTreeMap<&'static str, u64>,
    receipts: Option<Receipts>,
    /// How long it took, start of the sandbox included.
    pub(super) elapsed: Duration,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Decisions {
    allow: usize,
    deny: usize,
    error: usize,
}

/// Receipts by whether their decision was made again.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Receipts {
    agree: u64,
    differ: u64,
    unknown: u64,
}

impl Counts {
    pub(super) fn add(&mut self, counted: Counted) {
        let Counted { bytes, decision, codes, error, agreement } = counted;
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
        if let Some(agreement) = agreement {
            let receipts = self.receipts.get_or_insert_default();
            match agreement {
                Agreement::Agrees => receipts.agree += 1,
                Agreement::OtherPayload { .. } | Agreement::OtherDecision { .. } => {
                    receipts.differ += 1;
                }
                Agreement::Unknown => receipts.unknown += 1,
            }
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

/// Refuses to replace anything but an earlier summary: the option stands before the payloads, and
/// without its value the first of them would be it.
///
/// # Errors
///
/// A usage error that names the file.
pub(super) fn check_place(path: &Path) -> Result<(), Failure> {
    let is_summary = |bytes: &[u8]| {
        let value = serde_json::from_slice::<serde_json::Value>(bytes).ok();
        value.is_some_and(|it| it.get("payloads").is_some() && it.get("elapsedMs").is_some())
    };
    match std::fs::read(path) {
        Ok(bytes) if !is_summary(&bytes) => {
            let message = format!("`{}` is there already, and no summary", path.display());
            Err(Failure::usage(message).with_help("name another file for `--summary`"))
        }
        // What cannot be read cannot be replaced either, or is not there yet.
        Ok(_) | Err(_) => Ok(()),
    }
}
