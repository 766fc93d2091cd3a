//! One slot: look for a step, carry it out, record what came of it; until the drain.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::Shared;
use super::delivery::{self, Delivered};
use super::link::Link;
use crate::clock::jittered;
use crate::outbox::{Claim, ClaimLost, Report};
use crate::spans;

/// The first wait before recording is tried again.
const RECORD_WAIT_MIN: Duration = Duration::from_millis(100);
/// The longest one.
const RECORD_WAIT_MAX: Duration = Duration::from_secs(5);

/// Works until the drain.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut link = Link::default();
    while let Some(claim) = next(&shared, &mut link).await {
        let span = tracing::info_span!(
            "delivery",
            step_key = %claim.step().key,
            plan = %claim.plan(),
            attempt = spans::number(claim.attempt()),
            status = Empty,
        );
        carry_out(&shared, &mut link, &claim).instrument(span).await;
    }
    link.close().await;
}

/// Waits for a step; none when a drain is asked for.
async fn next(shared: &Shared, link: &mut Link) -> Option<Claim> {
    let mut pace = tokio::select! {
        biased;
        () = shared.drain.requested() => return None,
        pace = shared.turnstile.lock() => pace,
    };
    // Asked between whole operations on the connection only: none is dropped in the middle.
    while !shared.drain.is_requested() {
        let claimed = link.claim(shared).await;
        if matches!(claimed, Ok(None)) {
            shared.elsewhere.lock().await.look(shared, link).await;
        }
        match claimed {
            Ok(Some(claim)) => {
                pace.found_work();
                return Some(claim);
            }
            Ok(None)
                if shared.options.until_idle && link.is_idle(shared).await.unwrap_or(false) =>
            {
                shared.drain.request_because("idle");
                return None;
            }
            Ok(None) => {}
            Err(away) => tracing::debug!(code = away.code, "no work can be looked for"),
        }
        let wait = pace.found_nothing();
        tokio::select! {
            () = shared.drain.requested() => {}
            () = shared.work.notified() => pace.found_work(),
            () = tokio::time::sleep(wait) => {}
        }
    }
    None
}

/// Carries the step out and records it.
async fn carry_out(shared: &Shared, link: &mut Link, claim: &Claim) {
    tracing::info!(
        direction = %claim.step().direction,
        executor = %claim.executor(),
        "step taken from the outbox"
    );
    let report = match delivery::deliver(shared, link, claim).await {
        Delivered::Reported(report) => report,
        Delivered::Dropped => {
            shared.tally.dropped();
            Report::Released
        }
        Delivered::ClaimLost => {
            tracing::warn!("the claim was lost while the step was carried out: nothing is written");
            return;
        }
    };
    record(shared, link, claim, &report).await;
}

/// Records a report, for as long as it makes sense: when the lease is long over, the step is
/// delivered again anyway and gives the same receipt.
async fn record(shared: &Shared, link: &mut Link, claim: &Claim, report: &Report) {
    let begun = Instant::now();
    let mut wait = RECORD_WAIT_MIN;
    loop {
        match link.record(shared, claim, report).await {
            Ok(Ok(recorded)) => {
                tracing::info!(status = recorded.status.as_str(), "step recorded");
                spans::note(&Span::current(), "status", recorded.status);
                if !matches!(report, Report::Released) {
                    shared.tally.recorded(recorded.status);
                }
                if recorded.promoted {
                    shared.work.notify_one();
                }
                return;
            }
            Ok(Err(lost @ ClaimLost)) => {
                tracing::warn!("nothing is recorded: {lost}");
                return;
            }
            Err(away) if begun.elapsed() > shared.options.outbox.lease * 2 => {
                tracing::error!(
                    code = away.code,
                    "the outcome could not be recorded: the step is delivered again"
                );
                return;
            }
            Err(away) => tracing::debug!(code = away.code, "the outcome is not recorded yet"),
        }
        tokio::select! {
            () = shared.drain.grace_over() => {
                tracing::warn!("the outcome is not recorded: the step is delivered again");
                return;
            }
            () = tokio::time::sleep(jittered(wait)) => wait = (wait * 2).min(RECORD_WAIT_MAX),
        }
    }
}
