//! Looking at the outbox, without any lock.

use std::collections::BTreeMap;
use std::time::Duration;

use mysql_async::Value;
use serde::Serialize;

use super::Outbox;
use super::environment::{Belonging, ENVIRONMENTS_MAX};
use super::fault::OutboxFault;
use super::recorded::{RecordedStep, Undo};
use super::sql::{self, DUE_INDEX, PLACE_KEY, TABLE};
use super::status::Status;
use super::submit::FORWARD;
use crate::control::ControlConnection;
use crate::ids::{
    ContributionKey, Direction, EnvironmentCode, ExecutorCode, PluginRelease, StepKey,
};
use crate::paging::{Place, Slice};
use crate::plan::PlanCode;
use crate::session::Columns;

/// How many steps are in which status.
pub type Counts = BTreeMap<Status, u64>;

/// A row of the outbox. Times are UTC, of the control server's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedStep {
    /// Order of enqueueing.
    pub id: u64,
    /// Whose workers may claim it; none: those without a target.
    pub environment: Option<EnvironmentCode>,
    /// The plan.
    pub plan: PlanCode,
    /// Place in its plan and direction, from 0.
    pub position: u32,
    /// The step.
    pub step_key: StepKey,
    /// Forward, or its reverse.
    pub direction: Direction,
    /// Of a compensation: the forward step that it takes back.
    pub reverses: Option<StepKey>,
    /// Whose contribution it is.
    pub release: PluginRelease,
    /// Which contribution.
    pub contribution_key: ContributionKey,
    /// Who carries it out.
    pub executor: ExecutorCode,
    /// Where it is.
    pub status: Status,
    /// Deliveries so far.
    pub attempt_count: u32,
    /// How many of them failed.
    pub failure_count: u32,
    /// Deliveries since the last report whose worker was never heard of again.
    pub lost_count: u32,
    /// Of a PENDING step: when it is due.
    pub not_before: String,
    /// Of a CLAIMED step: when it may be taken from its worker.
    pub lease_deadline: Option<String>,
    /// Whether that is in the past: nobody may be working on it.
    pub lease_is_over: bool,
    /// What the executor handed back.
    pub external_receipt: Option<String>,
    /// Code of the last failure or uncertainty.
    pub last_error_code: Option<String>,
    /// The same in words.
    pub last_error: Option<String>,
    /// When it was enqueued.
    pub created_at: String,
    /// When it was last written.
    pub updated_at: String,
    /// When it reached its end.
    pub completed_at: Option<String>,
    /// Whether taking its plan back takes it back as well.
    #[serde(skip)]
    pub(super) way_back: WayBack,
}

/// What `tollgate compensate` would do with a step that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WayBack {
    /// Take its whole plan back.
    Whole,
    /// An earlier step cannot be taken back: the plan is from this one on.
    From(StepKey),
    /// It records no compensation: refused.
    None,
}

/// What needs a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeedingAttention {
    /// Steps, the longest waiting first.
    pub steps: Vec<ListedStep>,
    /// Rows that do not read, of the same: they hide no other.
    pub unreadable: Vec<UnreadableStep>,
}

/// A row that this version does not understand: another hand's, or a newer version's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnreadableStep {
    /// The row's `id`.
    pub id: u64,
    /// Its key as it stands there; it may be no step's key.
    pub step_key: String,
    /// The column that does not read.
    pub column: &'static str,
}

impl Outbox {
    /// The steps of a plan, forward and then compensations, in their order.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn plan_steps(
        &self,
        connection: &mut ControlConnection,
        plan: &PlanCode,
    ) -> Result<Vec<ListedStep>, OutboxFault> {
        // In the order of the enum's words: COMPENSATE is before FORWARD.
        let query = format!("{} WHERE plan_code = ? ORDER BY direction DESC, position", select());
        list(connection, &query, vec![plan.as_str().into()]).await
    }

    /// The steps that need a person, the longest waiting first; at most so many.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn needing_attention(
        &self,
        connection: &mut ControlConnection,
        limit: u32,
    ) -> Result<NeedingAttention, OutboxFault> {
        let query = format!(
            "{} WHERE status = 'NEEDS_ATTENTION' ORDER BY not_before, id LIMIT ?",
            select()
        );
        let mut found = NeedingAttention::default();
        for row in &sql::rows(connection, &query, vec![limit.into()]).await? {
            match listed(row) {
                Ok(step) => found.steps.push(step),
                Err(OutboxFault::Unreadable { column }) => {
                    let (id, step_key) = (row.required("id")?, row.required("step_key")?);
                    found.unreadable.push(UnreadableStep { id, step_key, column });
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(found)
    }

    /// One step; none when nobody enqueued it.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn step(
        &self,
        connection: &mut ControlConnection,
        key: &StepKey,
    ) -> Result<Option<ListedStep>, OutboxFault> {
        let query = format!("{} WHERE step_idempotency_key = ?", select());
        Ok(list(connection, &query, vec![key.as_str().into()]).await?.pop())
    }

    /// How long the step that is due longest waits already, or the one whose worker let its lease end
    /// longest ago; none when no step is due. Reads the first entry of an index for each environment
    /// that has PENDING or CLAIMED steps, and looks at 16 of them at most.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn oldest_due(
        &self,
        connection: &mut ControlConnection,
    ) -> Result<Option<Duration>, OutboxFault> {
        // Of a claim `not_before` is the end of its lease.
        let next = format!(
            "SELECT environment_code, \
             TIMESTAMPDIFF(MICROSECOND, not_before, UTC_TIMESTAMP(6)) AS waited \
             FROM {TABLE} FORCE INDEX ({DUE_INDEX}) WHERE status = ? AND environment_code > ? \
             ORDER BY environment_code, not_before, id LIMIT 1"
        );
        // Negative of what is not due yet.
        let mut longest: i64 = -1;
        for status in [Status::Claimed, Status::Pending] {
            let mut after = String::new();
            for _ in 0..ENVIRONMENTS_MAX {
                let values = vec![status.as_str().into(), after.as_str().into()];
                let rows = sql::rows(connection, &next, values).await?;
                let Some(row) = rows.first() else { break };
                after = row.required("environment_code")?;
                longest = longest.max(row.required("waited")?);
            }
        }
        Ok(u64::try_from(longest).ok().map(Duration::from_micros))
    }

    /// A page of steps at a place, in this status or in any; at most `size`.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn page(
        &self,
        connection: &mut ControlConnection,
        status: Option<Status>,
        place: Place,
        size: u32,
    ) -> Result<Slice<ListedStep>, OutboxFault> {
        let mut conditions = vec!["TRUE".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        if let Some(status) = status {
            conditions.push("status = ?".to_owned());
            values.push(status.as_str().into());
        }
        conditions.extend(place.condition("id"));
        // One more than asked for tells whether another page follows.
        values.push(size.saturating_add(1).into());
        let (conditions, order) = (conditions.join(" AND "), place.order());
        let query = format!("{} WHERE {conditions} ORDER BY id {order} LIMIT ?", select());
        let found = list(connection, &query, values).await?;
        Slice::cut(found, place, size, |step| Ok(step.id))
    }

    /// Steps that `sql-jdbc:v1` applied in this environment, enqueued after this one, in that order;
    /// at most so many.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn applied_sql(
        &self,
        connection: &mut ControlConnection,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ListedStep>, OutboxFault> {
        let query = format!(
            "{} WHERE status = 'APPLIED' AND environment_code = ? AND executor_code = ? AND id > ? \
             ORDER BY id LIMIT ?",
            select()
        );
        let (own, executor) = (self.belonging(), ExecutorCode::sql_jdbc_v1());
        let values =
            vec![own.as_str().into(), executor.as_str().into(), after.into(), limit.into()];
        list(connection, &query, values).await
    }

    /// How many steps are in which status, of one plan or of all. Of all it reads an index to its
    /// end: for people, not for monitors that ask every second. A status that this version does not know
    /// is a newer one's; where all are counted it is logged and left out.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn counts(
        &self,
        connection: &mut ControlConnection,
        plan: Option<&PlanCode>,
    ) -> Result<Counts, OutboxFault> {
        match plan {
            Some(_) => count_steps(connection, plan).await,
            None => count_known(connection).await,
        }
    }

    /// Whether there is nothing a worker of this environment could still do: no step is due now or later, and none is
    /// claimed. What needs a person, and what waits behind it, does not count.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn is_idle(&self, connection: &mut ControlConnection) -> Result<bool, OutboxFault> {
        let query = format!(
            "SELECT id FROM {TABLE} FORCE INDEX ({DUE_INDEX}) \
             WHERE status IN ('PENDING', 'CLAIMED') AND environment_code = ? LIMIT 1"
        );
        let own = vec![self.belonging().as_str().into()];
        Ok(sql::rows(connection, &query, own).await?.is_empty())
    }

    /// Whether a step of this environment is left to deliver that one of these codes held up last. Reads
    /// the PENDING and CLAIMED rows of the environment until it finds one.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn is_held_up(
        &self,
        connection: &mut ControlConnection,
        codes: &[String],
    ) -> Result<bool, OutboxFault> {
        if codes.is_empty() {
            return Ok(false);
        }
        let marks = vec!["?"; codes.len()].join(", ");
        let query = format!(
            "SELECT id FROM {TABLE} FORCE INDEX ({DUE_INDEX}) \
             WHERE status IN ('PENDING', 'CLAIMED') AND environment_code = ? \
             AND last_error_code IN ({marks}) LIMIT 1"
        );
        let mut values: Vec<Value> = vec![self.belonging().as_str().into()];
        values.extend(codes.iter().map(|code| Value::from(code.as_str())));
        Ok(!sql::rows(connection, &query, values).await?.is_empty())
    }
}

/// Of all steps, those whose status this version knows.
async fn count_known(connection: &mut ControlConnection) -> Result<Counts, OutboxFault> {
    let mut counts = Counts::new();
    for row in count_rows(connection, None).await? {
        match row.required("status") {
            Ok(status) => {
                counts.insert(status, row.required("step_count")?);
            }
            Err(_) => tracing::warn!(
                status = row.text("status")?,
                "steps are in a status that this version does not know: they are not counted"
            ),
        }
    }
    Ok(counts)
}

/// See [`Outbox::counts`].
pub(super) async fn count_steps(
    connection: &mut ControlConnection,
    plan: Option<&PlanCode>,
) -> Result<Counts, OutboxFault> {
    let mut counts = Counts::new();
    for row in count_rows(connection, plan).await? {
        counts.insert(row.required("status")?, row.required("step_count")?);
    }
    Ok(counts)
}

async fn count_rows(
    connection: &mut ControlConnection,
    plan: Option<&PlanCode>,
) -> Result<Vec<Columns>, OutboxFault> {
    let (condition, values) = match plan {
        Some(plan) => ("WHERE plan_code = ?", vec![Value::from(plan.as_str())]),
        None => ("", Vec::new()),
    };
    let query =
        format!("SELECT status, COUNT(*) AS step_count FROM {TABLE} {condition} GROUP BY status");
    sql::rows(connection, &query, values).await
}

fn select() -> String {
    let time = |column: &str| format!("DATE_FORMAT({column}, '%Y-%m-%dT%H:%i:%s.%fZ') AS {column}");
    let times = ["lease_deadline", "created_at", "updated_at", "completed_at"].map(time).join(", ");
    format!(
        "SELECT id, step_idempotency_key AS step_key, environment_code, plan_code, position, step, executor_code, status, attempt_count, \
         failure_count, lost_count, {times}, DATE_FORMAT(not_before, '%Y-%m-%dT%H:%i:%s.%fZ') AS due_at, \
         COALESCE(lease_deadline <= UTC_TIMESTAMP(6), 0) AS lease_is_over, external_receipt, \
         last_error_code, last_error, {} AS back_from FROM {TABLE} o",
        back_from()
    )
}

/// Of a forward step that needs a person: the step behind the last one before it that was applied and
/// records no compensation; NULL when each does. As an SQL expression.
fn back_from() -> String {
    let of_plan = |alias: &str| {
        format!(
            "FROM {TABLE} {alias} FORCE INDEX ({PLACE_KEY}) WHERE {alias}.plan_code = o.plan_code \
             AND {alias}.direction = '{FORWARD}' AND {alias}.position"
        )
    };
    format!(
        "IF(o.status = 'NEEDS_ATTENTION' AND o.direction = '{FORWARD}', \
         (SELECT n.step_idempotency_key {} = 1 + \
         (SELECT MAX(b.position) {} < o.position AND b.status = 'APPLIED' \
         AND b.compensation_key IS NULL)), NULL)",
        of_plan("n"),
        of_plan("b"),
    )
}

async fn list(
    connection: &mut ControlConnection,
    query: &str,
    values: Vec<Value>,
) -> Result<Vec<ListedStep>, OutboxFault> {
    sql::rows(connection, query, values).await?.iter().map(listed).collect()
}

fn listed(row: &Columns) -> Result<ListedStep, OutboxFault> {
    let RecordedStep { step, undo } = RecordedStep::parse(&row.required::<String>("step")?)?;
    let executor: ExecutorCode = row.required("executor_code")?;
    // What a dry run left need not be taken back.
    let can_be_left = executor == ExecutorCode::dry_run_v1();
    let is_recorded = match &undo {
        Undo::NotRecorded | Undo::None => false,
        Undo::Step(step) => step.declaration.is_some(),
    };
    let way_back = if is_recorded || can_be_left {
        row.value("back_from")?.map_or(WayBack::Whole, WayBack::From)
    } else {
        WayBack::None
    };
    Ok(ListedStep {
        id: row.required("id")?,
        environment: Belonging::read(row)?.0,
        plan: row.required("plan_code")?,
        position: row.required("position")?,
        step_key: step.key,
        direction: step.direction,
        reverses: step.reverses.map(|forward| forward.key),
        release: step.release,
        contribution_key: step.contribution,
        executor,
        status: row.required("status")?,
        attempt_count: row.required("attempt_count")?,
        failure_count: row.required("failure_count")?,
        lost_count: row.required("lost_count")?,
        not_before: row.required("due_at")?,
        lease_deadline: row.text("lease_deadline")?,
        lease_is_over: row.flag("lease_is_over")?,
        external_receipt: row.text("external_receipt")?,
        last_error_code: row.text("last_error_code")?,
        last_error: row.text("last_error")?,
        created_at: row.required("created_at")?,
        updated_at: row.required("updated_at")?,
        completed_at: row.text("completed_at")?,
        way_back,
    })
}
