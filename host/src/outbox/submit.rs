//! Enqueueing a plan: all of it or nothing, and once.

use mysql_async::Value;

use super::Outbox;
use super::environment::Belonging;
use super::fault::{OutboxFault, Runs};
use super::keys::{self, Look};
use super::listing::{Counts, count_steps};
use super::recorded::RecordedStep;
use super::shape;
use super::sql::{self, TABLE};
use super::status::Status;
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::digest::Digest;
use crate::ids::{Direction, ExecutorCode, StepKey};
use crate::plan::{Plan, PlanCode, PlannedStep};
use crate::session::Columns;

/// Rows one INSERT writes.
const ROWS_PER_INSERT: usize = 50;

/// Who carries out which step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorChoice {
    /// The executor of SQL contributions.
    pub sql: ExecutorCode,
}

impl ExecutorChoice {
    /// The executor of a step: `dry-run:v1` for everything that is not SQL.
    pub fn of(&self, step: &PlannedStep) -> ExecutorCode {
        if step.kind.is_database_migration() && step.target.is_sql() {
            self.sql.clone()
        } else {
            ExecutorCode::dry_run_v1()
        }
    }
}

/// A plan that is in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It was not there before: so many steps were enqueued.
    Enqueued {
        /// The steps.
        step_count: usize,
    },
    /// The very same plan was submitted before. Nothing was written.
    Already {
        /// Where its steps are.
        counts: Counts,
    },
}

/// The plan was not enqueued; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// Another plan was submitted under the same code.
    #[error(
        "plan `{plan}` was submitted before with the fingerprint `{submitted}`, and this one has `{given}`"
    )]
    OtherPlan {
        /// The code.
        plan: PlanCode,
        /// What is in the outbox.
        submitted: String,
        /// What was to be submitted.
        given: Digest,
    },
    /// The plan was submitted before, under another environment of the same control catalog.
    #[error("plan `{plan}` was submitted before and belongs to {submitted}; this is {given}")]
    OtherEnvironment {
        /// The code.
        plan: PlanCode,
        /// Where it belongs.
        submitted: Belonging,
        /// What is configured.
        given: Belonging,
    },
    /// The same plan was submitted before, and another executor has its steps.
    #[error(
        "plan `{plan}` was submitted before for `{submitted}`, not for `{given}`: it stays with it"
    )]
    OtherExecutor {
        /// The code.
        plan: PlanCode,
        /// Who carries out the first step that differs.
        submitted: ExecutorCode,
        /// Who was to.
        given: ExecutorCode,
    },
    /// Keys that belong to steps of other plans, with these plans.
    #[error("step keys belong to other plans: {}", keys::listed(.0))]
    KeysTaken(Vec<(StepKey, PlanCode)>),
    /// The control server did not answer as it should.
    #[error("the plan was not enqueued")]
    Fault(#[source] OutboxFault),
}

impl From<OutboxFault> for SubmitError {
    fn from(fault: OutboxFault) -> Self {
        Self::Fault(fault)
    }
}

impl SubmitError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OtherPlan { .. } => "plan-submitted-otherwise",
            Self::OtherEnvironment { .. } => "plan-of-other-environment",
            Self::OtherExecutor { .. } => "plan-of-other-executor",
            Self::KeysTaken(_) => "step-keys-taken",
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::OtherPlan { .. }
            | Self::OtherEnvironment { .. }
            | Self::OtherExecutor { .. }
            | Self::KeysTaken(_) => Blame::Caller,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::OtherPlan { .. } => "publish the plan under a code of its own",
            Self::OtherEnvironment { .. } => {
                "publish the plan under a code of its own for this environment, or give each \
                 environment a control catalog of its own"
            }
            Self::OtherExecutor { .. } => {
                "publish the plan under a code of its own to run it with another executor; \
                 `tollgate outbox PLAN` shows where this one is"
            }
            Self::KeysTaken(_) => "publish the plan with step keys of its own",
            Self::Fault(fault) => fault.help(),
        }
    }
}

impl Outbox {
    /// Enqueues every step of a plan in one transaction: the first is due at once, the others wait
    /// for the ones before them. Submitting the same plan again writes nothing.
    ///
    /// Whether the steps can be carried out is not looked at here.
    ///
    /// # Errors
    ///
    /// The plan's code or one of its keys, those of its compensations included, is another plan's;
    /// it was submitted under another environment; or the control server did not answer as it should. Submit again then: a plan that was
    /// enqueued all the same is recognised.
    pub async fn submit(
        &self,
        connection: &mut ControlConnection,
        plan: &Plan,
        executors: &ExecutorChoice,
    ) -> Result<Submitted, SubmitError> {
        shape::ensure(connection).await?;
        let mut runs = Runs::default();
        let mut races = 0_u32;
        loop {
            sql::begin(connection).await?;
            let submitted = self.enqueue(connection, plan, executors).await;
            match sql::end(connection, submitted).await {
                // Somebody enqueued the plan, or one with the same keys, at the same moment: what
                // is there is read again.
                Err(SubmitError::Fault(fault)) if fault.is_duplicate_key() && races < 3 => {
                    races += 1;
                }
                Err(SubmitError::Fault(fault)) if runs.again(&fault).await => {}
                ended => return ended,
            }
        }
    }

    async fn enqueue(
        &self,
        connection: &mut ControlConnection,
        plan: &Plan,
        executors: &ExecutorChoice,
    ) -> Result<Submitted, SubmitError> {
        let belonging = self.belonging();
        if let Some(known) = known(connection, plan.code()).await? {
            known.admits(plan, belonging)?;
            same_executors(connection, plan, executors).await?;
            return Ok(Submitted::Already {
                counts: count_steps(connection, Some(plan.code())).await?,
            });
        }
        keys_are_free(connection, plan, Look::Plain).await?;
        let rows: Vec<NewRow> = plan
            .steps()
            .iter()
            .zip(0_u32..)
            .map(|(step, position)| NewRow {
                position,
                executor: executors.of(step),
                recorded: RecordedStep::forward(step),
                status: if position == 0 { Status::Pending } else { Status::Waiting },
            })
            .collect();
        let known = Known {
            fingerprint: plan.fingerprint().to_string(),
            step_count: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            belonging,
        };
        insert(connection, plan.code(), &known, &rows).await?;
        keys_are_free(connection, plan, Look::Locking).await?;
        Ok(Submitted::Enqueued { step_count: rows.len() })
    }
}

/// What every row of a plan says of it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) fingerprint: String,
    pub(super) step_count: u32,
    pub(super) belonging: Belonging,
}

impl Known {
    pub(super) fn read(row: &Columns) -> Result<Self, OutboxFault> {
        Ok(Self {
            fingerprint: row.required("plan_fingerprint")?,
            step_count: row.required("plan_step_count")?,
            belonging: Belonging::read(row)?,
        })
    }

    fn admits(self, plan: &Plan, given: Belonging) -> Result<(), SubmitError> {
        let fingerprint = plan.fingerprint();
        let plan = plan.code().clone();
        if self.fingerprint != fingerprint.to_string() {
            let submitted = self.fingerprint;
            return Err(SubmitError::OtherPlan { plan, submitted, given: fingerprint });
        }
        if self.belonging != given {
            let submitted = self.belonging;
            return Err(SubmitError::OtherEnvironment { plan, submitted, given });
        }
        Ok(())
    }
}

/// A plan that is in the outbox.
async fn known(
    connection: &mut ControlConnection,
    plan: &PlanCode,
) -> Result<Option<Known>, OutboxFault> {
    let query = format!(
        "SELECT plan_fingerprint, environment_code, plan_step_count FROM {TABLE} \
         WHERE plan_code = ? LIMIT 1"
    );
    let found = sql::rows(connection, &query, vec![plan.as_str().into()]).await?;
    found.first().map(Known::read).transpose()
}

/// The keys of a plan, both directions'.
fn keys(plan: &Plan) -> Vec<&StepKey> {
    let mut keys = Vec::new();
    for step in plan.steps() {
        keys.push(&step.key);
        keys.extend(step.compensation.key());
    }
    keys
}

/// Refuses a plan with keys of other plans.
async fn keys_are_free(
    connection: &mut ControlConnection,
    plan: &Plan,
    look: Look,
) -> Result<(), SubmitError> {
    let taken = keys::taken(connection, plan.code(), &keys(plan), look).await?;
    if taken.is_empty() { Ok(()) } else { Err(SubmitError::KeysTaken(taken)) }
}

/// Refuses a plan that another executor has.
async fn same_executors(
    connection: &mut ControlConnection,
    plan: &Plan,
    executors: &ExecutorChoice,
) -> Result<(), SubmitError> {
    let query = format!(
        "SELECT executor_code FROM {TABLE} WHERE plan_code = ? AND direction = '{FORWARD}' \
         ORDER BY position"
    );
    let found = sql::rows(connection, &query, vec![plan.code().as_str().into()]).await?;
    for (row, step) in found.iter().zip(plan.steps()) {
        let submitted: ExecutorCode = row.required("executor_code").map_err(OutboxFault::from)?;
        let given = executors.of(step);
        if submitted != given {
            let plan = plan.code().clone();
            return Err(SubmitError::OtherExecutor { plan, submitted, given });
        }
    }
    Ok(())
}

/// A row to be written.
pub(super) struct NewRow {
    pub(super) position: u32,
    pub(super) executor: ExecutorCode,
    pub(super) recorded: RecordedStep,
    pub(super) status: Status,
}

/// Writes rows of a plan, all due now as far as it is their turn.
pub(super) async fn insert(
    connection: &mut ControlConnection,
    plan: &PlanCode,
    known: &Known,
    rows: &[NewRow],
) -> Result<(), OutboxFault> {
    for rows in rows.chunks(ROWS_PER_INSERT) {
        let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
        let statement = format!(
            "INSERT INTO {TABLE} (environment_code, plan_code, plan_fingerprint, plan_step_count, position, \
             step_idempotency_key, compensation_key, direction, executor_code, step, status, not_before, created_at, updated_at) VALUES {}",
            vec![row; rows.len()].join(", ")
        );
        let values = rows
            .iter()
            .flat_map(|row| {
                let step = &row.recorded.step;
                [
                    Value::from(known.belonging.as_str()),
                    plan.as_str().into(),
                    known.fingerprint.as_str().into(),
                    known.step_count.into(),
                    row.position.into(),
                    step.key.as_str().into(),
                    row.recorded.undo_key().map(StepKey::as_str).into(),
                    step.direction.as_str().into(),
                    row.executor.as_str().into(),
                    row.recorded.to_json().into(),
                    row.status.as_str().into(),
                ]
            })
            .collect();
        sql::change(connection, &statement, values).await?;
    }
    Ok(())
}

/// The direction of a plan's own steps.
pub(super) const FORWARD: &str = Direction::Forward.as_str();
