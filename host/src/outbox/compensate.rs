//! Taking a plan back, whole or from a step on: in reverse order, all of it or nothing.
//!
//! What has to be taken back is every step that was applied, and every step that was delivered to an
//! executor that has effects: it may have been applied half, or wholly with its answer lost. The
//! receipt ledger tells the difference when the compensation runs; a compensation of what never ran
//! has nothing to do there.

use std::borrow::Cow;

use super::Outbox;
use super::environment::Belonging;
use super::fault::{OutboxFault, Runs};
use super::keys;
use super::shape;
use super::sql;
use super::take_back::take_back;
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::ids::{ExecutorCode, StepKey};
use crate::plan::{NoCompensation, PlanCode};

/// How often a transaction that met another's rows is run again.
const RACES_MAX: u32 = 3;

/// A plan, or the end of one, that is being taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compensated {
    /// Compensations that were enqueued now, in their order.
    pub enqueued: Vec<StepKey>,
    /// Compensations that had been enqueued before.
    pub already: usize,
    /// Forward steps that were not applied and never will be.
    pub superseded: usize,
}

/// Why a step cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompensationProblem {
    /// The plan does not say how.
    #[error(transparent)]
    None(#[from] NoCompensation),
    /// The plan does not make it eligible for the executor that ran it.
    #[error(
        "the compensation of step `{step}` is not eligible for `{executor}`: its plan declares nothing for good"
    )]
    NotEligible {
        /// The step.
        step: StepKey,
        /// The executor.
        executor: ExecutorCode,
    },
}

/// The plan is not taken back; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompensateError {
    /// The plan is not in the outbox.
    #[error("plan `{0}` is not in the outbox")]
    PlanUnknown(PlanCode),
    /// The plan has no such step.
    #[error("plan `{plan}` has no step `{step}`")]
    StepUnknown {
        /// The plan.
        plan: PlanCode,
        /// What was named.
        step: StepKey,
    },
    /// The plan was submitted under another environment.
    #[error(
        "plan `{plan}` belongs to {submitted}, this is {given}: step `{step}` ran there or will"
    )]
    OtherEnvironment {
        /// The plan.
        plan: PlanCode,
        /// The first such forward step.
        step: StepKey,
        /// Where it belongs.
        submitted: Belonging,
        /// What is configured.
        given: Belonging,
    },
    /// A worker is at a forward step: what it does is not known yet.
    #[error("step `{0}` is being carried out")]
    Running(StepKey),
    /// Steps that cannot be taken back, all of them.
    #[error("{} step(s) cannot be taken back: {}", .problems.len(), listed(.problems))]
    Refused {
        /// Why, of each of them.
        problems: Vec<CompensationProblem>,
        /// The first step behind all of them, from which on the plan can be taken back.
        from: Option<StepKey>,
    },
    /// Keys of compensations that belong to other plans, with these plans.
    #[error("keys of compensations belong to other plans: {}", keys::listed(.0))]
    KeysTaken(Vec<(StepKey, PlanCode)>),
    /// Forward rows of the plan are not there, or not in their places.
    #[error(
        "the outbox has {found} forward step(s) of plan `{plan}` in their places and {submitted} were submitted"
    )]
    RowsMissing {
        /// The plan.
        plan: PlanCode,
        /// Rows found.
        found: usize,
        /// Steps that were submitted.
        submitted: u32,
    },
    /// A compensation would follow that of an earlier step.
    #[error("step `{step}` would be taken back after step `{earlier}`, which came before it")]
    OutOfOrder {
        /// The step without a compensation in the outbox.
        step: StepKey,
        /// The earliest step whose compensation is in the outbox.
        earlier: StepKey,
    },
    /// The control server did not answer as it should.
    #[error("the compensation was not enqueued")]
    Fault(#[source] OutboxFault),
}

impl From<OutboxFault> for CompensateError {
    fn from(fault: OutboxFault) -> Self {
        Self::Fault(fault)
    }
}

impl CompensateError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PlanUnknown(_) => "plan-unknown",
            Self::StepUnknown { .. } => "step-unknown",
            Self::OtherEnvironment { .. } => "plan-of-other-environment",
            Self::Running(_) => "forward-step-running",
            Self::Refused { .. } => "compensation-refused",
            Self::KeysTaken(_) => "step-keys-taken",
            Self::RowsMissing { .. } => "plan-rows-missing",
            Self::OutOfOrder { .. } => "compensation-out-of-order",
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::PlanUnknown(_)
            | Self::StepUnknown { .. }
            | Self::OtherEnvironment { .. }
            | Self::Running(_) => Blame::Caller,
            Self::Refused { .. } => Blame::Plugin,
            Self::KeysTaken(_) | Self::RowsMissing { .. } | Self::OutOfOrder { .. } => {
                Blame::Operator
            }
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Cow<'static, str> {
        if let Self::Refused { from: Some(from), .. } = self {
            return Cow::Owned(format!(
                "publish a new plan that mends what these steps did; `--from {from}` leaves them out"
            ));
        }
        Cow::Borrowed(self.fixed_help())
    }

    fn fixed_help(&self) -> &'static str {
        match self {
            Self::PlanUnknown(_) => "name the plan by its code, as `tollgate submit` printed it",
            Self::StepUnknown { .. } => "run `tollgate outbox PLAN` to see its steps",
            Self::OtherEnvironment { .. } => {
                "run the same command with the configuration of that environment"
            }
            Self::Running(_) => {
                "wait until its worker is done, then run the same command again; of a worker that is \
                 gone, start one: it takes the step over when its lease is over"
            }
            Self::Refused { .. } => "publish a new plan that mends what these steps did",
            Self::KeysTaken(_) => {
                "publish a new plan that mends what these steps did; `tollgate outbox PLAN` shows \
                 what the other plan does"
            }
            Self::RowsMissing { .. } => {
                "rows were deleted or moved by hand: restore them in `factory_plugin_control_outbox` \
                 from a backup, then run the same command again"
            }
            Self::OutOfOrder { .. } => {
                "a compensation was deleted by hand: restore its row in \
                 `factory_plugin_control_outbox` from a backup; or publish a new plan that mends what \
                 the step did"
            }
            Self::Fault(fault) => fault.help(),
        }
    }
}

fn listed(problems: &[CompensationProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Outbox {
    /// Enqueues the compensations of a plan's steps, from `from` on or all, the last step's first.
    /// Forward steps from there on that were not applied are superseded. Asked again, it enqueues
    /// only what is not enqueued yet.
    ///
    /// # Errors
    ///
    /// There is no such plan or step, it belongs to another environment, its rows are not all there, a
    /// forward step is being carried out, or a step cannot be taken back: then nothing is.
    pub async fn compensate(
        &self,
        connection: &mut ControlConnection,
        plan: &PlanCode,
        from: Option<&StepKey>,
    ) -> Result<Compensated, CompensateError> {
        shape::ensure(connection).await?;
        let mut runs = Runs::default();
        let mut races = 0_u32;
        loop {
            sql::begin(connection).await?;
            let enqueued = take_back(connection, &self.belonging(), plan, from).await;
            match sql::end(connection, enqueued).await {
                // Somebody else takes it back at the same moment: what is there is read again.
                Err(CompensateError::Fault(fault))
                    if fault.is_duplicate_key() && races < RACES_MAX =>
                {
                    races += 1;
                }
                Err(CompensateError::Fault(fault)) if runs.again(&fault).await => {}
                ended => return ended,
            }
        }
    }
}
