//! Connections to the isolated target catalog.
//!
//! The only module that opens them. A [`TargetConnection`] exists only after every isolation check
//! held on that very connection, and the connection is closed before any failure is propagated. It
//! runs no payload and knows no receipt: that is for `executor` and `ledger`.

mod awaited;
mod blockers;
mod connection;
mod contract;
mod control_isolation;
mod error;
mod grant_check;
mod grants;
mod grants_sql;
mod kept;
mod live_sessions;
mod open;
mod pins;
mod pool;
mod purpose;
mod server_checks;

pub use crate::session::{
    Flavour, PinMismatch, ServerFailure, ServerIdentity, ServerVersion, TlsProblem,
};
pub use awaited::{Awaited, Late};
pub use blockers::Blocker;
pub use connection::{TargetConnection, TargetWarning};
pub use contract::{ContractProblem, SessionContract};
pub use error::{Side, TargetError};
pub use grants::{GrantFinding, GrantReach};
pub use grants_sql::{grants_sql, reader_grants_sql};
pub(crate) use live_sessions::LIST_SESSIONS;
pub use live_sessions::{KillOutcome, LiveSession, LiveSessions};
pub use open::Target;
pub use pool::TargetPool;
