//! What plugins ship and what a transition plan recorded about it.
//!
//! A *release* carries contributions, each with exact payload bytes. A *plan* is immutable: it
//! recorded which contributions are to be applied and what they were when it was published. A
//! *step* is one of them in one direction; before it runs, [`resolve()`] looks at the installed
//! release again and says everything that no longer agrees.
//!
//! Plans come in three wire versions. [`Plan::parse`] reads them into one model, and nothing after
//! it sees a version: what a version lacks is absent from the model ([`PlannedStep::declaration`],
//! [`Compensation::NotRecorded`]).
//!
//! This module decides nothing about SQL and connects to nothing.

mod canonical;
mod catalog;
mod contribution;
mod fingerprint;
mod folder;
mod manifest;
mod names;
mod publish;
mod resolve;
mod step;
mod wire;

pub use catalog::{BoxFuture, CatalogError, ContributionCatalog};
pub use contribution::{Contribution, DuplicateContribution, InstalledRelease, Payload};
pub use fingerprint::{content_hash, publication_fingerprint};
pub use folder::{FolderCatalog, PAYLOAD_BYTES_MAX, read_release};
pub use manifest::{CONTRIBUTION_COUNT_MAX, ProblemCode, ReleaseError, ReleaseProblem};
pub use names::{ContributionKind, PlanCode, TargetName};
pub use publish::{PublishError, publish};
pub use resolve::{Needs, Refusal, RefusalCode, Resolution, resolve};
pub use step::{
    Compensation, CompensationIdentity, Declaration, NoCompensation, PlannedStep, Reversed, Step,
};
pub use wire::{PLAN_BYTES_MAX, Plan, PlanError, PlanProblem, STEP_COUNT_MAX};
