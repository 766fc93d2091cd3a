//! Looking at the target while the worker runs, also when no step is due: a worker whose target's
//! password is wrong is not ready, and a probe should tell before the first step does.

use std::time::Duration;

use super::Shared;
use super::readiness::Side;
use crate::clock::jittered;
use crate::executor::SqlTargetState;

/// How often a target is looked at that was ready: one connection and a few small queries.
const READY_INTERVAL: Duration = Duration::from_mins(1);
/// How often one that was not: about as soon as a step that waits for it is delivered again.
const AWAY_INTERVAL: Duration = Duration::from_secs(15);

/// Looks at the target at once and then from time to time, until it is dropped. Each look is bounded
/// by the registry.
pub(super) async fn keep(shared: &Shared) {
    loop {
        let interval = match shared.registry.status().await.sql_target {
            // There is nothing to look at, now or later.
            SqlTargetState::Disabled => return std::future::pending().await,
            SqlTargetState::Ready { .. } => {
                shared.readiness.answers(Side::Target);
                READY_INTERVAL
            }
            SqlTargetState::Incomplete { missing } => {
                shared.readiness.is_away(Side::Target, missing);
                AWAY_INTERVAL
            }
        };
        tokio::time::sleep(jittered(interval)).await;
    }
}
