//! Transition plans as they travel: JSON in three schema versions, read into one model.
//!
//! Golden documents of each version are in `tests/golden/plans`. A document is
//!
//! ```json
//! { "schemaVersion": "1.2", "plan": "orders-1.4", "fingerprint": "sha256:…", "steps": [ … ] }
//! ```
//!
//! and a step has `key`, `release {code, version}`, `contributionKey`, `type`, `target` and
//! `contentHash`; from 1.1 on optionally `compensation {contributionKey, contentHash}`; in 1.2 also
//! `idempotent` and `publicationFingerprint`. Fields a version does not have are refused by name.
//!
//! The plan's fingerprint makes a published plan immutable: a document whose steps were altered no
//! longer has it. It is the SHA-256 over (forms as in the private module `canonical`)
//!
//! ```text
//! tag     "tollgate:plan:" and the schema version, 0x00
//! text    plan code
//! count   number of steps
//! for each step, in the document's order:
//!   text    key, plugin code, plugin version, contribution key, type, target
//!   digest  content hash
//!   from 1.1 on:
//!     flag    whether there is a compensation; if so
//!     text    its contribution key
//!     digest  its content hash
//!   in 1.2:
//!     flag    idempotent
//!     digest  publication fingerprint
//! ```

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::canonical::Canonical;
use super::names::{ContributionKind, PlanCode, TargetName};
use super::step::{Compensation, CompensationIdentity, Declaration, PlannedStep};
use crate::digest::Digest;
use crate::ids::{ContributionKey, PluginRelease, StepKey};

/// Bytes of a plan document, at most.
pub const PLAN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Steps of one plan, at most.
pub const STEP_COUNT_MAX: usize = 10_000;

/// The version that [`publish`](super::publish()) writes.
pub(super) const CURRENT: &str = "1.2";

/// A published plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    code: PlanCode,
    fingerprint: Digest,
    steps: Vec<PlannedStep>,
}

/// A document is not a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Longer than [`PLAN_BYTES_MAX`].
    #[error("the plan has more than {PLAN_BYTES_MAX} bytes")]
    TooLarge,
    /// Not JSON, or without a schema version.
    #[error("the plan is not a JSON document with a `schemaVersion`")]
    NotAPlan(#[source] serde_json::Error),
    /// A version this release does not know.
    #[error("plan schema version `{0}` is not known: `1.0`, `1.1` and `1.2` are")]
    UnknownVersion(String),
    /// A field that the version does not have, lacks, or that breaks its rule.
    #[error("the document is not a plan of schema version {version}")]
    Shape {
        /// The document's version.
        version: &'static str,
        /// Which field, and where.
        #[source]
        source: serde_json::Error,
    },
    /// The fields are well-formed but not a plan together.
    #[error("the plan contradicts itself")]
    Contradiction(Vec<PlanProblem>),
}

impl PlanError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooLarge => "publish several plans",
            Self::NotAPlan(_) => "write `{\"schemaVersion\": \"1.2\", …}`",
            Self::UnknownVersion(_) => {
                "publish the plan with schema 1.2, or use a Tollgate that knows its version"
            }
            Self::Shape { .. } => "repair the named field; a published plan is not edited by hand",
            Self::Contradiction(_) => "publish the plan again; a published plan is never edited",
        }
    }
}

/// What does not fit together in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// No step, or more than [`STEP_COUNT_MAX`].
    #[error("the plan has {0} steps: 1 to {STEP_COUNT_MAX} are allowed")]
    StepCount(usize),
    /// Two executions would share a key.
    #[error("step key `{0}` would be used twice")]
    DuplicateKey(StepKey),
    /// `<key>:compensate` would be longer than a key may be.
    #[error("step key `{0}` is too long: a step with a compensation may have 117 bytes")]
    KeyTooLong(StepKey),
    /// The document was changed after it was published.
    #[error("the plan's fingerprint is `{recorded}` but its steps give `{computed}`")]
    Fingerprint {
        /// What the document says.
        recorded: Digest,
        /// What its steps give.
        computed: Digest,
    },
}

impl Plan {
    /// Reads a plan of any known version.
    ///
    /// # Errors
    ///
    /// The document is none, its version or a field is unknown, or it contradicts itself; see
    /// [`PlanError`].
    pub fn parse(document: &[u8]) -> Result<Self, PlanError> {
        if document.len() > PLAN_BYTES_MAX {
            return Err(PlanError::TooLarge);
        }
        let Version { schema_version } =
            serde_json::from_slice(document).map_err(PlanError::NotAPlan)?;
        match schema_version.as_str() {
            "1.0" => Self::read::<StepV1_0>("1.0", document),
            "1.1" => Self::read::<StepV1_1>("1.1", document),
            "1.2" => Self::read::<StepV1_2>(CURRENT, document),
            _ => Err(PlanError::UnknownVersion(schema_version)),
        }
    }

    fn read<S>(version: &'static str, document: &[u8]) -> Result<Self, PlanError>
    where
        S: for<'de> Deserialize<'de> + Into<WireStep>,
    {
        let wire: WirePlan<S> = serde_json::from_slice(document)
            .map_err(|source| PlanError::Shape { version, source })?;
        let mut problems = Vec::new();
        if !(1..=STEP_COUNT_MAX).contains(&wire.steps.len()) {
            problems.push(PlanProblem::StepCount(wire.steps.len()));
        }
        let mut keys = HashSet::new();
        let mut steps = Vec::new();
        for step in wire.steps {
            match step.into().into_model() {
                Ok(step) => {
                    let used = [Some(&step.key), step.compensation.key()];
                    for key in used.into_iter().flatten() {
                        if !keys.insert(key.clone()) {
                            problems.push(PlanProblem::DuplicateKey(key.clone()));
                        }
                    }
                    steps.push(step);
                }
                Err(problem) => problems.push(problem),
            }
        }
        let (recorded, computed) = (wire.fingerprint, fingerprint(version, &wire.plan, &steps));
        // Without every step there is nothing to compare with.
        if problems.is_empty() && computed != recorded {
            problems.push(PlanProblem::Fingerprint { recorded, computed });
        }
        if problems.is_empty() {
            Ok(Self { code: wire.plan, fingerprint: recorded, steps })
        } else {
            Err(PlanError::Contradiction(problems))
        }
    }

    /// The plan's code.
    pub fn code(&self) -> &PlanCode {
        &self.code
    }

    /// The fingerprint of everything the plan records.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// The steps, in the order they are applied.
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    schema_version: String,
}

/// A document of one version.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WirePlan<S> {
    pub(super) schema_version: String,
    pub(super) plan: PlanCode,
    pub(super) fingerprint: Digest,
    pub(super) steps: Vec<S>,
}

/// The fingerprint of a plan's content under the encoding of its version.
///
/// What a version does not record is absent from the model, and from the encoding with it.
pub(super) fn fingerprint(version: &str, plan: &PlanCode, steps: &[PlannedStep]) -> Digest {
    let mut canonical = Canonical::tagged(&format!("tollgate:plan:{version}"));
    canonical.text(plan.as_str());
    canonical.count(steps.len());
    for step in steps {
        canonical.text(step.key.as_str());
        canonical.text(step.release.code.as_str());
        canonical.text(&step.release.version.to_string());
        canonical.text(step.contribution.as_str());
        canonical.text(step.kind.as_str());
        canonical.text(step.target.as_str());
        canonical.digest(&step.content_hash);
        match &step.compensation {
            Compensation::NotRecorded => {}
            Compensation::None => canonical.flag(false),
            Compensation::Recorded(identity) => {
                canonical.flag(true);
                canonical.text(identity.contribution.as_str());
                canonical.digest(&identity.content_hash);
            }
        }
        if let Some(declaration) = &step.declaration {
            canonical.flag(declaration.idempotent);
            canonical.digest(&declaration.publication_fingerprint);
        }
    }
    canonical.fingerprint()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepV1_0 {
    key: StepKey,
    release: WireRelease,
    contribution_key: ContributionKey,
    r#type: ContributionKind,
    target: TargetName,
    content_hash: Digest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepV1_1 {
    key: StepKey,
    release: WireRelease,
    contribution_key: ContributionKey,
    r#type: ContributionKind,
    target: TargetName,
    content_hash: Digest,
    compensation: Option<WireCompensation>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StepV1_2 {
    pub(super) key: StepKey,
    pub(super) release: WireRelease,
    pub(super) contribution_key: ContributionKey,
    pub(super) r#type: ContributionKind,
    pub(super) target: TargetName,
    pub(super) content_hash: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compensation: Option<WireCompensation>,
    pub(super) idempotent: bool,
    pub(super) publication_fingerprint: Digest,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WireCompensation {
    pub(super) contribution_key: ContributionKey,
    pub(super) content_hash: Digest,
}

/// A release as a plan writes it: with unknown fields refused, unlike the shared type.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WireRelease {
    pub(super) code: crate::ids::PluginCode,
    pub(super) version: semver::Version,
}

impl From<WireRelease> for PluginRelease {
    fn from(WireRelease { code, version }: WireRelease) -> Self {
        Self { code, version }
    }
}

/// A step of any version: what its version lacks is not recorded.
struct WireStep {
    base: StepV1_0,
    compensation: Recorded<Option<WireCompensation>>,
    declaration: Option<Declaration>,
}

enum Recorded<T> {
    No,
    Yes(T),
}

impl From<StepV1_0> for WireStep {
    fn from(base: StepV1_0) -> Self {
        Self { base, compensation: Recorded::No, declaration: None }
    }
}

impl From<StepV1_1> for WireStep {
    fn from(step: StepV1_1) -> Self {
        let StepV1_1 { key, release, contribution_key, r#type, target, content_hash, compensation } =
            step;
        Self {
            base: StepV1_0 { key, release, contribution_key, r#type, target, content_hash },
            compensation: Recorded::Yes(compensation),
            declaration: None,
        }
    }
}

impl From<StepV1_2> for WireStep {
    fn from(step: StepV1_2) -> Self {
        let StepV1_2 { key, release, contribution_key, r#type, target, content_hash, .. } = step;
        let StepV1_2 { compensation, idempotent, publication_fingerprint, .. } = step;
        Self {
            base: StepV1_0 { key, release, contribution_key, r#type, target, content_hash },
            compensation: Recorded::Yes(compensation),
            declaration: Some(Declaration { idempotent, publication_fingerprint }),
        }
    }
}

impl WireStep {
    fn into_model(self) -> Result<PlannedStep, PlanProblem> {
        let Self { base, compensation, declaration } = self;
        let compensation = match compensation {
            Recorded::No => Compensation::NotRecorded,
            Recorded::Yes(None) => Compensation::None,
            Recorded::Yes(Some(WireCompensation { contribution_key, content_hash })) => {
                let key = CompensationIdentity::key_for(&base.key)
                    .map_err(|_| PlanProblem::KeyTooLong(base.key.clone()))?;
                let contribution = contribution_key;
                Compensation::Recorded(CompensationIdentity { key, contribution, content_hash })
            }
        };
        Ok(PlannedStep {
            key: base.key,
            release: base.release.into(),
            contribution: base.contribution_key,
            kind: base.r#type,
            target: base.target,
            content_hash: base.content_hash,
            declaration,
            compensation,
        })
    }
}
