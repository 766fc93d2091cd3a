//! Before a payload's first statement: whether what its DML writes can be undone.
//!
//! A table that was there before may have an engine without transactions. Its rows would stay when the
//! lease is lost or a later statement fails, and be written again by the next run.

use crate::policy::{Access, Operation, Statement};
use crate::session::{Columns, UnreadableColumn, literal};

/// The query for such tables among those that the payload's DML writes to; none when it has no DML.
pub(super) fn query(statements: &[Statement]) -> Option<String> {
    let mut names: Vec<&str> = statements.iter().flat_map(written).map(|(_, name)| name).collect();
    names.sort_unstable();
    names.dedup();
    let names: Vec<String> = names.into_iter().map(literal).collect();
    (!names.is_empty()).then(|| {
        format!(
            "SELECT t.TABLE_NAME AS name FROM information_schema.TABLES t \
             JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
             WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ({}) \
             AND e.TRANSACTIONS = 'NO'",
            names.join(", ")
        )
    })
}

/// The first statement of DML that writes to a table that [`query`] found, by its index.
pub(super) fn without_transactions(
    statements: &[Statement],
    found: &[Columns],
) -> Result<Option<u32>, UnreadableColumn> {
    let mut names = Vec::with_capacity(found.len());
    for columns in found {
        names.push(columns.required::<String>("name")?);
    }
    // Servers that fold names show them in lowercase.
    let is_found = |name: &str| names.iter().any(|table| table.eq_ignore_ascii_case(name));
    let mut written = statements.iter().flat_map(written);
    Ok(written.find(|(_, name)| is_found(name)).map(|(index, _)| index))
}

fn written(statement: &Statement) -> impl Iterator<Item = (u32, &str)> {
    let is_dml = matches!(statement.operation, Operation::Insert | Operation::Delete);
    let tables =
        statement.tables.iter().filter(move |table| is_dml && table.access == Access::Write);
    tables.map(|table| (statement.index, table.name.as_str()))
}
