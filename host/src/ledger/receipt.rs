//! What a receipt is: identity, status, progress, and the words people read about it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{
    Direction, EnvironmentCode, ExecutorCode, ExternalReceipt, PluginRelease, StepKey,
};
use crate::planted::{Bug, is_planted};

/// Longest plugin version a receipt can hold, in characters.
pub const PLUGIN_VERSION_CHARS_MAX: usize = 255;

/// What a step is. A key belongs to one identity for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepIdentity {
    /// The environment the target stands for.
    pub environment: EnvironmentCode,
    /// The plugin and its version.
    pub release: PluginRelease,
    /// Forward, or its reverse.
    pub direction: Direction,
    /// The digest of the exact payload.
    pub content_hash: Digest,
}

impl StepIdentity {
    /// The fields in which the two differ, in the order they are recorded.
    pub fn differences(&self, other: &Self) -> Vec<IdentityField> {
        [
            (IdentityField::Environment, self.environment != other.environment),
            (IdentityField::PluginCode, self.release.code != other.release.code),
            // Compared as written: `1.0.0+a` and `1.0.0+b` are different releases.
            (
                IdentityField::PluginVersion,
                self.release.version.to_string() != other.release.version.to_string(),
            ),
            (IdentityField::Direction, self.direction != other.direction),
            (
                IdentityField::ContentHash,
                self.content_hash != other.content_hash && !is_planted(Bug::IdentityWithoutContent),
            ),
        ]
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
    }
}

/// A field of a step's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentityField {
    /// The environment code.
    Environment,
    /// The plugin's code.
    PluginCode,
    /// The plugin's version.
    PluginVersion,
    /// The direction.
    Direction,
    /// The digest of the payload.
    ContentHash,
    /// The step on the other side: what a compensation reverses.
    Counterpart,
}

impl IdentityField {
    /// The name as the ledger's column spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment_code",
            Self::PluginCode => "plugin_code",
            Self::PluginVersion => "plugin_version",
            Self::Direction => "direction",
            Self::ContentHash => "content_hash",
            Self::Counterpart => "counterpart_key",
        }
    }
}

impl fmt::Display for IdentityField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The recorded status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Claimed.
    Running,
    /// Done; final.
    Succeeded,
    /// Failed; may be claimed again.
    Failed,
    /// Done, and made small: only what keeps it from running again is left. Final.
    Pruned,
}

impl Status {
    /// As the ledger stores it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Pruned => "PRUNED",
        }
    }
}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Running, Self::Succeeded, Self::Failed, Self::Pruned]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// The text is no status of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a receipt's status: RUNNING, SUCCEEDED, FAILED or PRUNED")]
pub struct UnknownStatus(String);

/// What can honestly be said about a receipt now.
///
/// RUNNING alone says nothing about a holder that may have died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A holder's lease is open.
    Running,
    /// The lease ended without a result, and its holder is not known.
    LeaseExpired,
    /// The lease ended, but the holder's session is still on the server.
    PossiblyStillRunning,
    /// Done.
    Succeeded,
    /// A compensation of a step that never ran: there was nothing to reverse.
    NotApplicable,
    /// The last attempt failed; while its step is PENDING, the next delivery tries again.
    Failed,
    /// The payload was started as often as it may be; a person has to look.
    NeedsAttention,
    /// Done long ago; its receipt was made small.
    Pruned,
}

impl Standing {
    /// Every standing, those a person has to look at first.
    pub const ALL: &[Self] = &[
        Self::NeedsAttention,
        Self::PossiblyStillRunning,
        Self::LeaseExpired,
        Self::Failed,
        Self::Running,
        Self::Succeeded,
        Self::NotApplicable,
        Self::Pruned,
    ];

    /// Those of steps that are neither done nor held by a known holder.
    pub const UNSETTLED: &[Self] =
        &[Self::NeedsAttention, Self::PossiblyStillRunning, Self::LeaseExpired, Self::Failed];

    /// The stable word, kebab-case, as JSON and the command line have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::LeaseExpired => "lease-expired",
            Self::PossiblyStillRunning => "possibly-still-running",
            Self::Succeeded => "succeeded",
            Self::NotApplicable => "not-applicable",
            Self::Failed => "failed",
            Self::NeedsAttention => "needs-attention",
            Self::Pruned => "pruned",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::LeaseExpired => "lease expired, owner unknown",
            Self::PossiblyStillRunning => "possibly still running on the server",
            Self::Succeeded => "succeeded",
            Self::NotApplicable => "not applicable",
            Self::Failed => "failed",
            Self::NeedsAttention => "needs attention",
            Self::Pruned => "succeeded, pruned",
        }
    }
}

impl FromStr for Standing {
    type Err = UnknownStanding;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|standing| standing.as_str() == text).copied();
        found.ok_or_else(|| UnknownStanding(text.chars().take(UNKNOWN_CHARS_MAX).collect()))
    }
}

/// Characters of a text that an error repeats.
const UNKNOWN_CHARS_MAX: usize = 64;

/// The text is no state of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a receipt's state, such as `failed`")]
pub struct UnknownStanding(String);

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A moment on the database's clock, UTC, with microseconds, as RFC 3339.
///
/// It is shown and never compared: what time means for a lease is decided by the database.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct DatabaseTime(String);

impl DatabaseTime {
    /// The text, such as `2026-01-31T09:30:00.000000Z`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DatabaseTime {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// A row of the ledger, without what grants a write to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Order of first claim.
    pub id: u64,
    /// The step.
    pub key: StepKey,
    /// What the step is.
    #[serde(flatten)]
    pub identity: StepIdentity,
    /// A compensation's forward step, or the compensation begun for a forward step.
    pub counterpart: Option<StepKey>,
    /// Who ran it.
    pub executor: ExecutorCode,
    /// The policy component that allowed it; none once pruned.
    pub policy_digest: Option<Digest>,
    /// The decision that allowed it; none once pruned.
    pub decision_digest: Option<Digest>,
    /// The recorded status.
    pub status: Status,
    /// What can be said about it now.
    pub standing: Standing,
    /// When the lease ends, or ended.
    pub lease_deadline: DatabaseTime,
    /// The deadline is further ahead than any lease is long: the server's clock went back.
    pub lease_implausible: bool,
    /// A column that contradicts the rest of the row, which was then edited by hand: the step is
    /// refused.
    pub contradiction: Option<&'static str>,
    /// Grows with every write.
    pub generation: u64,
    /// How often the payload was allowed to start.
    pub execution_count: u32,
    /// Statements of the payload.
    pub statement_count: u32,
    /// Progress for people; decides nothing.
    pub statements_done: u32,
    /// The session that runs, or last ran, the payload.
    pub session_id: Option<u64>,
    /// What the step handed back.
    pub external_receipt: Option<ExternalReceipt>,
    /// Code of the last failure.
    pub last_error_code: Option<String>,
    /// The last failure, bounded and without literals.
    pub last_error: Option<String>,
    /// First claim.
    pub created_at: DatabaseTime,
    /// Last write.
    pub updated_at: DatabaseTime,
    /// When it succeeded.
    pub completed_at: Option<DatabaseTime>,
    /// Whether the session that it names is still on the server, as far as one read can tell.
    #[serde(skip)]
    pub session_is_there: bool,
}

impl Receipt {
    /// What to do about it, with commands in backticks; nothing where there is nothing to do.
    pub fn advice(&self) -> Option<String> {
        let key = &self.key;
        if self.contradiction.is_some() {
            return Some(format!(
                "the row was edited by hand and its step is refused: restore it from a backup; \
                 `tollgate receipts --key {key}` names the column"
            ));
        }
        match self.standing {
            Standing::LeaseExpired => Some(
                "the next delivery takes it over: is a worker running (`tollgate work`)?"
                    .to_owned(),
            ),
            Standing::PossiblyStillRunning => Some(format!(
                "the next delivery ends the session first, then takes the step over; when the log \
                 says that it cannot, {}",
                self.kill()
            )),
            Standing::Failed => Some(
                "mend the cause; while its step is PENDING, the next delivery tries again; see \
                 `tollgate outbox`"
                    .to_owned(),
            ),
            Standing::NeedsAttention => {
                let session = if self.session_is_there {
                    format!(
                        "; its session is still on the server, and may be running: {}",
                        self.kill()
                    )
                } else {
                    String::new()
                };
                Some(format!(
                    "look at the last error and the server's log, then raise \
                     `FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX` for every worker and \
                     `tollgate outbox retry {key}`; or publish a new version and plan{session}"
                ))
            }
            Standing::Running
            | Standing::Succeeded
            | Standing::NotApplicable
            | Standing::Pruned => None,
        }
    }

    /// How a person ends its session.
    fn kill(&self) -> String {
        let session = self.session_id.map(|id| format!(" {id}")).unwrap_or_default();
        format!("end it as an administrator with `KILL{session}`")
    }
}

/// The right to write a RUNNING row: 128 random bits, compared by the database.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct LeaseToken(String);

impl LeaseToken {
    pub(super) fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> StepIdentity {
        StepIdentity {
            environment: "preview".parse().unwrap(),
            release: PluginRelease {
                code: "shop".parse().unwrap(),
                version: "1.0.0+a".parse().unwrap(),
            },
            direction: Direction::Forward,
            content_hash: Digest::of("x"),
        }
    }

    #[test]
    fn every_field_of_the_identity_counts() {
        let mine = identity();
        assert_eq!(mine.differences(&identity()), []);
        let mut other = identity();
        other.release.version = "1.0.0+b".parse().unwrap();
        assert_eq!(mine.differences(&other), [IdentityField::PluginVersion]);
        other.environment = "live".parse().unwrap();
        other.release.code = "blog".parse().unwrap();
        other.direction = Direction::Compensate;
        other.content_hash = Digest::of("y");
        assert_eq!(mine.differences(&other).len(), 5);
    }

    #[test]
    fn every_standing_is_listed_and_reads_as_it_is_written() {
        for standing in Standing::ALL {
            assert_eq!(standing.as_str().parse(), Ok(*standing));
            let json = serde_json::to_string(standing).unwrap();
            assert_eq!(json, format!("\"{}\"", standing.as_str()));
        }
        assert_eq!(Standing::ALL.len(), 8);
        assert!("Failed".parse::<Standing>().is_err());
        assert!(Standing::ALL.starts_with(Standing::UNSETTLED));
    }

    #[test]
    fn a_token_does_not_show() {
        let token = LeaseToken::fresh();
        assert!(!format!("{token:?}").contains(token.as_str()));
    }
}
