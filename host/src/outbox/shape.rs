//! The shape the outbox must have before anything is written in it.
//!
//! Order, fencing and keys rest on it: transactions, unique keys, bytes compared as bytes, columns wide
//! enough, and the index that claims read.

use std::collections::BTreeMap;
use std::fmt;

use super::Outbox;
use super::fault::OutboxFault;
use super::sql::{self, COMPENSATION_KEY, DUE_INDEX, PLACE_KEY, STEP_KEY, TABLE};
use crate::control::ControlConnection;
use crate::session::Columns;

/// The schema version that this code writes.
pub const SCHEMA_VERSION: u32 = 2;

/// What to do when it is not there.
pub(super) const MISSING_HELP: &str = "run `tollgate init control`";

const VERSION_PREFIX: &str = "tollgate control outbox, schema version ";

/// One way in which an outbox is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboxProblem {
    /// The table is not there.
    Missing,
    /// Its comment does not say which version made it.
    VersionMissing,
    /// Another version made it.
    Version {
        /// Which.
        version: u32,
    },
    /// Not InnoDB, so not transactional.
    Engine {
        /// The engine found.
        engine: String,
    },
    /// A column is not there.
    ColumnMissing {
        /// The column.
        column: &'static str,
    },
    /// A column is of another type, too narrow, compared otherwise, or takes NULL or not.
    ColumnDiffers {
        /// The column.
        column: &'static str,
        /// What was found.
        found: String,
        /// What is needed.
        needed: String,
    },
    /// A column of others that an insert would have to fill.
    ColumnForeign {
        /// The column.
        column: String,
    },
    /// A key is not there, or is another.
    KeyLost {
        /// The key.
        key: &'static str,
        /// What it has to be.
        needed: &'static str,
    },
    /// A unique key that the outbox does not have.
    KeyForeign {
        /// The key.
        key: String,
    },
}

impl OutboxProblem {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing => "outbox-missing",
            Self::VersionMissing | Self::Version { .. } => "outbox-version",
            Self::Engine { .. } => "outbox-engine",
            Self::ColumnMissing { .. }
            | Self::ColumnDiffers { .. }
            | Self::ColumnForeign { .. } => "outbox-column",
            Self::KeyLost { .. } | Self::KeyForeign { .. } => "outbox-key",
        }
    }
}

impl fmt::Display for OutboxProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "the table `{TABLE}` is missing"),
            Self::VersionMissing => write!(f, "`{TABLE}` carries no schema version in its comment"),
            Self::Version { version } => {
                write!(f, "the outbox has schema version {version}, {SCHEMA_VERSION} is needed")
            }
            Self::Engine { engine } => write!(f, "the outbox's engine is `{engine}`, not `InnoDB`"),
            Self::ColumnMissing { column } => write!(f, "the column `{column}` is missing"),
            Self::ColumnDiffers { column, found, needed } => {
                write!(f, "the column `{column}` is `{found}`, `{needed}` is needed")
            }
            Self::ColumnForeign { column } => {
                write!(f, "the column `{column}` does not belong to the outbox and has no default")
            }
            Self::KeyLost { key, needed } => write!(f, "the key `{key}` {needed} is lost"),
            Self::KeyForeign { key } => {
                write!(f, "the unique key `{key}` does not belong to the outbox")
            }
        }
    }
}

/// Every problem in one line.
pub(super) fn listed(problems: &[OutboxProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What to do about them.
pub(super) fn help(problems: &[OutboxProblem]) -> &'static str {
    let is = |wanted: fn(&OutboxProblem) -> bool| problems.iter().any(wanted);
    if is(|problem| *problem == OutboxProblem::Missing) {
        MISSING_HELP
    } else if is(
        |problem| matches!(problem, OutboxProblem::Version { version } if *version > SCHEMA_VERSION),
    ) {
        "upgrade tollgate on this machine: another one already writes a newer outbox"
    } else if is(|problem| matches!(problem, OutboxProblem::Version { .. })) {
        "let the older version finish what is enqueued, rename the table, run `tollgate init control`"
    } else {
        "restore the definition in sql/factory_plugin_control_outbox.sql with ALTER TABLE, keeping \
         every row, then run `tollgate doctor`"
    }
}

/// What a column must be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// ASCII, compared byte for byte, at least this wide.
    Name(u64),
    /// utf8mb4, compared byte for byte, at least this wide.
    Text(u64),
    /// `MEDIUMTEXT` or wider, utf8mb4.
    Document,
    /// `BIGINT UNSIGNED`.
    Big,
    /// `INT UNSIGNED` or wider.
    Count,
    /// `DATETIME(6)`.
    Time,
}

/// Every column with what it must be and whether it takes NULL.
const COLUMNS: &[(&str, Kind, bool)] = &[
    ("id", Kind::Big, false),
    ("environment_code", Kind::Name(32), false),
    ("plan_code", Kind::Name(128), false),
    ("plan_fingerprint", Kind::Name(71), false),
    ("plan_step_count", Kind::Count, false),
    ("position", Kind::Count, false),
    ("step_idempotency_key", Kind::Name(128), false),
    ("compensation_key", Kind::Name(128), true),
    ("direction", Kind::Name(16), false),
    ("executor_code", Kind::Name(64), false),
    ("step", Kind::Document, false),
    ("status", Kind::Name(16), false),
    ("attempt_count", Kind::Count, false),
    ("failure_count", Kind::Count, false),
    ("lost_count", Kind::Count, false),
    ("not_before", Kind::Time, false),
    ("lease_token", Kind::Name(32), true),
    ("lease_deadline", Kind::Time, true),
    ("external_receipt", Kind::Name(191), true),
    ("last_error_code", Kind::Name(64), true),
    ("last_error", Kind::Text(1000), true),
    ("created_at", Kind::Time, false),
    ("updated_at", Kind::Time, false),
    ("completed_at", Kind::Time, true),
];

/// Every key with whether it is unique, its columns, and both in words.
const KEYS: &[(&str, bool, &str, &str)] = &[
    ("PRIMARY", true, "id", "on `id`"),
    (STEP_KEY, true, "step_idempotency_key", "(unique) on `step_idempotency_key`"),
    (COMPENSATION_KEY, true, "compensation_key", "(unique) on `compensation_key`"),
    (
        PLACE_KEY,
        true,
        "plan_code,direction,position",
        "(unique) on `plan_code`, `direction`, `position`",
    ),
    (
        DUE_INDEX,
        false,
        "status,environment_code,not_before,id",
        "on `status`, `environment_code`, `not_before`, `id`",
    ),
];

impl Outbox {
    /// Compares the table in the connection's catalog with what it must be.
    ///
    /// # Errors
    ///
    /// [`OutboxFault::Unfit`] with every difference; or the control server did not answer as it
    /// should.
    pub async fn check_shape(&self, connection: &mut ControlConnection) -> Result<(), OutboxFault> {
        check(connection).await
    }
}

/// Checks once on a session, before the first write on it.
pub(super) async fn ensure(connection: &mut ControlConnection) -> Result<(), OutboxFault> {
    if connection.is_checked() {
        return Ok(());
    }
    check(connection).await?;
    connection.set_checked();
    Ok(())
}

pub(super) async fn check(connection: &mut ControlConnection) -> Result<(), OutboxFault> {
    let problems = problems(connection).await?;
    if problems.is_empty() { Ok(()) } else { Err(OutboxFault::Unfit(problems)) }
}

async fn problems(connection: &mut ControlConnection) -> Result<Vec<OutboxProblem>, OutboxFault> {
    let table = format!(
        "SELECT t.ENGINE AS table_engine, t.TABLE_COMMENT AS table_comment \
         FROM information_schema.TABLES t \
         WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = '{TABLE}'"
    );
    let found = sql::rows(connection, &table, Vec::new()).await?;
    let Some(table) = found.first() else {
        return Ok(vec![OutboxProblem::Missing]);
    };
    let mut problems = Vec::new();
    let comment = table.text("table_comment")?.unwrap_or_default();
    match comment.strip_prefix(VERSION_PREFIX).and_then(|version| version.parse().ok()) {
        Some(SCHEMA_VERSION) => {}
        // What another version's table looks like is not for this one to say.
        Some(version) => return Ok(vec![OutboxProblem::Version { version }]),
        None => problems.push(OutboxProblem::VersionMissing),
    }
    let engine = table.text("table_engine")?.unwrap_or_default();
    if !engine.eq_ignore_ascii_case("InnoDB") {
        problems.push(OutboxProblem::Engine { engine });
    }
    problems.extend(column_problems(connection).await?);
    problems.extend(key_problems(connection).await?);
    Ok(problems)
}

async fn column_problems(
    connection: &mut ControlConnection,
) -> Result<Vec<OutboxProblem>, OutboxFault> {
    let query = format!(
        "SELECT c.COLUMN_NAME AS column_name, c.COLUMN_TYPE AS column_type, \
         c.CHARACTER_MAXIMUM_LENGTH AS width, c.DATETIME_PRECISION AS time_precision, \
         c.COLLATION_NAME AS collation_name, c.IS_NULLABLE = 'YES' AS takes_null, \
         c.COLUMN_DEFAULT IS NOT NULL OR c.EXTRA <> '' AS fills_itself \
         FROM information_schema.COLUMNS c \
         WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = '{TABLE}'"
    );
    let rows = sql::rows(connection, &query, Vec::new()).await?;
    let mut by_name = BTreeMap::new();
    for row in &rows {
        by_name.insert(row.required::<String>("column_name")?.to_ascii_lowercase(), row);
    }
    let mut problems = Vec::new();
    for (column, kind, takes_null) in COLUMNS {
        match by_name.remove(*column) {
            None => problems.push(OutboxProblem::ColumnMissing { column }),
            Some(row) if kind.is_met(row)? && row.flag("takes_null")? == *takes_null => {}
            Some(row) => problems.push(OutboxProblem::ColumnDiffers {
                column,
                found: described(
                    &row.text("column_type")?.unwrap_or_default(),
                    row.text("collation_name")?.as_deref(),
                    row.flag("takes_null")?,
                ),
                needed: kind.needed(*takes_null),
            }),
        }
    }
    for (column, row) in by_name {
        if !row.flag("takes_null")? && !row.flag("fills_itself")? {
            problems.push(OutboxProblem::ColumnForeign { column });
        }
    }
    Ok(problems)
}

fn described(column_type: &str, collation: Option<&str>, takes_null: bool) -> String {
    let collation = collation.map(|name| format!(" {name}")).unwrap_or_default();
    format!("{column_type}{collation}{}", if takes_null { " null" } else { " not null" })
}

impl Kind {
    fn needed(self, takes_null: bool) -> String {
        let (column_type, collation) = match self {
            Self::Name(width) => (format!("varchar({width})"), Some("ascii_bin")),
            Self::Text(width) => (format!("varchar({width})"), Some("utf8mb4_bin")),
            Self::Document => ("mediumtext".to_owned(), Some("utf8mb4_bin")),
            Self::Big => ("bigint unsigned".to_owned(), None),
            Self::Count => ("int unsigned".to_owned(), None),
            Self::Time => ("datetime(6)".to_owned(), None),
        };
        described(&column_type, collation, takes_null)
    }

    fn is_met(self, row: &Columns) -> Result<bool, OutboxFault> {
        let shown = row.text("column_type")?.unwrap_or_default().to_ascii_lowercase();
        let collation = row.text("collation_name")?;
        let is_wide = |needed: u64| {
            Ok::<_, OutboxFault>(row.value("width")?.is_some_and(|width: u64| width >= needed))
        };
        Ok(match self {
            Self::Name(width) => {
                shown.starts_with("varchar")
                    && collation.as_deref() == Some("ascii_bin")
                    && is_wide(width)?
            }
            Self::Text(width) => {
                shown.starts_with("varchar")
                    && collation.as_deref() == Some("utf8mb4_bin")
                    && is_wide(width)?
            }
            Self::Document => {
                matches!(shown.as_str(), "mediumtext" | "longtext")
                    && collation.as_deref() == Some("utf8mb4_bin")
            }
            Self::Big => shown.starts_with("bigint") && shown.contains("unsigned"),
            Self::Count => {
                (shown.starts_with("int") || shown.starts_with("bigint"))
                    && shown.contains("unsigned")
            }
            Self::Time => {
                shown.starts_with("datetime") && row.value("time_precision")? == Some(6_u64)
            }
        })
    }
}

async fn key_problems(
    connection: &mut ControlConnection,
) -> Result<Vec<OutboxProblem>, OutboxFault> {
    let query = format!(
        "SELECT s.INDEX_NAME AS index_name, MIN(s.NON_UNIQUE) = 0 AS is_unique, \
         GROUP_CONCAT(CONCAT(s.COLUMN_NAME, IFNULL(CONCAT('(', s.SUB_PART, ')'), '')) \
         ORDER BY s.SEQ_IN_INDEX) AS parts FROM information_schema.STATISTICS s \
         WHERE s.TABLE_SCHEMA = DATABASE() AND s.TABLE_NAME = '{TABLE}' GROUP BY s.INDEX_NAME"
    );
    let mut found = BTreeMap::new();
    for row in sql::rows(connection, &query, Vec::new()).await? {
        let key: String = row.required("index_name")?;
        found.insert(key, (row.flag("is_unique")?, row.required::<String>("parts")?));
    }
    let mut problems = Vec::new();
    for (key, is_unique, parts, needed) in KEYS {
        let holds = found.remove(*key).is_some_and(|(unique, columns)| {
            unique == *is_unique && columns.eq_ignore_ascii_case(parts)
        });
        if !holds {
            problems.push(OutboxProblem::KeyLost { key, needed });
        }
    }
    let foreign = found.into_iter().filter(|(_, (is_unique, _))| *is_unique);
    problems.extend(foreign.map(|(key, _)| OutboxProblem::KeyForeign { key }));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_makes_what_is_checked() {
        let script = crate::outbox::CONTROL_SCRIPT;
        assert!(script.contains(&format!("COMMENT='{VERSION_PREFIX}{SCHEMA_VERSION}'")));
        for (column, ..) in COLUMNS {
            assert!(script.contains(&format!("\n  `{column}` ")), "{column}");
        }
        for (key, ..) in KEYS.iter().skip(1) {
            assert!(script.contains(&format!("KEY `{key}` (")), "{key}");
        }
    }
}
