//! Sessions kept between steps.
//!
//! Opening a target connection costs two logins and more than a dozen queries, most of what a short
//! step would take. A session that a step leaves in order is therefore kept for the next one:
//!
//! - Only whoever ended in order gives one back. What is dropped, after an error, a lost answer, a
//!   timeout or in the middle of anything, is closed, and never seen again.
//! - It is used again until `session_reuse` after everything was verified on it, and not once longer:
//!   then the next step opens, and proves isolation and grants again.
//! - What can change under it before that is read again by its first query; see [`super::kept`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::connection::TargetConnection;
use super::contract::SessionContract;
use super::error::TargetError;
use super::open::Target;
use crate::metrics::{OpenSession, metrics};

/// A target with the sessions that are kept for it. They are closed when it is dropped.
pub struct TargetPool {
    target: Target,
    shared: Arc<Shared>,
}

struct Shared {
    sessions_max: usize,
    reuse: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The one kept last is used next: the others may grow old and go.
    sessions: Vec<Idle>,
    /// Whether a task closes those whose time is over.
    is_watched: bool,
}

struct Idle {
    connection: TargetConnection,
    _counted: OpenSession,
}

impl TargetPool {
    /// Keeps sessions of this target, within the bounds of its configuration. Nothing is opened.
    pub fn new(target: Target) -> Self {
        let bounds = &target.config().bounds;
        let shared = Shared {
            sessions_max: bounds.pool_sessions_max,
            reuse: bounds.session_reuse,
            kept: Mutex::default(),
        };
        Self { shared: Arc::new(shared), target }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A kept session, or one that is opened now. A kept one is not confirmed yet: the first query
    /// on it has to be, which a ledger's claim is.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub async fn session(
        &self,
        contract: &SessionContract,
    ) -> Result<TargetConnection, TargetError> {
        match self.shared.take(contract) {
            Some(kept) => Ok(kept),
            None => self.target.open(contract).await,
        }
    }

    /// A kept session that was found to be as it was, or one that is opened now.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub async fn confirmed_session(
        &self,
        contract: &SessionContract,
    ) -> Result<TargetConnection, TargetError> {
        if let Some(mut kept) = self.shared.take(contract)
            && kept.is_as_kept().await
        {
            return Ok(kept);
        }
        self.target.open(contract).await
    }

    /// Takes a session back whose last command was answered in order, outside of any transaction.
    /// One for which there is no room, or whose time is over, is closed.
    pub async fn keep(&self, connection: TargetConnection) {
        if let Some(connection) = self.shared.keep(connection) {
            connection.close().await;
        }
    }

    /// Closes every session that is kept now.
    pub async fn close(&self) {
        let sessions = std::mem::take(&mut self.shared.kept().sessions);
        for Idle { connection, .. } in sessions {
            connection.close().await;
        }
    }
}

impl fmt::Debug for TargetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetPool")
            .field("target", &self.target)
            .field("kept", &self.shared.kept().sessions.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is too old is closed on the way, in the background.
    fn take(&self, contract: &SessionContract) -> Option<TargetConnection> {
        let mut kept = self.kept();
        kept.sessions.retain(|idle| self.left(&idle.connection).is_some());
        let place = kept.sessions.iter().rposition(|it| it.connection.contract() == contract)?;
        Some(kept.sessions.remove(place).connection)
    }

    /// Gives back what is not kept.
    fn keep(self: &Arc<Self>, mut connection: TargetConnection) -> Option<TargetConnection> {
        if connection.is_in_transaction() || self.left(&connection).is_none() {
            return Some(connection);
        }
        connection.put_aside();
        let mut kept = self.kept();
        if kept.sessions.len() >= self.sessions_max {
            return Some(connection);
        }
        kept.sessions.push(Idle { connection, _counted: metrics().idle_target_session() });
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(self), self.reuse));
        }
        None
    }

    /// How long the session may still be used again.
    fn left(&self, connection: &TargetConnection) -> Option<Duration> {
        let left = self.reuse.checked_sub(connection.verified_at().elapsed())?;
        (!left.is_zero()).then_some(left)
    }

    /// Takes out those whose time is over, and tells when the next one's is; none are left otherwise,
    /// and nobody watches any more.
    fn expire(&self) -> (Vec<Idle>, Option<Instant>) {
        let mut kept = self.kept();
        let expired =
            kept.sessions.extract_if(.., |idle| self.left(&idle.connection).is_none()).collect();
        let next = kept.sessions.iter().map(|it| it.connection.verified_at() + self.reuse).min();
        kept.is_watched = next.is_some();
        (expired, next)
    }
}

/// Closes sessions when their time is over, so that none stays open on the server of a worker that
/// has nothing to do. Ends with the last one, and with the pool.
async fn watch(shared: Weak<Shared>, reuse: Duration) {
    let mut next = Instant::now() + reuse;
    loop {
        tokio::time::sleep_until(next.into()).await;
        let Some(shared) = shared.upgrade() else { return };
        let (expired, then) = shared.expire();
        drop(shared);
        for Idle { connection, .. } in expired {
            connection.close().await;
        }
        let Some(then) = then else { return };
        next = then;
    }
}
