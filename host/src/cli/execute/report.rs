//! What came of a step, for people and as JSON.

use std::error::Error;
use std::fmt::Write as _;

use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::executor::{ExecutionError, Outcome, Uncertainty};
use tollgate::ids::{Direction, ExecutorCode, ExternalReceipt, StepKey};
use tollgate::plan::Step;
use tollgate::policy::Diagnostic;

use super::super::check;
use super::super::output::{self, visible, visible_line};
use super::CarriedOut;

/// A step and what came of it.
pub(super) struct Report<'a> {
    pub(super) step: &'a Step,
    pub(super) executor: &'a ExecutorCode,
    pub(super) carried_out: &'a CarriedOut,
    /// The payload that findings point into.
    pub(super) payload: &'a [u8],
    /// What it is called.
    pub(super) path: &'a str,
}

impl Report<'_> {
    /// For people.
    pub(super) fn human(&self) -> String {
        let Step { key, direction, release, .. } = self.step;
        let executor = self.executor;
        let mut text = format!("step     {key}: {release}, {direction}, by {executor}\n");
        match &self.carried_out.outcome {
            Outcome::Applied(receipt) => {
                let is_rehearsal = *self.executor == ExecutorCode::dry_run_v1();
                let applied =
                    if is_rehearsal { "would be applied; nothing was run" } else { "applied" };
                let _ = writeln!(text, "outcome  {applied}\nreceipt  {receipt}");
            }
            Outcome::NotApplied { error, retryable } => {
                let again = if *retryable {
                    "running it again may work"
                } else {
                    "running it again as it is gives the same"
                };
                let _ = writeln!(text, "outcome  not applied ({}; {again})", error.code());
                self.error(&mut text, error);
            }
            Outcome::Indeterminate { reason, retry_after } => {
                let _ = writeln!(
                    text,
                    "outcome  indeterminate ({}): it is not known whether it was applied\n\
                     reason   {reason}\n\
                     help     run the same command again in {} s",
                    reason.code(),
                    retry_after.as_secs().max(1)
                );
                causes(&mut text, reason);
            }
        }
        if let Some(receipt) = &self.carried_out.receipt {
            let (done, all) = (receipt.statements_done, receipt.statement_count);
            let runs = receipt.execution_count;
            let _ = writeln!(
                text,
                "ledger   {}, {done} of {all} statements, {runs} run{}",
                receipt.standing,
                if runs == 1 { "" } else { "s" }
            );
        }
        if !self.carried_out.rehearsed.is_empty() {
            text.push_str("\nwhat would run:\n");
            for statement in &self.carried_out.rehearsed {
                let _ = writeln!(text, "\n{};", visible(statement));
            }
        }
        text
    }

    fn error(&self, text: &mut String, error: &ExecutionError) {
        let _ = writeln!(text, "error    {error}");
        causes(text, error);
        for refusal in error.refusals() {
            let _ = writeln!(
                text,
                "  {}: {}\n    help: {}",
                refusal.code,
                visible_line(&refusal.message),
                refusal.help
            );
        }
        if error.refusals().is_empty() {
            let _ = writeln!(text, "help     {}", error.help());
        }
        let findings = findings(error);
        if !findings.is_empty() {
            text.push_str(&check::underlined(self.path, self.payload, findings));
        }
    }

    /// One line.
    pub(super) fn json(&self) -> String {
        let CarriedOut { outcome, rehearsed, receipt } = self.carried_out;
        let error = match outcome {
            Outcome::NotApplied { error, retryable } => Some(self.error_object(error, *retryable)),
            Outcome::Applied(_) | Outcome::Indeterminate { .. } => None,
        };
        let uncertainty = match outcome {
            Outcome::Indeterminate { reason, retry_after } => {
                let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                Some(UncertaintyObject::new(reason, millis))
            }
            Outcome::Applied(_) | Outcome::NotApplied { .. } => None,
        };
        output::json_line(&Line {
            step_key: &self.step.key,
            plugin: self.step.release.code.as_str(),
            version: self.step.release.version.to_string(),
            direction: self.step.direction,
            content_hash: self.step.content_hash,
            executor: self.executor,
            outcome: outcome.as_str(),
            external_receipt: outcome.receipt(),
            statement_count: receipt.as_ref().map(|receipt| receipt.statement_count),
            statements_done: receipt.as_ref().map(|receipt| receipt.statements_done),
            execution_count: receipt.as_ref().map(|receipt| receipt.execution_count),
            would_run: rehearsed,
            error,
            uncertainty,
        })
    }

    fn error_object(&self, error: &ExecutionError, retryable: bool) -> ErrorObject {
        let diagnostics = check::diagnostics_json(self.payload, findings(error))
            .iter()
            .filter_map(|diagnostic| serde_json::to_value(diagnostic).ok())
            .collect();
        let refusals = error.refusals().iter().map(|refusal| RefusalObject {
            code: refusal.code.as_str(),
            message: refusal.message.clone(),
            help: refusal.help.clone(),
        });
        ErrorObject {
            code: error.code(),
            message: error.to_string(),
            help: error.help(),
            blame: error.blame().as_str(),
            retryable,
            statement: error.statement(),
            refusals: refusals.collect(),
            diagnostics,
        }
    }
}

/// What the policy found in a payload it denied.
pub(in super::super) fn findings(error: &ExecutionError) -> &[Diagnostic] {
    match error {
        ExecutionError::Refused { findings, .. } => findings.diagnostics(),
        _ => &[],
    }
}

fn causes(text: &mut String, error: &dyn Error) {
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = writeln!(text, "because  {error}");
        cause = error.source();
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    step_key: &'a StepKey,
    plugin: &'a str,
    version: String,
    direction: Direction,
    content_hash: Digest,
    executor: &'a ExecutorCode,
    outcome: &'static str,
    external_receipt: Option<&'a ExternalReceipt>,
    statement_count: Option<u32>,
    statements_done: Option<u32>,
    execution_count: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    would_run: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncertainty: Option<UncertaintyObject>,
}

#[derive(Serialize)]
struct ErrorObject {
    code: &'static str,
    message: String,
    help: String,
    blame: &'static str,
    retryable: bool,
    statement: Option<u32>,
    refusals: Vec<RefusalObject>,
    diagnostics: Vec<serde_json::Value>,
}

#[derive(Serialize)]
struct RefusalObject {
    code: &'static str,
    message: String,
    help: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UncertaintyObject {
    code: &'static str,
    message: String,
    help: &'static str,
    retry_after_ms: u64,
}

impl UncertaintyObject {
    fn new(reason: &Uncertainty, retry_after_ms: u64) -> Self {
        Self {
            code: reason.code(),
            message: reason.to_string(),
            help: reason.help(),
            retry_after_ms,
        }
    }
}
