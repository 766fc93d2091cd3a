//! Running the payload's statements in the lease's session, one a packet.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::super::classify::{Refusal, ServerError};
use super::drift::{self, Drift};
use super::engines;
use super::texts;
use crate::fault_points::{Lost, Point, at};
use crate::ledger::{HoldError, Lease, Ledger};
use crate::policy::{Operation, Statement};
use crate::spans;
use crate::target::TargetConnection;

/// Warnings looked at after one statement; the rest is counted.
const WARNINGS_SHOWN_MAX: usize = 20;

/// How the statements ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// All ran; what they did since the last DDL is not committed yet.
    Ran,
    /// The server refused one; the connection is in order.
    Refused { statement: u32, error: ServerError },
    /// One did nothing, since something else has the name of its table.
    Drifted { statement: u32, drift: Drift },
    /// One did not end in time; it may still run.
    OverBudget { statement: u32 },
    /// No answer came; it may still run.
    Unanswered { statement: u32 },
    /// The lease could not be confirmed before one.
    NotHeld { statement: u32, error: HoldError },
}

/// What the statements run under.
pub(super) struct Run<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) lease: &'a Lease,
    pub(super) statements: &'a [Statement],
    /// How long one statement may take.
    pub(super) statement_budget: Duration,
    /// How many are done, for whoever renews the lease meanwhile.
    pub(super) statements_done: &'a AtomicU32,
}

impl Run<'_> {
    /// Runs them in order, the lease confirmed before each.
    pub(super) async fn statements(&self, connection: &mut TargetConnection) -> Ended {
        let first = self.statements.first().map_or(0, |statement| statement.index);
        match self.begin(connection).await {
            Ok(None) => {}
            Ok(Some(statement)) => {
                return Ended::Drifted { statement, drift: Drift::NotTransactional };
            }
            Err(error) => return Ended::NotHeld { statement: first, error },
        }
        for (number, statement) in self.statements.iter().enumerate() {
            let index = statement.index;
            // Before the first one the beginning has confirmed it.
            if number > 0
                && let Err(error) = self.ledger.check_held(connection, self.lease).await
            {
                return Ended::NotHeld { statement: index, error };
            }
            let marker = self.lease.statement_marker();
            let Some(text) = texts::marked(marker, &statement.text) else {
                // Checked before the claim with a marker of the same form.
                return Ended::Unanswered { statement: index };
            };
            let begun = std::time::Instant::now();
            let span = tracing::debug_span!(
                "statement",
                statement_index = spans::number(index),
                operation = statement.operation.as_str(),
                affected_rows = Empty,
                code = Empty,
            );
            let sent = at(Point::Statement, send(connection.conn(), &text));
            let answered = within(self.statement_budget, sent).instrument(span.clone()).await;
            answered.note(&span);
            match answered {
                Answered::Yes(effect) => {
                    effect.record(statement, begun.elapsed());
                    if let Some(ended) = self.met_another(connection, statement, &effect).await {
                        return ended;
                    }
                    self.statements_done.store(index.saturating_add(1), Ordering::Relaxed);
                }
                Answered::Refused(mut error) => {
                    let asking = self.name_blockers(connection, statement, &mut error);
                    return match tokio::time::timeout(self.statement_budget, asking).await {
                        Ok(()) => Ended::Refused { statement: index, error },
                        Err(_) => Ended::OverBudget { statement: index },
                    };
                }
                Answered::Late => return Ended::OverBudget { statement: index },
                Answered::Lost => return Ended::Unanswered { statement: index },
            }
        }
        Ended::Ran
    }

    /// Begins the payload, the lease confirmed; the first statement, if any, whose effect could not be
    /// undone.
    async fn begin(&self, connection: &mut TargetConnection) -> Result<Option<u32>, HoldError> {
        let look = engines::query(self.statements);
        let found = self.ledger.begin(connection, self.lease, look.as_deref()).await?;
        let unsafe_one = engines::without_transactions(self.statements, &found);
        unsafe_one.map_err(|column| HoldError::Fault(column.into()))
    }

    /// A table that was there already may be another one than the statement defines.
    async fn met_another(
        &self,
        connection: &mut TargetConnection,
        statement: &Statement,
        effect: &Effect,
    ) -> Option<Ended> {
        let index = statement.index;
        if statement.operation != Operation::CreateTable || effect.warning_count == 0 {
            return None;
        }
        match within(self.statement_budget, drift::found(connection, statement)).await {
            Answered::Yes(drift) => drift.map(|drift| Ended::Drifted { statement: index, drift }),
            Answered::Refused(error) => Some(Ended::Refused { statement: index, error }),
            Answered::Late | Answered::Lost => Some(Ended::Unanswered { statement: index }),
        }
    }

    /// Of a lock that was not given: who holds it, as far as the server tells.
    async fn name_blockers(
        &self,
        connection: &mut TargetConnection,
        statement: &Statement,
        error: &mut ServerError,
    ) {
        if error.refusal() != Refusal::Contention {
            return;
        }
        let tables: Vec<&str> = statement.tables.iter().map(|table| table.name.as_str()).collect();
        error.blockers = connection.blockers(&tables).await;
    }
}

/// An answer of the server, or none.
enum Answered<T> {
    Yes(T),
    Refused(ServerError),
    /// Not within the bound; the connection must be dropped.
    Late,
    /// The connection broke.
    Lost,
}

impl Answered<Effect> {
    /// Writes to the statement's span how it ended.
    fn note(&self, span: &Span) {
        match self {
            Self::Yes(effect) => spans::count(span, "affected_rows", effect.affected_rows),
            Self::Refused(error) => {
                spans::note(span, "code", format_args!("server-{}", error.code));
            }
            Self::Late => spans::note(span, "code", "statement-budget"),
            Self::Lost => spans::note(span, "code", "connection-lost"),
        }
    }
}

/// Waits for an answer, not longer than the bound.
async fn within<T>(
    bound: Duration,
    answer: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Answered<T> {
    match tokio::time::timeout(bound, answer).await {
        Ok(Ok(value)) => Answered::Yes(value),
        Ok(Err(mysql_async::Error::Server(error))) if !ends_session(error.code) => {
            Answered::Refused(ServerError::of(&error))
        }
        Ok(Err(_)) => Answered::Lost,
        Err(_) => Answered::Late,
    }
}

impl From<Lost> for mysql_async::Error {
    fn from(_: Lost) -> Self {
        Self::Io(mysql_async::IoError::Io(std::io::ErrorKind::ConnectionReset.into()))
    }
}

/// Errors after which the server closes the session: shutdown, MariaDB's killed connection, cut
/// for inactivity.
const fn ends_session(code: u16) -> bool {
    matches!(code, 1053 | 1927 | 4031)
}

/// What one statement did.
#[derive(Debug, Default)]
struct Effect {
    affected_rows: u64,
    warning_count: u16,
    warning_codes: Vec<u16>,
}

async fn send(conn: &mut Conn, text: &str) -> Result<Effect, mysql_async::Error> {
    // Preparing is what makes the server refuse a second statement in the same text (MySQL manual,
    // "C API Prepared Statement Interface": multi-statements are not supported).
    let prepared = conn.prep(text).await?;
    let executed = conn.exec_drop(&prepared, ()).await;
    let mut effect = Effect {
        affected_rows: conn.affected_rows(),
        warning_count: conn.get_warnings(),
        warning_codes: Vec::new(),
    };
    executed?;
    if effect.warning_count > 0 {
        let query = format!("SHOW WARNINGS LIMIT {WARNINGS_SHOWN_MAX}");
        // Level and text are left on the server: the text quotes the payload.
        let warnings: Vec<(String, u16, String)> = conn.query(query).await?;
        effect.warning_codes = warnings.into_iter().map(|(_, code, _)| code).collect();
        effect.warning_codes.sort_unstable();
        effect.warning_codes.dedup();
    }
    conn.close(prepared).await?;
    Ok(effect)
}

impl Effect {
    fn record(&self, statement: &Statement, took: Duration) {
        tracing::info!(
            statement_index = statement.index,
            operation = statement.operation.as_str(),
            affected_rows = self.affected_rows,
            warning_count = self.warning_count,
            warning_codes = ?self.warning_codes,
            took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "statement ran"
        );
    }
}
