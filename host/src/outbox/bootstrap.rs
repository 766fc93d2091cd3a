//! Creating the control outbox's table, only ever at an operator's word.

use mysql_async::prelude::Queryable as _;

use super::sql::DUE_INDEX;
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::session::ServerFailure;

/// The script that creates the outbox: `sql/factory_plugin_control_outbox.sql`, as shipped.
pub const CONTROL_SCRIPT: &str = include_str!("../../../sql/factory_plugin_control_outbox.sql");

/// What the table's comment says of its schema.
const COMMENT: &str = "tollgate control outbox, schema version 2";

/// The outbox was not created, or is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlBootstrapError {
    /// The script, or the look at what it made, was refused.
    #[error("the control outbox could not be created")]
    Script(#[source] ServerFailure),
    /// The script ran, but a table of another shape was already there.
    #[error("the control outbox has another {what} than this version needs")]
    Shape {
        /// Engine, schema version, columns or index.
        what: &'static str,
    },
}

impl ControlBootstrapError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Script(_) => "control-script-refused",
            Self::Shape { .. } => "control-shape",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Script(failure) => failure.blame(),
            Self::Shape { .. } => Blame::Operator,
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Script(_) => {
                "run sql/factory_plugin_control_outbox.sql with an account that may CREATE TABLE in \
                 the control catalog"
            }
            Self::Shape { .. } => {
                "look at `SHOW CREATE TABLE factory_plugin_control_outbox`: it was made by hand or \
                 by another version"
            }
        }
    }
}

/// Creates the outbox's table in the control catalog and verifies it. Safe to repeat. Says whether
/// it was missing before.
///
/// # Errors
///
/// The script was refused, or a table was there before that is not what this version needs; that
/// one is left as it is.
pub async fn bootstrap(connection: &mut ControlConnection) -> Result<bool, ControlBootstrapError> {
    let was_missing = look(connection).await?.is_none();
    if was_missing {
        let script = connection.conn().query_drop(CONTROL_SCRIPT).await;
        script.map_err(|error| ControlBootstrapError::Script(ServerFailure::of(&error)))?;
    }
    match look(connection).await? {
        Some((engine, _)) if engine != "InnoDB" => {
            Err(ControlBootstrapError::Shape { what: "engine" })
        }
        Some((_, comment)) if comment == COMMENT => {
            check_columns(connection).await?;
            check_due_index(connection).await?;
            Ok(was_missing)
        }
        _ => Err(ControlBootstrapError::Shape { what: "schema version" }),
    }
}

/// Engine and comment of the table, if it is there.
async fn look(
    connection: &mut ControlConnection,
) -> Result<Option<(String, String)>, ControlBootstrapError> {
    let query = "SELECT COALESCE(ENGINE, ''), TABLE_COMMENT FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'factory_plugin_control_outbox'";
    let found = connection.conn().query_first(query).await;
    found.map_err(|error| ControlBootstrapError::Script(ServerFailure::of(&error)))
}

/// The columns this version writes, in the script's order. More may be there.
const COLUMNS: &[&str] = &[
    "id",
    "environment_code",
    "plan_code",
    "plan_fingerprint",
    "plan_step_count",
    "position",
    "step_idempotency_key",
    "direction",
    "executor_code",
    "step",
    "status",
    "attempt_count",
    "failure_count",
    "lost_count",
    "not_before",
    "lease_token",
    "lease_deadline",
    "external_receipt",
    "last_error_code",
    "last_error",
    "created_at",
    "updated_at",
    "completed_at",
];

async fn check_columns(connection: &mut ControlConnection) -> Result<(), ControlBootstrapError> {
    let query = "SELECT COLUMN_NAME FROM information_schema.COLUMNS \
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'factory_plugin_control_outbox'";
    let found: Result<Vec<String>, _> = connection.conn().query(query).await;
    let found = found.map_err(|error| ControlBootstrapError::Script(ServerFailure::of(&error)))?;
    if COLUMNS.iter().all(|column| found.iter().any(|name| name == column)) {
        Ok(())
    } else {
        Err(ControlBootstrapError::Shape { what: "columns" })
    }
}

/// Without this index a claim would read every row; see the module's documentation.
async fn check_due_index(connection: &mut ControlConnection) -> Result<(), ControlBootstrapError> {
    let query = format!(
        "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = 'factory_plugin_control_outbox' AND INDEX_NAME = '{DUE_INDEX}' \
         ORDER BY SEQ_IN_INDEX"
    );
    let found: Result<Vec<String>, _> = connection.conn().query(query).await;
    let found = found.map_err(|error| ControlBootstrapError::Script(ServerFailure::of(&error)))?;
    if found == ["status", "environment_code", "not_before", "id"] {
        Ok(())
    } else {
        Err(ControlBootstrapError::Shape { what: "index" })
    }
}
