//! What a server's answer to a payload statement means for the step.
//!
//! The one table from error numbers to "try again" or "not without a person". Numbers are those of
//! the MySQL Server Error Reference and MariaDB's error codes; where both differ the row says so.

use std::fmt;

use crate::blame::Blame;
use crate::ledger::without_literals;
use crate::target::Blocker;

/// A statement that the server refused or gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The server's error number.
    pub code: u16,
    /// Its SQLSTATE.
    pub sqlstate: String,
    /// The server's message without anything it quotes.
    pub text: String,
    /// Of a lock that was not given: sessions that may hold it. `None` when it was no lock, or when
    /// the server does not show this account who holds it.
    pub blockers: Option<Vec<Blocker>>,
}

impl std::error::Error for ServerError {}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, sqlstate, text, .. } = self;
        write!(f, "the server answered error {code} ({sqlstate}): {text}")?;
        self.remark().map_or(Ok(()), |remark| write!(f, "; {remark}"))
    }
}

/// What kind of refusal a server error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Another transaction or statement was in the way.
    Contention,
    /// The server is short of something.
    Exhausted,
    /// The server is going away, is not the writer, or ended the statement or the session.
    Unavailable,
    /// The account may not do it.
    Denied,
    /// The statement itself cannot work on this catalog.
    Statement,
}

impl Refusal {
    /// Whether running the payload again may work without anyone doing anything.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Contention | Self::Exhausted | Self::Unavailable)
    }
}

/// Error numbers that are not the statement's own fault. Everything else is [`Refusal::Statement`].
const TABLE: &[(u16, Refusal)] = &[
    (1205, Refusal::Contention),  // lock wait timeout exceeded
    (1213, Refusal::Contention),  // deadlock found, also a failed certification on Galera
    (1206, Refusal::Contention),  // the total number of locks exceeds the lock table size
    (1412, Refusal::Contention),  // table definition has changed, please retry transaction
    (1613, Refusal::Contention),  // XA transaction branch was rolled back: deadlock was detected
    (1615, Refusal::Contention),  // prepared statement needs to be re-prepared
    (3058, Refusal::Contention),  // deadlock found when acquiring user-level lock
    (3572, Refusal::Contention),  // statement aborted because a lock could not be acquired at once
    (1021, Refusal::Exhausted),   // disk full
    (1026, Refusal::Exhausted),   // error writing file
    (1037, Refusal::Exhausted),   // out of memory
    (1038, Refusal::Exhausted),   // out of sort memory
    (1040, Refusal::Exhausted),   // too many connections
    (1041, Refusal::Exhausted),   // out of memory
    (1114, Refusal::Exhausted),   // the table is full
    (1135, Refusal::Exhausted),   // cannot create a new thread
    (1180, Refusal::Exhausted),   // got an error during COMMIT
    (1203, Refusal::Exhausted),   // user has more than max_user_connections
    (1226, Refusal::Exhausted),   // user has exceeded a resource limit
    (1461, Refusal::Exhausted),   // can't create more than max_prepared_stmt_count statements
    (1637, Refusal::Exhausted),   // too many active concurrent transactions
    (1047, Refusal::Unavailable), // unknown command: Galera's "node is not ready"
    (1053, Refusal::Unavailable), // server shutdown in progress
    (1077, Refusal::Unavailable), // normal shutdown
    (1079, Refusal::Unavailable), // shutdown complete
    (1152, Refusal::Unavailable), // aborted connection
    (1158, Refusal::Unavailable), // got an error reading communication packets
    (1159, Refusal::Unavailable), // got timeout reading communication packets
    (1160, Refusal::Unavailable), // got an error writing communication packets
    (1161, Refusal::Unavailable), // got timeout writing communication packets
    (1184, Refusal::Unavailable), // aborted connection
    (1290, Refusal::Unavailable), // running with --read-only
    (1317, Refusal::Unavailable), // query execution was interrupted
    (1792, Refusal::Unavailable), // cannot execute statement in a READ ONLY transaction
    (1836, Refusal::Unavailable), // running in read-only mode
    (1927, Refusal::Unavailable), // MariaDB: connection was killed
    (1969, Refusal::Unavailable), // MariaDB: max_statement_time exceeded
    (3024, Refusal::Unavailable), // MySQL: maximum statement execution time exceeded
    (3100, Refusal::Unavailable), // group replication plugin: error on running a hook
    (3101, Refusal::Unavailable), // group replication plugin: transaction was rolled back
    (3168, Refusal::Unavailable), // server isn't available
    (4031, Refusal::Unavailable), // MySQL: disconnected by the server because of inactivity
    (1044, Refusal::Denied),      // access denied to catalog
    (1045, Refusal::Denied),      // access denied for user
    (1142, Refusal::Denied),      // command denied to user for table
    (1143, Refusal::Denied),      // command denied to user for column
    (1227, Refusal::Denied),      // a privilege is needed for this operation
    (1370, Refusal::Denied),      // command denied to user for routine
    (1820, Refusal::Denied),      // password must be reset
    (3118, Refusal::Denied),      // account is locked
];

impl ServerError {
    /// Takes what may be kept of a server's error.
    pub(super) fn of(error: &mysql_async::ServerError) -> Self {
        Self {
            code: error.code,
            sqlstate: error.state.chars().filter(char::is_ascii_alphanumeric).take(5).collect(),
            text: without_literals(&error.message),
            blockers: None,
        }
    }

    /// What the host found out about it: who was in the way.
    pub fn remark(&self) -> Option<String> {
        if self.refusal() != Refusal::Contention {
            return None;
        }
        Some(match self.blockers.as_deref() {
            None => "the account is not shown who holds the lock".to_owned(),
            Some([]) => "nobody holds the lock any more".to_owned(),
            Some(blockers) => {
                let named: Vec<String> = blockers.iter().map(ToString::to_string).collect();
                format!("in the way: {}", named.join("; "))
            }
        })
    }

    /// What kind of refusal it is.
    pub fn refusal(&self) -> Refusal {
        TABLE
            .iter()
            .find(|(code, _)| *code == self.code)
            .map_or(Refusal::Statement, |(_, refusal)| *refusal)
    }

    /// Who can do something about it.
    pub fn blame(&self) -> Blame {
        match self.refusal() {
            Refusal::Contention | Refusal::Exhausted | Refusal::Unavailable => Blame::Server,
            Refusal::Denied => Blame::Operator,
            Refusal::Statement => Blame::Plugin,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self.refusal() {
            Refusal::Contention => {
                "deliver the step again; see what else uses its tables if it stays"
            }
            Refusal::Exhausted => "free what the server is short of, then deliver the step again",
            Refusal::Unavailable => {
                "deliver the step again once the server is a writer and reachable"
            }
            Refusal::Denied => "grant the account what `tollgate target grants` prints",
            Refusal::Statement => {
                "publish a version whose statement fits the catalog, and a plan for it"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16) -> ServerError {
        ServerError { code, sqlstate: "HY000".to_owned(), text: String::new(), blockers: None }
    }

    #[test]
    fn what_passes_by_itself_is_retried_and_what_needs_a_person_is_not() {
        for code in [1205, 1213, 1040, 1021, 1114, 1290, 1836, 1792, 1317, 1053, 1927, 1969, 4031] {
            assert!(error(code).refusal().is_retryable(), "{code}");
            assert_eq!(error(code).blame(), Blame::Server, "{code}");
        }
        for code in [1062, 1146, 1064, 1054, 1451, 1452, 1406, 1366, 1153, 60000] {
            assert!(!error(code).refusal().is_retryable(), "{code}");
            assert_eq!(error(code).blame(), Blame::Plugin, "{code}");
        }
        for code in [1142, 1044, 1227] {
            assert!(!error(code).refusal().is_retryable(), "{code}");
            assert_eq!(error(code).blame(), Blame::Operator, "{code}");
        }
    }

    #[test]
    fn every_number_is_classified_once() {
        let mut codes: Vec<_> = TABLE.iter().map(|(code, _)| code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), TABLE.len());
    }

    #[test]
    fn a_servers_quotes_are_not_kept() {
        let server = mysql_async::ServerError {
            code: 1062,
            message: "Duplicate entry 'canary' for key 'PRIMARY'".to_owned(),
            state: "23000 canary".to_owned(),
        };
        let kept = ServerError::of(&server);
        assert!(!format!("{kept} {kept:?}").contains("canary"));
        assert!(kept.to_string().contains("1062"));
    }
}
