//! What a policy says about itself, checked once.

use semver::Version;
use serde::Serialize;

use crate::ids::ExecutorCode;

/// The session a policy's reading of SQL holds for.
///
/// The host pins it on every target connection and reads it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The members of `sql_mode`, none besides them.
    pub sql_mode: Vec<String>,
    /// Client, connection and results character set, from the handshake on.
    pub character_set: String,
    /// `time_zone`, as an offset from UTC.
    pub time_zone: String,
}

/// Bounds a payload has to stay within, all inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PayloadLimits {
    /// Bytes of a payload.
    pub payload_bytes_max: u32,
    /// Parsed statements of a payload.
    pub statement_count_max: u32,
    /// Operators of a statement that nest to the left.
    pub operator_count_max: u32,
    /// UNION and JOIN keywords of a statement.
    pub join_count_max: u32,
    /// Depth of parentheses, CASE and prefix operators in a statement.
    pub nesting_max: u32,
    /// Tokens of a payload.
    pub token_count_max: u32,
}

/// What a policy is and what it asks of its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The policy's name, kebab-case.
    pub name: String,
    /// The policy's semantic version.
    pub version: Version,
    /// The executor codes it is written for.
    pub executor_codes: Vec<ExecutorCode>,
    /// The session it asks for.
    pub session: Session,
    /// The bounds it applies to payloads.
    pub limits: PayloadLimits,
}
