//! What the members of a bundle say, and whether they agree with one another and with what was
//! computed.

use super::difference::{Difference, DifferenceKind};
use super::facts::{DecisionFacts, RecordedReceipt, Request, Versions, Word};
use super::layout::{COMPONENT, DECISION, PAYLOAD, PIN, PREIMAGE, RECEIPT, REQUEST};
use super::verify::Summary;
use crate::digest::Digest;
use crate::ids::{EnvironmentCode, ExternalReceipt};
use crate::ledger::Status;
use crate::policy::{Policy, PolicyPin};

/// The members that are read into values, as far as they can be.
pub(super) struct Records {
    pub(super) request: Option<Request>,
    pub(super) pin: Option<PolicyPin>,
    pub(super) decision: Option<DecisionFacts>,
    pub(super) receipt: Option<RecordedReceipt>,
    pub(super) versions: Option<Versions>,
}

/// What has been computed.
pub(super) struct Computed {
    pub(super) payload: Digest,
    pub(super) component: Digest,
    pub(super) preimage: Digest,
}

impl Records {
    /// The records against one another and against what was computed.
    pub(super) fn compare(&self, computed: &Computed, differences: &mut Vec<Difference>) {
        if let Some(request) = &self.request {
            let place = format!("{REQUEST} /payloadDigest, of {PAYLOAD}");
            let recorded = Some(request.payload_digest);
            differences.extend(Difference::of_digests(place, recorded, computed.payload));
        }
        if let Some(pin) = &self.pin {
            let place = format!("{PIN} sha256, of {COMPONENT}");
            differences.extend(Difference::of_digests(place, Some(pin.sha256), computed.component));
        }
        if let Some(decision) = &self.decision {
            let place = format!("{DECISION} /decisionDigest, of {PREIMAGE}");
            let recorded = Some(decision.decision_digest);
            differences.extend(Difference::of_digests(place, recorded, computed.preimage));
            let place = format!("{DECISION} /policy/digest, of {COMPONENT}");
            let recorded = Some(decision.policy.digest);
            differences.extend(Difference::of_digests(place, recorded, computed.component));
        }
        if let (Some(request), Some(pin)) = (&self.request, &self.pin) {
            let place = format!("{REQUEST} /executor, against {PIN}");
            differences.extend(Difference::of_values(place, &request.executor, &pin.executor));
        }
        if let Some(receipt) = &self.receipt {
            self.compare_receipt(receipt, computed, differences);
        }
    }

    /// Whether anything that names a component names another one than this.
    pub(super) fn names_other_component(&self, component: Digest) -> bool {
        let pin = self.pin.as_ref().map(|pin| pin.sha256);
        let decision = self.decision.as_ref().map(|decision| decision.policy.digest);
        let receipt = self.receipt.as_ref().and_then(|receipt| receipt.policy_digest);
        [pin, decision, receipt].into_iter().flatten().any(|named| named != component)
    }

    fn compare_receipt(
        &self,
        receipt: &RecordedReceipt,
        computed: &Computed,
        differences: &mut Vec<Difference>,
    ) {
        let place = |field: &str, of: &str| format!("{RECEIPT} /{field}, of {of}");
        let RecordedReceipt { key, environment, executor, .. } = receipt;
        differences.extend(Difference::of_digests(
            place("contentHash", PAYLOAD),
            Some(receipt.content_hash),
            computed.payload,
        ));
        differences.extend(Difference::of_digests(
            place("policyDigest", COMPONENT),
            receipt.policy_digest,
            computed.component,
        ));
        differences.extend(Difference::of_digests(
            place("decisionDigest", PREIMAGE),
            receipt.decision_digest,
            computed.preimage,
        ));
        if let Some(request) = &self.request {
            let asked = request.environment.as_ref().map_or("none", EnvironmentCode::as_str);
            let against = format!("{RECEIPT} /environment, against {REQUEST}");
            differences.extend(Difference::of_values(against, environment.as_str(), asked));
            let against = format!("{RECEIPT} /executor, against {REQUEST}");
            differences.extend(Difference::of_values(against, executor, &request.executor));
        }
        // What a write of the ledger leaves behind: both with success, neither without.
        let succeeded = receipt.status == Status::Succeeded;
        let recorded = receipt.external_receipt.as_ref().map_or("none", ExternalReceipt::as_str);
        let due = if succeeded {
            ExternalReceipt::sql(environment, key).to_string()
        } else {
            "none".to_owned()
        };
        let against = format!("{RECEIPT} /externalReceipt");
        differences.extend(Difference::of_values(against, recorded, due.as_str()));
        let there = |is_there: bool| if is_there { "a time" } else { "none" };
        let (recorded, due) = (there(receipt.completed_at.is_some()), there(succeeded));
        let against = format!("{RECEIPT} /completedAt");
        differences.extend(Difference::of_values(against, recorded, due));
    }

    /// The receipt against what the policy answers now.
    pub(super) fn compare_receipt_with(
        &self,
        policy: &Policy,
        expected: &[(String, Vec<u8>)],
    ) -> Vec<Difference> {
        let Some(receipt) = &self.receipt else { return Vec::new() };
        let statements = expected.iter().filter(|(name, _)| name.starts_with("statements/"));
        let place = format!("{RECEIPT} /statementCount");
        let count =
            Difference::of_values(place, &receipt.statement_count, &statements.clone().count());
        // Nothing is claimed for a denied payload.
        let denied = (statements.count() == 0).then(|| {
            let found = format!("{} denies the payload", policy.pin().name);
            Difference::new(DifferenceKind::Content, RECEIPT, "an allowed step", found)
        });
        count.into_iter().chain(denied).collect()
    }

    pub(super) fn summary(self, computed: &Computed) -> Summary {
        let Self { request, pin: _, decision, receipt, versions } = self;
        let execution_count = receipt.as_ref().map(|it| it.execution_count);
        let (step_key, status) = receipt.map(|it| (it.key, it.status)).unzip();
        let mut summary = Summary {
            step_key,
            status,
            execution_count,
            policy_digest: Some(computed.component),
            payload_digest: Some(computed.payload),
            made_by: versions.map(|it| format!("{} with wasmtime {}", it.tollgate, it.wasmtime)),
            ..Summary::default()
        };
        if let Some(request) = request {
            summary.executor = Some(request.executor);
            summary.environment = request.environment;
            summary.catalog = Some(request.catalog);
        }
        if let Some(decision) = decision {
            summary.codes = decision.codes();
            summary.policy_name = Some(decision.policy.name);
            summary.policy_version = Some(decision.policy.version);
            summary.decision = Some(Word::as_str(decision.decision));
            summary.decision_digest = Some(decision.decision_digest);
            summary.statement_count = Some(decision.statements.len());
        }
        summary
    }
}
