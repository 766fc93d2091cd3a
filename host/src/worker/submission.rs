//! What has to hold before a plan is enqueued: every step, in both directions, as its executor will
//! decide when it runs.

use std::fmt;

use crate::blame::Blame;
use crate::executor::{ExecutionError, ExecutorRegistry, ExecutorUnavailable, Outcome};
use crate::ids::{Direction, ExecutorCode, StepKey};
use crate::outbox::ExecutorChoice;
use crate::plan::{
    CatalogError, ContributionCatalog, Needs, Plan, PlannedStep, Refusal, Step, resolve,
};

/// One condition of one step that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProblem {
    /// The step, or its compensation.
    pub step: StepKey,
    /// What does not hold.
    pub refusal: Refusal,
}

impl fmt::Display for StepProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}`: {} (`{}`)", self.step, self.refusal.message, self.refusal.code)
    }
}

/// The plan cannot be enqueued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmissionError {
    /// Conditions that do not hold, of every step.
    #[error("the plan is refused: {} condition(s) do not hold", .0.len())]
    Refused(Vec<StepProblem>),
    /// No worker of this configuration could ever carry a step out.
    #[error("step `{step}` has no executor")]
    NoExecutor {
        /// The first such step.
        step: StepKey,
        /// Why.
        #[source]
        source: ExecutorUnavailable,
    },
    /// What is installed could not be found out.
    #[error("the release of step `{step}` could not be looked at")]
    Catalog {
        /// The step.
        step: StepKey,
        /// Why.
        #[source]
        source: CatalogError,
    },
    /// It could not be told whether a step would be allowed.
    #[error("it could not be told whether step `{step}` would be allowed")]
    Undecided {
        /// The step.
        step: StepKey,
        /// Why.
        #[source]
        source: Box<ExecutionError>,
    },
}

impl SubmissionError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "plan-refused",
            Self::NoExecutor { .. } => "executor-unavailable",
            Self::Catalog { .. } => "release-unavailable",
            Self::Undecided { .. } => "no-decision",
        }
    }

    /// Who can do something about it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Refused(_) => Blame::Plugin,
            Self::NoExecutor { .. } | Self::Catalog { .. } => Blame::Operator,
            Self::Undecided { source, .. } => source.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Refused(problems) => {
                let mut helps: Vec<&str> = Vec::new();
                for problem in problems {
                    if !helps.contains(&problem.refusal.help.as_str()) {
                        helps.push(&problem.refusal.help);
                    }
                }
                helps.join("; ")
            }
            Self::NoExecutor { source, .. } => source.help().to_owned(),
            Self::Catalog { .. } => "make the releases readable, then submit again".to_owned(),
            Self::Undecided { source, .. } => source.help(),
        }
    }
}

/// Checks every step of a plan, and every compensation it records, against what is installed now:
/// all that would be refused when it runs is told at once. Runs and writes nothing.
///
/// # Errors
///
/// Something does not hold, or it could not be told; see [`SubmissionError`].
pub async fn check_plan(
    plan: &Plan,
    executors: &ExecutorChoice,
    registry: &ExecutorRegistry,
    contributions: &dyn ContributionCatalog,
) -> Result<(), SubmissionError> {
    let mut problems = Vec::new();
    for planned in plan.steps() {
        let executor = executors.of(planned);
        if let Err(source) = registry.executor(&executor)
            // A target that is not ready now may be when the step runs.
            && !matches!(source, ExecutorUnavailable::TargetIncomplete(_))
        {
            return Err(SubmissionError::NoExecutor { step: planned.key.clone(), source });
        }
        for step in directions(planned) {
            let refusals = refusals(&step, &executor, registry, contributions).await?;
            problems.extend(
                refusals.into_iter().map(|refusal| StepProblem { step: step.key.clone(), refusal }),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(SubmissionError::Refused(problems)) }
}

/// Forward, and back where the plan says how.
fn directions(planned: &PlannedStep) -> impl Iterator<Item = Step> {
    [Direction::Forward, Direction::Compensate]
        .into_iter()
        .filter_map(|direction| planned.step(direction).ok())
}

async fn refusals(
    step: &Step,
    executor: &ExecutorCode,
    registry: &ExecutorRegistry,
    contributions: &dyn ContributionCatalog,
) -> Result<Vec<Refusal>, SubmissionError> {
    // An executor that has effects needs what `sql-jdbc:v1` needs: what the plan declared for good.
    let needs = if *executor == ExecutorCode::dry_run_v1() {
        Needs::Rehearsal
    } else {
        Needs::RepeatableSql
    };
    let resolution = resolve(step, contributions, needs)
        .await
        .map_err(|source| SubmissionError::Catalog { step: step.key.clone(), source })?;
    let mut refusals = resolution.refusals;
    let dry_run = registry
        .executor(&ExecutorCode::dry_run_v1())
        .map_err(|source| SubmissionError::NoExecutor { step: step.key.clone(), source })?;
    match dry_run.execute(step, contributions).await {
        Outcome::NotApplied { error: ExecutionError::Refused { refusals: found, .. }, .. } => {
            for refusal in found {
                if !refusals.iter().any(|known| known.code == refusal.code) {
                    refusals.push(refusal);
                }
            }
            Ok(refusals)
        }
        // What is refused is refused whatever else cannot be told.
        Outcome::NotApplied { error, .. } if refusals.is_empty() => {
            let source = Box::new(error);
            Err(SubmissionError::Undecided { step: step.key.clone(), source })
        }
        _ => Ok(refusals),
    }
}
