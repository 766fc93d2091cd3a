//! Verifying a bundle: nothing of it is believed that can be computed again.

use std::error::Error;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bundle::EvidenceBundle;
use super::difference::{self, Difference, DifferenceKind};
use super::export;
use super::facts::{self, RecordedReceipt};
use super::layout::{
    COMPONENT, DECISION, PAYLOAD, PIN, POLICY_WIT, PREIMAGE, RECEIPT, REQUEST, SUMS, VERSIONS, WIT,
};
use super::records::{Computed, Records};
use crate::digest::Digest;
use crate::ids::{Catalog, EnvironmentCode, ExecutorCode, StepKey};
use crate::ledger::Status;
use crate::policy::{DecisionRequest, PROTECTED_TABLES, Pins, PolicyPin, PolicyRuntime};

/// Where a policy is asked again.
#[derive(Debug, Clone, Copy)]
pub struct Sandbox<'a> {
    /// What it is called in what is told.
    pub engine: &'a str,
    /// The sandbox.
    pub runtime: &'a PolicyRuntime,
}

/// What came of verifying a bundle.
#[derive(Debug)]
pub struct Verification {
    /// The digest of the whole file.
    pub bundle_digest: Digest,
    /// What the bundle says, as far as it can be read.
    pub summary: Summary,
    /// The sandboxes that decided again.
    pub engines: Vec<String>,
    /// Everything that is not as recorded; none when the bundle holds.
    pub differences: Vec<Difference>,
    /// What nothing in a bundle can prove, and what does not count but should be known.
    pub unproven: Vec<String>,
}

/// What a bundle says about itself. A part that cannot be read is absent, and a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The step, when there is a receipt.
    pub step_key: Option<StepKey>,
    /// What the receipt says of it.
    pub status: Option<Status>,
    /// How often the receipt says that it was started. None of a success is a compensation of a step
    /// that never ran.
    pub execution_count: Option<u32>,
    /// The executor it was decided for.
    pub executor: Option<ExecutorCode>,
    /// The environment it is meant for.
    pub environment: Option<EnvironmentCode>,
    /// The catalog it was decided for.
    pub catalog: Option<Catalog>,
    /// The policy's name.
    pub policy_name: Option<String>,
    /// The policy's version.
    pub policy_version: Option<String>,
    /// The digest of the component's bytes, computed.
    pub policy_digest: Option<Digest>,
    /// The digest of the payload's bytes, computed.
    pub payload_digest: Option<Digest>,
    /// `allow` or `deny`, as recorded.
    pub decision: Option<&'static str>,
    /// The recorded decision digest.
    pub decision_digest: Option<Digest>,
    /// The recorded number of statements.
    pub statement_count: Option<usize>,
    /// The codes of the recorded findings, each once.
    pub codes: Vec<String>,
    /// The Tollgate that made the bundle.
    pub made_by: Option<String>,
}

impl Verification {
    /// Whether everything is as recorded.
    pub fn holds(&self) -> bool {
        self.differences.is_empty()
    }

    /// Whether a difference is of this kind.
    pub fn has(&self, kind: DifferenceKind) -> bool {
        self.differences.iter().any(|difference| difference.kind == kind)
    }
}

impl EvidenceBundle {
    /// Computes every digest again, asks the policy again in each sandbox, and compares.
    ///
    /// Takes as long as compiling the component and deciding in each sandbox do. A component that some
    /// digest contradicts is not the one that decided: it is neither compiled nor asked.
    pub fn verify(&self, sandboxes: &[Sandbox<'_>]) -> Verification {
        let mut differences = Vec::new();
        if let Some(place) = self.departure() {
            let (recorded, found) = ("the canonical form", "another, as of what was packed again");
            differences.push(Difference::new(DifferenceKind::Form, place, recorded, found));
        }
        self.compare_sums(&mut differences);
        let records = self.records(&mut differences);
        let computed = Computed {
            payload: Digest::of(self.required(PAYLOAD)),
            component: Digest::of(self.required(COMPONENT)),
            preimage: Digest::of(self.required(PREIMAGE)),
        };
        records.compare(&computed, &mut differences);
        let mut engines = Vec::new();
        let is_other = records.names_other_component(computed.component);
        if is_other {
            let found = "not decided again: the component is not the one that decided";
            differences.push(undecided(found));
        }
        for sandbox in sandboxes.iter().filter(|_| !is_other) {
            let decided = self.decide_again(&records, sandbox);
            engines.extend(decided.is_ok().then(|| sandbox.engine.to_owned()));
            let several = sandboxes.len() > 1;
            let told = decided.unwrap_or_else(|difference| vec![difference]);
            differences.extend(told.into_iter().map(|mut difference| {
                if several {
                    difference.place = format!("{} ({})", difference.place, sandbox.engine);
                }
                difference
            }));
        }
        let unproven = self.unproven(&records);
        let bundle_digest = self.digest();
        let summary = records.summary(&computed);
        Verification { bundle_digest, summary, engines, differences, unproven }
    }

    /// `SHA256SUMS` against every other member, line by line.
    fn compare_sums(&self, differences: &mut Vec<Difference>) {
        let recorded = self.required(SUMS);
        let computed = export::sums(self.members());
        if recorded == computed.as_bytes() {
            return;
        }
        let recorded = String::from_utf8_lossy(recorded);
        let mut recorded = recorded.lines();
        let mut told = false;
        for line in computed.lines() {
            let (found, name) = line.split_once("  ").unwrap_or((line, ""));
            let said = recorded.next().unwrap_or("nothing");
            if said != line {
                told = true;
                let said = said.strip_suffix(&format!("  {name}")).unwrap_or(said);
                let place = format!("{SUMS}, {name}");
                let shown: String = said.chars().take(80).collect();
                differences.push(Difference::new(DifferenceKind::Digest, place, shown, found));
            }
        }
        if !told {
            let (recorded, found) = ("one line a member", "something behind them");
            differences.push(Difference::new(DifferenceKind::Form, SUMS, recorded, found));
        }
    }

    fn records(&self, differences: &mut Vec<Difference>) -> Records {
        Records {
            request: self.document(REQUEST, differences),
            pin: self.pin(differences),
            decision: self.document(DECISION, differences),
            receipt: self
                .member(RECEIPT)
                .and_then(|_| self.document::<RecordedReceipt>(RECEIPT, differences)),
            versions: self.document(VERSIONS, differences),
        }
    }

    /// Reads a JSON member, and holds its bytes against what is written of its values.
    fn document<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        differences: &mut Vec<Difference>,
    ) -> Option<T> {
        let bytes = self.required(name);
        match facts::from_json::<T>(bytes) {
            Ok(value) => {
                differences.extend(self.spelling(name, &facts::to_json(&value)));
                Some(value)
            }
            Err(error) => {
                differences.push(unreadable(name, &error));
                None
            }
        }
    }

    /// Where a member leaves the canonical form of its values.
    fn spelling(&self, name: &str, canonical: &[u8]) -> Option<Difference> {
        let offset = difference::first_difference(self.required(name), canonical)?;
        let (recorded, found) = ("the canonical form", "another spelling");
        let place = format!("{name}, byte {offset}");
        Some(Difference::new(DifferenceKind::Form, place, recorded, found))
    }

    fn pin(&self, differences: &mut Vec<Difference>) -> Option<PolicyPin> {
        let text = String::from_utf8_lossy(self.required(PIN));
        let pins = match Pins::parse(&text) {
            Ok(pins) => pins,
            Err(error) => {
                differences.push(unreadable(PIN, &error));
                return None;
            }
        };
        let mut pins = pins.iter();
        match (pins.next(), pins.next()) {
            (Some(pin), None) => {
                // What pins.toml may hold beside its values, a comment, could say anything.
                let mut canonical = Pins::default();
                canonical.set(pin.clone());
                differences.extend(self.spelling(PIN, canonical.to_text().as_bytes()));
                Some(pin.clone())
            }
            _ => {
                let (recorded, found) = ("one pin", "none or several");
                differences.push(Difference::new(DifferenceKind::Form, PIN, recorded, found));
                None
            }
        }
    }

    /// Asks the policy again and compares every member that follows from its answer.
    fn decide_again(
        &self,
        records: &Records,
        sandbox: &Sandbox<'_>,
    ) -> Result<Vec<Difference>, Difference> {
        let (Some(request), Some(pin)) = (&records.request, &records.pin) else {
            return Err(undecided("nothing to ask: the request or the pin cannot be read"));
        };
        let policy = sandbox
            .runtime
            .load(pin, self.required(COMPONENT))
            .map_err(|error| undecided(format!("no policy to ask: {}", told(&error))))?;
        let protected: Vec<&str> = request.protected_tables.iter().map(String::as_str).collect();
        let asked = DecisionRequest {
            payload: self.required(PAYLOAD),
            catalog: &request.catalog,
            protected_tables: &protected,
        };
        let decision = policy
            .decide(&asked)
            .map_err(|error| undecided(format!("no decision: {}", told(&error))))?;
        let expected = export::answered(&policy, &decision, &protected);
        let mut differences = self.compare_answer(records, &expected);
        // What cannot be read has been told.
        if let Some(recorded) = &records.decision {
            let place = format!("{DECISION} /decisionDigest, decided again");
            let (recorded, found) = (Some(recorded.decision_digest), decision.digest());
            differences.extend(Difference::of_digests(place, recorded, found));
        }
        differences.extend(records.compare_receipt_with(&policy, &expected));
        Ok(differences)
    }

    fn compare_answer(&self, records: &Records, expected: &[(String, Vec<u8>)]) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (name, found) in expected {
            match (self.member(name), &records.decision) {
                (None, _) => differences.push(Difference::new(
                    DifferenceKind::Content,
                    name,
                    "no such member",
                    format!("a statement of {} bytes", found.len()),
                )),
                (Some(_), Some(recorded)) if name == DECISION => {
                    // The digest is told as a digest.
                    let told = |it: &Difference| !it.place.ends_with(" /decisionDigest");
                    let recorded = serde_json::to_value(recorded).unwrap_or_default();
                    let found = facts::from_json(found).unwrap_or_default();
                    let found = difference::documents(name, &recorded, &found);
                    differences.extend(found.into_iter().filter(told));
                }
                (Some(_), None) if name == DECISION => {}
                (Some(recorded), _) => differences.extend(difference::bytes(name, recorded, found)),
            }
        }
        let is_expected = |name: &str| expected.iter().any(|(expected, _)| expected == name);
        let statements = self.members().filter(|(name, _)| name.starts_with("statements/"));
        differences.extend(statements.filter(|(name, _)| !is_expected(name)).map(
            |(name, content)| {
                let recorded = format!("a statement of {} bytes", content.len());
                Difference::new(DifferenceKind::Content, name, recorded, "no such statement")
            },
        ));
        differences
    }

    fn unproven(&self, records: &Records) -> Vec<String> {
        let mut unproven = vec![
            "that this is the bundle that was exported: compare its digest with one noted elsewhere"
                .to_owned(),
            format!("which programs made bundle and component: {VERSIONS} and {PIN} are their word"),
        ];
        unproven.push(match &records.receipt {
            Some(receipt) if receipt.execution_count == 0 => format!(
                "that the ledger is right: the receipt says `{}` without a run",
                receipt.status.as_str()
            ),
            Some(receipt) => format!(
                "that the step ran, and that an executor wrote the receipt: `{}` is the ledger's \
                 word, which nothing signs",
                receipt.status.as_str()
            ),
            None => "that the payload ran: the bundle has no receipt".to_owned(),
        });
        let environment = records.request.as_ref().and_then(|request| request.environment.as_ref());
        if let (None, Some(environment)) = (&records.receipt, environment) {
            unproven.push(format!(
                "that the payload is meant for environment `{environment}`: {REQUEST} is its word, and \
                 no decision depends on it"
            ));
        }
        if self.required(WIT) != POLICY_WIT.as_bytes() {
            unproven.push(format!(
                "what {WIT} says: this program has another text of it, and decides by its own"
            ));
        }
        let asked = records.request.as_ref().map(|request| &request.protected_tables);
        if asked.is_some_and(|tables| tables != PROTECTED_TABLES) {
            unproven.push(format!(
                "that the host asked so: this program protects {}, the request names other tables",
                PROTECTED_TABLES.join(", ")
            ));
        }
        unproven
    }
}

/// There is no decision to compare.
fn undecided(found: impl Into<String>) -> Difference {
    Difference::new(DifferenceKind::NoDecision, COMPONENT, "a decision", found)
}

fn unreadable(name: &str, error: &dyn Error) -> Difference {
    let found = format!("not that: {}", told(error));
    Difference::new(DifferenceKind::Form, name, "what its table in docs/evidence.md says", found)
}

/// An error with its causes, on one line.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(error.to_string().trim_end());
        cause = error.source();
    }
    text.replace('\n', " ")
}
