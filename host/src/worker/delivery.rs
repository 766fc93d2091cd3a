//! Having one step carried out, with its claim renewed beside it.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use super::link::{Away, Link};
use super::receipt;
use crate::clock::jittered;
use crate::executor::{
    BoxFuture, ExecutionError, Executor, ExecutorUnavailable, Outcome, SqlTargetState, Uncertainty,
};
use crate::ids::ExecutorCode;
use crate::ledger::ClaimError;
use crate::outbox::{Claim, Reason, Report};
use crate::plan::{CatalogError, Refusal, RefusalCode};

/// How long a step waits that nothing can carry out now: a target's restart takes about as long.
const UNAVAILABLE_WAIT: Duration = Duration::from_secs(15);

/// How often is said again that a claim cannot be renewed.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// How long ending what a dropped step left may take: to connect and to kill one session. Service
/// managers have been waiting for the grace period by then.
const ABANDON_BOUND: Duration = Duration::from_secs(5);

/// What came of a claim.
#[derive(Debug)]
pub(super) enum Delivered {
    /// This is to be recorded.
    Reported(Report),
    /// The grace period was over.
    Dropped,
    /// Another worker has it.
    ClaimLost,
}

/// Delivers the step to its executor.
pub(super) async fn deliver(shared: &Shared, link: &mut Link, claim: &Claim) -> Delivered {
    let executor = match installed(shared, claim.executor()).await {
        Ok(executor) => executor,
        Err(message) => {
            return Delivered::Reported(waits(Reason::new("executor-unavailable", &message)));
        }
    };
    let executing = Box::pin(async {
        match receipt::missing(shared, claim).await {
            Some(report) => report,
            None => {
                let outcome = executor.execute(claim.step(), &*shared.contributions).await;
                report(shared, claim, outcome)
            }
        }
    });
    let delivered = attend(shared, link, claim, executing).await;
    if matches!(delivered, Delivered::Dropped | Delivered::ClaimLost) {
        let abandoned = tokio::time::timeout(ABANDON_BOUND, executor.abandon(claim.step())).await;
        if abandoned.is_err() {
            tracing::warn!("what the dropped step left is ended by whoever takes it over");
        }
    }
    delivered
}

/// Drives the execution, renewing the claim each third of its lease.
async fn attend(
    shared: &Shared,
    link: &mut Link,
    claim: &Claim,
    mut executing: BoxFuture<'_, Report>,
) -> Delivered {
    let mut wait = claim.renew_interval();
    let mut unrenewed = None;
    loop {
        tokio::select! {
            biased;
            report = &mut executing => return Delivered::Reported(report),
            () = shared.drain.grace_over() => {
                tracing::warn!("the grace period is over: the step is dropped and handed back");
                return Delivered::Dropped;
            }
            () = tokio::time::sleep(wait) => {}
        }
        let (report, renewed) = renew(shared, link, claim, &mut executing).await;
        if let Some(report) = report {
            return Delivered::Reported(report);
        }
        wait = match renewed {
            Ok(true) => {
                unrenewed = None;
                claim.renew_interval()
            }
            Ok(false) => return Delivered::ClaimLost,
            // Still ours as far as anyone knows; the target's own lease decides what may run.
            Err(Away { code }) => {
                let first = || Unrenewed::new(claim.renew_interval() / 4);
                unrenewed.get_or_insert_with(first).again(code, claim.renew_interval())
            }
        };
    }
}

/// A claim that cannot be renewed for now.
#[derive(Debug)]
struct Unrenewed {
    since: Instant,
    said: Option<(&'static str, Instant)>,
    wait: Duration,
}

impl Unrenewed {
    fn new(wait: Duration) -> Self {
        Self { since: Instant::now(), said: None, wait }
    }

    /// It failed once more: says so at each change and each minute; the wait before the next time,
    /// which doubles up to the bound.
    fn again(&mut self, code: &'static str, wait_max: Duration) -> Duration {
        let is_said = |(said, at): (&str, Instant)| said == code && at.elapsed() < SAY_AGAIN;
        if !self.said.is_some_and(is_said) {
            self.said = Some((code, Instant::now()));
            let for_s = self.since.elapsed().as_secs();
            tracing::warn!(code, for_s, "the claim could not be renewed; it is tried again");
        }
        let wait = self.wait;
        self.wait = (wait * 2).min(wait_max);
        jittered(wait)
    }
}

/// Renews the claim while the execution goes on. A renewal is never dropped in the middle: its
/// connection is used again.
async fn renew(
    shared: &Shared,
    link: &mut Link,
    claim: &Claim,
    executing: &mut BoxFuture<'_, Report>,
) -> (Option<Report>, Result<bool, Away>) {
    let mut renewal = pin!(link.renew(shared, claim));
    let mut report = None;
    loop {
        tokio::select! {
            biased;
            renewed = &mut renewal => return (report, renewed),
            ended = &mut *executing, if report.is_none() => report = Some(ended),
        }
    }
}

/// The executor, looking once more at a target that was not ready; else why there is none, with all
/// that is missing.
async fn installed(shared: &Shared, code: &ExecutorCode) -> Result<Arc<dyn Executor>, String> {
    let found = shared.registry.executor(code);
    if !matches!(found, Err(ExecutorUnavailable::TargetIncomplete(_))) {
        return found.map_err(|error| error.to_string());
    }
    let began = Instant::now();
    let missing = match shared.registry.status().await.sql_target {
        SqlTargetState::Incomplete { missing } => missing,
        SqlTargetState::Ready { .. } | SqlTargetState::Disabled => Vec::new(),
    };
    let listed: Vec<String> =
        missing.iter().map(|it| format!("{}: {}", it.key, it.message)).collect();
    shared.readiness.looked(began, missing);
    shared.registry.executor(code).map_err(|error| {
        if listed.is_empty() {
            return error.to_string();
        }
        format!("{error}: {}", listed.join("; "))
    })
}

/// What the outcome means for the outbox.
fn report(shared: &Shared, claim: &Claim, outcome: Outcome) -> Report {
    match outcome {
        Outcome::Applied(receipt) => {
            if *claim.executor() != ExecutorCode::dry_run_v1() {
                shared.readiness.applied();
            }
            Report::Applied(receipt)
        }
        Outcome::NotApplied { error, .. } if lacks_release(&error) => {
            let reason = Reason::new(lack_code(&error), &message(&error));
            waits(reason)
        }
        Outcome::NotApplied { error, retryable } => {
            let reason = Reason::new(error.code(), &message(&error));
            // Nothing was claimed: a target that is away for an hour, or whose password was changed,
            // uses up no attempts and needs no word about each step once it is mended.
            if let Some(cause) = error.target_trouble() {
                match error {
                    ExecutionError::Claim(ClaimError::Fault(_)) => {
                        shared.readiness.not_claimed(cause);
                    }
                    _ => shared.readiness.not_opened(cause),
                }
                // What an earlier delivery left stands in the ledger that is not as it must be: a new
                // one would not know, so a person has to look before the step runs again.
                let is_forgotten = claim.attempt() > 1 && matches!(error, ExecutionError::Claim(_));
                return if is_forgotten { Report::Refused(reason) } else { waits(reason) };
            }
            match error {
                ExecutionError::Superseded { .. } => Report::Superseded(reason),
                _ if retryable => Report::Failed(reason),
                _ => Report::Refused(reason),
            }
        }
        Outcome::Indeterminate { reason, retry_after } => {
            let is_lost = matches!(reason, Uncertainty::ReceiptLost);
            let reason = Reason::new(reason.code(), &reason.to_string());
            if is_lost { Report::Lost(reason) } else { Report::Unknown { reason, retry_after } }
        }
    }
}

/// Whether it is this worker that has no such release, or a broken one: on a machine that lags behind
/// in a deployment, that says nothing about the step, which another worker may carry out.
fn lacks_release(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::Catalog(_) => true,
        ExecutionError::Refused { refusals, .. } => refusals.iter().all(is_not_installed),
        _ => false,
    }
}

fn is_not_installed(refusal: &Refusal) -> bool {
    refusal.code == RefusalCode::ReleaseNotInstalled
}

fn lack_code(error: &ExecutionError) -> &'static str {
    match error {
        ExecutionError::Refused { .. } => RefusalCode::ReleaseNotInstalled.as_str(),
        error => error.code(),
    }
}

/// There is nothing here that could carry it out now.
pub(super) fn waits(reason: Reason) -> Report {
    tracing::warn!(code = reason.code, "the step waits until that is mended: {}", reason.message);
    Report::Unavailable { reason, retry_after: jittered(UNAVAILABLE_WAIT) }
}

/// The error in one line: every refusal, or what caused it. Of a catalog that cannot be read only the
/// error itself: the rest is an embedder's own text.
fn message(error: &ExecutionError) -> String {
    let mut parts = vec![error.to_string()];
    parts.extend(error.refusals().iter().map(|refusal| refusal.message.clone()));
    if !matches!(error, ExecutionError::Catalog(CatalogError::Unavailable(_))) {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        parts.extend(causes.map(ToString::to_string));
    }
    // A broken release lists its problems, a line each.
    parts.join(": ").lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_cannot_be_renewed_is_asked_for_ever_less_often() {
        let bound = Duration::from_secs(4);
        let mut unrenewed = Unrenewed::new(Duration::from_secs(1));
        let waits: Vec<Duration> = (0..4).map(|_| unrenewed.again("code", bound)).collect();
        for (wait, base) in waits.iter().zip([1, 2, 4, 4]) {
            let base = Duration::from_secs(base);
            assert!(*wait <= base && *wait >= base / 2, "{waits:?}");
        }
        let said = unrenewed.said.unwrap();
        unrenewed.again("code", bound);
        assert_eq!(unrenewed.said, Some(said), "said once");
        unrenewed.again("another", bound);
        assert_eq!(unrenewed.said.unwrap().0, "another", "and at each change");
    }
}
