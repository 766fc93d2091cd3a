//! The conditional statements behind [`Write`].
//!
//! Each names the row as it was read (by its generation, or by the actor's token) and changes at least
//! the generation, so that the number of affected rows tells whether it applied: with or without
//! `CLIENT_FOUND_ROWS`, one row means it did.

use std::time::Duration;

use super::receipt::{LeaseToken, Status};
use super::redact::bounded_code;
use super::request::{ClaimRequest, Counterpart};
use super::row::{Holder, LedgerRow};
use super::sql::{TABLE, deadline_in, literal, literal_or_null};
use super::state::{Guard, Names, Standing, Write, guard};
use crate::digest::Digest;
use crate::ids::{Direction, ExternalReceipt, StepKey};

/// What every write changes.
const TOUCH: &str = "generation = generation + 1, updated_at = UTC_TIMESTAMP(6)";

/// Inserts the row, RUNNING; without a holder the payload may not start yet.
pub(super) fn insert(
    request: &ClaimRequest,
    token: &LeaseToken,
    holder: Option<&Holder>,
) -> String {
    let row = NewRow {
        key: &request.key,
        direction: request.identity.direction,
        content_hash: request.identity.content_hash,
        counterpart: request.counterpart.as_ref().map(|counterpart| &counterpart.key),
        status: Status::Running,
        lease: request.lease,
        executions: u32::from(holder.is_some()),
        receipt: None,
        error: None,
    };
    row.insert(request, token, holder)
}

/// Inserts a compensation that has nothing to reverse.
pub(super) fn insert_not_applicable(request: &ClaimRequest, token: &LeaseToken) -> String {
    let receipt = ExternalReceipt::sql(&request.identity.environment, &request.key);
    let row = NewRow {
        key: &request.key,
        direction: request.identity.direction,
        content_hash: request.identity.content_hash,
        counterpart: request.counterpart.as_ref().map(|counterpart| &counterpart.key),
        status: Status::Succeeded,
        lease: Duration::ZERO,
        executions: 0,
        receipt: Some(receipt.as_str()),
        error: None,
    };
    row.insert(request, token, None)
}

/// Inserts the forward row of a step that was compensated before it ever ran.
pub(super) fn insert_barred(request: &ClaimRequest, counterpart: &Counterpart) -> String {
    let row = NewRow {
        key: &counterpart.key,
        direction: Direction::Forward,
        content_hash: counterpart.content_hash,
        counterpart: Some(&request.key),
        status: Status::Failed,
        lease: Duration::ZERO,
        executions: 0,
        receipt: None,
        error: Some("compensated-before-it-ran"),
    };
    row.insert(request, &LeaseToken::fresh(), None)
}

struct NewRow<'a> {
    key: &'a StepKey,
    direction: Direction,
    content_hash: Digest,
    counterpart: Option<&'a StepKey>,
    status: Status,
    lease: Duration,
    executions: u32,
    receipt: Option<&'a str>,
    error: Option<&'a str>,
}

impl NewRow<'_> {
    fn insert(
        &self,
        request: &ClaimRequest,
        token: &LeaseToken,
        holder: Option<&Holder>,
    ) -> String {
        let release = &request.identity.release;
        let completed = match self.status {
            Status::Succeeded | Status::Pruned => "UTC_TIMESTAMP(6)",
            Status::Running | Status::Failed => "NULL",
        };
        let values = [
            ("step_idempotency_key", literal(self.key.as_str())),
            ("environment_code", literal(request.identity.environment.as_str())),
            ("plugin_code", literal(release.code.as_str())),
            ("plugin_version", literal(&release.version.to_string())),
            ("direction", literal(self.direction.as_str())),
            ("content_hash", literal(&self.content_hash.to_string())),
            ("counterpart_key", literal_or_null(self.counterpart.map(StepKey::as_str))),
            ("executor_code", literal(request.executor.as_str())),
            ("policy_digest", literal(&request.policy_digest.to_string())),
            ("decision_digest", literal(&request.decision_digest.to_string())),
            ("status", literal(self.status.as_str())),
            ("lease_token", literal(token.as_str())),
            ("lease_deadline", deadline_in(self.lease)),
            ("generation", "1".to_owned()),
            ("execution_count", self.executions.to_string()),
            ("statement_count", request.statement_count.to_string()),
            ("session_id", number_or_null(holder.map(|holder| holder.session_id))),
            ("session_marker", literal_or_null(holder.map(|holder| holder.marker.as_str()))),
            ("server_id", literal_or_null(holder.map(|holder| holder.server.as_str()))),
            ("external_receipt", literal_or_null(self.receipt)),
            ("last_error_code", literal_or_null(self.error)),
            ("created_at", "UTC_TIMESTAMP(6)".to_owned()),
            ("updated_at", "UTC_TIMESTAMP(6)".to_owned()),
            ("completed_at", completed.to_owned()),
        ];
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let given: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
        format!("INSERT INTO {TABLE} ({}) VALUES ({})", columns.join(", "), given.join(", "))
    }
}

/// Puts the actor's token on the row, if it is still as read; with a holder the payload may start.
pub(super) fn take_over(
    row: &LedgerRow,
    request: &ClaimRequest,
    token: &LeaseToken,
    holder: Option<&Holder>,
) -> String {
    let session = holder.map(|holder| format!(", {}", starts(holder))).unwrap_or_default();
    let write = if holder.is_some() { Write::TakeOver } else { Write::TakeOverWaiting };
    format!(
        "UPDATE {TABLE} SET status = 'RUNNING', lease_token = {}, lease_deadline = {}, \
         executor_code = {}, policy_digest = {}, decision_digest = {}, statement_count = {}, \
         statements_done = 0{session}, {TOUCH} {}",
        literal(token.as_str()),
        deadline_in(request.lease),
        literal(request.executor.as_str()),
        literal(&request.policy_digest.to_string()),
        literal(&request.decision_digest.to_string()),
        request.statement_count,
        where_as_read(write, row),
    )
}

/// Puts the actor's session on the row that has its token: the payload may start.
pub(super) fn adopt(key: &StepKey, token: &LeaseToken, lease: Duration, holder: &Holder) -> String {
    format!(
        "UPDATE {TABLE} SET {}, lease_deadline = {}, {TOUCH} {}",
        starts(holder),
        deadline_in(lease),
        where_mine(Write::Adopt, key, token),
    )
}

/// Ends the lease under the actor's token.
pub(super) fn give_back(key: &StepKey, token: &LeaseToken) -> String {
    format!(
        "UPDATE {TABLE} SET lease_deadline = UTC_TIMESTAMP(6), {TOUCH} {}",
        where_mine(Write::GiveBack, key, token)
    )
}

/// Undoes a grant before anything ran under it.
pub(super) fn withdraw(key: &StepKey, token: &LeaseToken, code: &str) -> String {
    format!(
        "UPDATE {TABLE} SET status = 'FAILED', execution_count = execution_count - 1, \
         last_error_code = {}, last_error = NULL, session_id = NULL, session_marker = NULL, \
         server_id = NULL, {TOUCH} {}",
        literal(code),
        where_mine(Write::RecordFailure, key, token)
    )
}

/// Moves the deadline, and the progress that people see.
pub(super) fn extend(
    key: &StepKey,
    token: &LeaseToken,
    lease: Duration,
    statements_done: u32,
) -> String {
    format!(
        "UPDATE {TABLE} SET lease_deadline = {}, \
         statements_done = GREATEST(statements_done, {statements_done}), {TOUCH} {}",
        deadline_in(lease),
        where_mine(Write::Extend, key, token)
    )
}

/// To SUCCEEDED.
pub(super) fn complete(key: &StepKey, token: &LeaseToken, receipt: &ExternalReceipt) -> String {
    format!(
        "UPDATE {TABLE} SET status = 'SUCCEEDED', external_receipt = {}, \
         statements_done = statement_count, last_error_code = NULL, last_error = NULL, \
         completed_at = UTC_TIMESTAMP(6), {TOUCH} {}",
        literal(receipt.as_str()),
        where_mine(Write::Complete, key, token)
    )
}

/// To FAILED; `settled` when the session that ran the payload is known to run nothing of it any more.
pub(super) fn fail(
    key: &StepKey,
    token: &LeaseToken,
    code: &str,
    text: &str,
    settled: bool,
) -> String {
    let session =
        if settled { "session_id = NULL, session_marker = NULL, server_id = NULL, " } else { "" };
    format!(
        "UPDATE {TABLE} SET status = 'FAILED', last_error_code = {}, last_error = {}, \
         {session}{TOUCH} {}",
        literal(&bounded_code(code)),
        literal(text),
        where_mine(Write::RecordFailure, key, token)
    )
}

/// Ends a lease at an operator's word, if the row is still as the operator saw it.
pub(super) fn end_lease(row: &LedgerRow) -> String {
    format!(
        "UPDATE {TABLE} SET lease_deadline = UTC_TIMESTAMP(6), \
         last_error_code = 'released-by-operator', {TOUCH} {}",
        where_as_read(Write::EndLease, row),
    )
}

/// To PRUNED, of at most so many that succeeded longer ago than this. Nobody has the new token.
pub(super) fn prune(older_than: Duration, rows_max: u32) -> String {
    format!(
        "UPDATE {TABLE} SET status = 'PRUNED', policy_digest = '', decision_digest = '', \
         lease_token = {}, session_id = NULL, session_marker = NULL, server_id = NULL, \
         last_error_code = NULL, last_error = NULL, {TOUCH} \
         WHERE status = 'SUCCEEDED' AND completed_at < UTC_TIMESTAMP(6) - INTERVAL {} SECOND \
         ORDER BY id LIMIT {rows_max}",
        literal(LeaseToken::fresh().as_str()),
        older_than.as_secs(),
    )
}

/// Bars a forward step, if it is still as read: nobody's token is on it any more.
///
/// It keeps naming its last session, which has to be gone before the compensation runs.
pub(super) fn turn(forward: &LedgerRow, compensation: &StepKey) -> String {
    let fenced = match forward.receipt.status {
        Status::Running => {
            "status = 'FAILED', last_error_code = 'compensated-after-its-lease', last_error = NULL, "
        }
        Status::Failed | Status::Succeeded | Status::Pruned => "",
    };
    format!(
        "UPDATE {TABLE} SET {fenced}counterpart_key = {}, lease_token = {}, {TOUCH} {}",
        literal(compensation.as_str()),
        literal(LeaseToken::fresh().as_str()),
        where_as_read(Write::Turn, forward),
    )
}

/// The payload starts once more, in the holder's session.
fn starts(holder: &Holder) -> String {
    format!(
        "execution_count = execution_count + 1, session_id = {}, session_marker = {}, \
         server_id = {}",
        holder.session_id,
        literal(&holder.marker),
        literal(&holder.server),
    )
}

/// The row of the actor's own token, as the machine's guard has it.
fn where_mine(write: Write, key: &StepKey, token: &LeaseToken) -> String {
    guarded(write, key, token.as_str(), None)
}

/// The row as it was read, as the machine's guard has it.
fn where_as_read(write: Write, row: &LedgerRow) -> String {
    guarded(write, &row.receipt.key, &row.token, Some(row.receipt.generation))
}

fn guarded(write: Write, key: &StepKey, token: &str, generation: Option<u64>) -> String {
    let Guard { names, standing } = guard(write);
    let token = names.map(|_| format!(" AND lease_token = {}", literal(token)));
    let generation = generation
        .filter(|_| names == Some(Names::AsRead))
        .map(|generation| format!(" AND generation = {generation}"));
    let standing = match standing {
        Standing::Running => " AND status = 'RUNNING'",
        Standing::FailedOrOver => {
            " AND (status = 'FAILED' OR (status = 'RUNNING' AND lease_deadline <= UTC_TIMESTAMP(6)))"
        }
        Standing::NotLive => " AND (status <> 'RUNNING' OR lease_deadline <= UTC_TIMESTAMP(6))",
        // The unique key alone decides whether a row is missing.
        Standing::Missing | Standing::Any => "",
    };
    format!(
        "WHERE step_idempotency_key = {}{}{}{standing}",
        literal(key.as_str()),
        token.unwrap_or_default(),
        generation.unwrap_or_default(),
    )
}

fn number_or_null(number: Option<u64>) -> String {
    number.map_or_else(|| "NULL".to_owned(), |number| number.to_string())
}
