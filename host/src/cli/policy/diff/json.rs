//! One object a line, as docs/schema/policy-diff.schema.json describes it.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate::audit::{Answers, Compared};
use tollgate::digest::Digest;
use tollgate::policy::{Decision, NoDecision, Outcome, PolicyPin};

use super::super::super::check;
use super::{Tally, output};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a, D> {
    path: &'a str,
    difference: &'static str,
    payload_digest: Option<Digest>,
    before: Option<Side<'a, D>>,
    after: Option<Side<'a, D>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

/// What one policy says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Side<'a, D> {
    decision: &'static str,
    decision_digest: Option<Digest>,
    statements: Vec<&'a str>,
    diagnostics: Vec<D>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

#[derive(Serialize)]
struct ErrorObject {
    kind: &'static str,
    message: String,
}

/// A payload that the policies differ on.
pub(super) fn line(compared: &Compared) -> String {
    let side = |answer| side(answer, &compared.payload);
    let path = compared.path.to_string_lossy();
    let answers = compared.answers.as_ref();
    output::json_line(&Line {
        path: &path,
        difference: compared.difference().as_str(),
        payload_digest: compared.payload_digest(),
        before: answers.ok().map(|Answers { before, .. }| side(before)),
        after: answers.ok().map(|Answers { after, .. }| side(after)),
        error: answers
            .err()
            .map(|error| ErrorObject { kind: error.kind(), message: error.to_string() }),
    })
}

fn side<'a>(
    answer: &'a Result<Decision, NoDecision>,
    payload: &[u8],
) -> Side<'a, impl Serialize + use<'a>> {
    let outcome = answer.as_ref().ok().map(Decision::outcome);
    let (decision, statements) = match outcome {
        Some(Outcome::Allow { statements, .. }) => ("allow", statements.as_slice()),
        Some(Outcome::Deny { .. }) => ("deny", &[][..]),
        None => ("error", &[][..]),
    };
    Side {
        decision,
        decision_digest: answer.as_ref().ok().map(Decision::digest),
        statements: statements.iter().map(|statement| statement.text.as_str()).collect(),
        diagnostics: check::diagnostics_json(payload, outcome.map_or(&[], Outcome::diagnostics)),
        error: answer
            .as_ref()
            .err()
            .map(|error| ErrorObject { kind: error.kind(), message: error.to_string() }),
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    before: PolicyName<'a>,
    after: PolicyName<'a>,
    payloads: u64,
    /// By kind of difference; every kind is there.
    differences: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct PolicyName<'a> {
    name: &'a str,
    version: String,
    digest: Digest,
}

impl<'a> From<&'a PolicyPin> for PolicyName<'a> {
    fn from(pin: &'a PolicyPin) -> Self {
        Self { name: &pin.name, version: pin.version.to_string(), digest: pin.sha256 }
    }
}

/// The last line.
pub(super) fn summary((before, after): &(PolicyPin, PolicyPin), tally: &Tally) -> String {
    let summary = Summary {
        before: before.into(),
        after: after.into(),
        payloads: tally.payloads(),
        differences: tally
            .kinds
            .iter()
            .map(|kind| (kind.difference.as_str(), kind.count))
            .collect(),
    };
    output::json_line(&BTreeMap::from([("summary", summary)]))
}
