//! Renewing the lease while the payload runs, from a second connection.
//!
//! In the payload's own session it could not be done: a long statement cannot be interrupted for
//! it, and the row would stay locked until the payload commits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::ledger::{Lease, Ledger, RenewError};
use crate::target::{SessionContract, TargetConnection, TargetPool};

/// Shortest pause before a renewal that failed is tried again.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Renews at a third of the lease, for as long as it is polled. Ends only when the lease is not
/// this holder's any more.
///
/// A step that is quicker than that costs no second connection. When the connection or the renewal
/// fails the lease goes on until its deadline, and so does the statement: whoever takes the step
/// over ends it.
pub(super) async fn keep(
    sessions: &TargetPool,
    ledger: &Ledger,
    lease: &Lease,
    statements_done: &AtomicU32,
) -> RenewError {
    let mut connection = None;
    let mut pause = lease.renew_interval();
    loop {
        tokio::time::sleep(pause).await;
        let done = statements_done.load(Ordering::Relaxed);
        match renew(sessions, ledger, lease, done, &mut connection).await {
            Renewed::Yes => pause = lease.renew_interval(),
            Renewed::NotNow => pause = (lease.renew_interval() / 4).max(RETRY_PAUSE_MIN),
            Renewed::Never(error) => return error,
        }
    }
}

enum Renewed {
    Yes,
    NotNow,
    Never(RenewError),
}

async fn renew(
    sessions: &TargetPool,
    ledger: &Ledger,
    lease: &Lease,
    statements_done: u32,
    connection: &mut Option<TargetConnection>,
) -> Renewed {
    let mut open = match connection.take() {
        Some(open) => open,
        None => match sessions.confirmed_session(&SessionContract::default()).await {
            Ok(open) => open,
            Err(error) => {
                tracing::warn!(code = error.code(), "the lease could not be renewed");
                return Renewed::NotNow;
            }
        },
    };
    match ledger.renew(&mut open, lease, statements_done).await {
        Ok(()) => {
            tracing::debug!(statements_done, "lease renewed");
            *connection = Some(open);
            Renewed::Yes
        }
        // The connection is dropped with it: its state is not known.
        Err(RenewError::Fault(fault)) => {
            tracing::warn!(code = fault.code(), "the lease could not be renewed");
            Renewed::NotNow
        }
        Err(error) => Renewed::Never(error),
    }
}
