//! What is done once on a session before its first claim.

use std::time::Duration;

use super::fault::LedgerFault;
use super::row::{Holder, UNLOCKED};
use super::shape::{self, ShapeError};
use super::sql::{self, literal};
use crate::target::TargetConnection;

/// The connection's session, prepared for claims.
///
/// The first time on a session this checks the ledger's shape and takes the session's marker: a
/// user-level lock under a random name. The server frees it when the session is gone and rolled
/// back, and not earlier; `IS_USED_LOCK` tells anyone, without any privilege, which session holds
/// it. It confirms whom to kill and never decides who owns a step: on a server that has no such
/// locks the session is known only by its name in the leading comment of its statements.
pub(super) async fn prepared(
    connection: &mut TargetConnection,
    bound: Duration,
) -> Result<Holder, ShapeError> {
    if connection.marker().is_none() {
        shape::check(connection, bound).await?;
        let marker = take_marker(connection, bound).await?;
        connection.set_marker(Some(marker));
    }
    Ok(Holder {
        session_id: connection.session_id(),
        marker: connection.marker().unwrap_or_default().to_owned(),
        server: server_of(connection),
    })
}

/// Has the next claim on this session check the shape again.
pub(super) fn forget(connection: &mut TargetConnection) {
    connection.set_marker(None);
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
