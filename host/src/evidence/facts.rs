//! What the JSON members say: one struct a member, keys in the order they are written.
//!
//! Read strictly: an unknown or a missing key is refused. Written as one line without spaces, so that
//! any JSON library can write the same bytes.

use semver::Version;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use super::layout::{self, EVIDENCE_FORMAT, EVIDENCE_VERSION};
use crate::digest::Digest;
use crate::ids::{
    Catalog, Direction, EnvironmentCode, ExecutorCode, ExternalReceipt, PluginRelease, StepKey,
};
use crate::ledger::{Receipt, Status};
use crate::policy::{Decision, Diagnostic, Outcome, Session, Statement, WASMTIME_VERSION};

/// A JSON member: compact, one line.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Only maps with keys that are no strings cannot be written, and there are none.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a JSON member.
pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// `manifest.json`
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: String,
    pub(super) version: u32,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { format: EVIDENCE_FORMAT.to_owned(), version: EVIDENCE_VERSION }
    }
}

/// `request.json`: what the policy was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    pub(super) executor: ExecutorCode,
    pub(super) environment: Option<EnvironmentCode>,
    pub(super) catalog: Catalog,
    pub(super) protected_tables: Vec<String>,
    pub(super) payload_digest: Digest,
}

/// `decision.json`: what it answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DecisionFacts {
    pub(super) decision: Word,
    pub(super) decision_digest: Digest,
    pub(super) policy: PolicyFacts,
    session: SessionFacts,
    pub(super) statements: Vec<StatementFacts>,
    diagnostics: Vec<DiagnosticFacts>,
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    Allow,
    Deny,
}

impl Word {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyFacts {
    pub(super) name: String,
    #[serde(deserialize_with = "version")]
    pub(super) version: String,
    pub(super) digest: Digest,
}

/// The session the statements hold for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionFacts {
    sql_mode: Vec<String>,
    character_set: String,
    time_zone: String,
}

/// A statement; its text is a member of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatementFacts {
    index: u32,
    operation: String,
    pub(super) file: String,
    tables: Vec<TableFacts>,
    span: SpanFacts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFacts {
    catalog: String,
    name: String,
    access: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiagnosticFacts {
    code: String,
    severity: String,
    message: String,
    help: Option<String>,
    statement: Option<u32>,
    span: Option<SpanFacts>,
}

/// Bytes of the payload, start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpanFacts {
    start: u32,
    end: u32,
}

impl DecisionFacts {
    /// What there is to say about a decision of this policy.
    pub(super) fn new(decision: &Decision, name: &str, version: String) -> Self {
        let (word, statements) = match decision.outcome() {
            Outcome::Allow { statements, .. } => (Word::Allow, statements.as_slice()),
            Outcome::Deny { .. } => (Word::Deny, &[][..]),
        };
        let digest = decision.policy_digest();
        Self {
            decision: word,
            decision_digest: decision.digest(),
            policy: PolicyFacts { name: name.to_owned(), version, digest },
            session: decision.session().into(),
            statements: statements.iter().enumerate().map(StatementFacts::new).collect(),
            diagnostics: decision.outcome().diagnostics().iter().map(Into::into).collect(),
        }
    }
}

impl DecisionFacts {
    /// The code of every finding, each once, in the order they are first found.
    pub(super) fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for DiagnosticFacts { code, .. } in &self.diagnostics {
            if !codes.contains(code) {
                codes.push(code.clone());
            }
        }
        codes
    }
}

impl From<&Session> for SessionFacts {
    fn from(session: &Session) -> Self {
        let Session { sql_mode, character_set, time_zone } = session.clone();
        Self { sql_mode, character_set, time_zone }
    }
}

impl StatementFacts {
    fn new((at, statement): (usize, &Statement)) -> Self {
        let tables = statement.tables.iter().map(|table| TableFacts {
            catalog: table.catalog.clone(),
            name: table.name.clone(),
            access: table.access.as_str().to_owned(),
        });
        Self {
            index: statement.index,
            operation: statement.operation.as_str().to_owned(),
            file: layout::statement(at),
            tables: tables.collect(),
            span: SpanFacts { start: statement.span.start, end: statement.span.end },
        }
    }
}

impl From<&Diagnostic> for DiagnosticFacts {
    fn from(diagnostic: &Diagnostic) -> Self {
        let Diagnostic { code, severity, message, help, statement, span, fix: _ } = diagnostic;
        Self {
            code: code.clone(),
            severity: severity.as_str().to_owned(),
            message: message.clone(),
            help: help.clone(),
            statement: *statement,
            span: span.map(|span| SpanFacts { start: span.start, end: span.end }),
        }
    }
}

/// `receipt.json`: what the ledger recorded about the step.
///
/// What changes while nothing happens to the step (its lease, its session, what can be said now) is not
/// in it, so that a receipt that is done gives the same bytes whenever it is exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedReceipt {
    /// The step.
    pub key: StepKey,
    /// The environment the target stands for.
    pub environment: EnvironmentCode,
    /// Whose contribution it is.
    pub release: PluginRelease,
    /// Forward, or its reverse.
    pub direction: Direction,
    /// The digest of the exact payload.
    pub content_hash: Digest,
    /// A compensation's forward step, or the compensation begun for a forward step.
    pub counterpart: Option<StepKey>,
    /// Who ran it.
    pub executor: ExecutorCode,
    /// The policy component that allowed it.
    pub policy_digest: Option<Digest>,
    /// The decision that allowed it.
    pub decision_digest: Option<Digest>,
    /// The recorded status.
    pub status: Status,
    /// How often the payload was allowed to start.
    pub execution_count: u32,
    /// Statements of the payload.
    pub statement_count: u32,
    /// What the step handed back.
    pub external_receipt: Option<ExternalReceipt>,
    /// Code of the last failure.
    pub last_error_code: Option<String>,
    /// The last failure, bounded and without literals.
    pub last_error: Option<String>,
    /// First claim, by the database's clock, UTC.
    pub created_at: String,
    /// Last write, by the same clock.
    pub updated_at: String,
    /// When it succeeded, by the same clock.
    pub completed_at: Option<String>,
}

impl From<&Receipt> for RecordedReceipt {
    fn from(receipt: &Receipt) -> Self {
        let identity = receipt.identity.clone();
        Self {
            key: receipt.key.clone(),
            environment: identity.environment,
            release: identity.release,
            direction: identity.direction,
            content_hash: identity.content_hash,
            counterpart: receipt.counterpart.clone(),
            executor: receipt.executor.clone(),
            policy_digest: receipt.policy_digest,
            decision_digest: receipt.decision_digest,
            status: receipt.status,
            execution_count: receipt.execution_count,
            statement_count: receipt.statement_count,
            external_receipt: receipt.external_receipt.clone(),
            last_error_code: receipt.last_error_code.clone(),
            last_error: receipt.last_error.clone(),
            created_at: receipt.created_at.to_string(),
            updated_at: receipt.updated_at.to_string(),
            completed_at: receipt.completed_at.as_ref().map(ToString::to_string),
        }
    }
}

/// `versions.json`: what made the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Versions {
    #[serde(deserialize_with = "version")]
    pub(super) tollgate: String,
    #[serde(deserialize_with = "version")]
    pub(super) wasmtime: String,
}

/// A text that claims to be a version is one (semver.org): it is printed, and means nothing otherwise.
fn version<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match Version::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(D::Error::custom(format!("{text:?} is no version: {error}"))),
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            tollgate: env!("CARGO_PKG_VERSION").to_owned(),
            wasmtime: WASMTIME_VERSION.to_owned(),
        }
    }
}
