//! Everything a catalog holds, in a form that can be compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row, Value};

/// A row: for each column its bytes, or nothing for NULL.
type Bytes = Vec<Option<Vec<u8>>>;

#[derive(Debug, PartialEq, Eq)]
struct Table {
    definition: String,
    rows: Vec<Bytes>,
}

/// The tables of a catalog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents {
    tables: BTreeMap<String, Table>,
}

impl Contents {
    /// The rows of a table, in the order of their bytes.
    pub(super) fn rows(&self, table: &str) -> Option<&Vec<Bytes>> {
        self.tables.get(table).map(|table| &table.rows)
    }

    /// The contents as they would be in a catalog of another name of the same length.
    pub(super) fn mapped(self, from: &str, to: &str) -> Self {
        let tables = self.tables.into_iter().map(|(name, table)| {
            let mut rows: Vec<Bytes> = table
                .rows
                .into_iter()
                .map(|row| {
                    row.into_iter()
                        .map(|value| value.map(|bytes| replace(&bytes, from, to)))
                        .collect()
                })
                .collect();
            rows.sort();
            (name, Table { definition: table.definition.replace(from, to), rows })
        });
        Self { tables: tables.collect() }
    }

    /// What differs between these contents, of the raw side, and the normalised side's.
    pub(super) fn differences(&self, normalised: &Self) -> Vec<String> {
        let names = self.tables.keys().chain(normalised.tables.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .filter_map(|name| match (self.tables.get(name), normalised.tables.get(name)) {
                (Some(_), None) => Some(format!("table `{name}` is only there raw")),
                (None, Some(_)) => Some(format!("table `{name}` is only there normalised")),
                (Some(raw), Some(other)) if raw.definition != other.definition => Some(format!(
                    "table `{name}` is defined as\n{}\nraw and as\n{}\nnormalised",
                    raw.definition, other.definition
                )),
                (Some(raw), Some(other)) if raw.rows != other.rows => Some(format!(
                    "table `{name}` holds {} raw and {} normalised",
                    told(&raw.rows, &other.rows),
                    told(&other.rows, &raw.rows)
                )),
                _ => None,
            })
            .collect()
    }
}

/// The rows that are not in `other`, readable, and how many there are in all.
fn told(rows: &[Bytes], other: &[Bytes]) -> String {
    const SHOWN: usize = 3;
    let mut text = format!("{} rows", rows.len());
    let own: Vec<&Bytes> = rows.iter().filter(|row| !other.contains(row)).collect();
    for row in own.iter().take(SHOWN) {
        text.push_str(" (");
        for (index, value) in row.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let value = value
                .as_ref()
                .map_or("NULL".to_owned(), |bytes| format!("\"{}\"", bytes.escape_ascii()));
            let _ = write!(text, "{comma}{value}");
        }
        text.push(')');
    }
    if own.len() > SHOWN {
        let _ = write!(text, " and {} more", own.len() - SHOWN);
    }
    text
}

/// Reads all tables of a catalog.
pub(super) async fn observe(admin: &mut Conn, catalog: &str) -> Contents {
    let names: Vec<String> = admin
        .exec("SELECT table_name FROM information_schema.tables WHERE table_schema = ?", (catalog,))
        .await
        .expect("root lists tables");
    let mut tables = BTreeMap::new();
    for name in names {
        let definition: Option<(String, String)> = admin
            .query_first(format!("SHOW CREATE TABLE {}", quoted(catalog, &name)))
            .await
            .expect("root sees definitions");
        let definition = definition.expect("a table has a definition").1;
        let rows = rows(admin, catalog, &name).await;
        tables.insert(name, Table { definition, rows });
    }
    Contents { tables }
}

/// Reads the rows of all tables, without their definitions.
pub(super) async fn observe_rows(conn: &mut Conn, catalog: &str) -> Contents {
    let columns: Vec<(String, String, String)> = conn
        .query(format!(
            "SELECT table_name, column_name, data_type FROM information_schema.columns \
             WHERE table_schema = '{catalog}' ORDER BY table_name, ordinal_position"
        ))
        .await
        .expect("columns can be listed");
    let mut tables = BTreeMap::new();
    for table in columns.chunk_by(|one, other| one.0 == other.0) {
        let name = &table[0].0;
        let columns = table.iter().map(|(_, column, kind)| (column.clone(), kind.clone()));
        let rows = rows_of(conn, catalog, name, &columns.collect::<Vec<_>>()).await;
        tables.insert(name.clone(), Table { definition: String::new(), rows });
    }
    Contents { tables }
}

async fn rows(admin: &mut Conn, catalog: &str, table: &str) -> Vec<Bytes> {
    let columns: Vec<(String, String)> = admin
        .exec(
            "SELECT column_name, data_type FROM information_schema.columns \
             WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
            (catalog, table),
        )
        .await
        .expect("root lists columns");
    rows_of(admin, catalog, table, &columns).await
}

async fn rows_of(
    conn: &mut Conn,
    catalog: &str,
    table: &str,
    columns: &[(String, String)],
) -> Vec<Bytes> {
    let values: Vec<String> = columns.iter().map(|(name, kind)| stored_bytes(name, kind)).collect();
    let mut rows: Vec<Bytes> = conn
        .query_map(format!("SELECT {} FROM {}", values.join(", "), quoted(catalog, table)), bytes)
        .await
        .expect("rows can be read");
    rows.sort();
    rows
}

/// An expression for the bytes a column holds, whatever its character set.
fn stored_bytes(column: &str, kind: &str) -> String {
    let column = format!("`{}`", column.replace('`', "``"));
    match kind {
        // As text a FLOAT shows six digits; as a DOUBLE all that it holds.
        "float" => format!("CAST({column} * 1E0 AS BINARY)"),
        _ => format!("CAST({column} AS BINARY)"),
    }
}

fn bytes(row: Row) -> Bytes {
    row.unwrap()
        .into_iter()
        .map(|value| match value {
            Value::NULL => None,
            Value::Bytes(bytes) => Some(bytes),
            other => panic!("a binary value came as {other:?}"),
        })
        .collect()
}

fn quoted(catalog: &str, table: &str) -> String {
    format!("`{catalog}`.`{}`", table.replace('`', "``"))
}

fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut replaced = bytes.to_vec();
    let mut at = 0;
    while at + from.len() <= replaced.len() {
        if replaced[at..].starts_with(from) {
            replaced[at..at + from.len()].copy_from_slice(to);
            at += from.len();
        } else {
            at += 1;
        }
    }
    replaced
}
