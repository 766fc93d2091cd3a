//! Making sure that nothing of an earlier holder still runs on the server.
//!
//! Killing a client does not stop its statement, so a step whose holder died may still be changing the
//! target. Before its lease is used again the holder's session is looked for, killed, and waited for.
//! A session is only killed when its marker, its account and its catalog are the ledger's own; behind a
//! proxy, or without the privilege, the step stays busy and says why.

use std::fmt;
use std::time::Duration;

use tracing::field::Empty;

use super::fault::LedgerFault;
use super::row::Holder;
use super::sql::{self, literal};
use crate::clock::{Clock, MonotonicClock};
use crate::fault_points::{Point, at};
use crate::metrics::metrics;
use crate::planted::{Bug, is_planted};
use crate::spans;
use crate::target::{
    KillOutcome, LIST_SESSIONS, LiveSession, LiveSessions, ServerFailure, TargetConnection,
};

/// First pause between two looks at a killed session; doubled up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(5);

/// Longest pause between two looks at a killed session.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Why an earlier session is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// It was killed and is not gone yet: a killed ALTER may roll back for minutes.
    Leaving {
        /// The session on the server.
        session: u64,
        /// What the server says it does.
        state: String,
    },
    /// The server refused to kill it.
    KillRefused {
        /// The session on the server.
        session: u64,
    },
    /// It holds its marker, but this account does not see it in the process list.
    NotVisible {
        /// The session on the server.
        session: u64,
    },
    /// It belongs to another account.
    OtherAccount {
        /// The session on the server.
        session: u64,
    },
    /// It stands in another catalog.
    OtherCatalog {
        /// The session on the server.
        session: u64,
    },
    /// A session has the recorded number, but nothing confirms that it is the earlier holder's.
    Unconfirmed {
        /// The session on the server.
        session: u64,
    },
}

impl Remains {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Leaving { .. } => "previous-session-leaving",
            Self::KillRefused { .. } => "previous-session-kill-refused",
            Self::NotVisible { .. } => "previous-session-not-visible",
            Self::OtherAccount { .. } => "previous-session-other-account",
            Self::OtherCatalog { .. } => "previous-session-other-catalog",
            Self::Unconfirmed { .. } => "previous-session-unconfirmed",
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Leaving { .. } => "wait: the server is still undoing its statement",
            Self::KillRefused { .. } | Self::OtherAccount { .. } | Self::NotVisible { .. } => {
                "end the session as an administrator with `KILL`, or wait until it ends by itself"
            }
            Self::OtherCatalog { .. } | Self::Unconfirmed { .. } => {
                "connect to the server itself rather than through a proxy, or wait until the session \
                 ends by itself"
            }
        }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaving { session, state } => {
                write!(f, "session {session} was killed and is not gone yet (`{state}`)")
            }
            Self::KillRefused { session } => {
                write!(f, "the server refused to kill session {session}")
            }
            Self::NotVisible { session } => write!(f, "session {session} cannot be seen"),
            Self::OtherAccount { session } => {
                write!(f, "session {session} belongs to another account")
            }
            Self::OtherCatalog { session } => {
                write!(f, "session {session} is in another catalog")
            }
            Self::Unconfirmed { session } => {
                write!(f, "nothing confirms whose session {session} is")
            }
        }
    }
}

/// A session in the server's process list, as this account sees it.
struct Seen {
    same_account: bool,
    same_catalog: bool,
    /// By its lock, where the server itself told the session's number (the recorded one may be a
    /// proxy's), or by its name in the statement it runs.
    confirmed: bool,
    state: String,
}

/// Looks for the holder's session, kills it, and waits until it is gone.
///
/// `None`: it is gone, and whatever it had not committed is rolled back.
pub(super) async fn clear(
    connection: &mut TargetConnection,
    holder: &Holder,
    statement_timeout: Duration,
    wait: Duration,
) -> Result<Option<Remains>, LedgerFault> {
    if !holder.holds_lock() && connection.server().incarnation() != holder.server {
        return Ok(None);
    }
    let (locked_by, sessions) = look(connection, holder, statement_timeout).await?;
    let session = if holder.holds_lock() { locked_by } else { Some(holder.session_id) };
    let Some(session) = session else {
        return Ok(None);
    };
    let span = tracing::debug_span!("takeover", session = spans::number(session), code = Empty);
    let seen = seen(connection, holder, sessions.find(session));
    let ending = end(connection, holder, (session, seen), statement_timeout, wait);
    let remains = spans::within(span.clone(), LedgerFault::code, Box::pin(ending)).await?;
    if let Some(remains) = &remains {
        spans::note(&span, "code", remains.code());
    }
    Ok(remains)
}

/// The same of this session, which is or may be the holder's.
async fn end(
    connection: &mut TargetConnection,
    holder: &Holder,
    (session, seen): (u64, Option<Seen>),
    statement_timeout: Duration,
    wait: Duration,
) -> Result<Option<Remains>, LedgerFault> {
    match seen {
        None if holder.holds_lock() => return Ok(Some(Remains::NotVisible { session })),
        None => return Ok(None),
        Some(seen) => {
            if let Some(remains) = not_to_kill(&seen, session) {
                return Ok(Some(remains));
            }
        }
    }
    let kill = bounded(statement_timeout, connection.kill_session(session));
    let told = at(Point::TakeoverKill, kill).await?;
    if told == KillOutcome::Denied {
        return Ok(Some(Remains::KillRefused { session }));
    }
    metrics().session_killed();
    tracing::info!(session, "killed the session of an earlier holder");
    if is_planted(Bug::TakeoverWithoutWaiting) {
        return Ok(None);
    }
    wait_until_gone(connection, holder, session, statement_timeout, wait).await
}

/// Who holds the holder's lock, where it has one, and the sessions of the server: one round trip
/// (manual, "Locking Functions", `IS_USED_LOCK`).
async fn look(
    connection: &mut TargetConnection,
    holder: &Holder,
    bound: Duration,
) -> Result<(Option<u64>, LiveSessions), LedgerFault> {
    if !holder.holds_lock() {
        return Ok((None, bounded(bound, connection.live_sessions()).await?));
    }
    let locked_by = format!("SELECT IS_USED_LOCK({}) AS session", literal(&holder.marker));
    let mut answers = sql::several(connection, bound, &[&locked_by, LIST_SESSIONS]).await;
    let locked_by = answers.row()?.value("session")?;
    Ok((locked_by, connection.listed(answers.plain_rows()?)))
}

const fn not_to_kill(seen: &Seen, session: u64) -> Option<Remains> {
    if !seen.same_account {
        Some(Remains::OtherAccount { session })
    } else if !seen.same_catalog {
        Some(Remains::OtherCatalog { session })
    } else if !seen.confirmed {
        Some(Remains::Unconfirmed { session })
    } else {
        None
    }
}

/// What there is to know of a session that was found, or was not.
fn seen(
    connection: &TargetConnection,
    holder: &Holder,
    found: Option<&LiveSession>,
) -> Option<Seen> {
    let found = found?;
    let named = found.statement.as_deref().is_some_and(|text| text.contains(&holder.marker));
    let state = match &found.state {
        Some(state) => format!("{}: {state}", found.command),
        None => found.command.clone(),
    };
    let catalog = connection.catalog().as_str();
    // A server that folds names may show them in lowercase.
    let is_same = |seen: &String| seen.eq_ignore_ascii_case(catalog);
    Some(Seen {
        same_account: found.is_own_user,
        same_catalog: found.catalog.as_ref().is_some_and(is_same),
        confirmed: holder.holds_lock() || named,
        state,
    })
}

async fn bounded<T>(
    bound: Duration,
    run: impl Future<Output = Result<T, ServerFailure>>,
) -> Result<T, LedgerFault> {
    match tokio::time::timeout(bound, run).await {
        Ok(answer) => answer.map_err(LedgerFault::from),
        Err(_) => Err(LedgerFault::TimedOut { bound }),
    }
}

async fn wait_until_gone(
    connection: &mut TargetConnection,
    holder: &Holder,
    session: u64,
    bound: Duration,
    wait: Duration,
) -> Result<Option<Remains>, LedgerFault> {
    let clock = MonotonicClock;
    let begun = clock.now();
    let mut pause = PAUSE_FIRST;
    loop {
        let (locked_by, sessions) = look(connection, holder, bound).await?;
        let seen = seen(connection, holder, sessions.find(session));
        if seen.is_none() && locked_by.is_none() {
            return Ok(None);
        }
        if clock.now().duration_since(begun) >= wait {
            let state = seen.map_or_else(|| "leaving".to_owned(), |seen| seen.state);
            return Ok(Some(Remains::Leaving { session, state }));
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
