//! Why a step was not applied.

use std::borrow::Cow;
use std::time::Duration;

use super::admission::Findings;
use super::classify::ServerError;
use super::sql_jdbc::Drift;
use super::status::Missing;
use crate::blame::Blame;
use crate::ids::StepKey;
use crate::ledger::{ClaimError, IdentityField, LedgerFault, ShapeError};
use crate::plan::{CatalogError, Refusal, RefusalCode};
use crate::policy::NoDecision;
use crate::target::TargetError;
use crate::text::with_causes;

/// Why a step was not applied: it did not run, or what it ran was taken back as far as the server
/// can take it back, and running it again is safe.
///
/// Nothing here quotes a payload, a server's text or an account.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// Conditions that do not hold, all of them.
    #[error("the step is refused: {}", codes(refusals))]
    Refused {
        /// At least one.
        refusals: Vec<Refusal>,
        /// What the policy found, when it denied the payload.
        findings: Findings,
    },
    /// What is installed could not be found out.
    #[error("the installed release could not be looked at")]
    Catalog(#[source] CatalogError),
    /// The policy gave no decision: no allow, and no denial by rule.
    #[error("the policy gave no decision")]
    NoDecision(#[source] NoDecision),
    /// No statement of the payload can be sent as one packet.
    #[error(
        "statement {} needs a packet of {bytes} bytes and the server takes {bytes_max}",
        .statement + 1
    )]
    PacketTooLarge {
        /// The statement, from 0.
        statement: u32,
        /// What it needs.
        bytes: u64,
        /// `max_allowed_packet`.
        bytes_max: u64,
    },
    /// The driver would send another text than the policy printed.
    #[error("statement {} cannot be sent to the server unchanged", .statement + 1)]
    TextNotCarried {
        /// The statement, from 0.
        statement: u32,
    },
    /// No connection to the target was opened.
    #[error("the target was not opened")]
    Target(#[source] TargetError),
    /// The connection to the target was lost before anything of the payload ran.
    #[error("the session could not be prepared for the payload")]
    Session(#[source] LedgerFault),
    /// The step was not claimed.
    #[error(transparent)]
    Claim(ClaimError),
    /// The key belongs to another step.
    #[error("the step's key belongs to another step: {} differ", fields(.0))]
    IdentityMismatch(Vec<IdentityField>),
    /// The receipt was decided under another policy, which the pinned one does not supersede.
    #[error("the step was begun under another policy or executor")]
    PinRefused,
    /// The payload was started as often as it may be.
    #[error(
        "the payload was started {}, as often as FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX \
         allows{}",
        times(*.execution_count),
        last_words(.last_error.as_deref())
    )]
    NeedsAttention {
        /// How often.
        execution_count: u32,
        /// What its receipt has as the last error.
        last_error: Option<String>,
    },
    /// The step's compensation was begun: it never runs again.
    #[error("the step was superseded by its compensation{}", by.as_ref().map(|key| format!(" `{key}`")).unwrap_or_default())]
    Superseded {
        /// The compensation.
        by: Option<StepKey>,
    },
    /// The step succeeded so long ago that its receipt was pruned: it never runs again.
    #[error("the step succeeded long ago and its receipt was pruned")]
    ReceiptPruned,
    /// The server refused a statement.
    #[error("statement {} failed", .statement + 1)]
    Statement {
        /// The statement, from 0.
        statement: u32,
        /// What the server said.
        #[source]
        source: ServerError,
    },
    /// A statement was not run, or did nothing, since what has its table's name is not such a table.
    #[error("statement {} met another object of its table's name: {drift}", .statement + 1)]
    Drift {
        /// The statement, from 0.
        statement: u32,
        /// How it differs.
        drift: Drift,
    },
    /// A statement did not end within its budget and was stopped.
    #[error("statement {} did not end within {} s and was stopped", .statement + 1, budget.as_secs())]
    StatementBudget {
        /// The statement, from 0.
        statement: u32,
        /// The budget.
        budget: Duration,
    },
    /// The connection was lost while a statement ran; its session is gone from the server.
    #[error("the connection was lost at statement {}", .statement + 1)]
    ConnectionLost {
        /// The statement, from 0.
        statement: u32,
    },
    /// The lease ended before a statement was sent.
    #[error("the lease ended before statement {}", .statement + 1)]
    LeaseOver {
        /// The statement, from 0.
        statement: u32,
    },
    /// The server did not commit, and rolled back.
    #[error("the server rolled the payload's commit back")]
    Commit(#[source] LedgerFault),
    /// The commit was not answered, and it did not take place.
    #[error("the payload's commit was not answered and did not take place")]
    NotCommitted,
}

impl ExecutionError {
    /// The stable, kebab-case code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "refused",
            Self::Catalog(CatalogError::Unavailable(_)) => "release-unavailable",
            Self::Catalog(CatalogError::Broken(_)) => "release-broken",
            Self::NoDecision(_) => "no-decision",
            Self::PacketTooLarge { .. } => "packet-too-large",
            Self::TextNotCarried { .. } => "text-not-carried",
            Self::Target(error) => error.code(),
            Self::Session(fault) => fault.code(),
            Self::Claim(error) => error.code(),
            Self::IdentityMismatch(_) => "identity-mismatch",
            Self::PinRefused => "pin-refused",
            Self::NeedsAttention { .. } => "needs-attention",
            Self::Superseded { .. } => "superseded",
            Self::ReceiptPruned => "receipt-pruned",
            Self::Statement { .. } => "statement-failed",
            Self::Drift { .. } => "drift",
            Self::StatementBudget { .. } => "statement-budget",
            Self::ConnectionLost { .. } => "connection-lost",
            Self::LeaseOver { .. } => "lease-over",
            Self::Commit(_) => "commit-refused",
            Self::NotCommitted => "not-committed",
        }
    }

    /// The code as a receipt keeps it: of a refused statement, the server's error number too.
    pub(super) fn receipt_code(&self) -> String {
        match self {
            Self::Statement { source, .. } => format!("server-{}", source.code),
            error => error.code().to_owned(),
        }
    }

    /// Whether delivering the step again may apply it without anyone doing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::PacketTooLarge { .. }
            | Self::TextNotCarried { .. }
            | Self::IdentityMismatch(_)
            | Self::PinRefused
            | Self::NeedsAttention { .. }
            | Self::Superseded { .. }
            | Self::ReceiptPruned
            | Self::Drift { .. } => false,
            Self::Catalog(error) => error.is_retryable(),
            Self::NoDecision(error) => error.is_retryable(),
            Self::Target(error) => error.is_transient(),
            Self::Session(fault) => fault.is_transient(),
            Self::Claim(error) => error.is_transient(),
            Self::Statement { source, .. } => source.refusal().is_retryable(),
            Self::Commit(fault) => fault.is_transient(),
            Self::LeaseOver { .. }
            | Self::StatementBudget { .. }
            | Self::ConnectionLost { .. }
            | Self::NotCommitted => true,
        }
    }

    /// What is wrong with the target, when it is that which cannot be worked with and nothing of the
    /// step was claimed: any other step would meet the same, and this one runs once it is mended.
    pub fn target_trouble(&self) -> Option<Missing> {
        let (code, why, help): (_, &dyn std::error::Error, Cow<'static, str>) = match self {
            Self::Target(error) => (error.code(), error, error.help()),
            Self::Claim(ClaimError::Shape(error @ ShapeError::Unfit(_))) => {
                (error.code(), error, error.help().into())
            }
            // A right that was taken away, or a setting: no row of the ledger.
            Self::Claim(ClaimError::Fault(fault @ LedgerFault::Refused { .. }))
                if !fault.is_transient() && fault.blame() == Blame::Operator =>
            {
                (fault.code(), fault, fault.help().into())
            }
            _ => return None,
        };
        Some(Missing::new(code, with_causes(why), help))
    }

    /// Who can do something about it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Refused { refusals, .. } => refusal_blame(refusals),
            Self::Catalog(CatalogError::Unavailable(_)) => Blame::Operator,
            Self::Catalog(CatalogError::Broken(_)) => Blame::Plugin,
            Self::NoDecision(error) => error.blame(),
            Self::PacketTooLarge { .. }
            | Self::NeedsAttention { .. }
            | Self::PinRefused
            | Self::Drift { .. } => Blame::Operator,
            Self::TextNotCarried { .. } => Blame::Bug,
            Self::Target(error) => error.blame(),
            Self::Session(fault) => fault.blame(),
            Self::Claim(error) => error.blame(),
            Self::IdentityMismatch(_) | Self::Superseded { .. } | Self::ReceiptPruned => {
                Blame::Caller
            }
            Self::Statement { source, .. } => source.blame(),
            Self::Commit(fault) => fault.blame(),
            Self::LeaseOver { .. }
            | Self::StatementBudget { .. }
            | Self::ConnectionLost { .. }
            | Self::NotCommitted => Blame::Server,
        }
    }

    /// What to do about it: a command or an exact edit.
    pub fn help(&self) -> String {
        match self {
            Self::Refused { refusals, .. } => {
                let mut helps: Vec<&str> = Vec::new();
                for refusal in refusals {
                    if !helps.contains(&refusal.help.as_str()) {
                        helps.push(&refusal.help);
                    }
                }
                return helps.join("; ");
            }
            Self::Catalog(CatalogError::Unavailable(_)) => "make the release folders readable",
            Self::Catalog(CatalogError::Broken(_)) => "install the release as it was published",
            Self::NoDecision(error) => error.help(),
            Self::PacketTooLarge { bytes, .. } => {
                return format!("set `max_allowed_packet` on the target to more than {bytes}");
            }
            Self::TextNotCarried { .. } => "publish the statement without `:` after `-` or `/`",
            Self::Target(error) => return error.help().into_owned(),
            Self::Session(fault) => fault.help(),
            Self::Claim(error) => error.help(),
            Self::IdentityMismatch(_) => "give each step in each direction a key of its own",
            Self::PinRefused => {
                "pin the policy the step was begun under, or record it as superseded in pins.toml"
            }
            Self::NeedsAttention { .. } => {
                "see with `tollgate receipts --key` what happened; then raise \
                 FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX and deliver it again, or publish a new \
                 version and plan"
            }
            Self::ReceiptPruned => {
                "see with `tollgate receipts --key` when it succeeded; it need not be delivered again"
            }
            Self::Superseded { .. } => "publish a new plan to apply the contribution again",
            Self::Statement { source, .. } => source.help(),
            Self::Commit(fault) => fault.help(),
            Self::Drift { drift: Drift::NotTransactional, .. } => {
                "convert the table with `ALTER TABLE … ENGINE=InnoDB`, then deliver the step again"
            }
            Self::Drift { .. } => {
                "compare `SHOW CREATE TABLE` with the payload; drop or rename what is there if it is \
                 nobody's, then deliver the step again"
            }
            Self::StatementBudget { .. } => {
                "see with `SHOW PROCESSLIST` what holds it up, then deliver the step again"
            }
            Self::LeaseOver { .. } => {
                "lengthen `FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS`, then deliver it again"
            }
            Self::ConnectionLost { .. } | Self::NotCommitted => "deliver the step again",
        }
        .to_owned()
    }

    /// The statement it is about, from 0.
    pub fn statement(&self) -> Option<u32> {
        match self {
            Self::PacketTooLarge { statement, .. }
            | Self::TextNotCarried { statement }
            | Self::Statement { statement, .. }
            | Self::Drift { statement, .. }
            | Self::StatementBudget { statement, .. }
            | Self::LeaseOver { statement }
            | Self::ConnectionLost { statement } => Some(*statement),
            _ => None,
        }
    }

    /// The server's error number, when it refused a statement of the payload or of the ledger.
    pub fn server_error(&self) -> Option<u16> {
        match self {
            Self::Statement { source, .. } => Some(source.code),
            Self::Session(fault) | Self::Commit(fault) | Self::Claim(ClaimError::Fault(fault)) => {
                fault.server_error()
            }
            _ => None,
        }
    }

    /// The conditions that do not hold, when the step is refused.
    pub fn refusals(&self) -> &[Refusal] {
        match self {
            Self::Refused { refusals, .. } => refusals,
            _ => &[],
        }
    }
}

/// Whose refusals they are: a plugin's only when nothing else is wrong.
fn refusal_blame(refusals: &[Refusal]) -> Blame {
    let is_plugins = |refusal: &Refusal| {
        matches!(
            refusal.code,
            RefusalCode::PolicyDenied
                | RefusalCode::PayloadEmpty
                | RefusalCode::PayloadNotUtf8
                | RefusalCode::NotIdempotent
                | RefusalCode::InstalledNotIdempotent
        )
    };
    let is_callers = |refusal: &Refusal| {
        matches!(
            refusal.code,
            RefusalCode::UnsupportedType
                | RefusalCode::UnsupportedTarget
                | RefusalCode::IdempotenceNotRecorded
        )
    };
    if refusals.iter().all(is_plugins) {
        Blame::Plugin
    } else if refusals.iter().any(is_callers) {
        Blame::Caller
    } else {
        Blame::Operator
    }
}

fn codes(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("`{}`", refusal.code)).collect::<Vec<_>>().join(", ")
}

fn fields(fields: &[IdentityField]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn last_words(error: Option<&str>) -> String {
    error.map(|error| format!("; its last error was: {error}")).unwrap_or_default()
}
