//! How the outbox talks to its table: bounded statements, small transactions, rows by column name.
//!
//! Statements are prepared and values are parameters, so no value is ever part of a text.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Params, Row, Value};

use super::fault::OutboxFault;
use crate::control::ControlConnection;
use crate::planted::{Bug, is_planted};
use crate::session::Columns;

/// The outbox's table, as the script names it.
pub(super) const TABLE: &str = "factory_plugin_control_outbox";

/// The index that claims read. Named in the claim, so that an outbox without it answers no claim.
pub(super) const DUE_INDEX: &str = "ix_factory_plugin_control_outbox_due";

/// The unique key of places: a plan, a direction, a position.
pub(super) const PLACE_KEY: &str = "uk_factory_plugin_control_outbox_place";

/// The unique key of steps' keys.
pub(super) const STEP_KEY: &str = "uk_factory_plugin_control_outbox_key";

/// The unique key of the keys that compensations will have.
pub(super) const COMPENSATION_KEY: &str = "uk_factory_plugin_control_outbox_compensation";

/// How long one statement may take: above the session's lock wait of 10 s.
const STATEMENT_BOUND: Duration = Duration::from_secs(20);

/// Begins a transaction.
pub(super) async fn begin(connection: &mut ControlConnection) -> Result<(), OutboxFault> {
    bounded(connection.conn().query_drop("START TRANSACTION")).await
}

/// Commits when the work was done, rolls back when it was not.
///
/// A COMMIT that is not answered leaves it open whether it took place; see `record`.
pub(super) async fn end<T, E: From<OutboxFault>>(
    connection: &mut ControlConnection,
    work: Result<T, E>,
) -> Result<T, E> {
    match work {
        Ok(done) => {
            bounded(connection.conn().query_drop("COMMIT")).await?;
            Ok(done)
        }
        Err(error) => {
            // When even this is not answered, the connection is dropped and the server rolls back.
            if let Err(fault) = bounded(connection.conn().query_drop("ROLLBACK")).await {
                tracing::debug!(code = fault.code(), "a rollback was not answered");
            }
            Err(error)
        }
    }
}

/// Runs a statement and gives the number of rows it changed.
pub(super) async fn change(
    connection: &mut ControlConnection,
    statement: &str,
    values: Vec<Value>,
) -> Result<u64, OutboxFault> {
    let conn = connection.conn();
    bounded(async {
        conn.exec_drop(statement, parameters(values)).await?;
        Ok(conn.affected_rows())
    })
    .await
}

/// Runs a query and gives its rows.
pub(super) async fn rows(
    connection: &mut ControlConnection,
    query: &str,
    values: Vec<Value>,
) -> Result<Vec<Columns>, OutboxFault> {
    let rows: Vec<Row> = bounded(connection.conn().exec(query, parameters(values))).await?;
    Ok(rows.into_iter().map(Columns::from).collect())
}

/// A duration for `INTERVAL ? MICROSECOND`.
pub(super) fn microseconds(duration: Duration) -> Value {
    Value::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// The claim's own token, as a condition with one parameter. Under the planted bug any will do.
pub(super) fn own_token(bug: Bug) -> &'static str {
    if is_planted(bug) { "(lease_token = ? OR TRUE)" } else { "lease_token = ?" }
}

fn parameters(values: Vec<Value>) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

async fn bounded<T>(
    run: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, OutboxFault> {
    match tokio::time::timeout(STATEMENT_BOUND, run).await {
        Ok(answer) => answer.map_err(|error| OutboxFault::of(&error)),
        Err(_) => Err(OutboxFault::TimedOut { bound: STATEMENT_BOUND }),
    }
}
