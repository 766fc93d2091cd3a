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
/// Two catalogs of one name are refused wherever they are. The servers' identities, which no name,
/// tunnel or socket changes, tell whether it is the control catalog itself or a namesake.
pub(super) async fn catalogs_differ(
    server: &ServerIdentity,
    target_catalog: &str,
    control: &mut Conn,
) -> Result<(), TargetError> {
    let found: Option<Option<String>> = control
        .query_first("SELECT DATABASE()")
        .await
        .map_err(|error| TargetError::control(ServerFailure::of(&error)))?;
    let control_catalog = found.flatten().unwrap_or_default();
    if !control_catalog.eq_ignore_ascii_case(target_catalog) {
        return Ok(());
    }
    let variables =
        Variables::session(control, IDENTITY_VARIABLES).await.map_err(TargetError::control)?;
    let control_server =
        ServerIdentity::read(control, &variables).await.map_err(TargetError::control)?;
    if control_server.shares_catalogs_with(server) {
        Err(TargetError::ControlAlias)
    } else {
        Err(TargetError::ControlCatalog)
    }
}
