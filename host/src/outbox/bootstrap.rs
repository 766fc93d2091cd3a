//! Creating the control outbox's table, only ever at an operator's word.

use mysql_async::prelude::Queryable as _;

use super::fault::OutboxFault;
use super::shape;
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::session::ServerFailure;

/// The script that creates the outbox: `sql/factory_plugin_control_outbox.sql`, as shipped.
pub const CONTROL_SCRIPT: &str = include_str!("../../../sql/factory_plugin_control_outbox.sql");

/// The outbox was not created, or is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlBootstrapError {
    /// The script was refused.
    #[error("the control outbox could not be created")]
    Script(#[source] ServerFailure),
    /// The script ran, but a table of another shape was already there; or it was not looked at.
    #[error("the control outbox is not what this version needs")]
    Shape(#[source] OutboxFault),
}

impl ControlBootstrapError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Script(_) => "control-script-refused",
            Self::Shape(_) => "control-shape",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Script(failure) => failure.blame(),
            Self::Shape(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Script(_) => {
                "run sql/factory_plugin_control_outbox.sql with an account that may CREATE TABLE in \
                 the control catalog"
            }
            Self::Shape(fault) => fault.help(),
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
    match shape::check(connection).await {
        Ok(()) => return Ok(false),
        Err(fault) if fault.is_missing() => {}
        Err(fault) => return Err(ControlBootstrapError::Shape(fault)),
    }
    let script = connection.conn().query_drop(CONTROL_SCRIPT).await;
    script.map_err(|error| ControlBootstrapError::Script(ServerFailure::of(&error)))?;
    shape::check(connection).await.map_err(ControlBootstrapError::Shape)?;
    Ok(true)
}
