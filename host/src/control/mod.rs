//! Connections to the control catalog, where the outbox lives. Its table is `outbox`'s own.
//!
//! It never sees the target. The isolation check opens its own connection from the same
//! configuration.

mod rights;

use std::fmt;
use std::sync::Arc;

use mysql_async::Conn;

use crate::blame::Blame;
use crate::config::ControlConfig;
use crate::session::{
    self, CONTROL_GRANT_HELP, IDENTITY_VARIABLES, Pin, PinMismatch, SECURE_CLOCK, ServerFailure,
    ServerIdentity, SessionSpec, Variables,
};

/// The control catalog. Cheap to clone; holds no connection.
#[derive(Clone)]
pub struct Control {
    config: Arc<ControlConfig>,
    reads_only: bool,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Control(..)")
    }
}

/// The control catalog was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The server did not answer as it should.
    #[error("the control catalog is not usable")]
    Server(#[source] ServerFailure),
    /// The account may do less than is asked of it.
    #[error("the control account lacks rights in its catalog: {}", .missing.join(", "))]
    GrantsMissing {
        /// What it lacks, at least one.
        missing: Vec<&'static str>,
    },
    /// Session variables do not have the values they were set to.
    #[error("the control catalog's session is not as it was set: {}", .mismatches.first().map(ToString::to_string).unwrap_or_default())]
    SessionNotPinned {
        /// Every one of them.
        mismatches: Vec<PinMismatch>,
    },
}

impl ControlError {
    /// The stable code, kebab-case.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Server(failure) => failure.control_code(),
            Self::GrantsMissing { .. } => "control-grants-missing",
            Self::SessionNotPinned { .. } => "control-session-not-pinned",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Server(failure) => failure.blame(),
            Self::GrantsMissing { .. } | Self::SessionNotPinned { .. } => Blame::Operator,
        }
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Server(failure) => failure.control_help(),
            Self::GrantsMissing { .. } => CONTROL_GRANT_HELP,
            Self::SessionNotPinned { .. } => {
                "check the server's init_connect and its restrictions on session variables"
            }
        }
    }
}

/// An open connection to the control catalog, with a pinned session.
pub struct ControlConnection {
    conn: Conn,
    server: ServerIdentity,
    is_checked: bool,
}

impl ControlConnection {
    /// Whether what is in the catalog was checked on this session, by whoever owns it.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// It was checked and is as it must be.
    pub(crate) fn set_checked(&mut self) {
        self.is_checked = true;
    }

    /// The server behind the connection.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// The driver's connection.
    pub fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    /// Says goodbye and closes.
    pub async fn close(self) {
        session::close(self.conn).await;
    }
}

impl fmt::Debug for ControlConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlConnection").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Control {
    /// The control catalog a configuration describes. Nothing is opened.
    pub fn new(config: &ControlConfig) -> Self {
        Self { config: Arc::new(config.clone()), reads_only: false }
    }

    /// The same catalog, opened for reading: in its sessions the server itself refuses every write, and
    /// ends what takes longer than 5 s. For whoever only looks.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { reads_only: true, ..self }
    }

    /// Opens a connection and pins its session: utf8mb4, UTC, READ COMMITTED, strict, bounded lock
    /// waits, a clock that runs, every row of a list, and on a node of a cluster reads that see what other nodes have committed.
    ///
    /// # Errors
    /// What the server answered instead; the connection is closed by then.
    pub async fn open(&self) -> Result<ControlConnection, ControlError> {
        let spec = SessionSpec {
            url: &self.config.endpoint,
            username: &self.config.credentials.username,
            password: &self.config.credentials.password,
            connect_timeout: self.config.connect_timeout,
        };
        let mut conn = session::open(&spec).await.map_err(ControlError::Server)?;
        match prepare(&mut conn, self.reads_only).await {
            Ok(server) => Ok(ControlConnection { conn, server, is_checked: false }),
            Err(error) => {
                session::close(conn).await;
                Err(error)
            }
        }
    }
}

async fn prepare(conn: &mut Conn, reads_only: bool) -> Result<ServerIdentity, ControlError> {
    let pins = pins(reads_only);
    let mut names = IDENTITY_VARIABLES.to_vec();
    names.extend(pins.iter().flat_map(|pin| pin.names.iter().copied()));
    names.push(SECURE_CLOCK);
    let known = Variables::session(conn, &names).await.map_err(ControlError::Server)?;
    let server = ServerIdentity::read(conn, &known).await.map_err(ControlError::Server)?;
    let pins = Pin::settable(pins, &known);
    session::pin(conn, "NAMES utf8mb4 COLLATE utf8mb4_general_ci", &pins, &known, &[])
        .await
        .map_err(ControlError::Server)?
        .map_err(|mismatches| ControlError::SessionNotPinned { mismatches })?;
    Ok(server)
}

/// The outbox's statements are short; a lock it waits longer for is another's trouble.
const LOCK_WAIT_SECONDS: u64 = 10;

fn pins(reads_only: bool) -> Vec<Pin> {
    let mut pins = vec![
        Pin::read_back(&["character_set_client"], "utf8mb4"),
        Pin::text(&["sql_mode"], "STRICT_TRANS_TABLES"),
        Pin::text(&["time_zone"], "+00:00"),
        Pin::switch(&["autocommit"], true),
        Pin::text(&["transaction_isolation", "tx_isolation"], "READ-COMMITTED"),
        Pin::switch(&["transaction_read_only", "tx_read_only"], reads_only),
        Pin::text(&["completion_type"], "NO_CHAIN"),
        Pin::causal_reads(),
        Pin::number(&["lock_wait_timeout"], LOCK_WAIT_SECONDS),
        Pin::number(&["innodb_lock_wait_timeout"], LOCK_WAIT_SECONDS),
        Pin::every_row(),
        Pin::running_clock(),
    ];
    if reads_only {
        pins.extend(Pin::bounded_reads());
    }
    pins
}
