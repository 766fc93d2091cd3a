//! What may change under a session that is kept open, read again before it is used once more.
//!
//! Everything that a session can be asked about itself is in one SQL expression, so that it costs no
//! round trip of its own: whoever uses a kept session reads it in its first query. The value is compared
//! with the one that was read when every check had held on that very session.

use std::time::Instant;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::error::TargetError;
use crate::session::{Pin, ServerFailure, Variables};

/// What makes a server one that takes writes, and this very server, as far as it has the variable. A
/// proxy may have put another server behind the connection.
const SERVER: &[&str] = &[
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "offline_mode",
    "server_uuid",
    "hostname",
    "port",
    "datadir",
];

/// A session as it was when everything had been verified on it.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// What tells whether it still is so.
    pub(super) expression: String,
    /// What that read as.
    value: String,
    /// When, on this host's monotonic clock.
    pub(super) verified_at: Instant,
}

impl Standing {
    /// Reads it for the first time.
    pub(super) async fn read(
        conn: &mut Conn,
        pins: &[Pin],
        known: &Variables,
    ) -> Result<Self, TargetError> {
        let verified_at = Instant::now();
        let expression = expression(pins, known);
        let value: Option<Option<String>> = conn
            .query_first(format!("SELECT {expression}"))
            .await
            .map_err(|error| TargetError::target(ServerFailure::of(&error)))?;
        let value = value.flatten().ok_or(TargetError::target(ServerFailure::Unreadable))?;
        Ok(Self { expression, value, verified_at })
    }

    /// Whether it reads as before.
    pub(super) fn is(&self, found: Option<&str>) -> bool {
        found == Some(self.value.as_str())
    }
}

/// Number, account and catalog of the session, the server's role, and every pin.
fn expression(pins: &[Pin], known: &Variables) -> String {
    let mut parts: Vec<String> =
        ["CONNECTION_ID()", "CURRENT_USER()", "DATABASE()"].map(str::to_owned).to_vec();
    let known_of_server = SERVER.iter().filter(|name| known.value(name).is_some());
    parts.extend(known_of_server.map(|name| format!("@@global.{name}")));
    let pinned = pins.iter().filter(|pin| pin.is_read_back()).filter_map(|pin| pin.name_in(known));
    parts.extend(pinned.map(|name| format!("@@session.{name}")));
    // NULL is written out: CONCAT_WS leaves it out.
    let parts = parts.iter().map(|part| format!("IFNULL({part}, 'NULL')"));
    format!("CONCAT_WS('|', {})", parts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_does_not_have_is_not_asked_for() {
        let pins = [
            Pin::number(&["transaction_isolation", "tx_isolation"], 1),
            Pin::number(&["old_mode"], 1).where_known(),
            Pin::running_clock(),
        ];
        let known =
            Variables::given(&[("tx_isolation", "1"), ("read_only", "OFF"), ("timestamp", "1")]);
        assert_eq!(
            expression(&pins, &known),
            "CONCAT_WS('|', IFNULL(CONNECTION_ID(), 'NULL'), IFNULL(CURRENT_USER(), 'NULL'), \
             IFNULL(DATABASE(), 'NULL'), IFNULL(@@global.read_only, 'NULL'), \
             IFNULL(@@session.tx_isolation, 'NULL'))"
        );
    }
}
