//! Creating the ledger, only ever at an operator's word.

use std::time::Duration;

use super::fault::LedgerFault;
use super::shape::{self, ShapeError};
use super::sql;
use crate::blame::Blame;
use crate::target::TargetConnection;

/// The script that creates the ledger: `sql/factory_plugin_sql_target.sql`, as shipped.
pub const TARGET_SCRIPT: &str = include_str!("../../../sql/factory_plugin_sql_target.sql");

/// Longest time that creating the ledger may take.
const BOOTSTRAP_TIMEOUT: Duration = Duration::from_mins(1);

/// The ledger was not created, or is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// The script was refused.
    #[error("the receipt ledger could not be created")]
    Script(#[source] LedgerFault),
    /// The script ran, but a ledger of another shape was already there.
    #[error("a receipt ledger of another shape is already there")]
    Shape(#[source] ShapeError),
}

impl BootstrapError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Script(_) => "ledger-script-refused",
            Self::Shape(error) => error.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Script(fault) => fault.blame(),
            Self::Shape(error) => error.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Script(LedgerFault::Refused { code: 1044 | 1142, .. }) => {
                "run sql/factory_plugin_sql_target.sql with an account that may CREATE TABLE in the \
                 target catalog"
            }
            Self::Script(fault) => fault.help(),
            Self::Shape(error) => error.help(),
        }
    }
}

/// Creates the ledger in the connection's catalog and verifies it. Safe to repeat.
///
/// # Errors
///
/// The script was refused, or a ledger was there before that is not what this version needs; that one
/// is left as it is.
pub async fn bootstrap(connection: &mut TargetConnection) -> Result<(), BootstrapError> {
    sql::execute(connection, BOOTSTRAP_TIMEOUT, TARGET_SCRIPT)
        .await
        .map_err(BootstrapError::Script)?;
    shape::check(connection, BOOTSTRAP_TIMEOUT).await.map_err(BootstrapError::Shape)
}
