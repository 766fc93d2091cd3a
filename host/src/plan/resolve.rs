//! Looking at the installed release again, right before a step runs.
//!
//! A plan is a promise about what will run; the installed release is what would. Each condition of
//! the contract has its own refusal code, and all that fail are told together.

use std::fmt;

use super::catalog::{CatalogError, ContributionCatalog};
use super::contribution::{Contribution, InstalledRelease, Payload};
use super::step::Step;
use crate::ids::Direction;

/// What an executor needs of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// That it can be looked at: the installed release agrees with what was recorded.
    Rehearsal,
    /// That it can be run, and run again: it is SQL, declared repeatable for good.
    RepeatableSql,
}

/// What was found: the payload, if it is installed, and everything that speaks against running it.
#[derive(Debug)]
pub struct Resolution {
    /// The installed payload of the step's direction. It is looked up even when something speaks
    /// against it, so that a policy's findings can be told together with the rest.
    pub payload: Option<Payload>,
    /// Why the step must not run; empty when it may.
    pub refusals: Vec<Refusal>,
}

/// One condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which condition.
    pub code: RefusalCode,
    /// What is wrong, with the names it is about.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Refusal {
    /// A condition that does not hold.
    pub fn new(code: RefusalCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }
}

macro_rules! refusal_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// The conditions a step has to meet, each with its stable, kebab-case code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RefusalCode {
            $($(#[$doc])* $name,)*
        }

        impl RefusalCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable, kebab-case code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

refusal_codes! {
    /// `sql-jdbc:v1` takes the type `DATABASE_MIGRATION` only.
    UnsupportedType = "unsupported-type",
    /// `sql-jdbc:v1` takes the target `sql` only.
    UnsupportedTarget = "unsupported-target",
    /// The plan carries no declaration (schemas 1.0 and 1.1): it can never be run as SQL.
    IdempotenceNotRecorded = "idempotence-not-recorded",
    /// The plan recorded `idempotent = false`.
    NotIdempotent = "not-idempotent",
    /// The release is not installed.
    ReleaseNotInstalled = "release-not-installed",
    /// The installed release publishes something else than when the plan was made.
    PublicationFingerprintChanged = "publication-fingerprint-changed",
    /// The installed release has no such contribution.
    ContributionNotInstalled = "contribution-not-installed",
    /// The installed contribution has no compensation payload.
    CompensationNotInstalled = "compensation-not-installed",
    /// The installed type differs from the recorded one.
    TypeChanged = "type-changed",
    /// The installed target differs from the recorded one.
    TargetChanged = "target-changed",
    /// The installed `idempotent` differs from the recorded one.
    IdempotenceChanged = "idempotence-changed",
    /// The installed contribution has `idempotent = false`.
    InstalledNotIdempotent = "installed-not-idempotent",
    /// The installed payload differs from the recorded one.
    ContentHashChanged = "content-hash-changed",
    /// The installed payload has no bytes.
    PayloadEmpty = "payload-empty",
    /// The installed payload is not UTF-8.
    PayloadNotUtf8 = "payload-not-utf8",
    /// The pinned policy denies the payload.
    PolicyDenied = "policy-denied",
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Looks the step up in the catalog and compares.
///
/// # Errors
///
/// The catalog could not answer; that is no statement about the step.
pub async fn resolve(
    step: &Step,
    catalog: &dyn ContributionCatalog,
    needs: Needs,
) -> Result<Resolution, CatalogError> {
    let installed = catalog.installed(&step.release).await?;
    let mut refusals = Vec::new();
    if needs == Needs::RepeatableSql {
        recorded_conditions(step, &mut refusals);
    }
    Ok(match installed {
        Some(installed) => compare(step, &installed, needs, refusals),
        None => {
            refusals.push(not_installed(step, catalog));
            Resolution { payload: None, refusals }
        }
    })
}

/// Another machine may well have it, so the place is named that was looked at.
fn not_installed(step: &Step, catalog: &dyn ContributionCatalog) -> Refusal {
    let place = catalog.place(&step.release);
    let place = place.map(|place| format!(": nothing is at `{place}`")).unwrap_or_default();
    Refusal::new(
        RefusalCode::ReleaseNotInstalled,
        format!("plugin release `{}` is not installed{place}", step.release),
        "install the release the plan was made for",
    )
}

fn compare(
    step: &Step,
    installed: &InstalledRelease,
    needs: Needs,
    mut refusals: Vec<Refusal>,
) -> Resolution {
    publication_condition(step, installed, &mut refusals);
    let Some(contribution) = installed.contribution(&step.contribution) else {
        refusals.push(Refusal::new(
            RefusalCode::ContributionNotInstalled,
            format!("`{}` has no contribution `{}`", step.release, step.contribution),
            "install the release the plan was made for",
        ));
        return Resolution { payload: None, refusals };
    };
    contribution_conditions(step, contribution, needs, &mut refusals);
    let payload = contribution.payload(step.direction).cloned();
    match &payload {
        Some(payload) => payload_conditions(step, payload, &mut refusals),
        None => refusals.push(Refusal::new(
            RefusalCode::CompensationNotInstalled,
            format!("contribution `{}` has no compensation payload", contribution.key),
            "install the release the plan was made for",
        )),
    }
    Resolution { payload, refusals }
}

/// What the plan itself has to say for real SQL.
fn recorded_conditions(step: &Step, refusals: &mut Vec<Refusal>) {
    if !step.kind.is_database_migration() {
        refusals.push(Refusal::new(
            RefusalCode::UnsupportedType,
            format!("`sql-jdbc:v1` runs type `DATABASE_MIGRATION`, not `{}`", step.kind),
            "use `dry-run:v1` for other types",
        ));
    }
    if !step.target.is_sql() {
        refusals.push(Refusal::new(
            RefusalCode::UnsupportedTarget,
            format!("`sql-jdbc:v1` runs target `sql`, not `{}`", step.target),
            "use `dry-run:v1` for other targets",
        ));
    }
    match step.declaration {
        None => refusals.push(Refusal::new(
            RefusalCode::IdempotenceNotRecorded,
            format!(
                "the plan of step `{}` records no `idempotent`, as schemas 1.0 and 1.1 do not, so it \
                 is never run as SQL, whatever is installed",
                step.key
            ),
            "publish a plan of schema 1.2, or use `dry-run:v1`",
        )),
        Some(declaration) if !declaration.idempotent => refusals.push(Refusal::new(
            RefusalCode::NotIdempotent,
            format!("the plan of step `{}` records `idempotent` as false", step.key),
            "publish a release with `idempotent = true` and a plan for it",
        )),
        Some(_) => {}
    }
}

fn publication_condition(step: &Step, installed: &InstalledRelease, refusals: &mut Vec<Refusal>) {
    let Some(declaration) = step.declaration else {
        return;
    };
    let (recorded, now) =
        (declaration.publication_fingerprint, installed.publication_fingerprint());
    if recorded != now {
        refusals.push(Refusal::new(
            RefusalCode::PublicationFingerprintChanged,
            format!("`{}` was published as `{recorded}` and is installed as `{now}`", step.release),
            "install the release as it was published, or publish a new version and a plan for it",
        ));
    }
}

fn contribution_conditions(
    step: &Step,
    installed: &Contribution,
    needs: Needs,
    refusals: &mut Vec<Refusal>,
) {
    let reinstall = "install the release as it was published";
    let key = &step.contribution;
    if step.kind != installed.kind {
        refusals.push(Refusal::new(
            RefusalCode::TypeChanged,
            format!("contribution `{key}` was `{}` and is `{}` now", step.kind, installed.kind),
            reinstall,
        ));
    }
    if step.target != installed.target {
        refusals.push(Refusal::new(
            RefusalCode::TargetChanged,
            format!(
                "contribution `{key}` was for `{}` and is for `{}` now",
                step.target, installed.target
            ),
            reinstall,
        ));
    }
    if needs == Needs::RepeatableSql && !installed.idempotent {
        refusals.push(Refusal::new(
            RefusalCode::InstalledNotIdempotent,
            format!("the installed contribution `{key}` is not declared `idempotent`"),
            "publish a release with `idempotent = true` and a plan for it",
        ));
    } else if let Some(declaration) = step.declaration
        && declaration.idempotent != installed.idempotent
    {
        refusals.push(Refusal::new(
            RefusalCode::IdempotenceChanged,
            format!(
                "contribution `{key}` was recorded with `idempotent = {}` and is installed with `{}`",
                declaration.idempotent, installed.idempotent
            ),
            reinstall,
        ));
    }
}

fn payload_conditions(step: &Step, payload: &Payload, refusals: &mut Vec<Refusal>) {
    let what = match step.direction {
        Direction::Forward => "payload",
        Direction::Compensate => "compensation payload",
    };
    let key = &step.contribution;
    let (recorded, now) = (step.content_hash, payload.content_hash());
    if recorded != now {
        refusals.push(Refusal::new(
            RefusalCode::ContentHashChanged,
            format!("the {what} of `{key}` was `{recorded}` and is `{now}` now"),
            "install the release as it was published",
        ));
    }
    if !step.is_sql() {
        return;
    }
    if payload.bytes().is_empty() {
        refusals.push(Refusal::new(
            RefusalCode::PayloadEmpty,
            format!("the {what} of `{key}` is empty"),
            "publish a release whose payload has a statement",
        ));
    } else if let Err(error) = std::str::from_utf8(payload.bytes()) {
        refusals.push(Refusal::new(
            RefusalCode::PayloadNotUtf8,
            format!("the {what} of `{key}` is not UTF-8 at byte {}", error.valid_up_to()),
            "publish a release whose payload is saved as UTF-8",
        ));
    }
}
