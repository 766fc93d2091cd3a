//! Deciding again what a ledger says was decided.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::ledger_export::{ExportedReceipt, LedgerExportError};
use super::{Audited, Auditor, Undecided, ordered, workers};
use crate::digest::Digest;
use crate::policy::Policy;

/// Asks about every receipt the policy it names.
#[derive(Debug, Clone, Default)]
pub struct Replayer {
    policies: Vec<Policy>,
}

/// A receipt, and what its policy decides now.
#[derive(Debug)]
pub struct Replayed {
    /// The payload under the step's key, and the decision.
    pub audited: Audited,
    /// The policy that decided, if it is at hand.
    pub policy: Option<Policy>,
    /// Whether that is what the receipt says.
    pub agreement: Agreement,
}

/// Whether a decision made now is the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Payload and decision are the recorded ones.
    Agrees,
    /// The payload is not the one the receipt is about.
    OtherPayload {
        /// The recorded content hash.
        recorded: Digest,
        /// The digest of the payload.
        found: Digest,
    },
    /// The same policy decides something else.
    OtherDecision {
        /// The recorded decision digest.
        recorded: Digest,
        /// That of the decision made now.
        found: Digest,
    },
    /// There is no decision to compare with the recorded one, or none is recorded.
    Unknown,
}

impl Agreement {
    /// Whether the receipt says something else.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::OtherPayload { .. } | Self::OtherDecision { .. })
    }
}

impl Replayer {
    /// With these policies at hand.
    pub fn new(policies: impl IntoIterator<Item = Policy>) -> Self {
        Self { policies: policies.into_iter().collect() }
    }

    /// The policies at hand.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Decides again and compares.
    pub fn replay(&self, receipt: ExportedReceipt) -> Replayed {
        let ExportedReceipt { key, content_hash, policy_digest, decision_digest, .. } = &receipt;
        let (recorded, content_hash) = (*decision_digest, *content_hash);
        let policy = policy_digest
            .and_then(|digest| self.policies.iter().find(|it| it.pin().sha256 == digest))
            .cloned();
        let (path, policy_digest) = (PathBuf::from(key.as_str()), *policy_digest);
        let missing = |result: Undecided, payload: Vec<u8>| Replayed {
            audited: Audited { path: path.clone(), payload, result: Err(result) },
            policy: policy.clone(),
            agreement: Agreement::Unknown,
        };
        let Some(payload) = receipt.payload.map(String::into_bytes) else {
            let reason = receipt.missing.unwrap_or_else(|| "it does not say why".to_owned());
            return missing(Undecided::PayloadMissing(reason), Vec::new());
        };
        let found = Digest::of(&payload);
        let other_payload = Agreement::OtherPayload { recorded: content_hash, found };
        let is_other = found != content_hash;
        let mut replayed = match (&policy, policy_digest) {
            (_, None) => missing(Undecided::Pruned, payload),
            (None, Some(digest)) => missing(Undecided::PolicyMissing(digest), payload),
            (Some(policy), _) => {
                let auditor = Auditor::new(policy.clone(), receipt.catalog);
                let audited = auditor.audit_payload(path, payload);
                let agreement = compare(&audited, recorded);
                Replayed { audited, policy: Some(policy.clone()), agreement }
            }
        };
        // Whatever was decided was decided about other bytes.
        if is_other {
            replayed.agreement = other_payload;
        }
        replayed
    }

    /// Decides again on a whole export, on all cores, with as many receipts in memory as there are
    /// cores plus a few that wait to be handed over.
    ///
    /// `render` runs beside the decisions, in any order; `emit` gets what it made in the order of the
    /// export, and ends the run by breaking.
    ///
    /// # Errors
    ///
    /// A thread could not be started.
    pub fn replay_all<R: Send>(
        &self,
        receipts: impl Iterator<Item = Result<ExportedReceipt, LedgerExportError>> + Send,
        render: impl Fn(Result<Replayed, LedgerExportError>) -> R + Sync,
        emit: impl FnMut(R) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let work = |receipt: Result<_, _>| render(receipt.map(|receipt| self.replay(receipt)));
        ordered::map(receipts, workers(), work, emit)
    }
}

fn compare(audited: &Audited, recorded: Option<Digest>) -> Agreement {
    match (&audited.result, recorded) {
        (Ok(decision), Some(recorded)) if decision.digest() == recorded => Agreement::Agrees,
        (Ok(decision), Some(recorded)) => {
            Agreement::OtherDecision { recorded, found: decision.digest() }
        }
        _ => Agreement::Unknown,
    }
}
