//! Taking a plan back, whole or from a step on: in reverse order, all of it or nothing.
//!
//! What has to be taken back is every step that was applied, and every step that was delivered to an
//! executor that has effects: it may have been applied half, or wholly with its answer lost. The
//! receipt ledger tells the difference when the compensation runs; a compensation of what never ran
//! has nothing to do there.

use super::Outbox;
use super::environment::Belonging;
use super::fault::{OutboxFault, Runs};
use super::recorded::{RecordedStep, Undo};
use super::sql::{self, TABLE};
use super::status::{Event, Status};
use super::submit::{FORWARD, Known, NewRow, insert};
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::ids::{Direction, ExecutorCode, StepKey};
use crate::plan::{NoCompensation, PlanCode};
use crate::session::Columns;

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
    #[error("{} step(s) cannot be taken back: {}", .0.len(), listed(.0))]
    Refused(Vec<CompensationProblem>),
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
            Self::Refused(_) => "compensation-refused",
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
            Self::Refused(_) => Blame::Plugin,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
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
            Self::Refused(_) => {
                "publish a new plan that mends what these steps did; from a later step on, `--from` \
                 may leave them out"
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
    /// There is no such plan or step, it belongs to another environment, a forward step is being carried out, or a step cannot be
    /// taken back: then nothing is.
    pub async fn compensate(
        &self,
        connection: &mut ControlConnection,
        plan: &PlanCode,
        from: Option<&StepKey>,
    ) -> Result<Compensated, CompensateError> {
        let mut runs = Runs::default();
        loop {
            sql::begin(connection).await?;
            let enqueued = take_back(connection, &self.belonging(), plan, from).await;
            match sql::end(connection, enqueued).await {
                Err(CompensateError::Fault(fault)) if runs.again(&fault).await => {}
                ended => return ended,
            }
        }
    }
}

async fn take_back(
    connection: &mut ControlConnection,
    own: &Belonging,
    plan: &PlanCode,
    from: Option<&StepKey>,
) -> Result<Compensated, CompensateError> {
    let rows = locked_rows(connection, plan).await?;
    let (forward, back): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.recorded.step.direction == Direction::Forward);
    let Some(known) = forward.first().map(|row| row.known.clone()) else {
        return Err(CompensateError::PlanUnknown(plan.clone()));
    };
    if let Some(elsewhere) = forward.iter().find(|row| row.known.belonging != *own) {
        return Err(CompensateError::OtherEnvironment {
            plan: plan.clone(),
            step: elsewhere.recorded.step.key.clone(),
            submitted: elsewhere.known.belonging.clone(),
            given: own.clone(),
        });
    }
    if let Some(running) = forward.iter().find(|row| row.status == Status::Claimed) {
        return Err(CompensateError::Running(running.recorded.step.key.clone()));
    }
    let first = first_position(plan, from, &forward)?;
    let scope: Vec<&Row> = forward.iter().filter(|row| row.position >= first).collect();
    let (new, already) = compensations(&scope, &back)?;
    let superseded = supersede(connection, plan, first).await?;
    let enqueued = new.iter().map(|row| row.recorded.step.key.clone()).collect();
    insert(connection, plan, &known, &new).await?;
    Ok(Compensated { enqueued, already, superseded })
}

/// A row of the plan, locked.
struct Row {
    known: Known,
    position: u32,
    status: Status,
    executor: ExecutorCode,
    attempt_count: u32,
    recorded: RecordedStep,
}

impl Row {
    fn read(row: &Columns) -> Result<Self, OutboxFault> {
        Ok(Self {
            known: Known::read(row)?,
            position: row.required("position")?,
            status: row.required("status")?,
            executor: row.required("executor_code")?,
            attempt_count: row.required("attempt_count")?,
            recorded: RecordedStep::parse(&row.required::<String>("step")?)?,
        })
    }

    /// Whether it may have left something to take back. A superseded one that did has its
    /// compensation enqueued already.
    fn has_to_be_taken_back(&self) -> bool {
        let may_have_effects = self.executor != ExecutorCode::dry_run_v1();
        match self.status {
            Status::Applied => true,
            Status::Pending | Status::NeedsAttention => self.attempt_count > 0 && may_have_effects,
            Status::Waiting | Status::Claimed | Status::Superseded => false,
        }
    }

    /// The step that takes it back.
    fn compensation(&self) -> Result<RecordedStep, CompensationProblem> {
        let key = || self.recorded.step.key.clone();
        let step = match &self.recorded.undo {
            Undo::NotRecorded => return Err(NoCompensation::NotRecorded(key()).into()),
            Undo::None => return Err(NoCompensation::None(key()).into()),
            Undo::Step(step) => step,
        };
        if self.executor != ExecutorCode::dry_run_v1() && step.declaration.is_none() {
            let executor = self.executor.clone();
            return Err(CompensationProblem::NotEligible { step: key(), executor });
        }
        Ok(RecordedStep::compensation((**step).clone()))
    }
}

/// Every row of the plan, locked in one order, so that two that take it back wait for each other.
async fn locked_rows(
    connection: &mut ControlConnection,
    plan: &PlanCode,
) -> Result<Vec<Row>, OutboxFault> {
    let query = format!(
        "SELECT plan_fingerprint, environment_code, position, status, executor_code, attempt_count, step \
         FROM {TABLE} WHERE plan_code = ? ORDER BY direction, position FOR UPDATE"
    );
    let found = sql::rows(connection, &query, vec![plan.as_str().into()]).await?;
    found.iter().map(Row::read).collect()
}

fn first_position(
    plan: &PlanCode,
    from: Option<&StepKey>,
    forward: &[Row],
) -> Result<u32, CompensateError> {
    let Some(from) = from else {
        return Ok(0);
    };
    let named = forward.iter().find(|row| row.recorded.step.key == *from);
    named
        .map(|row| row.position)
        .ok_or_else(|| CompensateError::StepUnknown { plan: plan.clone(), step: from.clone() })
}

/// The rows to write, the last step's first, and how many are there already. They go behind those
/// that are there.
fn compensations(scope: &[&Row], back: &[Row]) -> Result<(Vec<NewRow>, usize), CompensateError> {
    let mut problems = Vec::new();
    let mut new: Vec<NewRow> = Vec::new();
    let mut already = 0;
    let is_turn = back.iter().all(|row| row.status == Status::Applied);
    let next = back.iter().map(|row| row.position.saturating_add(1)).max().unwrap_or_default();
    for row in scope.iter().rev() {
        if back.iter().any(|back| reverses(back, row)) {
            already += 1;
            continue;
        }
        if !row.has_to_be_taken_back() {
            continue;
        }
        match row.compensation() {
            Ok(recorded) => new.push(NewRow {
                position: next.saturating_add(u32::try_from(new.len()).unwrap_or(u32::MAX)),
                executor: row.executor.clone(),
                recorded,
                status: if is_turn && new.is_empty() { Status::Pending } else { Status::Waiting },
            }),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok((new, already))
    } else {
        // Told in the plan's order.
        problems.reverse();
        Err(CompensateError::Refused(problems))
    }
}

fn reverses(back: &Row, forward: &Row) -> bool {
    let reversed = back.recorded.step.reverses.as_ref();
    reversed.is_some_and(|reversed| reversed.key == forward.recorded.step.key)
}

/// Ends the forward steps that were not applied.
async fn supersede(
    connection: &mut ControlConnection,
    plan: &PlanCode,
    first: u32,
) -> Result<usize, OutboxFault> {
    let open: Vec<String> = Status::ALL
        .iter()
        .filter(|status| status.next(Event::Supersede).is_some())
        .map(|status| format!("'{status}'"))
        .collect();
    let statement = format!(
        "UPDATE {TABLE} SET status = 'SUPERSEDED', updated_at = UTC_TIMESTAMP(6), \
         completed_at = UTC_TIMESTAMP(6) WHERE plan_code = ? AND direction = ? \
         AND position >= ? AND status IN ({})",
        open.join(", ")
    );
    let values = vec![plan.as_str().into(), FORWARD.into(), first.into()];
    let superseded = sql::change(connection, &statement, values).await?;
    Ok(usize::try_from(superseded).unwrap_or(usize::MAX))
}
