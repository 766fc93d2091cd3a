//! Whether a worker can be started at all.
//!
//! A server that is away comes back, so a worker waits for it. A password that is wrong, a catalog or
//! a table that is not there do not mend themselves: whoever starts a worker is told at once.

use crate::blame::Blame;
use crate::control::{Control, ControlError};
use crate::outbox::{Outbox, OutboxFault};

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
}

impl StartError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Control(error) => error.code(),
            Self::Outbox(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Control(error) => error.blame(),
            Self::Outbox(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Control(error) => error.help(),
            Self::Outbox(fault) => fault.help(),
        }
    }
}

/// Looks once at the control catalog and its outbox. A server that is away is no error: a worker
/// waits for it.
///
/// # Errors
///
/// The login is refused, there is no such catalog or no outbox in it, or the like: what waiting does
/// not mend.
pub async fn check_control(control: &Control) -> Result<(), StartError> {
    let mut connection = match control.open().await {
        Ok(connection) => connection,
        Err(ControlError::Server(failure)) if failure.is_transient() => return Ok(()),
        Err(error) => return Err(StartError::Control(error)),
    };
    let read = Outbox::default().is_idle(&mut connection).await;
    connection.close().await;
    match read {
        Err(fault) if !fault.is_transient() => Err(StartError::Outbox(fault)),
        Ok(_) | Err(_) => Ok(()),
    }
}
