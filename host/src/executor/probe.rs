//! Looking at the target: whether a step would find what it needs.
//!
//! A look writes nothing. Its session is one in which the server itself refuses writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::session_contract;
use super::status::{Missing, SqlTargetState};
use crate::ids::{Catalog, EnvironmentCode};
use crate::ledger::{Ledger, ShapeError, ShapeProblem};
use crate::policy::Policy;
use crate::target::{SessionContract, Target};
use crate::text::with_causes;

/// How long a status may take when the target does not answer. Shorter than people and probes wait.
pub const STATUS_BUDGET: Duration = Duration::from_secs(5);

/// How long a status is given again without looking, at least: a page that many people watch opens no
/// more connections than one that nobody does. What took longer to find out is given again for as
/// long as it took.
const STATUS_FRESH: Duration = Duration::from_secs(1);

/// The target as it is looked at.
#[derive(Debug)]
pub(super) struct TargetProbe {
    target: Target,
    ledger: Ledger,
    contract: SessionContract,
    /// Whether everything held once. Every execution verifies it again for itself.
    was_ready: AtomicBool,
    last: Mutex<Option<Found>>,
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
            last: Mutex::new(None),
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
            return timed_out();
        };
        let begun = Instant::now();
        if let Some(found) = last.as_ref().filter(|found| begun < found.fresh_until) {
            return found.state.clone();
        }
        let looked = tokio::time::timeout_at(deadline, self.look()).await;
        let state = match looked {
            Ok(Ok(warnings)) => SqlTargetState::Ready { warnings },
            Ok(Err(missing)) => SqlTargetState::Incomplete { missing },
            Err(_) => timed_out(),
        };
        let fresh_until = Instant::now() + begun.elapsed().max(STATUS_FRESH);
        *last = Some(Found { state: state.clone(), fresh_until });
        if matches!(state, SqlTargetState::Ready { .. }) {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        state
    }

    /// Opens a connection and looks at the ledger: what a step would meet. What is missing is an
    /// error, at least one thing; what an operator should know all the same is not.
    async fn look(&self) -> Result<Vec<Missing>, Vec<Missing>> {
        let mut connection =
            self.target.open(&self.contract).await.map_err(|error| {
                vec![Missing::new(error.code(), with_causes(&error), error.help())]
            })?;
        let shape = self.ledger.check_shape(&mut connection).await;
        let warnings = connection
            .warnings()
            .iter()
            .map(|warning| Missing::new(warning.code(), warning.to_string(), warning.help()))
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
    // Only a ledger that is not there is made; another shape is for a person.
    let help = match problem {
        ShapeProblem::Missing => "run `tollgate init target`",
        _ => "restore the definition in sql/factory_plugin_sql_target.sql with ALTER TABLE",
    };
    Missing::new(problem.code(), problem.to_string(), help)
}

fn timed_out() -> SqlTargetState {
    SqlTargetState::Incomplete {
        missing: vec![Missing::new(
            "target-timed-out",
            format!("the target was not verified within {} s", STATUS_BUDGET.as_secs()),
            "check that the server runs, and host, port and firewall",
        )],
    }
}
