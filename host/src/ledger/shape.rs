//! The shape a ledger must have before anything is claimed in it.
//!
//! What is compared is what the receipt's guarantees rest on: a transactional engine, one row a key,
//! keys compared byte for byte, columns wide enough, and a schema version this code knows.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::fault::LedgerFault;
use super::sql::{self, TABLE, UNIQUE_KEY};
use crate::blame::Blame;
use crate::session::Columns;
use crate::target::TargetConnection;

/// The schema version that this code writes.
pub const SCHEMA_VERSION: u32 = 1;

/// What to do when it is not there. An empty one in its place would take back what the target was used for:
/// every step that was applied would count as one that never ran.
pub(super) const MISSING_HELP: &str = "if this target was used before, restore the table \
     `factory_plugin_target_receipt` from a backup first; else run `tollgate init target`; afterwards \
     `tollgate outbox reconcile`";

const VERSION_PREFIX: &str = "schema version ";

/// One way in which a ledger is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeProblem {
    /// The table is not there.
    Missing,
    /// The table's comment carries no schema version.
    VersionMissing,
    /// A newer Tollgate made it.
    Newer {
        /// The ledger's version.
        version: u32,
    },
    /// An older Tollgate made it.
    Older {
        /// The ledger's version.
        version: u32,
    },
    /// Not InnoDB, so not transactional.
    Engine {
        /// The engine found.
        engine: String,
    },
    /// The key is not unique any more.
    UniqueKeyLost,
    /// A unique key that the ledger does not have.
    ForeignUniqueKey {
        /// Its name.
        name: String,
    },
    /// A column is not there.
    ColumnMissing {
        /// The column.
        column: String,
    },
    /// A column has another type.
    ColumnType {
        /// The column.
        column: String,
        /// The type found.
        found: String,
    },
    /// A column is too narrow.
    ColumnNarrow {
        /// The column.
        column: String,
        /// The width found, in characters or digits after the point.
        found: u64,
        /// The width needed.
        needed: u64,
    },
    /// A column compares in another way.
    ColumnCollation {
        /// The column.
        column: String,
        /// The collation found.
        found: String,
    },
    /// A column takes NULL where it must not, or refuses it where it must take it.
    ColumnNullability {
        /// The column.
        column: String,
    },
    /// A column of others that an insert would have to fill.
    ColumnForeign {
        /// The column.
        column: String,
    },
}

impl ShapeProblem {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing => "ledger-missing",
            Self::VersionMissing => "ledger-version-missing",
            Self::Newer { .. } => "ledger-newer",
            Self::Older { .. } => "ledger-older",
            Self::Engine { .. } => "ledger-engine",
            Self::UniqueKeyLost => "ledger-unique-key-lost",
            Self::ForeignUniqueKey { .. } => "ledger-foreign-unique-key",
            Self::ColumnMissing { .. } => "ledger-column-missing",
            Self::ColumnType { .. } => "ledger-column-type",
            Self::ColumnNarrow { .. } => "ledger-column-narrow",
            Self::ColumnCollation { .. } => "ledger-column-collation",
            Self::ColumnNullability { .. } => "ledger-column-nullability",
            Self::ColumnForeign { .. } => "ledger-column-foreign",
        }
    }

    /// What to do about it. Only a ledger that is not there is made; another shape is for a person.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Missing => MISSING_HELP,
            _ => "restore the definition in sql/factory_plugin_sql_target.sql with ALTER TABLE",
        }
    }
}

impl fmt::Display for ShapeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "the table `{TABLE}` is missing"),
            Self::VersionMissing => write!(f, "`{TABLE}` carries no schema version in its comment"),
            Self::Newer { version } => {
                write!(f, "the ledger has schema version {version}, this is {SCHEMA_VERSION}")
            }
            Self::Older { version } => {
                write!(f, "the ledger has schema version {version}, {SCHEMA_VERSION} is needed")
            }
            Self::Engine { engine } => write!(f, "the ledger's engine is `{engine}`, not `InnoDB`"),
            Self::UniqueKeyLost => {
                write!(f, "the unique key `{UNIQUE_KEY}` on `step_idempotency_key` is lost")
            }
            Self::ForeignUniqueKey { name } => {
                write!(f, "the unique key `{name}` does not belong to the ledger")
            }
            Self::ColumnMissing { column } => write!(f, "the column `{column}` is missing"),
            Self::ColumnType { column, found } => {
                write!(f, "the column `{column}` has the type `{found}`")
            }
            Self::ColumnNarrow { column, found, needed } => {
                write!(f, "the column `{column}` is {found} wide, {needed} is needed")
            }
            Self::ColumnCollation { column, found } => {
                write!(f, "the column `{column}` is compared by `{found}`")
            }
            Self::ColumnNullability { column } => {
                write!(f, "the column `{column}` takes NULL where it must not, or the reverse")
            }
            Self::ColumnForeign { column } => {
                write!(f, "the column `{column}` does not belong to the ledger and has no default")
            }
        }
    }
}

/// The ledger cannot be written, or cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The table is not what it must be; every difference found.
    #[error("the receipt ledger cannot be used: {}", listed(.0))]
    Unfit(Vec<ShapeProblem>),
    /// The catalog's description could not be read.
    #[error("the receipt ledger's shape could not be read")]
    Fault(#[from] LedgerFault),
}

fn listed(problems: &[ShapeProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl ShapeError {
    /// The stable code, of the first problem.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unfit(problems) => problems.first().map_or("ledger-unfit", ShapeProblem::code),
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Unfit(_) => Blame::Operator,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        let Self::Unfit(problems) = self else {
            return match self {
                Self::Fault(fault) => fault.help(),
                Self::Unfit(_) => "",
            };
        };
        if problems.iter().any(|problem| matches!(problem, ShapeProblem::Newer { .. })) {
            "upgrade tollgate on this machine: another one already writes a newer ledger"
        } else if problems.contains(&ShapeProblem::Missing) {
            MISSING_HELP
        } else {
            "restore the definition in sql/factory_plugin_sql_target.sql with ALTER TABLE, keeping \
             every row, then run `tollgate doctor`"
        }
    }

    /// The table is not there: the target is incomplete rather than broken.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unfit(problems) if problems.contains(&ShapeProblem::Missing))
    }
}

/// What a column must be.
enum Kind {
    /// ASCII, compared byte for byte, at least this wide.
    Name(u64),
    /// utf8mb4, compared byte for byte, at least this wide.
    Text(u64),
    /// `BIGINT UNSIGNED`.
    Big,
    /// `INT UNSIGNED` or wider.
    Count,
    /// `DATETIME(6)`.
    Time,
}

const COLUMNS: &[(&str, Kind, bool)] = &[
    ("id", Kind::Big, false),
    ("step_idempotency_key", Kind::Name(128), false),
    ("environment_code", Kind::Name(32), false),
    ("plugin_code", Kind::Name(64), false),
    ("plugin_version", Kind::Name(255), false),
    ("direction", Kind::Name(16), false),
    ("content_hash", Kind::Name(71), false),
    ("counterpart_key", Kind::Name(128), true),
    ("executor_code", Kind::Name(64), false),
    ("policy_digest", Kind::Name(71), false),
    ("decision_digest", Kind::Name(71), false),
    ("status", Kind::Name(16), false),
    ("lease_token", Kind::Name(32), false),
    ("lease_deadline", Kind::Time, false),
    ("generation", Kind::Big, false),
    ("execution_count", Kind::Count, false),
    ("statement_count", Kind::Count, false),
    ("statements_done", Kind::Count, false),
    ("session_id", Kind::Big, true),
    ("session_marker", Kind::Name(64), true),
    ("server_id", Kind::Name(128), true),
    ("external_receipt", Kind::Name(191), true),
    ("last_error_code", Kind::Name(64), true),
    ("last_error", Kind::Text(1000), true),
    ("created_at", Kind::Time, false),
    ("updated_at", Kind::Time, false),
    ("completed_at", Kind::Time, true),
];

/// Compares the ledger in the connection's catalog with the expected shape.
pub(super) async fn check(
    connection: &mut TargetConnection,
    bound: Duration,
) -> Result<(), ShapeError> {
    let problems = problems(connection, bound).await?;
    if problems.is_empty() { Ok(()) } else { Err(ShapeError::Unfit(problems)) }
}

async fn problems(
    connection: &mut TargetConnection,
    bound: Duration,
) -> Result<Vec<ShapeProblem>, LedgerFault> {
    let table = sql::rows(connection, bound, &table_query()).await?;
    let Some(table) = table.first() else {
        return Ok(vec![ShapeProblem::Missing]);
    };
    let version = version(table.text("table_comment")?.unwrap_or_default().as_str());
    match version {
        None => return Ok(vec![ShapeProblem::VersionMissing]),
        Some(version) if version > SCHEMA_VERSION => {
            return Ok(vec![ShapeProblem::Newer { version }]);
        }
        Some(version) if version < SCHEMA_VERSION => {
            return Ok(vec![ShapeProblem::Older { version }]);
        }
        Some(_) => {}
    }
    let mut problems = Vec::new();
    let engine = table.text("table_engine")?.unwrap_or_default();
    if !engine.eq_ignore_ascii_case("InnoDB") {
        problems.push(ShapeProblem::Engine { engine });
    }
    problems.extend(column_problems(&sql::rows(connection, bound, &column_query()).await?)?);
    problems.extend(key_problems(&sql::rows(connection, bound, &key_query()).await?)?);
    Ok(problems)
}

fn table_query() -> String {
    format!(
        "SELECT t.ENGINE AS table_engine, t.TABLE_COMMENT AS table_comment \
         FROM information_schema.TABLES t \
         WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = '{TABLE}'"
    )
}

fn column_query() -> String {
    format!(
        "SELECT c.COLUMN_NAME AS column_name, c.COLUMN_TYPE AS column_type, \
         c.CHARACTER_MAXIMUM_LENGTH AS width, c.DATETIME_PRECISION AS time_precision, \
         c.COLLATION_NAME AS collation_name, c.IS_NULLABLE = 'YES' AS takes_null, \
         c.COLUMN_DEFAULT IS NOT NULL OR c.EXTRA <> '' AS fills_itself \
         FROM information_schema.COLUMNS c \
         WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = '{TABLE}'"
    )
}

fn key_query() -> String {
    format!(
        "SELECT s.INDEX_NAME AS index_name, \
         GROUP_CONCAT(CONCAT(s.COLUMN_NAME, IFNULL(CONCAT('(', s.SUB_PART, ')'), '')) \
         ORDER BY s.SEQ_IN_INDEX) AS parts \
         FROM information_schema.STATISTICS s \
         WHERE s.TABLE_SCHEMA = DATABASE() AND s.TABLE_NAME = '{TABLE}' AND s.NON_UNIQUE = 0 \
         GROUP BY s.INDEX_NAME"
    )
}

fn version(comment: &str) -> Option<u32> {
    let (_, version) = comment.rsplit_once(VERSION_PREFIX)?;
    version.trim().parse().ok()
}

fn column_problems(found: &[Columns]) -> Result<Vec<ShapeProblem>, LedgerFault> {
    let mut by_name = BTreeMap::new();
    for columns in found {
        by_name.insert(columns.required::<String>("column_name")?.to_ascii_lowercase(), columns);
    }
    let mut problems = Vec::new();
    for (name, kind, takes_null) in COLUMNS {
        let column = (*name).to_owned();
        match by_name.remove(*name) {
            None => problems.push(ShapeProblem::ColumnMissing { column }),
            Some(found) => {
                problems.extend(kind.problem(name, found)?);
                if found.flag("takes_null")? != *takes_null {
                    problems.push(ShapeProblem::ColumnNullability { column });
                }
            }
        }
    }
    for (column, found) in by_name {
        if !found.flag("takes_null")? && !found.flag("fills_itself")? {
            problems.push(ShapeProblem::ColumnForeign { column });
        }
    }
    Ok(problems)
}

impl Kind {
    fn problem(&self, name: &str, found: &Columns) -> Result<Option<ShapeProblem>, LedgerFault> {
        let column = name.to_owned();
        let shown = found.text("column_type")?.unwrap_or_default().to_ascii_lowercase();
        let (base, width, needed, collation) = match self {
            Self::Name(needed) => ("varchar", found.value("width")?, *needed, Some("ascii_bin")),
            Self::Text(needed) => ("varchar", found.value("width")?, *needed, Some("utf8mb4_bin")),
            Self::Time => ("datetime", found.value("time_precision")?, 6, None),
            Self::Big => ("bigint", None, 0, None),
            Self::Count => ("int", None, 0, None),
        };
        let unsigned = matches!(self, Self::Big | Self::Count);
        let is_base =
            shown.starts_with(base) || (matches!(self, Self::Count) && shown.starts_with("bigint"));
        if !is_base || unsigned != shown.contains("unsigned") {
            return Ok(Some(ShapeProblem::ColumnType { column, found: shown }));
        }
        let width: u64 = width.unwrap_or(0);
        if width < needed {
            return Ok(Some(ShapeProblem::ColumnNarrow { column, found: width, needed }));
        }
        let compared_by = found.text("collation_name")?;
        if compared_by.as_deref() != collation {
            let found = compared_by.unwrap_or_default();
            return Ok(Some(ShapeProblem::ColumnCollation { column, found }));
        }
        Ok(None)
    }
}

fn key_problems(found: &[Columns]) -> Result<Vec<ShapeProblem>, LedgerFault> {
    let mut keys = BTreeMap::new();
    for columns in found {
        let name: String = columns.required("index_name")?;
        keys.insert(name, columns.required::<String>("parts")?);
    }
    let mut problems = Vec::new();
    let parts = keys.remove(UNIQUE_KEY);
    if parts.is_none_or(|parts| !parts.eq_ignore_ascii_case("step_idempotency_key")) {
        problems.push(ShapeProblem::UniqueKeyLost);
    }
    keys.remove("PRIMARY");
    problems.extend(keys.into_keys().map(|name| ShapeProblem::ForeignUniqueKey { name }));
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_carries_this_version() {
        let script = crate::ledger::TARGET_SCRIPT;
        let (_, comment) = script.rsplit_once("COMMENT='").unwrap();
        let (comment, _) = comment.split_once('\'').unwrap();
        assert_eq!(version(comment), Some(SCHEMA_VERSION));
    }

    #[test]
    fn the_script_names_the_expected_columns_in_order() {
        let script = crate::ledger::TARGET_SCRIPT;
        let named: Vec<&str> = script
            .lines()
            .filter_map(|line| line.strip_prefix("  `"))
            .filter_map(|line| line.split_once('`').map(|(name, _)| name))
            .collect();
        let expected: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(named, expected);
    }

    #[test]
    fn a_comment_without_a_version_has_none() {
        for comment in ["", "schema version", "schema version x", "schema version 1 or so"] {
            assert_eq!(version(comment), None, "{comment}");
        }
    }
}
