//! Whether a step may run at all: the installed release against the plan, then the policy.
//!
//! Everything that speaks against the step is told at once, and nothing is claimed or connected
//! before.

use std::fmt;

use tracing::field::Empty;

use super::error::ExecutionError;
use crate::ids::Catalog;
use crate::plan::{
    ContributionCatalog, Needs, Payload, Refusal, RefusalCode, Resolution, Step, resolve,
};
use crate::policy::{
    Decision, DecisionRequest, Diagnostic, NoDecision, Outcome, PROTECTED_TABLES, Policy, Severity,
};
use crate::spans;

/// What a policy found in a payload.
///
/// `Debug` shows codes and places only: messages may quote the payload, and its literals may be
/// secrets. Whoever shows a message to a plugin's author takes it from [`Findings::diagnostics`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Findings(Vec<Diagnostic>);

impl Findings {
    /// Every finding.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|found| (&found.code, found.span))).finish()
    }
}

/// What may be carried out.
#[derive(Debug)]
pub(super) enum Admission {
    /// A payload that a policy allowed.
    Sql(Box<Decision>),
    /// A contribution that is not SQL; no policy decides on it.
    Other,
}

/// Finds out whether the step may be carried out, with what is installed now.
pub(super) async fn admit(
    step: &Step,
    contributions: &dyn ContributionCatalog,
    needs: Needs,
    policy: &Policy,
    catalog: &Catalog,
) -> Result<Admission, ExecutionError> {
    let Resolution { payload, mut refusals } =
        resolve(step, contributions, needs).await.map_err(ExecutionError::Catalog)?;
    let decidable = |refusal: &Refusal| {
        !matches!(refusal.code, RefusalCode::PayloadEmpty | RefusalCode::PayloadNotUtf8)
    };
    let mut findings = Findings::default();
    let mut decision = None;
    if let Some(payload) = payload.filter(|_| step.is_sql() && refusals.iter().all(decidable)) {
        match decide(policy, payload, catalog).await {
            Ok(decided) => match decided.outcome() {
                Outcome::Allow { .. } => decision = Some(decided),
                Outcome::Deny { diagnostics } => {
                    findings = Findings(diagnostics.clone());
                    refusals.push(denial(policy, &findings));
                }
            },
            // That there is no decision is told only when nothing else stands in the way: the
            // refusals hold whatever a decision would be.
            Err(no_decision) if refusals.is_empty() => {
                return Err(ExecutionError::NoDecision(no_decision));
            }
            Err(_) => {}
        }
    }
    if !refusals.is_empty() {
        return Err(ExecutionError::Refused { refusals, findings });
    }
    Ok(decision.map_or(Admission::Other, |decision| Admission::Sql(Box::new(decision))))
}

/// Decides on a thread that may block: a decision takes microseconds to a second.
async fn decide(
    policy: &Policy,
    payload: Payload,
    catalog: &Catalog,
) -> Result<Decision, NoDecision> {
    let digest = policy.pin().sha256;
    let span = tracing::debug_span!(
        "decision",
        policy_digest = %digest,
        outcome = Empty,
        code = Empty,
    );
    let (policy, catalog) = (policy.clone(), catalog.clone());
    let deciding = tokio::task::spawn_blocking(move || {
        policy.decide(&DecisionRequest {
            payload: payload.bytes(),
            catalog: &catalog,
            protected_tables: PROTECTED_TABLES,
        })
    });
    let deciding = async {
        let undecided = NoDecision::Malformed { what: "the decision did not return" };
        deciding.await.unwrap_or(Err(undecided))
    };
    let decided = spans::within(span.clone(), NoDecision::kind, Box::pin(deciding)).await;
    match decided.as_ref().map(Decision::outcome) {
        Ok(Outcome::Allow { .. }) => spans::note(&span, "outcome", "allow"),
        Ok(Outcome::Deny { diagnostics }) => {
            spans::note(&span, "outcome", "deny");
            let first = diagnostics.iter().find(|found| found.severity == Severity::Error);
            spans::note(&span, "code", first.map_or("", |found| found.code.as_str()));
        }
        Err(_) => spans::note(&span, "outcome", "error"),
    }
    decided
}

fn denial(policy: &Policy, findings: &Findings) -> Refusal {
    let mut codes: Vec<_> = findings.0.iter().map(|found| format!("`{}`", found.code)).collect();
    codes.dedup();
    let pin = policy.pin();
    Refusal::new(
        RefusalCode::PolicyDenied,
        format!("policy `{} {}` denies the payload: {}", pin.name, pin.version, codes.join(", ")),
        "run `tollgate check` on the payload: it shows each place and what to write instead",
    )
}
