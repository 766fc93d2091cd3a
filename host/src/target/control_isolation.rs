//! The target is not the control catalog: by URL, by name, by alias, by what it holds.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::error::TargetError;
use crate::config::SqlTargetConfig;
use crate::session::{
    self, IDENTITY_VARIABLES, ServerFailure, ServerIdentity, SessionSpec, Variables,
};

/// Before anything is opened: equal URLs need no server to be refused.
pub(super) fn urls_differ(config: &SqlTargetConfig) -> Result<(), TargetError> {
    if config.endpoint.normalised() == config.control.endpoint.normalised() {
        Err(TargetError::ControlUrl)
    } else {
        Ok(())
    }
}

/// Opens the control catalog.
pub(super) async fn open_control(config: &SqlTargetConfig) -> Result<Conn, TargetError> {
    let control = &config.control;
    let spec = SessionSpec {
        url: &control.endpoint,
        username: &control.credentials.username,
        password: &control.credentials.password,
        connect_timeout: control.connect_timeout,
    };
    session::open(&spec).await.map_err(TargetError::control)
}

/// Compares where both connections really are.
///
/// Two catalogs of one name are refused wherever they are. Which refusal it is depends on a proof:
/// a user lock taken on one connection is seen on the other only if one server has both (manual,
/// "Locking Functions"), whatever names, proxies or sockets lead there.
pub(super) async fn catalogs_differ(
    target: &mut Conn,
    server: &ServerIdentity,
    target_catalog: &str,
    control: &mut Conn,
) -> Result<(), TargetError> {
    let failed = |error: &mysql_async::Error| TargetError::control(ServerFailure::of(error));
    let found: Option<Option<String>> =
        control.query_first("SELECT DATABASE()").await.map_err(|error| failed(&error))?;
    let control_catalog = found.flatten().unwrap_or_default();
    if !control_catalog.eq_ignore_ascii_case(target_catalog) {
        return Ok(());
    }
    if share_a_server(target, server, control).await? {
        Err(TargetError::ControlAlias)
    } else {
        Err(TargetError::ControlCatalog)
    }
}

/// Whether both connections end at one server, or at members of one cluster.
async fn share_a_server(
    target: &mut Conn,
    server: &ServerIdentity,
    control: &mut Conn,
) -> Result<bool, TargetError> {
    let variables =
        Variables::session(control, IDENTITY_VARIABLES).await.map_err(TargetError::control)?;
    let control_server =
        ServerIdentity::read(control, &variables).await.map_err(TargetError::control)?;
    if control_server.shares_catalogs_with(server) {
        return Ok(true);
    }
    let lock = format!("tollgate-{}", uuid::Uuid::new_v4().simple());
    // Some clusters refuse user locks; then the identities have to do.
    let taken: Option<Option<u8>> =
        control.exec_first("SELECT GET_LOCK(?, 0)", (&lock,)).await.unwrap_or_default();
    if taken.flatten() != Some(1) {
        return Ok(false);
    }
    let holder: Option<Option<u64>> =
        target
            .exec_first("SELECT IS_USED_LOCK(?)", (&lock,))
            .await
            .map_err(|error| TargetError::target(ServerFailure::of(&error)))?;
    Ok(holder.flatten().is_some())
}
