//! Deciding again what a ledger says was decided.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::agreement::Agreement;
use super::ledger_export::{DamagedRow, ExportedLine, ExportedReceipt, LedgerExportError};
use super::shelf::Shelf;
use super::{Audited, Auditor, Undecided, ordered, workers};
use crate::digest::Digest;
use crate::policy::{Decision, Policy};

/// Asks about every receipt the policy it names.
#[derive(Debug)]
pub struct Replayer {
    shelf: Shelf,
}

/// A line of an export, and what its policy decides now.
#[derive(Debug)]
pub struct Replayed {
    /// The payload under the step's key, and the decision.
    pub audited: Audited,
    /// The policy that decided, if it is at hand.
    pub policy: Option<Policy>,
    /// Whether that is what the receipt says; `None` of a row that was no receipt.
    pub agreement: Option<Agreement>,
}

impl Replayer {
    /// With these policies at hand.
    pub fn new(policies: impl IntoIterator<Item = Policy>) -> Self {
        Self { shelf: Shelf::new(policies) }
    }

    /// Looks there for policies that are not at hand, once for each digest; an error says why one is not
    /// to be had.
    #[must_use]
    pub fn fetching(
        self,
        fetch: impl Fn(Digest) -> Result<Policy, String> + Send + Sync + 'static,
    ) -> Self {
        Self { shelf: self.shelf.fetching(fetch) }
    }

    /// The policies at hand, those that were fetched included.
    pub fn policies(&self) -> Vec<Policy> {
        self.shelf.policies()
    }

    /// Decides again and compares.
    pub fn replay(&self, line: ExportedLine) -> Replayed {
        match line {
            ExportedLine::Receipt { receipt, earlier } => self.replay_receipt(*receipt, earlier),
            ExportedLine::Damaged(row) => damaged(row),
        }
    }

    fn replay_receipt(&self, mut receipt: ExportedReceipt, earlier: Option<u64>) -> Replayed {
        let payload = receipt.payload.take().map(String::into_bytes);
        let digest = payload.as_ref().map(Digest::of);
        let (result, policy) = self.decide(&receipt, payload.as_deref());
        let agreement = Agreement::of(&receipt, earlier, digest, &result);
        let path = PathBuf::from(receipt.key.as_str());
        let audited = Audited { path, payload: payload.unwrap_or_default(), result };
        Replayed { audited, policy, agreement: Some(agreement) }
    }

    /// The decision that a receipt's policy makes now, or why there is none, and the policy.
    fn decide(
        &self,
        receipt: &ExportedReceipt,
        payload: Option<&[u8]>,
    ) -> (Result<Decision, Undecided>, Option<Policy>) {
        let Some(digest) = receipt.policy_digest else {
            // Nothing is left to decide by, with a payload or without; that the status says so as well
            // is for the comparison.
            return (Err(Undecided::Pruned), None);
        };
        let found = self.shelf.find(digest);
        let Some(payload) = payload else {
            let reason =
                receipt.missing.clone().unwrap_or_else(|| "it does not say why".to_owned());
            return (Err(Undecided::PayloadMissing(reason)), found.ok());
        };
        match found {
            Ok(policy) => {
                let auditor = Auditor::new(policy.clone(), receipt.catalog.clone());
                (auditor.decide(payload).map_err(Undecided::Policy), Some(policy))
            }
            Err(reason) => (Err(Undecided::PolicyMissing { digest, reason }), None),
        }
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
        lines: impl Iterator<Item = Result<ExportedLine, LedgerExportError>> + Send,
        render: impl Fn(Result<Replayed, LedgerExportError>) -> R + Sync,
        emit: impl FnMut(R) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let work = |line: Result<_, _>| render(line.map(|line| self.replay(line)));
        ordered::map(lines, workers(), work, emit)
    }
}

fn damaged(row: DamagedRow) -> Replayed {
    let (path, error) = row.into_undecided();
    let audited = Audited { path, payload: Vec::new(), result: Err(error) };
    Replayed { audited, policy: None, agreement: None }
}
