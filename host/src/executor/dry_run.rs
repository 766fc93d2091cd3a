//! `dry-run:v1`: decides and reports what would run.
//!
//! It holds nothing to connect with, so it cannot write anywhere. It is the default executor, and
//! the only one for contributions that are not SQL.

use std::fmt;

use tracing::Instrument as _;

use super::admission::{Admission, admit};
use super::error::ExecutionError;
use super::outcome::Outcome;
use super::{BoxFuture, Executor};
use crate::digest::Digest;
use crate::ids::{Catalog, ExecutorCode, ExternalReceipt};
use crate::plan::{ContributionCatalog, Needs, Step};
use crate::policy::{Decision, Diagnostic, Outcome as Decided, Policy, Statement};

/// The executor `dry-run:v1`.
#[derive(Debug, Clone)]
pub struct DryRunV1 {
    code: ExecutorCode,
    policy: Policy,
    catalog: Catalog,
}

/// What a step would do.
#[derive(Clone)]
pub struct DryRunReport {
    receipt: ExternalReceipt,
    decision: Option<Box<Decision>>,
}

impl DryRunV1 {
    /// A dry run that decides with this policy, for this catalog.
    ///
    /// The policy is the one that decides for the real executor: a dry run that answers under
    /// another policy would say nothing about the run.
    pub fn new(policy: Policy, catalog: Catalog) -> Self {
        Self { code: ExecutorCode::dry_run_v1(), policy, catalog }
    }

    /// Finds out what the step would do.
    ///
    /// # Errors
    ///
    /// The step would be refused, or it cannot be told; see [`ExecutionError`].
    pub async fn rehearse(
        &self,
        step: &Step,
        contributions: &dyn ContributionCatalog,
    ) -> Result<DryRunReport, ExecutionError> {
        let admission =
            admit(step, contributions, Needs::Rehearsal, &self.policy, &self.catalog).await?;
        let decision = match admission {
            Admission::Sql(decision) => Some(decision),
            Admission::Other => None,
        };
        Ok(DryRunReport { receipt: ExternalReceipt::dry_run(&step.key), decision })
    }

    async fn carry_out(&self, step: &Step, contributions: &dyn ContributionCatalog) -> Outcome {
        match self.rehearse(step, contributions).await {
            Ok(report) => {
                for statement in report.statements() {
                    tracing::info!(
                        statement_index = statement.index,
                        operation = statement.operation.as_str(),
                        "statement would run"
                    );
                }
                Outcome::Applied(report.receipt)
            }
            Err(error) => Outcome::not_applied(error),
        }
    }
}

impl Executor for DryRunV1 {
    fn code(&self) -> &ExecutorCode {
        &self.code
    }

    fn execute<'a>(
        &'a self,
        step: &'a Step,
        contributions: &'a dyn ContributionCatalog,
    ) -> BoxFuture<'a, Outcome> {
        let span = super::step_span(step, &self.code);
        Box::pin(
            async move {
                let outcome = self.carry_out(step, contributions).await;
                outcome.record(&self.code);
                outcome
            }
            .instrument(span),
        )
    }
}

impl DryRunReport {
    /// What the caller keeps: `dry-run:<step-idempotency-key>`.
    pub fn receipt(&self) -> &ExternalReceipt {
        &self.receipt
    }

    /// The statements that would run, in order; none for a contribution that is not SQL.
    pub fn statements(&self) -> &[Statement] {
        match self.decision.as_deref().map(Decision::outcome) {
            Some(Decided::Allow { statements, .. }) => statements,
            Some(Decided::Deny { .. }) | None => &[],
        }
    }

    /// What a reviewer should know about them.
    pub fn advisories(&self) -> &[Diagnostic] {
        match self.decision.as_deref().map(Decision::outcome) {
            Some(Decided::Allow { advisories, .. }) => advisories,
            Some(Decided::Deny { .. }) | None => &[],
        }
    }

    /// The digest of the decision; none for a contribution that is not SQL.
    pub fn decision_digest(&self) -> Option<Digest> {
        self.decision.as_deref().map(Decision::digest)
    }
}

impl fmt::Debug for DryRunReport {
    /// Without the statements' texts: literals of a payload may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRunReport")
            .field("receipt", &self.receipt)
            .field("statement_count", &self.statements().len())
            .field("decision_digest", &self.decision_digest())
            .finish_non_exhaustive()
    }
}
