//! How the ledger talks to its table: literals, bounded statements, rows by column name.
//!
//! Ledger statements go through the text protocol, so that each is one round trip on a connection
//! that never saw it before. That is safe because of [`literal`], the only way a value gets into one.

use std::collections::VecDeque;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::fault::LedgerFault;
pub(super) use crate::session::literal;
use crate::session::{self, Answer, Columns};
use crate::target::TargetConnection;

/// The ledger's table, as the script names it.
pub(super) const TABLE: &str = "factory_plugin_target_receipt";

/// The key that makes a step unique. Reads force it, so that a ledger without it answers no claim.
pub(super) const UNIQUE_KEY: &str = "uk_factory_plugin_target_receipt_key";

/// [`literal`], or `NULL`.
pub(super) fn literal_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), literal)
}

/// Now plus the duration, on the database's clock.
pub(super) fn deadline_in(lease: Duration) -> String {
    format!("UTC_TIMESTAMP(6) + INTERVAL {} MICROSECOND", lease.as_micros())
}

/// Runs a statement within the bound and gives the number of rows it changed.
///
/// When the bound is over the statement may still be running, and the connection is good for nothing
/// but being dropped.
pub(super) async fn execute(
    connection: &mut TargetConnection,
    bound: Duration,
    statement: &str,
) -> Result<u64, LedgerFault> {
    let run = async {
        let result = connection.conn().query_iter(statement).await?;
        let affected = result.affected_rows();
        result.drop_result().await?;
        Ok(affected)
    };
    bounded(bound, run).await
}

/// Runs a query within the bound and gives its rows.
pub(super) async fn rows(
    connection: &mut TargetConnection,
    bound: Duration,
    query: &str,
) -> Result<Vec<Columns>, LedgerFault> {
    let rows: Vec<Row> = bounded(bound, connection.conn().query(query)).await?;
    Ok(rows.into_iter().map(Columns::from).collect())
}

/// Runs a query that always gives a row, and gives that row.
pub(super) async fn row(
    connection: &mut TargetConnection,
    bound: Duration,
    query: &str,
) -> Result<Columns, LedgerFault> {
    let mut rows = rows(connection, bound, query).await?;
    rows.pop().ok_or(MISSING_ROW)
}

/// What several statements answered, in their order.
pub(super) struct Answers {
    given: VecDeque<Answer>,
    fault: Option<LedgerFault>,
}

/// Runs statements of the ledger in one round trip, all within the bound; see [`session::several`].
pub(super) async fn several(
    connection: &mut TargetConnection,
    bound: Duration,
    statements: &[&str],
) -> Answers {
    let mut given = Vec::with_capacity(statements.len());
    let run = session::several(connection.conn(), statements, &mut given);
    let fault = bounded(bound, run).await.err();
    Answers { given: given.into(), fault }
}

impl Answers {
    /// How many rows the next statement changed.
    pub(super) fn changed(&mut self) -> Result<u64, LedgerFault> {
        Ok(self.next()?.changed)
    }

    /// The rows of the next one.
    pub(super) fn rows(&mut self) -> Result<Vec<Columns>, LedgerFault> {
        Ok(self.plain_rows()?.into_iter().map(Columns::from).collect())
    }

    /// The same, as the driver has them.
    pub(super) fn plain_rows(&mut self) -> Result<Vec<Row>, LedgerFault> {
        Ok(self.next()?.rows)
    }

    /// The row of the next one, which always gives one.
    pub(super) fn row(&mut self) -> Result<Columns, LedgerFault> {
        self.rows()?.pop().ok_or(MISSING_ROW)
    }

    /// An error stands in the place of the answer that did not come, and of all after it.
    fn next(&mut self) -> Result<Answer, LedgerFault> {
        let lost = || self.fault.clone().unwrap_or(LedgerFault::AnswerLost);
        self.given.pop_front().ok_or_else(lost)
    }
}

const MISSING_ROW: LedgerFault = LedgerFault::Unreadable { column: "a row that must be there" };

async fn bounded<T>(
    bound: Duration,
    run: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, LedgerFault> {
    match tokio::time::timeout(bound, run).await {
        Ok(answer) => answer.map_err(|error| LedgerFault::from_driver(&error)),
        Err(_) => Err(LedgerFault::TimedOut { bound }),
    }
}
