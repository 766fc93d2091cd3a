//! What can go wrong with a ledger statement, whatever the operation it belongs to.

use std::time::Duration;

use super::redact::without_literals;
use super::shape::MISSING_HELP;
use crate::blame::Blame;
use crate::fault_points::Lost;
use crate::session::{UnreadableColumn, held_up_help};
use crate::target::ServerFailure;

/// A ledger statement without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// The server refused the statement; it had no effect.
    #[error("the server refused a ledger statement: error {code}, {text}")]
    Refused {
        /// The server's error number.
        code: u16,
        /// The server's message without any literal.
        text: String,
    },
    /// The connection broke before the answer came: the statement may have taken effect.
    #[error("the connection broke before a ledger statement was answered")]
    AnswerLost,
    /// The answer did not come within the bound: the statement may still take effect.
    #[error("a ledger statement was not answered within {} ms", bound.as_millis())]
    TimedOut {
        /// The bound.
        bound: Duration,
    },
    /// The ledger holds something this version does not understand.
    #[error("the ledger's `{column}` does not read as this version writes it")]
    Unreadable {
        /// The column.
        column: &'static str,
    },
    /// A row says what no write of the ledger leaves behind: it was edited by hand.
    #[error("the receipt's `{column}` contradicts the rest of it")]
    Contradictory {
        /// The column.
        column: &'static str,
    },
}

impl From<ServerFailure> for LedgerFault {
    fn from(failure: ServerFailure) -> Self {
        match failure {
            ServerFailure::Refused { code, state } => {
                Self::Refused { code, text: format!("state {state}") }
            }
            // Whatever else it was, no answer came.
            _ => Self::AnswerLost,
        }
    }
}

impl From<Lost> for LedgerFault {
    fn from(_: Lost) -> Self {
        Self::AnswerLost
    }
}

impl From<UnreadableColumn> for LedgerFault {
    fn from(UnreadableColumn(column): UnreadableColumn) -> Self {
        Self::Unreadable { column }
    }
}

impl LedgerFault {
    pub(super) fn from_driver(error: &mysql_async::Error) -> Self {
        match error {
            mysql_async::Error::Server(error) => {
                Self::Refused { code: error.code, text: without_literals(&error.message) }
            }
            // The driver's own messages may quote rows and addresses; what counts is that no answer
            // came.
            _ => Self::AnswerLost,
        }
    }

    /// Whether the statement may have taken effect all the same. The connection must be dropped.
    pub const fn effect_is_unknown(&self) -> bool {
        matches!(self, Self::AnswerLost | Self::TimedOut { .. })
    }

    /// Whether the same request may succeed later, without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::AnswerLost | Self::TimedOut { .. } => true,
            // Lock wait timeout, deadlock, too many connections, interrupted, server shutdown,
            // wait timeout, read-only after a failover (MySQL Server Error Reference); Galera's node
            // that is not part of its cluster.
            Self::Refused { code, .. } => matches!(
                code,
                1205 | 1213 | 1040 | 1047 | 1317 | 1053 | 1290 | 1792 | 1836 | 1927 | 4031
            ),
            Self::Unreadable { .. } | Self::Contradictory { .. } => false,
        }
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused { code: 1146, .. } => "ledger-missing",
            Self::Refused { .. } => "ledger-statement-refused",
            Self::AnswerLost => "ledger-answer-lost",
            Self::TimedOut { .. } => "ledger-statement-timeout",
            Self::Unreadable { .. } => "ledger-unreadable",
            Self::Contradictory { .. } => "receipt-contradictory",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Refused { code: 1044 | 1142 | 1143 | 1146 | 1054 | 1665, .. }
            | Self::Unreadable { .. }
            | Self::Contradictory { .. } => Blame::Operator,
            Self::Refused { .. } | Self::AnswerLost | Self::TimedOut { .. } => Blame::Server,
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Refused { code: 1044 | 1142 | 1143, .. } => {
                "grant the target account what `tollgate target grants` prints"
            }
            Self::Refused { code: 1146, .. } => MISSING_HELP,
            Self::Refused { code: 1054, .. } => {
                "run `tollgate init target` against the target catalog"
            }
            Self::Refused { code: 1665, .. } => {
                "set `binlog_format=ROW` on the target server: READ COMMITTED needs it"
            }
            Self::Refused { code: 1047, .. } => {
                "wait until the node has joined its cluster, then deliver the step again"
            }
            Self::Refused { code, .. } => match held_up_help(*code) {
                Some(help) => help,
                None => "look the error number up in the server's error reference",
            },
            Self::AnswerLost | Self::TimedOut { .. } => {
                "deliver the step again: the receipt tells what took effect"
            }
            Self::Unreadable { .. } => {
                "run `tollgate doctor`: the row was written by hand or by a newer version"
            }
            Self::Contradictory { .. } => {
                "see with `tollgate receipts --key` what the row says, and restore it from a backup"
            }
        }
    }

    /// The server's error number, when it refused a statement.
    pub const fn server_error(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::AnswerLost
            | Self::TimedOut { .. }
            | Self::Unreadable { .. }
            | Self::Contradictory { .. } => None,
        }
    }

    /// The transaction was rolled back for another one, here or, when a cluster's certification
    /// failed, on another node. Nothing of it holds.
    pub(super) const fn is_deadlock(&self) -> bool {
        matches!(self, Self::Refused { code: 1213, .. })
    }

    /// Another transaction kept a row locked for as long as this session waits. The statement had no
    /// effect.
    pub(super) const fn is_lock_wait(&self) -> bool {
        matches!(self, Self::Refused { code: 1205, .. })
    }

    pub(super) const fn is_duplicate_key(&self) -> bool {
        matches!(self, Self::Refused { code: 1062, .. })
    }

    /// The table is not there, and every receipt with it.
    pub(super) const fn is_table_lost(&self) -> bool {
        matches!(self, Self::Refused { code: 1146, .. })
    }

    /// The table, a column or the unique key is not there.
    pub(super) const fn is_lost_shape(&self) -> bool {
        matches!(self, Self::Refused { code: 1146 | 1054 | 1176, .. })
    }
}
