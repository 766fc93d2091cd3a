//! Making a plan from installed releases, in the current schema version.

use super::contribution::{Contribution, InstalledRelease};
use super::names::PlanCode;
use super::step::{Compensation, CompensationIdentity, Declaration, PlannedStep};
use super::wire::{
    self, CURRENT, STEP_COUNT_MAX, StepV1_2, WireCompensation, WirePlan, WireRelease,
};
use crate::ids::{InvalidName, StepKey};

/// No plan can be made of these releases.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There is nothing to do, or too much for one plan.
    #[error("the releases have {0} contributions: a plan has 1 to {STEP_COUNT_MAX} steps")]
    StepCount(usize),
    /// A key could not be made from the plan's code.
    #[error("the plan's code gives no valid step key")]
    Key(#[source] InvalidName),
    /// The document could not be written.
    #[error("the plan cannot be written as JSON")]
    Write(#[source] serde_json::Error),
}

/// Publishes a plan that applies every contribution of the releases, in the given order.
///
/// Steps get the keys `<plan>:1`, `<plan>:2`, …, so the plan's code has to be used once only.
///
/// Returns the document in the current schema version, as [`Plan::parse`](super::Plan::parse)
/// reads it: it records for each step what the release holds now, `idempotent` and the publication
/// fingerprint included.
///
/// # Errors
///
/// There are no contributions, or too many; see [`PublishError`].
pub fn publish(code: &PlanCode, releases: &[InstalledRelease]) -> Result<String, PublishError> {
    let contributions: Vec<_> = releases
        .iter()
        .flat_map(|release| release.contributions().iter().map(move |item| (release, item)))
        .collect();
    if !(1..=STEP_COUNT_MAX).contains(&contributions.len()) {
        return Err(PublishError::StepCount(contributions.len()));
    }
    let steps = contributions
        .into_iter()
        .zip(1_usize..)
        .map(|((release, contribution), number)| {
            let key = format!("{code}:{number}").parse()?;
            planned(key, release, contribution)
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(PublishError::Key)?;
    let document = WirePlan {
        schema_version: CURRENT.to_owned(),
        plan: code.clone(),
        fingerprint: wire::fingerprint(CURRENT, code, &steps),
        steps: steps.iter().filter_map(to_wire).collect(),
    };
    serde_json::to_string_pretty(&document).map_err(PublishError::Write)
}

fn planned(
    key: StepKey,
    installed: &InstalledRelease,
    contribution: &Contribution,
) -> Result<PlannedStep, InvalidName> {
    let compensation = match &contribution.compensation {
        None => Compensation::None,
        Some(payload) => Compensation::Recorded(CompensationIdentity {
            key: CompensationIdentity::key_for(&key)?,
            contribution: contribution.key.clone(),
            content_hash: payload.content_hash(),
        }),
    };
    Ok(PlannedStep {
        key,
        release: installed.release().clone(),
        contribution: contribution.key.clone(),
        kind: contribution.kind.clone(),
        target: contribution.target.clone(),
        content_hash: contribution.forward.content_hash(),
        declaration: Some(Declaration {
            idempotent: contribution.idempotent,
            publication_fingerprint: installed.publication_fingerprint(),
        }),
        compensation,
    })
}

/// The step in the current version; a step without declaration has no form in it.
fn to_wire(step: &PlannedStep) -> Option<StepV1_2> {
    let declaration = step.declaration?;
    let compensation = match &step.compensation {
        Compensation::NotRecorded => return None,
        Compensation::None => None,
        Compensation::Recorded(identity) => Some(WireCompensation {
            contribution_key: identity.contribution.clone(),
            content_hash: identity.content_hash,
        }),
    };
    Some(StepV1_2 {
        key: step.key.clone(),
        release: WireRelease {
            code: step.release.code.clone(),
            version: step.release.version.clone(),
        },
        contribution_key: step.contribution.clone(),
        r#type: step.kind.clone(),
        target: step.target.clone(),
        content_hash: step.content_hash,
        compensation,
        idempotent: declaration.idempotent,
        publication_fingerprint: declaration.publication_fingerprint,
    })
}
