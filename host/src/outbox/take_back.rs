//! Which compensations follow from a plan's rows, inside the transaction that writes them.

use super::compensate::{CompensateError, Compensated, CompensationProblem};
use super::environment::Belonging;
use super::fault::OutboxFault;
use super::keys::{self, Look};
use super::recorded::{RecordedStep, Undo};
use super::sql::{self, PLACE_KEY, TABLE};
use super::status::{Event, Status};
use super::submit::{FORWARD, Known, NewRow, insert};
use crate::control::ControlConnection;
use crate::ids::{Direction, ExecutorCode, StepKey};
use crate::plan::{NoCompensation, PlanCode};
use crate::session::Columns;

/// Writes the compensations that are wanted and not there yet.
pub(super) async fn take_back(
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
    is_whole(plan, &known, &forward)?;
    if let Some(running) = forward.iter().find(|row| row.status == Status::Claimed) {
        return Err(CompensateError::Running(running.recorded.step.key.clone()));
    }
    let first = first_position(plan, from, &forward)?;
    let (new, already) = compensations(&forward, first, &back)?;
    let keys: Vec<&StepKey> = new.iter().map(|row| &row.recorded.step.key).collect();
    let taken = keys::taken(connection, plan, &keys, Look::Plain).await?;
    if !taken.is_empty() {
        return Err(CompensateError::KeysTaken(taken));
    }
    let superseded = supersede(connection, plan, first).await?;
    let enqueued = keys.into_iter().cloned().collect();
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

    fn key(&self) -> &StepKey {
        &self.recorded.step.key
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
        let key = || self.key().clone();
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

    fn is_taken_back_by(&self, back: &Self) -> bool {
        let reversed = back.recorded.step.reverses.as_ref();
        reversed.is_some_and(|reversed| reversed.key == *self.key())
    }
}

/// Every row of the plan, locked. Its first forward row before any other: two that take a plan back
/// meet there, and the second one reads compensations only after the first one has written them.
async fn locked_rows(
    connection: &mut ControlConnection,
    plan: &PlanCode,
) -> Result<Vec<Row>, OutboxFault> {
    let of_plan = || vec![plan.as_str().into()];
    let first = format!(
        "SELECT id FROM {TABLE} FORCE INDEX ({PLACE_KEY}) WHERE plan_code = ? \
         AND direction = '{FORWARD}' ORDER BY position LIMIT 1 FOR UPDATE"
    );
    sql::rows(connection, &first, of_plan()).await?;
    let query = format!(
        "SELECT plan_fingerprint, environment_code, plan_step_count, position, status, \
         executor_code, attempt_count, step FROM {TABLE} FORCE INDEX ({PLACE_KEY}) \
         WHERE plan_code = ? ORDER BY direction, position FOR UPDATE"
    );
    let found = sql::rows(connection, &query, of_plan()).await?;
    found.iter().map(Row::read).collect()
}

/// Every forward step is there, in its place: a part of a plan is never taken for all of it.
fn is_whole(plan: &PlanCode, known: &Known, forward: &[Row]) -> Result<(), CompensateError> {
    let is_in_place = forward.iter().zip(0..).all(|(row, position)| row.position == position);
    let found = forward.len();
    if is_in_place && u32::try_from(found) == Ok(known.step_count) {
        return Ok(());
    }
    Err(CompensateError::RowsMissing { plan: plan.clone(), found, submitted: known.step_count })
}

fn first_position(
    plan: &PlanCode,
    from: Option<&StepKey>,
    forward: &[Row],
) -> Result<u32, CompensateError> {
    let Some(from) = from else {
        return Ok(0);
    };
    let named = forward.iter().find(|row| row.key() == from);
    named
        .map(|row| row.position)
        .ok_or_else(|| CompensateError::StepUnknown { plan: plan.clone(), step: from.clone() })
}

/// The rows to write for the steps from a position on, the last step's first, and how many are there
/// already. They go behind those that are there, which are of later steps.
fn compensations(
    forward: &[Row],
    first: u32,
    back: &[Row],
) -> Result<(Vec<NewRow>, usize), CompensateError> {
    let mut problems = Vec::new();
    // Rows are gone through from the last one: what there is to take back behind all problems.
    let mut behind: Option<&Row> = None;
    let mut new: Vec<NewRow> = Vec::new();
    let mut already = 0;
    let has_compensation = |row: &Row| back.iter().any(|back| row.is_taken_back_by(back));
    let is_turn = back.iter().all(|row| row.status == Status::Applied);
    let next = back.iter().map(|row| row.position.saturating_add(1)).max().unwrap_or_default();
    // The earliest step that is being taken back: none after it may follow.
    let earliest = forward.iter().find(|row| has_compensation(row));
    for row in forward.iter().filter(|row| row.position >= first).rev() {
        if has_compensation(row) {
            already += 1;
            continue;
        }
        if !row.has_to_be_taken_back() {
            continue;
        }
        if let Some(earliest) = earliest.filter(|earliest| earliest.position < row.position) {
            return Err(CompensateError::OutOfOrder {
                step: row.key().clone(),
                earlier: earliest.key().clone(),
            });
        }
        match row.compensation() {
            Ok(recorded) => {
                if problems.is_empty() {
                    behind = Some(row);
                }
                let is_next = is_turn && new.is_empty();
                new.push(NewRow {
                    position: next.saturating_add(u32::try_from(new.len()).unwrap_or(u32::MAX)),
                    executor: row.executor.clone(),
                    recorded,
                    status: if is_next { Status::Pending } else { Status::Waiting },
                });
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok((new, already))
    } else {
        // Told in the plan's order.
        problems.reverse();
        Err(CompensateError::Refused { problems, from: behind.map(|row| row.key().clone()) })
    }
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
