//! `sql-jdbc:v1`: runs what the pinned policy allowed on the isolated target, under a lease in the
//! receipt ledger. The code keeps its historical name, which recorded plans carry.
//!
//! Order of things, none of which is skipped: the installed release against the plan and the
//! policy's decision; a verified connection; the claim, committed; the statements; the receipt,
//! completed in the transaction of the trailing DML; the commit. A payload of DML alone has its
//! effect exactly once. A DDL statement commits by itself (MySQL manual, "Statements That Cause an
//! Implicit Commit"), so a payload with DDL runs at least once, of repeatable statements.

mod abandoned;
mod conclusion;
mod drift;
mod engines;
mod renewal;
mod statements;
mod texts;

pub use drift::Drift;

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use tracing::Instrument as _;
use tracing::field::Empty;

use self::abandoned::Held;
use self::statements::{Ended, Run};
use super::admission::{Admission, admit};
use super::error::ExecutionError;
use super::outcome::{Outcome, Uncertainty};
use super::{BoxFuture, Executor, session_contract, step_span};
use crate::config::SqlTargetConfig;
use crate::fault_points::{Point, reach};
use crate::ids::{Catalog, Direction, EnvironmentCode, ExecutorCode, ExternalReceipt};
use crate::ledger::{
    Claim, ClaimError, ClaimRequest, Counterpart, Lease, Ledger, LedgerOptions, Receipt, Standing,
    StepIdentity,
};
use crate::plan::{ContributionCatalog, Needs, Refusal, RefusalCode, Step};
use crate::policy::{Admitted, Policy};
use crate::spans::{self, Part};
use crate::target::{Target, TargetConnection, TargetError, TargetPool};

/// How long to wait before a step is delivered again whose state could not be told.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The executor `sql-jdbc:v1`.
pub struct SqlJdbcV1 {
    code: ExecutorCode,
    policy: Policy,
    sessions: TargetPool,
    ledger: Ledger,
    environment: EnvironmentCode,
    catalog: Catalog,
    receipt_lease: Duration,
    statement_budget: Duration,
    held: Held,
}

impl SqlJdbcV1 {
    /// An executor for this target that runs what this policy allows. Nothing is connected yet.
    pub fn new(config: &SqlTargetConfig, policy: Policy) -> Self {
        let options = LedgerOptions {
            executions_max: config.bounds.execution_count_max,
            ..LedgerOptions::default()
        };
        Self {
            code: ExecutorCode::sql_jdbc_v1(),
            policy,
            sessions: TargetPool::new(Target::new(config)),
            ledger: Ledger::new(options),
            environment: config.environment.clone(),
            catalog: config.catalog.clone(),
            receipt_lease: config.receipt_lease,
            statement_budget: config.bounds.statement_budget,
            held: Held::default(),
        }
    }

    /// The environment the target stands for.
    pub fn environment(&self) -> &EnvironmentCode {
        &self.environment
    }

    /// The one catalog payloads may touch.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The policy that decides.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    async fn carry_out(&self, step: &Step, contributions: &dyn ContributionCatalog) -> Outcome {
        let admitted = match self.admitted(step, contributions).await {
            Ok(admitted) => admitted,
            Err(error) => return self.refused(step, error).await,
        };
        let contract = session_contract(admitted.session());
        let taking = Box::pin(self.sessions.session(&contract));
        let mut connection = match opened_for(&admitted, taking).await {
            Ok(connection) => connection,
            Err(error) => return Outcome::not_applied(error),
        };
        let request = self.claim_request(step, &admitted);
        let mut claim = claiming(Box::pin(self.ledger.claim(&mut connection, &request))).await;
        if claim == Err(ClaimError::NotAsKept) {
            drop(connection);
            connection = match self.connect(&admitted).await {
                Ok(connection) => connection,
                Err(error) => return Outcome::not_applied(error),
            };
            claim = claiming(Box::pin(self.ledger.claim(&mut connection, &request))).await;
        }
        let claim = match claim {
            Err(ClaimError::AnswerLost { pending, .. }) => {
                // The claim may be ours: it is asked for again, by the same token.
                drop(connection);
                connection = match self.connect(&admitted).await {
                    Ok(connection) => connection,
                    Err(_) => return indeterminate(Uncertainty::ClaimUnanswered),
                };
                let resuming = self.ledger.resume(&mut connection, &request, pending);
                match claiming(Box::pin(resuming)).await {
                    Err(ClaimError::AnswerLost { .. }) => {
                        return indeterminate(Uncertainty::ClaimUnanswered);
                    }
                    answer => answer,
                }
            }
            answer => answer,
        };
        match claim {
            Ok(Claim::Granted(lease)) => {
                let held = self.held.hold(&lease);
                let outcome = self.run(connection, &lease, &admitted).await;
                // Not reached when this is dropped in the middle.
                held.ended();
                outcome
            }
            Ok(claim) => {
                self.sessions.keep(connection).await;
                unclaimed(claim)
            }
            Err(error) => Outcome::not_applied(ExecutionError::Claim(error)),
        }
    }

    /// A step that may not run now may have run before: the release it came from can be gone when
    /// a worker that lost the answer asks again. What the ledger has of this very step stands.
    async fn refused(&self, step: &Step, error: ExecutionError) -> Outcome {
        let identity = StepIdentity {
            environment: self.environment.clone(),
            release: step.release.clone(),
            direction: step.direction,
            content_hash: step.content_hash,
        };
        let contract = session_contract(&self.policy.description().session);
        let stored = match self.sessions.confirmed_session(&contract).await {
            Ok(mut connection) => match self.ledger.read(&mut connection, &step.key).await {
                Ok(receipt) => {
                    self.sessions.keep(connection).await;
                    receipt
                }
                Err(_) => None,
            },
            // Without the ledger there is nothing to add to the refusal.
            Err(_) => None,
        };
        match stored {
            Some(receipt) if stands(&receipt) && receipt.identity == identity => {
                Outcome::Applied(ExternalReceipt::sql(&self.environment, &step.key))
            }
            _ => Outcome::not_applied(error),
        }
    }

    /// Everything that can be told without a connection.
    async fn admitted(
        &self,
        step: &Step,
        contributions: &dyn ContributionCatalog,
    ) -> Result<Admitted, ExecutionError> {
        let admission =
            admit(step, contributions, Needs::RepeatableSql, &self.policy, &self.catalog).await?;
        let refused = |code, message: &str| ExecutionError::Refused {
            refusals: vec![Refusal::new(code, message, "use `dry-run:v1` for it")],
            findings: super::Findings::default(),
        };
        let Admission::Sql(decision) = admission else {
            return Err(refused(RefusalCode::UnsupportedType, "the contribution is not SQL"));
        };
        let admitted = decision
            .admit()
            .map_err(|denied| refused(RefusalCode::PolicyDenied, &denied.to_string()))?;
        texts::check_carried(admitted.statements())?;
        Ok(admitted)
    }

    /// A new connection that can take every statement.
    async fn connect(&self, admitted: &Admitted) -> Result<TargetConnection, ExecutionError> {
        let contract = session_contract(admitted.session());
        opened_for(admitted, Box::pin(self.sessions.target().open(&contract))).await
    }

    /// The sessions kept between its steps.
    pub(in crate::executor) fn sessions(&self) -> &TargetPool {
        &self.sessions
    }

    fn claim_request(&self, step: &Step, admitted: &Admitted) -> ClaimRequest {
        ClaimRequest {
            key: step.key.clone(),
            identity: StepIdentity {
                environment: self.environment.clone(),
                release: step.release.clone(),
                direction: step.direction,
                content_hash: admitted.payload_digest(),
            },
            counterpart: step.reverses.as_ref().map(|forward| Counterpart {
                key: forward.key.clone(),
                content_hash: forward.content_hash,
            }),
            executor: self.code.clone(),
            policy_digest: admitted.policy_digest(),
            decision_digest: admitted.decision_digest(),
            superseded_policies: self.policy.pin().supersedes.clone(),
            statement_count: u32::try_from(admitted.statements().len()).unwrap_or(u32::MAX),
            lease: self.receipt_lease,
        }
    }

    /// Runs the payload under its lease and brings the receipt to an end.
    async fn run(
        &self,
        mut connection: TargetConnection,
        lease: &Lease,
        admitted: &Admitted,
    ) -> Outcome {
        tracing::info!(
            execution_count = lease.execution_count(),
            statement_count = admitted.statements().len(),
            policy_digest = %admitted.policy_digest(),
            "step claimed"
        );
        let statements_done = AtomicU32::new(0);
        let run = Run {
            ledger: &self.ledger,
            lease,
            statements: admitted.statements(),
            statement_budget: self.statement_budget,
            statements_done: &statements_done,
        };
        let ended = tokio::select! {
            ended = run.statements(&mut connection) => Ok(ended),
            lost = renewal::keep(&self.sessions, &self.ledger, lease, &statements_done) => Err(lost),
        };
        match ended {
            Ok(Ended::Ran) => self.complete(connection, lease).await,
            Ok(Ended::Refused { statement, error: source }) => {
                let error = ExecutionError::Statement { statement, source };
                self.fail(connection, lease, error).await
            }
            Ok(Ended::Drifted { statement, drift }) => {
                self.fail(connection, lease, ExecutionError::Drift { statement, drift }).await
            }
            Ok(Ended::OverBudget { statement }) => {
                let budget = self.statement_budget;
                let error = ExecutionError::StatementBudget { statement, budget };
                self.stop_and_fail(connection, lease, error).await
            }
            Ok(Ended::Unanswered { statement }) => {
                let error = ExecutionError::ConnectionLost { statement };
                self.stop_and_fail(connection, lease, error).await
            }
            Ok(Ended::NotHeld { statement, error }) => {
                self.not_held(connection, lease, statement, error).await
            }
            Err(lost) => self.lost(connection, lease, &lost).await,
        }
    }
}

/// A claim, in its span.
async fn claiming(claim: Part<'_, Claim, ClaimError>) -> Result<Claim, ClaimError> {
    let span = tracing::debug_span!("claim", result = Empty, code = Empty);
    let claimed = spans::within(span.clone(), ClaimError::code, claim).await;
    if let Ok(claim) = &claimed {
        spans::note(&span, "result", claim.as_str());
    }
    claimed
}

/// Opens a connection, or takes a kept one, in its span. Its server takes every statement in one packet.
async fn opened_for(
    admitted: &Admitted,
    opening: Part<'_, TargetConnection, TargetError>,
) -> Result<TargetConnection, ExecutionError> {
    let span = tracing::debug_span!("open", code = Empty);
    let opened = spans::within(span, TargetError::code, opening).await;
    let connection = opened.map_err(ExecutionError::Target)?;
    let packets = texts::check_packets(admitted.statements(), connection.max_allowed_packet());
    if let Err(error) = packets {
        connection.close().await;
        return Err(error);
    }
    Ok(connection)
}

/// Does the receipt stand for an effect that is there? A forward step that a compensation was begun
/// for may have been taken back.
fn stands(receipt: &Receipt) -> bool {
    let taken_back =
        receipt.identity.direction == Direction::Forward && receipt.counterpart.is_some();
    receipt.standing == Standing::Succeeded && receipt.contradiction.is_none() && !taken_back
}

impl Executor for SqlJdbcV1 {
    fn code(&self) -> &ExecutorCode {
        &self.code
    }

    fn execute<'a>(
        &'a self,
        step: &'a Step,
        contributions: &'a dyn ContributionCatalog,
    ) -> BoxFuture<'a, Outcome> {
        let span = step_span(step, &self.code);
        Box::pin(
            async move {
                let outcome = self.carry_out(step, contributions).await;
                outcome.record(&self.code);
                reach(Point::Ack).await;
                outcome
            }
            .instrument(span),
        )
    }

    fn abandon<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, ()> {
        let span = step_span(step, &self.code);
        Box::pin(self.give_up(&step.key).instrument(span))
    }

    fn rest(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sessions.close())
    }
}

impl fmt::Debug for SqlJdbcV1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlJdbcV1")
            .field("environment", &self.environment)
            .field("catalog", &self.catalog)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

fn indeterminate(reason: Uncertainty) -> Outcome {
    Outcome::Indeterminate { reason, retry_after: RETRY_AFTER }
}

/// The outcome of a claim that gave no lease.
fn unclaimed(claim: Claim) -> Outcome {
    let error = match claim {
        // A compensation of what never ran has nothing to do, and is done.
        Claim::AlreadySucceeded(receipt, _) | Claim::NotApplicable(receipt, _) => {
            return Outcome::Applied(receipt);
        }
        Claim::Busy(busy) => {
            let retry_after = busy.retry_after;
            return Outcome::Indeterminate { reason: Uncertainty::Busy(busy), retry_after };
        }
        Claim::Granted(_) => return indeterminate(Uncertainty::ClaimUnanswered),
        Claim::Mismatch { fields, .. } => ExecutionError::IdentityMismatch(fields),
        Claim::PinRefused { .. } => ExecutionError::PinRefused,
        Claim::NeedsAttention { recorded } => ExecutionError::NeedsAttention {
            execution_count: recorded.execution_count,
            last_error: recorded.last_error,
        },
        Claim::Pruned { .. } => ExecutionError::ReceiptPruned,
        Claim::Superseded { by, .. } => ExecutionError::Superseded { by },
    };
    Outcome::not_applied(error)
}
