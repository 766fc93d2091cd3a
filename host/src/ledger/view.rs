//! What a claim reads in one round trip, reduced to a state of the machine.

use super::claim::{Claiming, Stop};
use super::fault::LedgerFault;
use super::receipt::{IdentityField, Status, StepIdentity};
use super::request::ClaimRequest;
use super::row::{Holder, LedgerRow, marker_holder, selection};
use super::sql::{self, TABLE, UNIQUE_KEY, literal};
use super::state::{Compensation, Executions, Fit, LeaseTime, Previous, State, Whose};
use crate::ids::{Direction, StepKey};
use crate::session::Columns;
use crate::target::TargetConnection;

/// The row of a step, the row of the step on its other side, and how a request fits them.
pub(super) struct View {
    pub(super) state: State,
    pub(super) fit: Fit,
    pub(super) row: Option<LedgerRow>,
    /// Of a compensation: the forward step. Of a forward step: the compensation begun for it.
    pub(super) counterpart: Option<LedgerRow>,
    /// A step of the same plugin that runs in the other direction.
    pub(super) opposite: Option<StepKey>,
    /// The fields of the identity that differ from the request's.
    pub(super) differs: Vec<IdentityField>,
}

/// The state once the actor's token is on the row and earlier sessions are still to be cleared.
pub(super) const TAKEN: State = State::Running {
    whose: Whose::MineWaiting,
    lease: LeaseTime::Open,
    previous: Previous::Present,
    executions: Executions::BelowBound,
};

impl Claiming<'_> {
    /// Reads everything a claim depends on.
    ///
    /// The read takes no lock: a lock would make it wait behind the very holder it may have to kill.
    /// What it shows may be old by the time it is acted on, so every write names what was read, and
    /// SUCCEEDED, the one thing that is acted on without a write, is final.
    ///
    /// The same round trip tells whether the session still is what it was verified to be. What an earlier
    /// user left in it is undone first.
    pub(super) async fn read(&self, connection: &mut TargetConnection) -> Result<View, Stop> {
        let was_confirmed = connection.is_confirmed();
        let restores = connection.is_to_be_restored();
        let rows = match self.rows(connection, restores).await {
            // Nothing was written on it: whatever is the matter, another session may do.
            Err(_) if !was_confirmed => return Err(Stop::NotAsKept),
            answer => answer?,
        };
        if confirms(connection, &rows)? {
            return Ok(self.view(&rows)?);
        }
        let rows = self.rows(connection, true).await?;
        if confirms(connection, &rows)? { Ok(self.view(&rows)?) } else { Err(Stop::NotAsKept) }
    }

    async fn rows(
        &self,
        connection: &mut TargetConnection,
        restores: bool,
    ) -> Result<Vec<Columns>, LedgerFault> {
        let bound = self.ledger.options().statement_timeout;
        let query = self.query(connection.standing());
        if !restores {
            return sql::rows(connection, bound, &query).await;
        }
        let [rollback, enter, set] = connection.restoring();
        let statements = [rollback.as_str(), &enter, &set, &query];
        let mut answers = sql::several(connection, bound, &statements).await;
        for _ in 0..3 {
            answers.changed()?;
        }
        answers.rows()
    }

    /// A step of the same plugin and environment that runs in the other direction, or whose holder's
    /// session is still there, as an SQL expression.
    fn opposite_running(&self) -> String {
        let identity = &self.request.identity;
        let own = match &self.request.counterpart {
            Some(counterpart) => literal(counterpart.key.as_str()),
            None => literal(self.request.key.as_str()),
        };
        format!(
            "(SELECT MIN(x.step_idempotency_key) FROM {TABLE} x \
             WHERE x.environment_code = {} AND x.plugin_code = {} AND x.status = 'RUNNING' \
             AND x.direction = {} AND x.step_idempotency_key <> {own} \
             AND (x.lease_deadline > UTC_TIMESTAMP(6) OR {} IS NOT NULL))",
            literal(identity.environment.as_str()),
            literal(identity.release.code.as_str()),
            literal(self.opposite_direction().as_str()),
            marker_holder("x"),
        )
    }

    /// The look around after a write that granted the step: sent behind that write, so that it sees what
    /// was committed until then.
    pub(super) fn look_around(&self) -> String {
        format!("SELECT {} AS opposite", self.opposite_running())
    }

    /// The first row is the step's, all NULL when there is none; a second one is its counterpart's.
    fn query(&self, standing: &str) -> String {
        let key = literal(self.request.key.as_str());
        let scalars = format!("{standing} AS standing, {} AS opposite", self.opposite_running());
        let other = match &self.request.counterpart {
            Some(counterpart) => format!(
                "FROM {TABLE} c FORCE INDEX ({UNIQUE_KEY}) WHERE c.step_idempotency_key = {}",
                literal(counterpart.key.as_str())
            ),
            None => format!(
                "FROM {TABLE} m FORCE INDEX ({UNIQUE_KEY}) JOIN {TABLE} c \
                 FORCE INDEX ({UNIQUE_KEY}) ON c.step_idempotency_key = m.counterpart_key \
                 WHERE m.step_idempotency_key = {key} AND m.direction = 'FORWARD'"
            ),
        };
        format!(
            "SELECT 0 AS part, {scalars}, {} FROM (SELECT 1 AS one) o LEFT JOIN {TABLE} r \
             FORCE INDEX ({UNIQUE_KEY}) ON r.step_idempotency_key = {key} \
             UNION ALL SELECT 1, NULL, NULL, {} {other}",
            selection("r"),
            selection("c"),
        )
    }

    fn view(&self, rows: &[Columns]) -> Result<View, LedgerFault> {
        let executions_max = self.ledger.options().executions_max;
        let (mut row, mut counterpart, mut opposite) = (None, None, None);
        for columns in rows {
            let read = LedgerRow::read(columns, executions_max)?;
            if columns.required::<u8>("part")? == 0 {
                opposite = columns.value("opposite")?;
                if let Some(column) = read.as_ref().and_then(|row| row.receipt.contradiction) {
                    return Err(LedgerFault::Contradictory { column });
                }
                row = read;
            } else {
                counterpart = read;
            }
        }
        let differs = row.as_ref().map_or_else(Vec::new, |row| differences(self.request, row));
        let fit = self.fit(row.as_ref(), &differs, opposite.as_ref());
        let state = self.state(row.as_ref(), counterpart.as_ref());
        Ok(View { state, fit, row, counterpart, opposite, differs })
    }

    fn fit(
        &self,
        row: Option<&LedgerRow>,
        differs: &[IdentityField],
        opposite: Option<&StepKey>,
    ) -> Fit {
        let request = self.request;
        let pin_holds = row.is_none_or(|row| {
            row.receipt.executor == request.executor
                && row.receipt.policy_digest.is_none_or(|recorded| {
                    recorded == request.policy_digest
                        || request.superseded_policies.contains(&recorded)
                })
        });
        if !differs.is_empty() {
            Fit::OtherIdentity
        } else if !pin_holds {
            Fit::OtherPin
        } else if opposite.is_some() {
            Fit::OppositeRunning
        } else {
            Fit::Same
        }
    }

    fn state(&self, row: Option<&LedgerRow>, counterpart: Option<&LedgerRow>) -> State {
        let forward = self.request.identity.direction == Direction::Forward;
        let before = match counterpart {
            Some(counterpart) if !forward => counterpart.presence(&self.holder),
            _ => Previous::Gone,
        };
        let Some(row) = row else {
            return State::Absent { previous: before };
        };
        let previous = match row.presence(&self.holder) {
            Previous::Present => Previous::Present,
            Previous::Gone => before,
        };
        if forward && row.receipt.counterpart.is_some() {
            let compensation = compensation(counterpart);
            return State::Turned { compensation, by_me: false, previous };
        }
        let executions = row.executions(self.ledger.options().executions_max);
        own_state(row, self.token.as_str(), &self.holder, previous, executions)
    }
}

/// The state of a row that was not turned, relative to a token and a session.
pub(super) fn own_state(
    row: &LedgerRow,
    token: &str,
    session: &Holder,
    previous: Previous,
    executions: Executions,
) -> State {
    let by_me = row.token == token;
    match row.receipt.status {
        // What is done is done; only what the caller is told differs.
        Status::Succeeded | Status::Pruned => State::Succeeded { by_me },
        Status::Failed => State::Failed { by_me, previous, executions },
        Status::Running => {
            let whose = match (by_me, row.holder.as_ref() == Some(session)) {
                (true, true) => Whose::Mine,
                (true, false) => Whose::MineWaiting,
                (false, _) => Whose::Other,
            };
            State::Running { whose, lease: row.lease, previous, executions }
        }
    }
}

fn compensation(row: Option<&LedgerRow>) -> Compensation {
    match row.map(|row| row.receipt.status) {
        Some(Status::Running) => Compensation::Running,
        Some(Status::Succeeded | Status::Pruned) => Compensation::Succeeded,
        Some(Status::Failed) | None => Compensation::Failed,
    }
}

fn differences(request: &ClaimRequest, row: &LedgerRow) -> Vec<IdentityField> {
    let recorded: &StepIdentity = &row.receipt.identity;
    let mut fields = request.identity.differences(recorded);
    if let Some(counterpart) = &request.counterpart
        && row.receipt.counterpart.as_ref() != Some(&counterpart.key)
    {
        fields.push(IdentityField::Counterpart);
    }
    fields
}

/// Whether what was read of the session is what it was verified to be.
fn confirms(connection: &mut TargetConnection, rows: &[Columns]) -> Result<bool, LedgerFault> {
    let found = rows.first().map(|row| row.text("standing")).transpose()?.flatten();
    Ok(connection.confirm(found.as_deref()))
}
