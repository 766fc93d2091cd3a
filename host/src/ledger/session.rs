//! What is done once on a connection before its first claim.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::fault::LedgerFault;
use super::row::{Holder, UNLOCKED};
use super::shape::{self, ShapeError};
use super::sql::{self, literal};
use crate::target::TargetConnection;

/// Sessions remembered; a forgotten one is only prepared again.
const SESSIONS_MAX: usize = 1024;

/// The sessions that were prepared and what they are called in a receipt.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<VecDeque<Holder>>);

impl Sessions {
    /// The connection's session, prepared for claims.
    ///
    /// The first time on a session this checks the ledger's shape and takes the session's marker: a
    /// user-level lock under a random name. The server frees it when the session is gone and rolled
    /// back, and not earlier; `IS_USED_LOCK` tells anyone, without any privilege, which session holds
    /// it. It confirms whom to kill and never decides who owns a step: on a server that has no such
    /// locks the session is known only by its name in the leading comment of its statements.
    pub(super) async fn prepared(
        &self,
        connection: &mut TargetConnection,
        bound: Duration,
    ) -> Result<Holder, ShapeError> {
        if let Some(holder) = self.find(connection) {
            return Ok(holder);
        }
        shape::check(connection, bound).await?;
        let holder = Holder {
            session_id: connection.session_id(),
            marker: take_marker(connection, bound).await?,
            server: server_of(connection),
        };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.truncate(SESSIONS_MAX - 1);
        sessions.push_front(holder.clone());
        Ok(holder)
    }

    /// Forgets the session, so that its next claim checks the shape again.
    pub(super) fn forget(&self, connection: &TargetConnection) {
        let server = server_of(connection);
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|held| held.session_id != connection.session_id() || held.server != server);
    }

    fn find(&self, connection: &TargetConnection) -> Option<Holder> {
        let server = server_of(connection);
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions
            .iter()
            .find(|held| held.session_id == connection.session_id() && held.server == server)
            .cloned()
    }
}

/// The server process as receipts name it.
pub(super) fn server_of(connection: &TargetConnection) -> String {
    connection.server().incarnation().to_owned()
}

async fn take_marker(
    connection: &mut TargetConnection,
    bound: Duration,
) -> Result<String, LedgerFault> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let marker = format!("tollgate-{name}");
    let query = format!("SELECT GET_LOCK({}, 0) AS taken", literal(&marker));
    match sql::row(connection, bound, &query).await {
        Ok(row) if row.flag("taken")? => Ok(marker),
        // A cluster that refuses user-level locks.
        Ok(_) | Err(LedgerFault::Refused { .. }) => Ok(format!("{UNLOCKED}{name}")),
        Err(fault) => Err(fault),
    }
}
