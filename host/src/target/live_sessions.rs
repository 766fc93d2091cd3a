//! Other sessions on the target's server: what a takeover looks for and ends.
//!
//! It decides nothing: whether a session is the holder's, and whether it may be ended, is for the
//! ledger, which knows the receipt.

use std::fmt;

use mysql_async::prelude::Queryable;
use mysql_async::{Row, Value};

use super::connection::TargetConnection;
use crate::session::ServerFailure;

/// `ER_NO_SUCH_THREAD`.
const NO_SUCH_THREAD: u16 = 1094;
/// `ER_KILL_DENIED_ERROR`, and `ER_SPECIFIC_ACCESS_DENIED_ERROR` for a system account's session.
const KILL_DENIED: &[u16] = &[1095, 1227];

/// A session as the server lists it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveSession {
    /// Its number.
    pub id: u64,
    /// Whether it is the same user as ours.
    pub is_own_user: bool,
    /// The catalog it is in.
    pub catalog: Option<String>,
    /// What it does: `Query`, `Sleep`, `Killed`, …
    pub command: String,
    /// The state of what it does, such as `Waiting for table metadata lock`.
    pub state: Option<String>,
    /// How long it has been in that state, in seconds.
    pub seconds: u64,
    /// The statement it runs, as the server has it; it may hold a payload's literals.
    pub statement: Option<String>,
}

impl LiveSession {
    /// Whether it was killed already and is still rolling back.
    pub fn is_killed(&self) -> bool {
        self.command.eq_ignore_ascii_case("Killed")
    }
}

/// A statement may hold secrets of a payload: it is not shown.
impl fmt::Debug for LiveSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSession")
            .field("id", &self.id)
            .field("is_own_user", &self.is_own_user)
            .field("catalog", &self.catalog)
            .field("command", &self.command)
            .field("state", &self.state)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

/// What became of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOutcome {
    /// The server was told; the session ends when it notices, which for a DDL that rolls back may
    /// take minutes.
    Told,
    /// There is no such session.
    Gone,
    /// It is another account's session, and ending it needs a privilege ours has not
    /// (`CONNECTION_ADMIN`, or `SUPER` on older servers).
    Denied,
}

/// The sessions on a server that an account sees.
///
/// Without `PROCESS` a server lists only sessions of the same account: one of another account is not
/// found, and [`TargetConnection::kill_session`] says `Denied` for it. Behind a proxy a number may be
/// another server's.
#[derive(Debug, Clone)]
pub struct LiveSessions(Vec<LiveSession>);

impl LiveSessions {
    /// The session of this number.
    pub fn find(&self, id: u64) -> Option<&LiveSession> {
        self.0.iter().find(|session| session.id == id)
    }

    fn of(rows: Vec<Row>, own: u64) -> Self {
        let mut listed: Vec<_> = rows.into_iter().map(live_session).collect();
        let own_user = listed.iter().find(|(session, _)| session.id == own);
        let own_user = own_user.and_then(|(_, user)| user.clone());
        for (session, user) in &mut listed {
            session.is_own_user = user.is_some() && *user == own_user;
        }
        Self(listed.into_iter().map(|(session, _)| session).collect())
    }
}

/// Lists sessions: every supported server has it, where the tables behind it differ.
pub(crate) const LIST_SESSIONS: &str = "SHOW FULL PROCESSLIST";

impl TargetConnection {
    /// The sessions that this account sees.
    ///
    /// # Errors
    /// What the server answered instead. The connection is to be closed then.
    pub async fn live_sessions(&mut self) -> Result<LiveSessions, ServerFailure> {
        let rows = self.conn.query(LIST_SESSIONS).await;
        Ok(self.listed(rows.map_err(|error| ServerFailure::of(&error))?))
    }

    /// What [`LIST_SESSIONS`] answered on this connection.
    pub(crate) fn listed(&self, rows: Vec<Row>) -> LiveSessions {
        LiveSessions::of(rows, self.session_id)
    }

    /// Ends a session.
    ///
    /// # Errors
    /// What the server answered instead. The connection is to be closed then.
    pub async fn kill_session(&mut self, id: u64) -> Result<KillOutcome, ServerFailure> {
        match self.conn.query_drop(format!("KILL {id}")).await {
            Ok(()) => Ok(KillOutcome::Told),
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_THREAD => {
                Ok(KillOutcome::Gone)
            }
            Err(mysql_async::Error::Server(error)) if KILL_DENIED.contains(&error.code) => {
                Ok(KillOutcome::Denied)
            }
            Err(error) => Err(ServerFailure::of(&error)),
        }
    }
}

/// A row by its columns' names, and its user. Columns a server leaves NULL are none.
fn live_session(mut row: Row) -> (LiveSession, Option<String>) {
    let mut text = |column: &str| match row.take::<Value, _>(column) {
        Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Some(Value::Int(number)) => Some(number.to_string()),
        Some(Value::UInt(number)) => Some(number.to_string()),
        _ => None,
    };
    let session = LiveSession {
        id: text("Id").and_then(|id| id.parse().ok()).unwrap_or_default(),
        is_own_user: false,
        catalog: text("db"),
        command: text("Command").unwrap_or_default(),
        state: text("State").filter(|state| !state.is_empty()),
        seconds: text("Time").and_then(|time| time.parse().ok()).unwrap_or_default(),
        statement: text("Info"),
    };
    (session, text("User"))
}
