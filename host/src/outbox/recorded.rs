//! What a row keeps of its step.
//!
//! The step as an executor takes it, and the step that takes it back. With both in the row, taking a
//! plan back needs no plan document: whoever is on call need not find the file that was submitted,
//! and no other file can be mistaken for it.

use serde::{Deserialize, Serialize};

use super::fault::OutboxFault;
use crate::ids::{Direction, StepKey};
use crate::plan::{Compensation, PlannedStep, Step};

/// The JSON of the column `step`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedStep {
    /// What is carried out.
    pub(super) step: Step,
    /// What takes it back.
    pub(super) undo: Undo,
}

/// What the plan recorded about taking the step back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Undo {
    /// The plan does not record compensations.
    NotRecorded,
    /// There is none; of a compensation, too.
    None,
    /// This step.
    Step(Box<Step>),
}

impl RecordedStep {
    /// A planned step in its forward direction.
    pub(super) fn forward(planned: &PlannedStep) -> Self {
        let undo = match (planned.step(Direction::Compensate), &planned.compensation) {
            (Ok(step), _) => Undo::Step(Box::new(step)),
            (Err(_), Compensation::NotRecorded) => Undo::NotRecorded,
            (Err(_), _) => Undo::None,
        };
        Self { step: forward(planned), undo }
    }

    /// A compensation: nothing takes it back.
    pub(super) fn compensation(step: Step) -> Self {
        Self { step, undo: Undo::None }
    }

    /// The key of what takes it back.
    pub(super) fn undo_key(&self) -> Option<&StepKey> {
        match &self.undo {
            Undo::Step(step) => Some(&step.key),
            Undo::NotRecorded | Undo::None => None,
        }
    }

    /// As the column keeps it.
    pub(super) fn to_json(&self) -> String {
        // Only maps with keys that are no strings cannot be written, and there are none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the column.
    pub(super) fn parse(json: &str) -> Result<Self, OutboxFault> {
        serde_json::from_str(json).map_err(|_| OutboxFault::Unreadable { column: "step" })
    }
}

/// The forward direction, which every planned step has.
fn forward(planned: &PlannedStep) -> Step {
    Step {
        key: planned.key.clone(),
        direction: Direction::Forward,
        release: planned.release.clone(),
        contribution: planned.contribution.clone(),
        kind: planned.kind.clone(),
        target: planned.target.clone(),
        content_hash: planned.content_hash,
        reverses: None,
        declaration: planned.declaration,
    }
}
