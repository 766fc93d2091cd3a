//! Having one step carried out, with its claim renewed beside it.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::link::{Away, Link};
use super::readiness::Side;
use super::receipt;
use crate::clock::jittered;
use crate::executor::{
    BoxFuture, ExecutionError, Executor, ExecutorUnavailable, Outcome, Uncertainty,
};
use crate::ids::ExecutorCode;
use crate::outbox::{Claim, Reason, Report};

/// How long a step waits that nothing can carry out now: a target's restart takes about as long.
const UNAVAILABLE_WAIT: Duration = Duration::from_secs(15);

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
        Err(error) => {
            tracing::warn!("the step waits: {error}");
            if matches!(error, ExecutorUnavailable::TargetIncomplete(_)) {
                shared.readiness.is_away(Side::Target, "target-incomplete");
            }
            return Delivered::Reported(unavailable(Reason::new(
                "executor-unavailable",
                &error.to_string(),
            )));
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
            Ok(true) => claim.renew_interval(),
            Ok(false) => return Delivered::ClaimLost,
            // Still ours as far as anyone knows; the target's own lease decides what may run.
            Err(Away { code }) => {
                tracing::warn!(code, "the claim could not be renewed");
                jittered(claim.renew_interval() / 4)
            }
        };
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

/// The executor, looking once more at a target that was not ready.
async fn installed(
    shared: &Shared,
    code: &ExecutorCode,
) -> Result<Arc<dyn Executor>, ExecutorUnavailable> {
    match shared.registry.executor(code) {
        Err(ExecutorUnavailable::TargetIncomplete(_)) => {
            shared.registry.status().await;
            shared.registry.executor(code)
        }
        found => found,
    }
}

/// What the outcome means for the outbox.
fn report(shared: &Shared, claim: &Claim, outcome: Outcome) -> Report {
    match outcome {
        Outcome::Applied(receipt) => {
            if *claim.executor() != ExecutorCode::dry_run_v1() {
                shared.readiness.answers(Side::Target);
            }
            Report::Applied(receipt)
        }
        Outcome::NotApplied { error, retryable } => {
            let reason = Reason::new(error.code(), &message(&error));
            match error {
                ExecutionError::Superseded { .. } => Report::Superseded(reason),
                // Nothing was sent: a target that is away for an hour uses up no attempts.
                ExecutionError::Target(error) if retryable => {
                    shared.readiness.is_away(Side::Target, error.code());
                    unavailable(reason)
                }
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

pub(super) fn unavailable(reason: Reason) -> Report {
    Report::Unavailable { reason, retry_after: jittered(UNAVAILABLE_WAIT) }
}

/// The error in one line: every refusal, or what caused it. Of a catalog's error only the first
/// line: the rest is an embedder's own text.
fn message(error: &ExecutionError) -> String {
    let mut parts = vec![error.to_string()];
    parts.extend(error.refusals().iter().map(|refusal| refusal.message.clone()));
    if !matches!(error, ExecutionError::Catalog(_)) {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        parts.extend(causes.map(ToString::to_string));
    }
    parts.join(": ")
}
