//! Who may be in the way of a statement that waited for a lock in vain.
//!
//! What a server tells depends on the account: a confined one sees neither other accounts'
//! transactions nor metadata locks, and then nothing is known. It is never guessed, and no text of a
//! statement is kept, only its digest.

use std::fmt;

use mysql_async::prelude::Queryable as _;

use super::connection::TargetConnection;
use crate::digest::Digest;
use crate::session::literal;

/// Sessions named at most: the oldest transactions are the likeliest.
const BLOCKERS_MAX: usize = 3;

/// A session that holds locks others wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Its number on the server.
    pub session: u64,
    /// How long its transaction, or what it does now, has been going on, in seconds.
    pub seconds: u64,
    /// The digest of the statement it runs now; none while it is idle.
    pub statement: Option<Digest>,
    /// Whether it is known to hold a lock on one of the tables, rather than to be in an old
    /// transaction.
    pub is_certain: bool,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = if self.is_certain { "holds a lock" } else { "is in a transaction" };
        write!(f, "session {} {holds}, for {} s", self.session, self.seconds)?;
        match &self.statement {
            Some(digest) => write!(f, ", running {digest}"),
            None => f.write_str(", idle"),
        }
    }
}

/// Session, seconds, statement.
type Row = (u64, Option<i64>, Option<String>);

impl TargetConnection {
    /// Sessions that may have blocked a statement on these tables of the catalog, as far as the
    /// server tells this account; `None` when it tells nothing.
    ///
    /// Asked after the wait has ended, so that what is shown is who holds locks still.
    pub async fn blockers(&mut self, tables: &[&str]) -> Option<Vec<Blocker>> {
        let mut answered = false;
        for query in lock_queries(self.catalog.as_str(), tables) {
            if let Ok(rows) = self.conn.query::<Row, _>(query).await {
                answered = true;
                if !rows.is_empty() {
                    return Some(blockers(rows, true));
                }
            }
        }
        match self.conn.query::<Row, _>(transaction_query()).await {
            Ok(rows) => Some(blockers(rows, false)),
            Err(_) => answered.then(Vec::new),
        }
    }
}

fn blockers(rows: Vec<Row>, is_certain: bool) -> Vec<Blocker> {
    let blocker = |(session, seconds, statement): Row| Blocker {
        session,
        seconds: u64::try_from(seconds.unwrap_or(0)).unwrap_or(0),
        statement: statement.filter(|text| !text.is_empty()).map(Digest::of),
        is_certain,
    };
    rows.into_iter().map(blocker).take(BLOCKERS_MAX).collect()
}

/// Holders of metadata locks: MySQL's Performance Schema (manual, "The `metadata_locks` Table"), and
/// MariaDB's plugin `METADATA_LOCK_INFO`. A server has one of them at most, and refuses the other.
fn lock_queries(catalog: &str, tables: &[&str]) -> [String; 2] {
    let names: Vec<String> =
        tables.iter().copied().filter(|it| !it.is_empty()).map(literal).collect();
    let names = if names.is_empty() { "NULL".to_owned() } else { names.join(", ") };
    let catalog = literal(catalog);
    [
        format!(
            "SELECT DISTINCT t.PROCESSLIST_ID, t.PROCESSLIST_TIME, t.PROCESSLIST_INFO \
             FROM performance_schema.metadata_locks l \
             JOIN performance_schema.threads t ON t.THREAD_ID = l.OWNER_THREAD_ID \
             WHERE l.OBJECT_TYPE = 'TABLE' AND l.LOCK_STATUS = 'GRANTED' \
             AND l.OBJECT_SCHEMA = {catalog} AND l.OBJECT_NAME IN ({names}) \
             AND t.PROCESSLIST_ID <> CONNECTION_ID() ORDER BY 2 DESC LIMIT {BLOCKERS_MAX}"
        ),
        format!(
            "SELECT DISTINCT p.ID, p.TIME, p.INFO FROM information_schema.METADATA_LOCK_INFO l \
             JOIN information_schema.PROCESSLIST p ON p.ID = l.THREAD_ID \
             WHERE l.TABLE_SCHEMA = {catalog} AND l.TABLE_NAME IN ({names}) \
             AND p.ID <> CONNECTION_ID() ORDER BY 2 DESC LIMIT {BLOCKERS_MAX}"
        ),
    ]
}

/// Open transactions, the oldest first (manual, "The `INNODB_TRX` Table"). Their
/// begin is shown in the server's own time zone.
fn transaction_query() -> String {
    format!(
        "SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, \
         CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')), trx_query \
         FROM information_schema.INNODB_TRX \
         WHERE trx_mysql_thread_id NOT IN (0, CONNECTION_ID()) \
         ORDER BY trx_started LIMIT {BLOCKERS_MAX}"
    )
}
