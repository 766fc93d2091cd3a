//! Connections to the target catalog.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// The server process behind a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    incarnation: String,
}

impl ServerIdentity {
    /// Names one run of one server.
    pub fn incarnation(&self) -> &str {
        &self.incarnation
    }
}

/// A connection to the target catalog.
#[derive(Debug)]
pub struct TargetConnection {
    conn: Conn,
    session_id: u64,
    server: ServerIdentity,
}

impl TargetConnection {
    /// Wraps an open connection.
    pub async fn from_conn(mut conn: Conn) -> Result<Self, mysql_async::Error> {
        let row: Option<(u64, String)> = conn
            .query_first("SELECT CONNECTION_ID(), CONCAT(@@hostname, ':', @@port, ':', @@datadir)")
            .await?;
        let (session_id, incarnation) = row.unwrap_or_default();
        Ok(Self {
            conn,
            session_id,
            server: ServerIdentity { incarnation },
        })
    }

    /// `CONNECTION_ID()` of this session.
    pub fn session_id(&self) -> u64 {
        self.session_id
    }

    /// The server process behind this connection.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    pub(crate) fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }
}
