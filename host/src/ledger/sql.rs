//! How the ledger talks to its table: literals, bounded statements, rows by column name.
//!
//! Ledger statements go through the text protocol, so that each is one round trip on a connection
//! that never saw it before. That is safe because of [`literal`], the only way a value gets into one.

use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::fault::LedgerFault;
use crate::session::Columns;
use crate::target::TargetConnection;

/// The ledger's table, as the script names it.
pub(super) const TABLE: &str = "factory_plugin_target_receipt";

/// The key that makes a step unique. Reads force it, so that a ledger without it answers no claim.
pub(super) const UNIQUE_KEY: &str = "uk_factory_plugin_target_receipt_key";

/// The value as an SQL literal that means the same under every `sql_mode` and character set.
///
/// Names of ours are ASCII without quotes or backslashes and are written as they are; any other text
/// is written as hexadecimal digits.
pub(super) fn literal(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte);
    if text.bytes().all(plain) {
        return format!("'{text}'");
    }
    let mut hex = String::with_capacity(2 * text.len());
    for digit in text.bytes().flat_map(|byte| [byte >> 4, byte & 0xf]) {
        hex.extend(char::from_digit(u32::from(digit), 16));
    }
    format!("CONVERT(0x{hex} USING utf8mb4)")
}

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
    rows.pop().ok_or(LedgerFault::Unreadable { column: "a row that must be there" })
}

async fn bounded<T>(
    bound: Duration,
    run: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, LedgerFault> {
    match tokio::time::timeout(bound, run).await {
        Ok(answer) => answer.map_err(|error| LedgerFault::from_driver(&error)),
        Err(_) => Err(LedgerFault::TimedOut { bound }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_they_are() {
        assert_eq!(literal("plan-7:step.3_A"), "'plan-7:step.3_A'");
        assert_eq!(literal(""), "''");
    }

    #[test]
    fn no_text_ends_its_literal() {
        for text in ["'", "\\", "a\\' OR 1=1 -- ", "\0", "é", "\u{bf27}", "\n", "\"", "`"] {
            let literal = literal(text);
            let hex = literal
                .strip_prefix("CONVERT(0x")
                .and_then(|rest| rest.strip_suffix(" USING utf8mb4)"))
                .unwrap();
            assert!(hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{literal}");
        }
    }
}
