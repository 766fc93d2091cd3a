//! One object a line, as docs/schema/check.schema.json describes it. Stable: keys are added, never
//! renamed or removed.

use serde::Serialize;
use tollgate::audit::{Agreement, Audited, Contradiction, ReceiptField};
use tollgate::digest::Digest;
use tollgate::policy::{
    Decision, Diagnostic, LineIndex, Operation, Outcome, PositionSpan, Severity, Statement,
    TableAccess,
};
use tollgate::text::with_causes;

use super::super::output;
use super::fix::Repair;
use super::report::{Renderer, Report, Written};

pub(super) struct Json;

impl Renderer for Json {
    fn render(&self, report: &Report<'_>) -> Written {
        output::json_line(&Line::from(report)).into()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    path: &'a str,
    decision: &'static str,
    payload_digest: Option<Digest>,
    policy: Option<PolicyName<'a>>,
    decision_digest: Option<Digest>,
    statements: Vec<StatementObject<'a>>,
    diagnostics: Vec<DiagnosticObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<FixObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedObject<'a>>,
}

/// What a receipt says about the same payload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordedObject<'a> {
    agrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hash: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<DifferenceObject<'a>>,
}

/// Something that the receipt says and that is not so.
#[derive(Serialize)]
struct DifferenceObject<'a> {
    field: &'static str,
    recorded: &'a str,
    found: &'a str,
}

impl<'a> From<&'a Agreement> for RecordedObject<'a> {
    fn from(agreement: &'a Agreement) -> Self {
        let (agrees, found) = match agreement {
            Agreement::Agrees => (Some(true), &[][..]),
            Agreement::Differs(found) => (Some(false), found.as_slice()),
            Agreement::Unknown | Agreement::Pruned => (None, &[][..]),
        };
        let recorded = |field| {
            found.iter().find(|it| it.field == field).map(|it: &Contradiction| it.recorded.as_str())
        };
        Self {
            agrees,
            content_hash: recorded(ReceiptField::ContentHash),
            decision_digest: recorded(ReceiptField::DecisionDigest),
            differences: found.iter().map(DifferenceObject::from).collect(),
        }
    }
}

impl<'a> From<&'a Contradiction> for DifferenceObject<'a> {
    fn from(it: &'a Contradiction) -> Self {
        Self { field: it.field.as_str(), recorded: &it.recorded, found: &it.found }
    }
}

#[derive(Serialize)]
struct PolicyName<'a> {
    executor: &'a str,
    name: &'a str,
    version: String,
    digest: Digest,
}

#[derive(Serialize)]
struct StatementObject<'a> {
    index: u32,
    operation: Operation,
    tables: &'a [TableAccess],
    text: &'a str,
    span: PositionSpan,
}

#[derive(Serialize)]
struct DiagnosticObject<'a> {
    code: &'a str,
    severity: Severity,
    message: &'a str,
    help: Option<&'a str>,
    statement: Option<u32>,
    span: Option<PositionSpan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<EditObject<'a>>,
}

/// Findings as a line has them.
pub(super) fn diagnostics<'a>(
    lines: &LineIndex<'_>,
    diagnostics: &'a [Diagnostic],
) -> Vec<impl Serialize + use<'a>> {
    diagnostics.iter().map(|it| DiagnosticObject::new(it, lines)).collect()
}

#[derive(Serialize)]
struct EditObject<'a> {
    span: PositionSpan,
    replacement: &'a str,
}

#[derive(Serialize)]
struct ErrorObject {
    kind: &'static str,
    message: String,
}

#[derive(Serialize)]
struct FixObject<'a> {
    edits: usize,
    allowed: bool,
    written: bool,
    diff: &'a str,
}

impl<'a> From<&'a Report<'a>> for Line<'a> {
    fn from(report: &'a Report<'a>) -> Self {
        let Report { path, audited, lines, pin, repair, recorded } = report;
        let decision = audited.result.as_ref().ok();
        let (statements, diagnostics) = decision.map_or((&[][..], &[][..]), findings);
        Self {
            path,
            decision: decision_word(audited),
            payload_digest: audited.payload_digest(),
            policy: pin.map(|pin| PolicyName {
                executor: pin.executor.as_str(),
                name: &pin.name,
                version: pin.version.to_string(),
                digest: pin.sha256,
            }),
            decision_digest: decision.map(Decision::digest),
            statements: statements.iter().map(|it| StatementObject::new(it, lines)).collect(),
            diagnostics: diagnostics.iter().map(|it| DiagnosticObject::new(it, lines)).collect(),
            error: audited
                .result
                .as_ref()
                .err()
                .map(|error| ErrorObject { kind: error.kind(), message: with_causes(error) }),
            fix: repair.map(FixObject::from),
            recorded: recorded.map(RecordedObject::from),
        }
    }
}

fn decision_word(audited: &Audited) -> &'static str {
    match &audited.result {
        Ok(decision) if decision.outcome().is_allow() => "allow",
        Ok(_) => "deny",
        Err(_) => "error",
    }
}

fn findings(decision: &Decision) -> (&[Statement], &[Diagnostic]) {
    match decision.outcome() {
        Outcome::Allow { statements, advisories } => (statements, advisories),
        Outcome::Deny { diagnostics } => (&[], diagnostics),
    }
}

impl<'a> StatementObject<'a> {
    fn new(statement: &'a Statement, lines: &LineIndex<'_>) -> Self {
        Self {
            index: statement.index,
            operation: statement.operation,
            tables: &statement.tables,
            text: &statement.text,
            span: lines.span(statement.span),
        }
    }
}

impl<'a> DiagnosticObject<'a> {
    fn new(diagnostic: &'a Diagnostic, lines: &LineIndex<'_>) -> Self {
        Self {
            code: &diagnostic.code,
            severity: diagnostic.severity,
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
            statement: diagnostic.statement,
            span: diagnostic.span.map(|span| lines.span(span)),
            fix: diagnostic.fix.as_ref().map(|edit| EditObject {
                span: lines.span(edit.span),
                replacement: &edit.replacement,
            }),
        }
    }
}

impl<'a> From<&'a Repair> for FixObject<'a> {
    fn from(repair: &'a Repair) -> Self {
        Self {
            edits: repair.edits,
            allowed: repair.allowed,
            written: repair.written,
            diff: &repair.diff,
        }
    }
}
