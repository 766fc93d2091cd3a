//! What can go wrong with an outbox statement, whatever the operation it belongs to.

use std::time::Duration;

use super::shape::{self, OutboxProblem};
use crate::blame::Blame;
use crate::clock::jittered;
use crate::fault_points::Lost;
use crate::session::{ServerFailure, UnreadableColumn};

/// How often a small transaction that met another's is run.
const CONTENTION_RUNS_MAX: u32 = 8;
/// The pause after the first contention; it doubles.
const CONTENTION_PAUSE: Duration = Duration::from_millis(10);

/// An outbox statement without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxFault {
    /// The server refused the statement, or the connection broke before it answered.
    #[error("a statement on the control outbox was not answered as it should be")]
    Server(#[source] ServerFailure),
    /// The answer did not come within the bound: the statement may still take effect.
    #[error("a statement on the control outbox was not answered within {} ms", bound.as_millis())]
    TimedOut {
        /// The bound.
        bound: Duration,
    },
    /// The table is not what it must be; every difference found.
    #[error("the control outbox cannot be used: {}", shape::listed(.0))]
    Unfit(Vec<OutboxProblem>),
    /// The outbox holds something this version does not understand.
    #[error("the outbox's `{column}` does not read as this version writes it")]
    Unreadable {
        /// The column.
        column: &'static str,
    },
}

impl From<Lost> for OutboxFault {
    fn from(_: Lost) -> Self {
        Self::Server(ServerFailure::ConnectionLost)
    }
}

impl From<UnreadableColumn> for OutboxFault {
    fn from(UnreadableColumn(column): UnreadableColumn) -> Self {
        Self::Unreadable { column }
    }
}

impl OutboxFault {
    pub(super) fn of(error: &mysql_async::Error) -> Self {
        Self::Server(ServerFailure::of(error))
    }

    /// Whether the connection is good for nothing but being dropped: an answer may still be on its
    /// way, or the server is gone.
    pub const fn breaks_the_connection(&self) -> bool {
        match self {
            // WSREP has not yet prepared node for application use (Galera): another may have. A read
            // that waits for its cluster in vain is told 1205 there, as if it waited for a lock.
            Self::Server(ServerFailure::Refused { code, .. }) => matches!(*code, 1047 | 1205),
            Self::Server(_) | Self::TimedOut { .. } => true,
            Self::Unreadable { .. } | Self::Unfit(_) => false,
        }
    }

    /// Whether the same request may succeed later, without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        match self {
            // Read-only after a failover (MySQL Server Error Reference), and Galera's 1047.
            Self::Server(ServerFailure::Refused { code: 1047 | 1290 | 1792 | 1836, .. })
            | Self::TimedOut { .. } => true,
            Self::Server(failure) => failure.is_transient(),
            Self::Unreadable { .. } | Self::Unfit(_) => false,
        }
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Server(ServerFailure::Refused { code: 1146, .. }) => "outbox-missing",
            Self::Server(failure) => failure.control_code(),
            Self::TimedOut { .. } => "control-statement-timeout",
            // It stands alone: nothing else can be said of a table that is not there.
            Self::Unfit(problems) if matches!(problems.as_slice(), [OutboxProblem::Missing]) => {
                "outbox-missing"
            }
            Self::Unfit(_) => "outbox-unfit",
            Self::Unreadable { .. } => "outbox-unreadable",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Server(ServerFailure::Refused {
                code: 1044 | 1142 | 1143 | 1146 | 1054 | 1176 | 1665,
                ..
            })
            | Self::Unfit(_)
            | Self::Unreadable { .. } => Blame::Operator,
            Self::Server(failure) => failure.blame(),
            Self::TimedOut { .. } => Blame::Server,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Server(ServerFailure::Refused { code: 1044 | 1142 | 1143, .. }) => {
                "grant the control account SELECT, INSERT and UPDATE on the control catalog"
            }
            Self::Server(ServerFailure::Refused { code: 1146, .. }) => shape::MISSING_HELP,
            Self::Server(ServerFailure::Refused { code: 1054 | 1176, .. }) => {
                "run `tollgate init control`"
            }
            Self::Server(ServerFailure::Refused { code: 1665, .. }) => {
                "set `binlog_format=ROW` on the control server: READ COMMITTED needs it"
            }
            Self::Server(failure) => failure.control_help(),
            Self::TimedOut { .. } => {
                "see with `SHOW PROCESSLIST` what holds the outbox up; if the server does not answer \
                 at all, check host, port and firewall"
            }
            Self::Unfit(problems) => shape::help(problems),
            Self::Unreadable { .. } => "the row was written by hand or by a newer version",
        }
    }

    /// The table is not there.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Server(ServerFailure::Refused { code: 1146, .. }) => true,
            Self::Unfit(problems) => problems.contains(&OutboxProblem::Missing),
            _ => false,
        }
    }

    /// Deadlock, lock wait timeout, or Galera's certification failure: nothing of the transaction
    /// holds once it is rolled back.
    const fn is_contention(&self) -> bool {
        matches!(self, Self::Server(ServerFailure::Refused { code: 1205 | 1213, .. }))
    }

    /// Another row has the key: somebody was faster.
    pub(super) const fn is_duplicate_key(&self) -> bool {
        matches!(self, Self::Server(ServerFailure::Refused { code: 1062, .. }))
    }
}

/// Counts the runs of a small transaction.
#[derive(Debug, Default)]
pub(super) struct Runs(u32);

impl Runs {
    /// Whether to run it again, after a pause that grows: only when it met another's, and only so
    /// often.
    pub(super) async fn again(&mut self, fault: &OutboxFault) -> bool {
        self.0 += 1;
        if !fault.is_contention() || self.0 >= CONTENTION_RUNS_MAX {
            return false;
        }
        tracing::debug!(code = fault.code(), runs = self.0, "an outbox transaction is run again");
        tokio::time::sleep(jittered(CONTENTION_PAUSE * 2_u32.pow(self.0))).await;
        true
    }
}
