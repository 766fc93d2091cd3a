//! A target connection every isolation check held on.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::consts::StatusFlags;

use super::contract::SessionContract;
use super::grants::GrantFinding;
use super::kept::Standing;
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
    /// The account lacks rights in the catalog and the check only warns.
    #[error("the target's account lacks rights in the catalog: {}", .missing.join(", "))]
    GrantsMissing {
        /// What it lacks.
        missing: Vec<&'static str>,
    },
    /// The account has rights at single tables where steps need them in the catalog.
    #[error(
        "the target's account has {} at single tables only: a step at another one is refused",
        .rights.join(", ")
    )]
    GrantsByTable {
        /// Which.
        rights: Vec<&'static str>,
    },
    /// The account can only read: what the workers' has is not known.
    #[error(
        "this account can only read: whether that of the workers has its rights is not seen here"
    )]
    ReadsOnly,
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
            Self::GrantsMissing { .. } => "grants-missing",
            Self::GrantsByTable { .. } => "grants-by-table",
            Self::ReadsOnly => "account-reads-only",
            Self::BehindProxy => "behind-proxy",
            Self::DdlNotAtomic => "ddl-not-atomic",
            Self::WeakDurability { .. } => "weak-durability",
        }
    }

    /// What to do about it.
    pub fn help(&self, catalog: &Catalog) -> String {
        match self {
            Self::GrantsBeyond(finding) if finding.through_public => {
                "take from PUBLIC what everyone has: `REVOKE ALL PRIVILEGES, GRANT OPTION FROM PUBLIC`"
                    .to_owned()
            }
            Self::GrantsBeyond(_) | Self::GrantWildcard => format!(
                "`tollgate target grants --catalog {catalog}` prints the SQL for a confined account"
            ),
            Self::GrantsMissing { .. } | Self::GrantsByTable { .. } => format!(
                "run as an administrator the GRANT that `tollgate target grants --catalog {catalog}` \
                 prints, for the account of FACTORY_PLUGIN_SQL_TARGET_USERNAME"
            ),
            Self::ReadsOnly => {
                "run `tollgate status` under the configuration of the workers".to_owned()
            }
            Self::BehindProxy => "connect to the server itself".to_owned(),
            Self::DdlNotAtomic => "nothing: it is the server's version".to_owned(),
            Self::WeakDurability { variable } => format!("set `{variable} = 1` on the server"),
        }
    }
}

/// How long a kept session may take to say what it is. One that takes longer is not worth waiting for.
const CONFIRM_BUDGET: Duration = Duration::from_secs(5);

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
    pub(super) contract: SessionContract,
    pub(super) standing: Standing,
    /// Whether it was seen to be as it was verified, since it was last taken into use.
    pub(super) is_confirmed: bool,
    /// Whether it was set as a payload's session is, and not put back since.
    pub(super) is_payloads: bool,
    /// What the session is called in receipts, once it was prepared for claims.
    pub(super) marker: Option<String>,
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

    /// The session it was asked for as.
    pub(super) fn contract(&self) -> &SessionContract {
        &self.contract
    }

    /// When every check had last held on it, on the host's monotonic clock.
    pub(super) fn verified_at(&self) -> Instant {
        self.standing.verified_at
    }

    /// Whether its last answer left a transaction open.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.conn.last_ok_packet().is_some_and(|answer| {
            answer.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS)
        })
    }

    /// It is put aside: before its next use it has to be confirmed.
    pub(super) fn put_aside(&mut self) {
        self.is_confirmed = false;
    }

    /// What a payload's session is `SET` to: what its DML does stays uncommitted, and its statements
    /// may wait longer for a lock than the host's own.
    pub(crate) fn payload_setting(&mut self) -> String {
        self.is_payloads = true;
        format!("SET SESSION autocommit = 0, {}", pins::patience(self.lock_wait))
    }

    /// Whether [`TargetConnection::restoring`] is to be sent before anything else: a payload's setting is
    /// to be undone, or the session was kept.
    pub(crate) fn is_to_be_restored(&self) -> bool {
        self.is_payloads || !self.is_confirmed
    }

    /// The statements that undo [`TargetConnection::payload_setting`] and a transaction that is open.
    ///
    /// ROLLBACK comes first, since turning `autocommit` on would commit (MySQL manual, "autocommit,
    /// Commit, and Rollback"). What an account may do in its catalog holds from the last USE on, so
    /// that what was revoked since is noticed (MySQL manual, "When Privilege Changes Take Effect").
    pub(crate) fn restoring(&self) -> [String; 3] {
        let patience = pins::patience(pins::own_patience(self.lock_wait));
        [
            "ROLLBACK".to_owned(),
            format!("USE `{}`", self.catalog),
            format!("SET SESSION autocommit = 1, {patience}"),
        ]
    }

    /// The SQL expression that says what the session is, for [`TargetConnection::confirm`].
    pub(crate) fn standing(&self) -> &str {
        &self.standing.expression
    }

    /// Whether it was seen to be as it was verified, since it was last taken into use.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Compares what [`TargetConnection::standing`] reads as with what it read as when every check had
    /// held. False, also after [`TargetConnection::restoring`]: the connection is to be dropped.
    pub(crate) fn confirm(&mut self, found: Option<&str>) -> bool {
        self.is_confirmed = self.standing.is(found);
        // The pins are part of what it says.
        self.is_payloads &= !self.is_confirmed;
        self.is_confirmed
    }

    /// Asks whether a kept session is as it was. After anything but yes it is to be dropped.
    pub(super) async fn is_as_kept(&mut self) -> bool {
        let [rollback, enter, set] = self.restoring();
        let ask = format!("SELECT {}", self.standing());
        let mut answers = Vec::new();
        let statements = [rollback.as_str(), &enter, &set, &ask];
        let asking = session::several(&mut self.conn, &statements, &mut answers);
        let asked = tokio::time::timeout(CONFIRM_BUDGET, asking).await;
        let found = answers.pop().and_then(|mut answer| answer.rows.pop());
        let found = found.and_then(|mut row| row.take::<Option<String>, _>(0)).flatten();
        matches!(asked, Ok(Ok(()))) && self.confirm(found.as_deref())
    }

    /// What the session is called in receipts, once it was prepared for claims.
    pub(crate) fn marker(&self) -> Option<&str> {
        self.marker.as_deref()
    }

    /// It was prepared for claims under this name; without one it is to be prepared again.
    pub(crate) fn set_marker(&mut self, marker: Option<String>) {
        self.marker = marker;
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
