//! Looking at the target: whether a step would find what it needs.
//!
//! A look writes nothing. Its session is one in which the server itself refuses writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::session_contract;
use super::status::{Missing, SqlTargetState};
use crate::ids::{Catalog, EnvironmentCode};
use crate::ledger::{Ledger, ShapeError, ShapeProblem};
use crate::policy::Policy;
use crate::target::{Awaited, Late, SessionContract, Target};
use crate::text::with_causes;

/// How long a status may take when the target does not answer. Shorter than people and probes wait.
pub const STATUS_BUDGET: Duration = Duration::from_secs(5);

/// How long a status is given again without looking, from the end of the look on: a page that many
/// people watch opens no more connections than one that nobody does.
const STATUS_FRESH: Duration = Duration::from_secs(1);

/// The target as it is looked at.
#[derive(Debug)]
pub(super) struct TargetProbe {
    target: Target,
    ledger: Ledger,
    contract: SessionContract,
    /// Whether everything held once. Every execution verifies it again for itself.
    was_ready: AtomicBool,
    /// What the look that goes on waits for.
    awaited: Awaited,
    last: Mutex<Option<Found>>,
    /// The same for whoever does not wait for a look to end.
    known: watch::Sender<Option<(SqlTargetState, Instant)>>,
}

/// What was found, and until when it is given again.
#[derive(Debug)]
struct Found {
    state: SqlTargetState,
    fresh_until: Instant,
}

impl TargetProbe {
    /// Looks at this target with the session this policy asks for. Nothing is connected yet.
    pub(super) fn new(target: Target, policy: &Policy) -> Self {
        Self {
            target,
            ledger: Ledger::default(),
            contract: session_contract(&policy.description().session),
            was_ready: AtomicBool::new(false),
            awaited: Awaited::default(),
            last: Mutex::new(None),
            known: watch::Sender::default(),
        }
    }

    pub(super) fn environment(&self) -> &EnvironmentCode {
        &self.target.config().environment
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.target.config().catalog
    }

    pub(super) fn was_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed)
    }

    /// What the target is now; asked for [`STATUS_BUDGET`] at most.
    pub(super) async fn state(&self) -> SqlTargetState {
        let deadline = Instant::now() + STATUS_BUDGET;
        // One look at a time: callers that wait get what the one before them found.
        let Ok(mut last) = tokio::time::timeout_at(deadline, self.last.lock()).await else {
            return self.timed_out();
        };
        let now = Instant::now();
        if let Some(found) = last.as_ref().filter(|found| now < found.fresh_until) {
            return found.state.clone();
        }
        let looked = tokio::time::timeout_at(deadline, self.look()).await;
        let state = match looked {
            Ok(Ok(warnings)) => SqlTargetState::Ready { warnings },
            Ok(Err(missing)) => SqlTargetState::Incomplete { missing },
            Err(_) => self.timed_out(),
        };
        let found_at = Instant::now();
        *last = Some(Found { state: state.clone(), fresh_until: found_at + STATUS_FRESH });
        self.known.send_replace(Some((state.clone(), found_at)));
        if matches!(state, SqlTargetState::Ready { .. }) {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        state
    }

    /// What was found last, however long ago, and how long ago that is.
    pub(super) fn known(&self) -> Option<(SqlTargetState, Duration)> {
        let known = self.known.borrow();
        known.as_ref().map(|(state, found_at)| (state.clone(), found_at.elapsed()))
    }

    fn timed_out(&self) -> SqlTargetState {
        let Late { code, message, help } = self.awaited.late(STATUS_BUDGET);
        SqlTargetState::Incomplete { missing: vec![Missing::new(code, message, help)] }
    }

    /// Opens a connection and looks at the ledger: what a step would meet. What is missing is an
    /// error, at least one thing; what an operator should know all the same is not.
    async fn look(&self) -> Result<Vec<Missing>, Vec<Missing>> {
        let mut connection =
            self.target.open_watched(&self.contract, &self.awaited).await.map_err(|error| {
                vec![Missing::new(error.code(), with_causes(&error), error.help())]
            })?;
        let shape = self.ledger.check_shape(&mut connection).await;
        let warnings = connection
            .warnings()
            .iter()
            .map(|warning| {
                let help = warning.help(connection.catalog());
                Missing::new(warning.code(), warning.to_string(), help)
            })
            .collect();
        connection.close().await;
        match shape {
            Ok(()) => Ok(warnings),
            Err(ShapeError::Unfit(problems)) => Err(problems.iter().map(missing).collect()),
            Err(ShapeError::Fault(fault)) => {
                Err(vec![Missing::new(fault.code(), fault.to_string(), fault.help())])
            }
        }
    }
}

fn missing(problem: &ShapeProblem) -> Missing {
    Missing::new(problem.code(), problem.to_string(), problem.help())
}
