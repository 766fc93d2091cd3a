//! Taking a step, and keeping it.

use std::fmt;
use std::time::Duration;

use mysql_async::Value;
use uuid::Uuid;

use super::Outbox;
use super::fault::{OutboxFault, Runs};
use super::forward::receipt_needed;
use super::recorded::RecordedStep;
use super::report::Reason;
use super::shape;
use super::sql::{self, DUE_INDEX, TABLE, microseconds, own_token};
use super::status::Status;
use crate::control::ControlConnection;
use crate::fault_points::{Point, at};
use crate::ids::{ExecutorCode, StepKey};
use crate::plan::{PlanCode, Step};
use crate::planted::{Bug, is_planted};
use crate::session::{Columns, Flavour, ServerIdentity, ServerVersion};

/// Rows a claim without `SKIP LOCKED` chooses from.
const CANDIDATE_COUNT: u64 = 8;

/// Code of a step that nobody heard of again, time after time.
const DELIVERIES_LOST: &str = "deliveries-lost";

/// Names one claim of one row: a version 4 UUID.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimToken(String);

impl ClaimToken {
    fn fresh() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClaimToken({})", self.0)
    }
}

/// A step a worker has: nobody else may write its row until its lease is over.
#[derive(Debug, Clone)]
pub struct Claim {
    pub(super) id: u64,
    pub(super) position: u32,
    pub(super) failure_count: u32,
    pub(super) token: ClaimToken,
    receipt_needed: Option<StepKey>,
    plan: PlanCode,
    step: Step,
    executor: ExecutorCode,
    attempt: u32,
    lease: Duration,
}

impl Claim {
    /// The plan the step is of.
    pub fn plan(&self) -> &PlanCode {
        &self.plan
    }

    /// What is to be carried out.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Of a compensation: the forward step whose receipt the ledger must have, because it was applied.
    /// Without it the compensation would pass for one of a step that never ran.
    pub fn receipt_needed(&self) -> Option<&StepKey> {
        self.receipt_needed.as_ref()
    }

    /// Who is to carry it out.
    pub fn executor(&self) -> &ExecutorCode {
        &self.executor
    }

    /// Which delivery this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How often the claim is to be renewed: each third of its lease.
    pub fn renew_interval(&self) -> Duration {
        self.lease / 3
    }
}

/// What was found for a claim.
enum Taken {
    Nothing,
    /// A row for a person to look at, so that it blocks nobody else's.
    SetAside,
    Claim(Box<Claim>),
}

impl Outbox {
    /// Takes a step of its environment that is due, or one whose worker let its lease end; none when there is none.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should. What a lost answer may have claimed is free
    /// again when the lease is over.
    pub async fn claim(
        &self,
        connection: &mut ControlConnection,
    ) -> Result<Option<Claim>, OutboxFault> {
        shape::ensure(connection).await?;
        let mut runs = Runs::default();
        loop {
            match at(Point::OutboxClaim, self.claim_once(connection)).await {
                Ok(Taken::Nothing) => return Ok(None),
                Ok(Taken::Claim(claim)) => return Ok(Some(*claim)),
                Ok(Taken::SetAside) => {}
                Err(fault) if runs.again(&fault).await => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn claim_once(&self, connection: &mut ControlConnection) -> Result<Taken, OutboxFault> {
        if has_skip_locked(connection.server()) {
            sql::begin(connection).await?;
            let taken = self.take_locked(connection).await;
            sql::end(connection, taken).await
        } else {
            self.take_by_condition(connection).await
        }
    }

    /// Locks the first row nobody else has locked, and takes it.
    async fn take_locked(&self, connection: &mut ControlConnection) -> Result<Taken, OutboxFault> {
        for status in claimable() {
            let query = format!("{} LIMIT 1 FOR UPDATE SKIP LOCKED", due("id"));
            let found = sql::rows(connection, &query, self.due_values(status)).await?;
            if let Some(row) = found.first() {
                let (id, token) = (row.required::<u64>("id")?, ClaimToken::fresh());
                self.take(connection, id, status, &token).await?;
                return self.taken(connection, id, token).await;
            }
        }
        Ok(Taken::Nothing)
    }

    /// Reads candidates without locks and takes one, if nobody else was faster.
    async fn take_by_condition(
        &self,
        connection: &mut ControlConnection,
    ) -> Result<Taken, OutboxFault> {
        for status in claimable() {
            let query = format!("{} LIMIT {CANDIDATE_COUNT}", due("id"));
            let found = sql::rows(connection, &query, self.due_values(status)).await?;
            let mut ids = Vec::new();
            for row in &found {
                ids.push(row.required::<u64>("id")?);
            }
            // Workers that read the same candidates begin at different ones.
            let first = random_below(ids.len());
            ids.rotate_left(first);
            for id in ids {
                let token = ClaimToken::fresh();
                if self.take(connection, id, status, &token).await? {
                    return self.taken(connection, id, token).await;
                }
            }
        }
        Ok(Taken::Nothing)
    }

    /// The parameters of [`due`].
    fn due_values(&self, status: Status) -> Vec<Value> {
        vec![status.as_str().into(), self.belonging().as_str().into()]
    }

    /// Puts a new claim on the row, if it still is in this state and due.
    async fn take(
        &self,
        connection: &mut ControlConnection,
        id: u64,
        from: Status,
        token: &ClaimToken,
    ) -> Result<bool, OutboxFault> {
        let statement = format!(
            "UPDATE {TABLE} SET status = 'CLAIMED', lease_token = ?, \
             attempt_count = attempt_count + 1, lost_count = lost_count + ?, \
             lease_deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, \
             not_before = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, \
             updated_at = UTC_TIMESTAMP(6) \
             WHERE id = ? AND status = ? AND not_before <= UTC_TIMESTAMP(6)"
        );
        let lease = microseconds(self.options.lease);
        let values: Vec<Value> = vec![
            token.as_str().into(),
            u8::from(from == Status::Claimed).into(),
            lease.clone(),
            lease,
            id.into(),
            from.as_str().into(),
        ];
        Ok(sql::change(connection, &statement, values).await? == 1)
    }

    /// Reads what was taken.
    async fn taken(
        &self,
        connection: &mut ControlConnection,
        id: u64,
        token: ClaimToken,
    ) -> Result<Taken, OutboxFault> {
        let query = format!(
            "SELECT plan_code, position, executor_code, step, attempt_count, failure_count, \
             lost_count, last_error_code FROM {TABLE} WHERE id = ? AND status = 'CLAIMED' AND lease_token = ?"
        );
        let found = sql::rows(connection, &query, vec![id.into(), token.as_str().into()]).await?;
        let Some(row) = found.first() else {
            return Ok(Taken::Nothing);
        };
        let reason = match self.read(row, id, &token) {
            Ok(mut claim) => match self.lost_too_often(row.required("lost_count")?) {
                None => {
                    let code = row.text("last_error_code")?;
                    let (step, executor) = (&claim.step, &claim.executor);
                    claim.receipt_needed =
                        receipt_needed(connection, step, executor, code.as_deref()).await?;
                    return Ok(Taken::Claim(Box::new(claim)));
                }
                Some(reason) => reason,
            },
            Err(fault) => Reason::new(fault.code(), &fault.to_string()),
        };
        tracing::error!(
            outbox_id = id,
            code = reason.code,
            "a row is set aside: {}",
            reason.message
        );
        set_aside(connection, id, &token, &reason).await?;
        Ok(Taken::SetAside)
    }

    /// A step that ends its worker each time would go round for ever, and take worker after worker
    /// with it.
    fn lost_too_often(&self, lost_count: u32) -> Option<Reason> {
        (lost_count >= self.options.attempts_max).then(|| {
            let message = format!(
                "{lost_count} workers in a row ended without a word while they carried it out"
            );
            Reason::new(DELIVERIES_LOST, &message)
        })
    }

    fn read(&self, row: &Columns, id: u64, token: &ClaimToken) -> Result<Claim, OutboxFault> {
        Ok(Claim {
            id,
            position: row.required("position")?,
            failure_count: row.required("failure_count")?,
            token: token.clone(),
            receipt_needed: None,
            plan: row.required("plan_code")?,
            step: RecordedStep::parse(&row.required::<String>("step")?)?.step,
            executor: row.required("executor_code")?,
            attempt: row.required("attempt_count")?,
            lease: self.options.lease,
        })
    }

    /// Makes the claim hold for another lease from now. False when it was lost: another worker has
    /// the row, or it is in another state.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should: the claim may still be held.
    pub async fn renew(
        &self,
        connection: &mut ControlConnection,
        claim: &Claim,
    ) -> Result<bool, OutboxFault> {
        let statement = format!(
            "UPDATE {TABLE} SET \
             lease_deadline = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, \
             not_before = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND \
             WHERE id = ? AND status = 'CLAIMED' AND {}",
            own_token(Bug::RenewClaimWithoutToken)
        );
        let lease = microseconds(claim.lease);
        let own = || vec![Value::from(claim.id), claim.token.as_str().into()];
        let mut values = vec![lease.clone(), lease];
        values.extend(own());
        let mut runs = Runs::default();
        loop {
            let renewed = sql::change(connection, &statement, values.clone());
            match at(Point::OutboxRenew, renewed).await {
                Ok(0) => break,
                Ok(_) => return Ok(true),
                Err(fault) if runs.again(&fault).await => {}
                Err(fault) => return Err(fault),
            }
        }
        // Equal values are no changed row, when the server's clock stood still: looked at again.
        let query = format!(
            "SELECT id FROM {TABLE} WHERE id = ? AND status = 'CLAIMED' AND lease_token = ?"
        );
        Ok(!sql::rows(connection, &query, own()).await?.is_empty())
    }
}

/// Abandoned rows first: they were due before anything that is due now. Their range is empty nearly
/// always, and then costs one read of the index.
fn claimable() -> [Status; 2] {
    let due = if is_planted(Bug::ClaimOutOfOrder) { Status::Waiting } else { Status::Pending };
    [Status::Claimed, due]
}

/// The rows of a status and an environment that are due, the longest due first.
fn due(columns: &str) -> String {
    format!(
        "SELECT {columns} FROM {TABLE} FORCE INDEX ({DUE_INDEX}) \
         WHERE status = ? AND environment_code = ? AND not_before <= UTC_TIMESTAMP(6) ORDER BY not_before, id"
    )
}

async fn set_aside(
    connection: &mut ControlConnection,
    id: u64,
    token: &ClaimToken,
    reason: &Reason,
) -> Result<(), OutboxFault> {
    let statement = format!(
        "UPDATE {TABLE} SET status = 'NEEDS_ATTENTION', last_error_code = ?, last_error = ?, \
         updated_at = UTC_TIMESTAMP(6) WHERE id = ? AND status = 'CLAIMED' AND lease_token = ?"
    );
    let values = vec![
        reason.code.as_str().into(),
        reason.message.as_str().into(),
        id.into(),
        token.as_str().into(),
    ];
    sql::change(connection, &statement, values).await.map(drop)
}

/// `SKIP LOCKED` came with MySQL 8.0.1 (manual, "Locking Reads") and MariaDB 10.6.0 (knowledge base,
/// "SKIP LOCKED"). Told by the version, which every session's opening reads anyway: a first try that
/// fails would be one more way to open a session.
fn has_skip_locked(server: &ServerIdentity) -> bool {
    match server.flavour() {
        Flavour::MySql => server.version() >= ServerVersion::new(8, 0, 1),
        Flavour::MariaDb => server.version() >= ServerVersion::new(10, 6, 0),
        // TiDB takes the words and locks nothing; the condition is safe everywhere.
        Flavour::TiDb | Flavour::Vitess | Flavour::Other => false,
    }
}

fn random_below(count: usize) -> usize {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    usize::try_from(random & 0xffff).unwrap_or_default().checked_rem(count).unwrap_or_default()
}
