//! Before a payload's first statement: whether what its DML writes can be undone.
//!
//! A table that was there before may have an engine without transactions. Its rows would stay when the
//! lease is lost or a later statement fails, and be written again by the next run.

use mysql_async::prelude::Queryable as _;

use crate::policy::{Access, Operation, Statement};
use crate::target::TargetConnection;

/// The first statement of DML that writes to such a table, by its index.
pub(super) async fn without_transactions(
    connection: &mut TargetConnection,
    statements: &[Statement],
) -> Result<Option<u32>, mysql_async::Error> {
    let written: Vec<(u32, &str)> = statements.iter().flat_map(written).collect();
    if written.is_empty() {
        return Ok(None);
    }
    let mut names: Vec<&str> = written.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let query = format!(
        "SELECT t.TABLE_NAME FROM information_schema.TABLES t \
         JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
         WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({}) AND e.TRANSACTIONS = 'NO'",
        vec!["?"; names.len()].join(", ")
    );
    let found: Vec<String> = connection.conn().exec(query, names).await?;
    // Servers that fold names show them in lowercase.
    let is_found = |name: &str| found.iter().any(|table| table.eq_ignore_ascii_case(name));
    Ok(written.into_iter().find(|(_, name)| is_found(name)).map(|(index, _)| index))
}

fn written(statement: &Statement) -> impl Iterator<Item = (u32, &str)> {
    let is_dml = matches!(statement.operation, Operation::Insert | Operation::Delete);
    let tables =
        statement.tables.iter().filter(move |table| is_dml && table.access == Access::Write);
    tables.map(|table| (statement.index, table.name.as_str()))
}
