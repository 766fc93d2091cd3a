//! Whether a worker can be started at all.
//!
//! A server that is away comes back, so a worker waits for it. A password that is wrong, a catalog or
//! a table that is not there do not mend themselves: whoever starts a worker is told at once.

use crate::blame::Blame;
use crate::control::{Control, ControlConnection, ControlError};
use crate::outbox::{Outbox, OutboxFault, WORKER_RIGHTS};

/// The control side is not as a worker needs it, and no waiting mends that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The control catalog was not opened.
    #[error("the worker cannot start: the control catalog was not opened")]
    Control(#[source] ControlError),
    /// The outbox was not read.
    #[error("the worker cannot start: the control outbox was not read")]
    Outbox(#[source] OutboxFault),
    /// The account may do less than a worker does.
    #[error("the worker cannot start")]
    Rights(#[source] ControlError),
}

impl StartError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Control(error) | Self::Rights(error) => error.code(),
            Self::Outbox(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Control(error) | Self::Rights(error) => error.blame(),
            Self::Outbox(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Control(error) | Self::Rights(error) => error.help(),
            Self::Outbox(fault) => fault.help(),
        }
    }
}

/// Looks once at the control catalog and its outbox. A server that is away is no error: a worker
/// waits for it.
///
/// # Errors
///
/// The login is refused, there is no such catalog, no outbox in it or one of another shape, a right in
/// it is missing, or the like: what waiting does not mend.
pub async fn check_control(control: &Control) -> Result<(), StartError> {
    let mut connection = match control.open().await {
        Ok(connection) => connection,
        Err(ControlError::Server(failure)) if failure.is_transient() => return Ok(()),
        Err(error) => return Err(StartError::Control(error)),
    };
    let looked = look(&mut connection).await;
    connection.close().await;
    looked
}

async fn look(connection: &mut ControlConnection) -> Result<(), StartError> {
    match read(connection).await {
        Err(fault) if fault.is_transient() => return Ok(()),
        read => read.map_err(StartError::Outbox)?,
    }
    match connection.check_rights(WORKER_RIGHTS).await {
        // That it cannot be told is no lack.
        Err(error @ ControlError::GrantsMissing { .. }) => Err(StartError::Rights(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads the outbox, which tells what the account may not do, then compares its shape.
async fn read(connection: &mut ControlConnection) -> Result<(), OutboxFault> {
    let outbox = Outbox::default();
    outbox.is_idle(connection).await?;
    outbox.check_shape(connection).await
}
