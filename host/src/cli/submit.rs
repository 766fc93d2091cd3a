//! `tollgate submit`: check a plan and enqueue it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use tollgate::config::{Config, ControlConfig};
use tollgate::control::Control;
use tollgate::executor::ExecutorRegistry;
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::outbox::{ExecutorChoice, Outbox, SubmitError, Submitted};
use tollgate::plan::{FolderCatalog, Plan, PlanError, RefusalCode};
use tollgate::worker::{StepProblem, SubmissionError, check_plan};

use super::sandbox::{RuntimeArguments, StoreArguments};
use super::{Exit, Failure, Global, Run, configuration, output, releases};

/// Check a transition plan and enqueue its steps
///
/// Every step, and every compensation the plan records, is checked as its executor will when it
/// runs: the plan's version, what is installed, the policy. All that does not hold is told at once,
/// and then nothing is enqueued. SQL contributions go to the configured executor, all others to
/// `dry-run:v1`. The plan belongs to the configured environment from then on: only workers of that
/// environment carry it out. Submitting the same plan again changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate submit plans/loyalty-1.0.0.json --releases plugins
  tollgate submit rehearsal.json --releases plugins --executor dry-run:v1

A plan stays with the executor it was submitted for: to rehearse one first,
publish it under another code, or use `tollgate execute --executor dry-run:v1`.

Exit codes:
  0  enqueued, now or earlier
  1  refused, or the control catalog is not reached; nothing is enqueued
  2  usage or configuration; a document that is no plan, or no folder of releases
  3  it could not be told whether a step would be allowed: submit again
  4  a pin or a digest does not match")]
pub(super) struct Submit {
    /// Plan document (JSON)
    #[arg(value_name = "PLAN_FILE")]
    plan: PathBuf,
    /// Folder with the installed releases, each at <plugin code>/<version>
    #[arg(long, value_name = "DIR", env = "TOLLGATE_RELEASES")]
    releases: PathBuf,
    /// Executor of SQL contributions [default: the configured one]
    #[arg(long, value_name = "CODE")]
    executor: Option<ExecutorCode>,
    /// Report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Submit {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let control = configuration::control(&config)?;
        let releases = releases::tree(&self.releases)?;
        let document = std::fs::read(&self.plan).map_err(|error| {
            Failure::usage(format!("`{}` cannot be read: {error}", self.plan.display()))
        })?;
        let plan = Plan::parse(&document)?;
        let sql = self.executor.clone().unwrap_or_else(|| config.executor.clone());
        let executors = ExecutorChoice { sql };
        let submitted =
            configuration::block_on(self.submit(&config, control, &plan, &executors, &releases))??;
        output::print(&if self.json { json(&plan, &submitted) } else { human(&plan, &submitted) })?;
        Ok(Exit::Done)
    }
}

impl Submit {
    async fn submit(
        &self,
        config: &Config,
        control: &ControlConfig,
        plan: &Plan,
        executors: &ExecutorChoice,
        releases: &FolderCatalog,
    ) -> Result<Submitted, Failure> {
        let registry =
            ExecutorRegistry::open(config, &self.store.open()?, &self.runtime.start()?).await?;
        match check_plan(plan, executors, &registry, releases).await {
            Err(SubmissionError::Refused(mut problems)) => {
                name_files(&mut problems, plan, releases, config);
                return Err(SubmissionError::Refused(problems).into());
            }
            checked => checked?,
        }
        enqueue(&Outbox::of(config), control, plan, executors).await
    }
}

/// Puts the file and the whole command into the help of what the policy denies.
fn name_files(
    problems: &mut [StepProblem],
    plan: &Plan,
    releases: &FolderCatalog,
    config: &Config,
) {
    let directions = [Direction::Forward, Direction::Compensate];
    let catalog = config.sql_target.as_ref().map(|it| format!("--catalog {} ", it.catalog));
    let catalog = catalog.unwrap_or_default();
    for problem in problems.iter_mut().filter(|it| it.refusal.code == RefusalCode::PolicyDenied) {
        let mut steps = plan
            .steps()
            .iter()
            .flat_map(|planned| directions.iter().filter_map(|way| planned.step(*way).ok()));
        let step = steps.find(|step| step.key == problem.step);
        if let Some(file) = step.and_then(|step| releases.payload_file(&step)) {
            problem.refusal.help = format!(
                "run `tollgate check {catalog}{}`: it shows each place and what to write instead",
                file.display()
            );
        }
    }
}

/// Enqueues a plan that was checked.
pub(super) async fn enqueue(
    outbox: &Outbox,
    control: &ControlConfig,
    plan: &Plan,
    executors: &ExecutorChoice,
) -> Result<Submitted, Failure> {
    let mut connection = Control::new(control).open().await?;
    let submitted = outbox.submit(&mut connection, plan, executors).await;
    connection.close().await;
    Ok(submitted?)
}

/// What was enqueued, for people.
pub(super) fn human(plan: &Plan, submitted: &Submitted) -> String {
    match submitted {
        Submitted::Enqueued { step_count } => format!(
            "plan `{}` is enqueued: {step_count} step(s)\nnext: `tollgate work`\n",
            plan.code()
        ),
        Submitted::Already { counts } => {
            let counts: Vec<String> =
                counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!(
                "plan `{}` was submitted before: {}\nnext: `tollgate outbox {}`\n",
                plan.code(),
                counts.join(", "),
                plan.code()
            )
        }
    }
}

fn json(plan: &Plan, submitted: &Submitted) -> String {
    let (enqueued, counts) = match submitted {
        Submitted::Enqueued { step_count } => (*step_count, None),
        Submitted::Already { counts } => (0, Some(counts)),
    };
    output::json_line(&serde_json::json!({
        "plan": plan.code(),
        "fingerprint": plan.fingerprint(),
        "alreadySubmitted": counts.is_some(),
        "enqueued": enqueued,
        "counts": counts,
    }))
}

fn listed(problems: &[StepProblem]) -> String {
    let mut text = String::new();
    for problem in problems {
        let _ = write!(text, "\n  {problem}\n    help: {}", problem.refusal.help);
    }
    text
}

impl From<SubmissionError> for Failure {
    fn from(error: SubmissionError) -> Self {
        let (help, text) = (error.help(), error.to_string());
        match error {
            SubmissionError::Refused(problems) => {
                Self::new(Exit::NOT_APPLIED, format!("{text}{}", listed(&problems)))
                    .with_help("nothing is enqueued; mend all of it, then submit again")
            }
            SubmissionError::Undecided { .. } => Self::new(Exit::NoDecision, error).with_help(help),
            _ => Self::usage(error).with_help(help),
        }
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_APPLIED, error).with_help(help)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let help = error.help();
        let PlanError::Contradiction(problems) = &error else {
            return Self::usage(error).with_help(help);
        };
        let listed: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
        Self::usage(format!("{error}{}", listed.concat())).with_help(help)
    }
}
