//! Offline decisions: files in, decisions out, today or years later.
//!
//! Never touches a target, a control catalog or an executor: an auditor needs the payloads, the
//! component and nothing else. The same component gives the same decision digest here as in the
//! worker that ran the payload.

mod agreement;
mod compare;
mod ledger_export;
mod ordered;
mod replay;
mod shelf;
mod sources;

use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::ids::Catalog;
use crate::policy::{Decision, DecisionRequest, NoDecision, PROTECTED_TABLES, Policy};

pub use agreement::{Agreement, Contradiction, ReceiptField};
pub use compare::{Answers, Compared, Comparison, Difference};
pub use ledger_export::{
    DamagedRow, ExportSum, ExportedLine, ExportedReceipt, LEDGER_EXPORT_VERSION, LINE_BYTES_MAX,
    LedgerExport, LedgerExportError, LineFault,
};
pub use replay::{Replayed, Replayer};
pub use sources::{CollectError, collect};

/// Bytes of a payload that are read, at most. Policies deny far smaller ones; this keeps a video
/// that is called `.sql` out of memory.
pub const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

/// Asks one policy about many payloads.
#[derive(Debug, Clone)]
pub struct Auditor {
    policy: Policy,
    catalog: Catalog,
}

/// A payload and what became of it.
#[derive(Debug)]
pub struct Audited {
    /// Where it came from.
    pub path: PathBuf,
    /// Its exact bytes; empty when they could not be read.
    pub payload: Vec<u8>,
    /// The decision, or why there is none.
    pub result: Result<Decision, Undecided>,
}

impl Audited {
    /// The digest of the payload, when it could be read.
    pub fn payload_digest(&self) -> Option<Digest> {
        match &self.result {
            Ok(decision) => Some(decision.payload_digest()),
            Err(Undecided::Policy(_)) => Some(Digest::of(&self.payload)),
            Err(Undecided::PolicyMissing { .. }) => Some(Digest::of(&self.payload)),
            // Empty, when the export has none.
            Err(Undecided::Pruned) => (!self.payload.is_empty()).then(|| Digest::of(&self.payload)),
            Err(
                Undecided::Unreadable(_)
                | Undecided::Size
                | Undecided::PayloadMissing(_)
                | Undecided::Damaged { .. }
                | Undecided::Line(_),
            ) => None,
        }
    }
}

/// Why a payload has no decision.
#[derive(Debug, thiserror::Error)]
pub enum Undecided {
    /// The policy did not come to one.
    #[error(transparent)]
    Policy(#[from] NoDecision),
    /// The payload cannot be read.
    #[error("the payload cannot be read")]
    Unreadable(#[source] io::Error),
    /// The payload is larger than anything a policy is asked about.
    #[error("the payload has more than {PAYLOAD_BYTES_MAX} bytes")]
    Size,
    /// Of a ledger's export: it has no payload for the receipt.
    #[error("the export has no payload: {0}")]
    PayloadMissing(String),
    /// Of a ledger's export: the component that the receipt names is not at hand.
    #[error("the receipt names policy {digest}, which is not at hand: {reason}")]
    PolicyMissing {
        /// What the receipt names.
        digest: Digest,
        /// Why it is not.
        reason: String,
    },
    /// Of a ledger's export: the receipt no longer says what was decided.
    #[error("the receipt was pruned and names no decision")]
    Pruned,
    /// Of a ledger's export: the row was no receipt.
    #[error(
        "row {id} of the ledger is no receipt: its `{column}` does not read as Tollgate writes it"
    )]
    Damaged {
        /// Order of first claim.
        id: u64,
        /// The first column that did not read.
        column: String,
    },
    /// Of a ledger's export: one of its lines.
    #[error(transparent)]
    Line(#[from] LedgerExportError),
}

impl Undecided {
    /// The kind as it is written in JSON: stable, kebab-case.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Policy(no_decision) => no_decision.kind(),
            Self::Unreadable(_) => "unreadable",
            Self::Size => "payload-size",
            Self::PayloadMissing(_) => "payload-missing",
            Self::PolicyMissing { .. } => "policy-missing",
            Self::Pruned => "pruned",
            Self::Damaged { .. } => "receipt-damaged",
            Self::Line(_) => "export-line",
        }
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Policy(no_decision) => no_decision.help(),
            Self::Unreadable(_) => "check the path and its permissions",
            Self::Size => "split the payload",
            Self::PayloadMissing(_) => {
                "install the release as it was when the step ran, then export again"
            }
            Self::PolicyMissing { .. } => {
                "name its store with `--store DIR`, or its file: `--policy FILE`"
            }
            Self::Pruned => "export before `tollgate receipts prune`",
            Self::Damaged { .. } => {
                "look at the row: it was edited by hand, or a newer Tollgate wrote it"
            }
            Self::Line(error) => error.help(),
        }
    }
}

impl Auditor {
    /// Asks this policy, for payloads that are meant for this catalog.
    pub const fn new(policy: Policy, catalog: Catalog) -> Self {
        Self { policy, catalog }
    }

    /// The policy that is asked.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Decides on a payload that is at hand.
    ///
    /// # Errors
    ///
    /// [`NoDecision`] as [`Policy::decide`] has it.
    pub fn decide(&self, payload: &[u8]) -> Result<Decision, NoDecision> {
        self.policy.decide(&DecisionRequest {
            payload,
            catalog: &self.catalog,
            protected_tables: PROTECTED_TABLES,
        })
    }

    /// Decides on a payload that is at hand and keeps it with the decision.
    pub fn audit_payload(&self, path: PathBuf, payload: Vec<u8>) -> Audited {
        let result = self.decide(&payload).map_err(Undecided::Policy);
        Audited { path, payload, result }
    }

    /// Reads a payload and decides on it.
    pub fn audit_file(&self, path: &Path) -> Audited {
        match File::open(path).map_err(Undecided::Unreadable).and_then(read_payload) {
            Ok(payload) => self.audit_payload(path.to_owned(), payload),
            Err(error) => {
                Audited { path: path.to_owned(), payload: Vec::new(), result: Err(error) }
            }
        }
    }

    /// Reads and decides on many payloads, on all cores, with as many in memory as there are cores
    /// plus a few that wait to be handed over.
    ///
    /// `render` runs beside the decisions, in any order; `emit` gets what it made in the order of
    /// the paths, and ends the run by breaking.
    pub fn audit_files<R: Send>(
        &self,
        paths: &[PathBuf],
        render: impl Fn(Audited) -> R + Sync,
        emit: impl FnMut(R) -> ControlFlow<()>,
    ) -> io::Result<()> {
        ordered::map(paths.iter(), workers(), |path| render(self.audit_file(path)), emit)
    }
}

/// As many as there are cores.
fn workers() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Reads a whole payload, within [`PAYLOAD_BYTES_MAX`].
///
/// # Errors
///
/// [`Undecided::Unreadable`] or [`Undecided::Size`].
pub fn read_payload(from: impl io::Read) -> Result<Vec<u8>, Undecided> {
    let mut payload = Vec::new();
    from.take(PAYLOAD_BYTES_MAX + 1).read_to_end(&mut payload).map_err(Undecided::Unreadable)?;
    if payload.len() as u64 > PAYLOAD_BYTES_MAX { Err(Undecided::Size) } else { Ok(payload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_read_up_to_its_bound() {
        assert_eq!(read_payload(&b"SELECT"[..]).unwrap(), b"SELECT");
        assert!(matches!(read_payload(io::repeat(b' ')), Err(Undecided::Size)));
    }
}
