//! Whether a server can be a target at all: what it is, and that it takes writes.

use mysql_async::Conn;

use super::connection::TargetWarning;
use super::error::TargetError;
use crate::session::{Flavour, ServerIdentity, ServerVersion, Variables};

/// The variables these checks read.
pub(super) const SERVER_VARIABLES: &[&str] = &[
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "offline_mode",
    "wsrep_on",
    "wsrep_provider",
    "log_bin",
    "binlog_format",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "secure_timestamp",
];

/// Refuses servers on which a kill, a lock or a DDL does not do what the ledger counts on.
pub(super) fn supported(server: &ServerIdentity) -> Result<(), TargetError> {
    let version = server.version();
    let reason = match server.flavour() {
        Flavour::TiDb => "KILL may not stop DDL, and SKIP LOCKED may not lock",
        Flavour::Vitess => "DDL is not run directly, and locks end after 20 s",
        Flavour::Other => "it has no InnoDB",
        Flavour::MySql if version < ServerVersion::new(5, 6, 0) => "it is older than 5.6",
        Flavour::MariaDb if version < ServerVersion::new(10, 6, 0) => "it is older than 10.6",
        Flavour::MySql | Flavour::MariaDb => return Ok(()),
    };
    Err(TargetError::ServerUnsupported { flavour: server.flavour(), version, reason })
}

/// Only the identities the operator listed, when there is a list.
pub(super) fn allowed(server: &ServerIdentity, list: &[String]) -> Result<(), TargetError> {
    if list.is_empty() || list.iter().any(|id| id.eq_ignore_ascii_case(server.id())) {
        Ok(())
    } else {
        Err(TargetError::ServerNotAllowed { id: server.id().to_owned() })
    }
}

/// The server has to be a writer: a receipt on a replica is no receipt.
pub(super) async fn writer(conn: &mut Conn, variables: &Variables) -> Result<(), TargetError> {
    for variable in ["read_only", "super_read_only", "innodb_read_only", "offline_mode"] {
        if variables.is_on(variable) {
            return Err(TargetError::ServerReadOnly { variable });
        }
    }
    // InnoDB refuses statement logging below REPEATABLE READ with error 1665 (manual, "SET
    // TRANSACTION Statement"); found here, it is not found after a claim.
    let logs_statements = variables.is_on("log_bin")
        && variables.value("binlog_format").is_some_and(|it| it.eq_ignore_ascii_case("STATEMENT"));
    if logs_statements {
        return Err(TargetError::BinlogStatements);
    }
    if variables.is_on("wsrep_on") && variables.is_on("wsrep_provider") {
        cluster_ready(conn).await?;
    }
    Ok(())
}

/// Galera: a node outside the primary component answers, and refuses what matters.
async fn cluster_ready(conn: &mut Conn) -> Result<(), TargetError> {
    let names = ["wsrep_ready", "wsrep_cluster_status"];
    let status = Variables::status(conn, &names).await.map_err(TargetError::target)?;
    for (variable, wanted) in [("wsrep_ready", "ON"), ("wsrep_cluster_status", "Primary")] {
        let value = status.value(variable).unwrap_or_default();
        if !value.eq_ignore_ascii_case(wanted) {
            return Err(TargetError::ClusterNotReady { variable, value: value.to_owned() });
        }
    }
    Ok(())
}

/// What does not stop a target and has to be seen.
pub(super) fn warnings(server: &ServerIdentity, variables: &Variables) -> Vec<TargetWarning> {
    let mut warnings = Vec::new();
    if !server.has_atomic_ddl() {
        warnings.push(TargetWarning::DdlNotAtomic);
    }
    for (variable, applies) in
        [("innodb_flush_log_at_trx_commit", true), ("sync_binlog", variables.is_on("log_bin"))]
    {
        if applies && variables.number(variable).is_some_and(|value| value != 1) {
            warnings.push(TargetWarning::WeakDurability { variable });
        }
    }
    warnings
}
