//! The corpora in tests/corpus and the policy's answers to them.

use std::fs;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tollgate_policy::{Decision, Request};

use crate::source::repository;

/// The catalog every payload of the corpora is decided for.
pub const CATALOG: &str = "plugin_preview";
/// The table of that catalog that belongs to the host.
pub const PROTECTED_TABLE: &str = "factory_plugin_target_receipt";

/// What the policy must answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// The payload must be allowed.
    Allow,
    /// The payload must be denied.
    Deny,
    /// Both are fine; if it is allowed it must run faithfully.
    Either,
}

/// A line of decisions.jsonl.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionCase {
    /// Names the case in output.
    pub id: String,
    /// Groups cases of a kind.
    pub class: String,
    /// What the policy must answer.
    pub expect: Expected,
    /// The payload.
    pub sql: String,
    /// What the case is for.
    pub why: String,
    /// Statements that set up a session in which the danger shows; the host never runs in it.
    #[serde(default)]
    pub session: Vec<String>,
}

/// A line of fidelity.jsonl.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FidelityCase {
    /// Names the case in output.
    pub id: String,
    /// Statements to run first; `{db}` is the catalog.
    pub setup: Vec<String>,
    /// The payload; `{db}` is the catalog.
    pub sql: String,
    /// What a diagnostic must name when the payload is denied.
    pub shape: String,
    /// What sqlparser does by itself.
    pub sqlparser: String,
    /// Which servers accept the original.
    pub servers: String,
}

/// The cases of decisions.jsonl.
pub fn decisions() -> Vec<DecisionCase> {
    read("decisions.jsonl")
}

/// The cases of fidelity.jsonl.
pub fn fidelity() -> Vec<FidelityCase> {
    read("fidelity.jsonl")
}

/// Every payload of both corpora with its id, as it is decided for [`CATALOG`].
pub fn payloads() -> Vec<(String, String)> {
    let shapes = fidelity().into_iter().map(|case| (case.id, case.sql.replace("{db}", CATALOG)));
    decisions().into_iter().map(|case| (case.id, case.sql)).chain(shapes).collect()
}

/// The policy's answer to a payload of the corpora.
pub fn decide(payload: &str) -> Decision {
    tollgate_policy::decide(&Request {
        payload: payload.as_bytes(),
        catalog: CATALOG,
        protected_tables: &[PROTECTED_TABLE],
    })
}

fn read<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = repository().join("tests/corpus").join(name);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{name}, line {}: {error}", index + 1))
        })
        .collect()
}
