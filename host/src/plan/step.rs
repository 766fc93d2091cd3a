//! The model of a plan's steps, the same for every wire version.

use serde::{Deserialize, Serialize};

use super::names::{ContributionKind, TargetName};
use crate::digest::Digest;
use crate::ids::{ContributionKey, Direction, ExecutorCode, InvalidName, PluginRelease, StepKey};

/// What a plan declared about a step for good. Only plans that can be run as SQL carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declaration {
    /// Whether running the payload again changes nothing.
    pub idempotent: bool,
    /// What the release published when the plan was made.
    pub publication_fingerprint: Digest,
}

/// What a plan recorded about taking a step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compensation {
    /// The plan does not record compensations: nobody can tell what would take the step back.
    NotRecorded,
    /// The contribution has none.
    None,
    /// This takes it back.
    Recorded(CompensationIdentity),
}

/// Which compensation payload a plan recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompensationIdentity {
    /// The key the compensation is executed under: the step's key followed by `:compensate`.
    pub key: StepKey,
    /// The contribution that carries the payload.
    pub contribution: ContributionKey,
    /// The SHA-256 of the payload.
    pub content_hash: Digest,
}

impl Compensation {
    /// The key it is executed under, if there is one.
    pub fn key(&self) -> Option<&StepKey> {
        match self {
            Self::Recorded(identity) => Some(&identity.key),
            Self::None | Self::NotRecorded => None,
        }
    }
}

impl CompensationIdentity {
    /// The key a step's compensation is executed under: the step's own, then `:compensate`.
    ///
    /// # Errors
    ///
    /// The step's key has more than 117 bytes.
    pub fn key_for(step: &StepKey) -> Result<StepKey, InvalidName> {
        format!("{step}:compensate").parse()
    }
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The key the step is executed under.
    pub key: StepKey,
    /// Whose contribution it is.
    pub release: PluginRelease,
    /// Which contribution.
    pub contribution: ContributionKey,
    /// Its recorded type.
    pub kind: ContributionKind,
    /// Its recorded target.
    pub target: TargetName,
    /// The recorded SHA-256 of its forward payload.
    pub content_hash: Digest,
    /// What was declared for good; `None` when the plan carries no declarations.
    pub declaration: Option<Declaration>,
    /// What takes it back.
    pub compensation: Compensation,
}

/// The step cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCompensation {
    /// The plan does not record compensations.
    #[error("step `{0}` comes from a plan that does not record compensations")]
    NotRecorded(StepKey),
    /// The plan says there is none.
    #[error("step `{0}` has no compensation")]
    None(StepKey),
}

impl PlannedStep {
    /// The executors the plan makes the step eligible for in this direction. Type and target
    /// narrow it further when the step runs.
    pub fn eligible_executors(&self, direction: Direction) -> Vec<ExecutorCode> {
        if direction == Direction::Compensate && self.compensation == Compensation::NotRecorded {
            return Vec::new();
        }
        let mut executors = vec![ExecutorCode::dry_run_v1()];
        if self.declaration.is_some() {
            executors.push(ExecutorCode::sql_jdbc_v1());
        }
        executors
    }

    /// The step as it is executed in one direction.
    ///
    /// # Errors
    ///
    /// It is to be taken back and the plan does not say how.
    pub fn step(&self, direction: Direction) -> Result<Step, NoCompensation> {
        let (key, contribution, content_hash) = match (direction, &self.compensation) {
            (Direction::Forward, _) => (&self.key, &self.contribution, self.content_hash),
            (Direction::Compensate, Compensation::Recorded(identity)) => {
                (&identity.key, &identity.contribution, identity.content_hash)
            }
            (Direction::Compensate, Compensation::None) => {
                return Err(NoCompensation::None(self.key.clone()));
            }
            (Direction::Compensate, Compensation::NotRecorded) => {
                return Err(NoCompensation::NotRecorded(self.key.clone()));
            }
        };
        Ok(Step {
            key: key.clone(),
            direction,
            release: self.release.clone(),
            contribution: contribution.clone(),
            kind: self.kind.clone(),
            target: self.target.clone(),
            content_hash,
            reverses: (direction == Direction::Compensate)
                .then(|| Reversed { key: self.key.clone(), content_hash: self.content_hash }),
            declaration: self.declaration,
        })
    }
}

/// The forward step that a compensation takes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reversed {
    /// The key the forward step was executed under.
    pub key: StepKey,
    /// The SHA-256 of its payload.
    pub content_hash: Digest,
}

/// What an executor is asked to do: one contribution in one direction under one key.
///
/// It holds what was recorded when the plan was published, nothing of what is installed now, and it
/// can be kept as JSON between the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The step idempotency key: the same for every delivery of this step in this direction. A
    /// control side with keys of its own may put its own here.
    pub key: StepKey,
    /// Forward, or its reverse.
    pub direction: Direction,
    /// Whose contribution it is.
    pub release: PluginRelease,
    /// The contribution whose payload of this direction is to run.
    pub contribution: ContributionKey,
    /// Its recorded type.
    #[serde(rename = "type")]
    pub kind: ContributionKind,
    /// Its recorded target.
    pub target: TargetName,
    /// The recorded SHA-256 of the payload that is to run.
    pub content_hash: Digest,
    /// Of a compensation: the forward step it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverses: Option<Reversed>,
    /// What was declared for good, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Declaration>,
}

impl Step {
    /// Whether the step is meant to be SQL: type `DATABASE_MIGRATION`, target `sql`.
    pub fn is_sql(&self) -> bool {
        self.kind.is_database_migration() && self.target.is_sql()
    }
}
