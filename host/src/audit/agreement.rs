//! Whether a receipt is what its payload and its policy make of it now.

use super::Undecided;
use super::ledger_export::ExportedReceipt;
use crate::digest::Digest;
use crate::ids::ExternalReceipt;
use crate::ledger::Status;
use crate::policy::{Decision, Outcome};

/// Whether a decision made now is the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agreement {
    /// Payload and decision are the recorded ones, and the receipt contradicts nothing.
    Agrees,
    /// Something is not as it is recorded.
    Differs(Vec<Contradiction>),
    /// There is no decision to compare with the recorded one.
    Unknown,
    /// The receipt was pruned: nothing is recorded that could be compared.
    Pruned,
}

/// Something that a receipt says and that is not so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Which of its fields says it.
    pub field: ReceiptField,
    /// What it says.
    pub recorded: String,
    /// What was found.
    pub found: String,
}

/// A field of a receipt that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptField {
    /// The step's key: a ledger has one receipt of it.
    Key,
    /// The digest of the payload.
    ContentHash,
    /// The digest of the decision.
    DecisionDigest,
    /// The statements of the payload.
    StatementCount,
    /// The status, against the rest of the receipt and against the decision.
    Status,
    /// What the step handed back.
    ExternalReceipt,
    /// When it succeeded.
    CompletedAt,
    /// What the host that exported the row found in it.
    Contradiction,
}

impl ReceiptField {
    /// As JSON has it: stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::ContentHash => "contentHash",
            Self::DecisionDigest => "decisionDigest",
            Self::StatementCount => "statementCount",
            Self::Status => "status",
            Self::ExternalReceipt => "externalReceipt",
            Self::CompletedAt => "completedAt",
            Self::Contradiction => "contradiction",
        }
    }
}

impl Agreement {
    /// Whether the receipt says something else.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::Differs(_))
    }

    /// Holds a receipt against its payload's digest and against the decision made now. `earlier` is the
    /// line of an earlier receipt with its key.
    pub(super) fn of(
        receipt: &ExportedReceipt,
        earlier: Option<u64>,
        payload: Option<Digest>,
        result: &Result<Decision, Undecided>,
    ) -> Self {
        let mut found = of_itself(receipt);
        found.extend(earlier.map(|line| {
            let told = format!("line {line} has it, too");
            Contradiction::new(ReceiptField::Key, receipt.key.as_str(), told)
        }));
        match payload.filter(|payload| *payload != receipt.content_hash) {
            // Whatever was decided was decided about other bytes.
            Some(payload) => {
                let recorded = receipt.content_hash.to_string();
                found.push(Contradiction::new(
                    ReceiptField::ContentHash,
                    recorded,
                    payload.to_string(),
                ));
            }
            None => found.extend(result.iter().flat_map(|decision| decided(receipt, decision))),
        }
        match result {
            _ if !found.is_empty() => Self::Differs(found),
            Ok(_) => Self::Agrees,
            Err(Undecided::Pruned) => Self::Pruned,
            Err(_) => Self::Unknown,
        }
    }
}

impl Contradiction {
    fn new(field: ReceiptField, recorded: impl Into<String>, found: impl Into<String>) -> Self {
        Self { field, recorded: recorded.into(), found: found.into() }
    }
}

/// What a write of the ledger never leaves behind.
fn of_itself(receipt: &ExportedReceipt) -> Vec<Contradiction> {
    let ExportedReceipt { status, external_receipt, completed_at, .. } = receipt;
    let mut found = Vec::new();
    let is_pruned = *status == Status::Pruned;
    for (digest, what) in
        [(receipt.policy_digest, "policy digest"), (receipt.decision_digest, "decision digest")]
    {
        if digest.is_some() == is_pruned {
            let told = if is_pruned { "a" } else { "no" };
            let told = format!("{told} {what}, which a pruned receipt alone lacks");
            found.push(Contradiction::new(ReceiptField::Status, status.as_str(), told));
        }
    }
    let succeeded = matches!(status, Status::Succeeded | Status::Pruned);
    let due = succeeded.then(|| ExternalReceipt::sql(&receipt.environment, &receipt.key));
    if due != *external_receipt {
        let shown = |it: &Option<ExternalReceipt>| match it {
            Some(receipt) => receipt.to_string(),
            None => "none".to_owned(),
        };
        let field = ReceiptField::ExternalReceipt;
        found.push(Contradiction::new(field, shown(external_receipt), shown(&due)));
    }
    if completed_at.is_some() != succeeded {
        let recorded = completed_at.as_deref().unwrap_or("none");
        let told = format!("the status {}", status.as_str());
        found.push(Contradiction::new(ReceiptField::CompletedAt, recorded, told));
    }
    if let Some(column) = &receipt.contradiction {
        let told = "the rest of the row, when it was exported";
        found.push(Contradiction::new(ReceiptField::Contradiction, column, told));
    }
    found
}

/// The receipt against the decision made now.
fn decided(receipt: &ExportedReceipt, decision: &Decision) -> Vec<Contradiction> {
    let mut found = Vec::new();
    if let Some(recorded) = receipt.decision_digest.filter(|it| *it != decision.digest()) {
        let (recorded, digest) = (recorded.to_string(), decision.digest().to_string());
        found.push(Contradiction::new(ReceiptField::DecisionDigest, recorded, digest));
    }
    match decision.outcome() {
        Outcome::Allow { statements, .. } => {
            let recorded = receipt.statement_count;
            if usize::try_from(recorded) != Ok(statements.len()) {
                let (recorded, count) = (recorded.to_string(), statements.len().to_string());
                found.push(Contradiction::new(ReceiptField::StatementCount, recorded, count));
            }
        }
        // Nothing is claimed for a denied payload.
        Outcome::Deny { .. } => {
            let recorded = receipt.status.as_str();
            let told = "the policy denies the payload";
            found.push(Contradiction::new(ReceiptField::Status, recorded, told));
        }
    }
    found
}
