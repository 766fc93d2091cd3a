//! A target connection every isolation check held on.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mysql_async::Conn;

use super::grants::GrantFinding;
use super::pins;
use crate::ids::Catalog;
use crate::metrics::OpenSession;
use crate::session::{self, ServerIdentity};

/// What does not stop a target and has to be seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetWarning {
    /// The account reaches beyond the catalog and the check only warns.
    #[error("the target's account reaches beyond the catalog: {0}")]
    GrantsBeyond(GrantFinding),
    /// A `_` in a grant's catalog stands for any character; no other catalog matches today.
    #[error("a grant writes its catalog with `_` that stands for any character; write `\\_`")]
    GrantWildcard,
    /// Something between us and the server gives out session numbers of its own.
    #[error("a proxy stands before the target: an old holder's session cannot be ended from here")]
    BehindProxy,
    /// A crash in the middle of a DDL statement may leave half of it.
    #[error("the target's server has no atomic DDL; statements are repeatable all the same")]
    DdlNotAtomic,
    /// The server may lose the last commits in a crash.
    #[error("the target's server may lose commits in a crash: `{variable}` is not 1")]
    WeakDurability {
        /// The variable.
        variable: &'static str,
    },
}

impl TargetWarning {
    /// The stable code, kebab-case.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::GrantsBeyond(_) => "grants-beyond-catalog",
            Self::GrantWildcard => "grant-wildcard",
            Self::BehindProxy => "behind-proxy",
            Self::DdlNotAtomic => "ddl-not-atomic",
            Self::WeakDurability { .. } => "weak-durability",
        }
    }
}

/// An open connection to the target, verified and pinned.
///
/// Dropping it closes it as well, in the background; after an error drop it or close it, it is
/// never to be used again.
pub struct TargetConnection {
    pub(super) conn: Conn,
    pub(super) session_id: u64,
    pub(super) is_proxied: bool,
    pub(super) server: ServerIdentity,
    pub(super) catalog: Catalog,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) warnings: Vec<TargetWarning>,
    pub(super) lock_wait: Duration,
    pub(super) _counted: OpenSession,
}

impl TargetConnection {
    /// `CONNECTION_ID()`: the server's own number of this session.
    pub fn session_id(&self) -> u64 {
        self.session_id
    }

    /// Whether a proxy stands between: then a session number found in a receipt may be another's.
    pub fn is_proxied(&self) -> bool {
        self.is_proxied
    }

    /// The server behind the connection.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// The catalog the connection is in: the allowed one.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Session variables as they were read back, pinned and recorded ones, by lowercase name.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Bytes the server takes in one packet, when it says so. A longer statement breaks the
    /// connection, so it is to be refused before.
    pub fn max_allowed_packet(&self) -> Option<u64> {
        self.settings.get("max_allowed_packet")?.parse().ok()
    }

    /// What has to be seen in a status.
    pub fn warnings(&self) -> &[TargetWarning] {
        &self.warnings
    }

    /// What a payload's session is `SET` to besides its pins: its statements may wait longer for a
    /// lock than the host's own.
    pub(crate) fn payload_setting(&self) -> String {
        pins::patience(self.lock_wait)
    }

    /// The driver's connection.
    pub(crate) fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    /// Says goodbye and closes. Whether the server heard it is not told: the connection is gone
    /// either way.
    pub async fn close(self) {
        session::close(self.conn).await;
    }
}

impl fmt::Debug for TargetConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetConnection")
            .field("session_id", &self.session_id)
            .field("server", &self.server)
            .field("catalog", &self.catalog)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
