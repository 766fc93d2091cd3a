//! Applied steps that the target's ledger does not know.
//!
//! A replica that was promoted without its primary's last commits, or a backup that was restored, has
//! lost effects that the control side counts as done. Nothing delivers such a step again, so nobody
//! would notice: here both sides are held against each other. Nothing is written, and which side is
//! right is for a person.
//!
//! A step that was taken back, by a compensation that the ledger has as done, is not missed: that its
//! effect is gone is what was asked for.

use std::collections::BTreeSet;

use crate::blame::Blame;
use crate::control::{Control, ControlError};
use crate::ledger::{Ledger, ReadError};
use crate::outbox::{ListedStep, Outbox, OutboxFault};
use crate::target::{SessionContract, Target, TargetConnection, TargetError};

/// Steps compared in one round trip to each side.
const BATCH_COUNT_MAX: u32 = 500;

/// Both sides could not be held against each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The control catalog was not opened.
    #[error("the control catalog was not opened")]
    Control(#[from] ControlError),
    /// The outbox was not read.
    #[error("the outbox was not read")]
    Outbox(#[from] OutboxFault),
    /// The target was not opened.
    #[error("the target was not opened")]
    Target(#[from] TargetError),
    /// The ledger was not read.
    #[error("the ledger was not read")]
    Ledger(#[from] ReadError),
}

impl ReconcileError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Control(error) => error.code(),
            Self::Outbox(fault) => fault.code(),
            Self::Target(error) => error.code(),
            Self::Ledger(error) => error.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Control(error) => error.blame(),
            Self::Outbox(fault) => fault.blame(),
            Self::Target(error) => error.blame(),
            Self::Ledger(error) => error.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Control(error) => error.help().to_string(),
            Self::Outbox(fault) => fault.help().to_string(),
            Self::Target(error) => error.help().into_owned(),
            Self::Ledger(error) => error.help().to_string(),
        }
    }
}

/// The steps that the outbox of this environment has as applied on the target, in order of their
/// enqueueing, and the ledger does not have as done. Without those whose compensation it has as done.
///
/// # Errors
///
/// One of the sides could not be read.
pub async fn reconcile(
    outbox: &Outbox,
    control: &Control,
    target: &Target,
    ledger: &Ledger,
) -> Result<Vec<ListedStep>, ReconcileError> {
    let mut control = control.open().await?;
    let mut target = match target.clone().read_only().open(&SessionContract::default()).await {
        Ok(target) => target,
        Err(error) => {
            control.close().await;
            return Err(error.into());
        }
    };
    let mut unknown: Vec<ListedStep> = Vec::new();
    let mut taken_back = BTreeSet::new();
    let mut after = 0;
    let compared: Result<(), ReconcileError> = loop {
        let steps = outbox.applied_sql(&mut control, after, BATCH_COUNT_MAX).await;
        let steps = match steps {
            Ok(steps) => steps,
            Err(fault) => break Err(fault.into()),
        };
        let Some(last) = steps.last() else { break Ok(()) };
        after = last.id;
        match split(&mut target, ledger, steps).await {
            Ok((done, others)) => {
                taken_back.extend(done.into_iter().filter_map(|step| step.reverses));
                unknown.extend(others);
            }
            Err(error) => break Err(error.into()),
        }
    };
    target.close().await;
    control.close().await;
    compared?;
    unknown.retain(|step| !taken_back.contains(&step.step_key));
    Ok(unknown)
}

/// The steps that the ledger has as done, and the others.
async fn split(
    target: &mut TargetConnection,
    ledger: &Ledger,
    steps: Vec<ListedStep>,
) -> Result<(Vec<ListedStep>, Vec<ListedStep>), ReadError> {
    let keys: Vec<_> = steps.iter().map(|step| step.step_key.clone()).collect();
    let done: BTreeSet<_> = ledger.done(target, &keys).await?.into_iter().collect();
    Ok(steps.into_iter().partition(|step| done.contains(&step.step_key)))
}
