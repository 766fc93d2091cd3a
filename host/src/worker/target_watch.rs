//! Looking at the target while the worker runs, also when no step is due: a worker whose target's
//! password is wrong is not ready, and a probe should tell before the first step does.
//!
//! A look that finds the target ready ends what looks find, and not what a claim met: a look claims
//! nothing, and with a step that waits the worker would be ready until the step is delivered again, and
//! then not, and so on. What a claim met ends when a step is applied. But the step may be another
//! worker's by now, or be taken back, or need a person, and then no claim would ever tell. So when the
//! target is found ready, the outbox is asked whether a step still waits for what the claim met; when
//! none does, it is over.

use std::time::{Duration, Instant};

use super::Shared;
use super::readiness::Met;
use crate::clock::jittered;
use crate::executor::SqlTargetState;

/// How often a target is looked at that was ready: one connection and a few small queries.
const READY_INTERVAL: Duration = Duration::from_mins(1);
/// How often one that was not: about as soon as a step that waits for it is delivered again.
const AWAY_INTERVAL: Duration = Duration::from_secs(15);

/// How soon after a claim met something its step is surely recorded, and the outbox says so.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);

/// How long asking the outbox may take; what is not told in time is asked again with the next look.
const ASK_BUDGET: Duration = Duration::from_secs(5);

/// Looks at the target at once and then from time to time, until it is dropped. Each look is bounded
/// by the registry.
pub(super) async fn keep(shared: &Shared) {
    loop {
        let began = Instant::now();
        match shared.registry.status().await.sql_target {
            // There is nothing to look at, now or later.
            SqlTargetState::Disabled => return std::future::pending().await,
            SqlTargetState::Ready { .. } => {
                shared.readiness.looked(began, Vec::new());
                settle(shared).await;
            }
            SqlTargetState::Incomplete { missing } => shared.readiness.looked(began, missing),
        }
        if !shared.readiness.keeps_from_target() {
            tokio::select! {
                () = tokio::time::sleep(jittered(READY_INTERVAL)) => continue,
                () = shared.readiness.until_kept_from_target() => {}
            }
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(AWAY_INTERVAL)) => {}
            () = shared.readiness.until_applied() => {}
        }
    }
}

/// The target is ready: what a claim met is over when no step waits for it.
async fn settle(shared: &Shared) {
    let Some(met) = shared.readiness.met_by_claims(RECORDED_WITHIN) else { return };
    let asked = tokio::time::timeout(ASK_BUDGET, a_step_waits(shared, &met)).await;
    if matches!(asked, Ok(Some(false))) {
        shared.readiness.nothing_waits(&met);
    }
}

/// Whether a step waits for it; none when the control catalog does not tell, which the slots say.
async fn a_step_waits(shared: &Shared, met: &Met) -> Option<bool> {
    let mut connection = shared.control.open().await.ok()?;
    let waits = shared.outbox.is_held_up(&mut connection, &met.codes).await;
    connection.close().await;
    waits.ok()
}
