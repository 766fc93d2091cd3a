//! `tollgate execute`: one step, without a control side.

mod report;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tollgate::config::Config;
use tollgate::executor::{
    DryRunV1, ExecutionError, ExecutorRegistry, ExecutorUnavailable, Outcome, RegistryStatus,
    SqlTargetState,
};
use tollgate::ids::{Catalog, ContributionKey, Direction, ExecutorCode, StepKey};
use tollgate::ledger::Receipt;
use tollgate::plan::{
    Declaration, FolderCatalog, InstalledRelease, Payload, ReleaseError, Reversed, Step,
    read_release,
};
use tollgate::target::{SessionContract, Target};

use self::report::Report;
pub(super) use self::report::findings;
use super::receipts::{self, Way};
use super::sandbox::{RuntimeArguments, StoreArguments};
use super::{Exit, Failure, Global, Run, configuration, output, releases, sandbox};

/// The catalog a dry run decides for while no target is configured.
const REHEARSAL_CATALOG: &str = "plugin_preview";

/// Run one step of a plugin release, without a control side
///
/// What a published plan would record is taken from the release as it is installed now. Run the
/// same command again and the same receipt comes back, with nothing run; a worker redelivers a step
/// in just this way.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate execute plugins/loyalty-1.0.0 tiers --step-key loyalty-1.0.0:tiers
  tollgate execute plugins/loyalty-1.0.0 tiers --step-key loyalty-1.0.0:tiers:back \\
      --direction compensate --reverses loyalty-1.0.0:tiers
  tollgate execute plugins/loyalty-1.0.0 tiers --step-key try --executor dry-run:v1

Exit codes:
  0  applied, now or earlier; of a dry run: it would be
  1  not applied, or the target is not ready
  2  usage or configuration, a release folder that cannot be read included
  3  it could not be told whether it was applied: run the same command again
  4  a pin or a digest does not match")]
pub(super) struct Execute {
    /// Folder with plugin.toml and the files it names
    #[arg(value_name = "RELEASE_FOLDER")]
    folder: PathBuf,
    /// Contribution to apply
    #[arg(value_name = "CONTRIBUTION_KEY")]
    contribution: ContributionKey,
    /// Idempotency key of the step: the same for every delivery of it, another for every other step
    #[arg(long, value_name = "KEY")]
    step_key: StepKey,
    /// Apply the contribution, or take it back
    #[arg(long, value_enum, default_value_t)]
    direction: Way,
    /// Of a compensation: the key the forward step was run under
    #[arg(long, value_name = "FORWARD_KEY", required_if_eq("direction", "compensate"))]
    reverses: Option<StepKey>,
    /// Executor that runs it [default: the configured one]
    #[arg(long, value_name = "CODE")]
    executor: Option<ExecutorCode>,
    /// How to report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Human,
    /// One object on one line
    Json,
}

impl Run for Execute {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        if self.reverses.is_some() && self.direction == Way::Forward {
            return Err(Failure::usage("`--reverses` goes with `--direction compensate`")
                .with_help("leave it out, or add `--direction compensate`"));
        }
        let config = configuration::read(global)?;
        let executor = self.executor.clone().unwrap_or_else(|| config.executor.clone());
        releases::is_folder(&self.folder, "name the folder that holds the release's plugin.toml")?;
        let release = read_release(&self.folder)?;
        let step = step(
            &release,
            &self.contribution,
            self.step_key.clone(),
            self.direction.into(),
            self.reverses.clone(),
        )?;
        let carrying_out = self.carry_out(&config, &executor, &step);
        let carried_out = configuration::block_on(carrying_out)??;
        let payload = release
            .contribution(&self.contribution)
            .and_then(|contribution| contribution.payload(step.direction));
        let path = format!("{}:{}", self.folder.display(), self.contribution);
        let report = Report {
            step: &step,
            executor: &executor,
            carried_out: &carried_out,
            payload: payload.map_or(&[], Payload::bytes),
            path: &path,
        };
        output::print(&match self.format {
            Format::Human => report.human(),
            Format::Json => report.json(),
        })?;
        Ok(exit(&carried_out.outcome))
    }
}

/// What came of it, and what there is to show about it.
pub(super) struct CarriedOut {
    pub(super) outcome: Outcome,
    /// Of a dry run: the statements that would run.
    pub(super) rehearsed: Vec<String>,
    /// What the ledger says afterwards.
    pub(super) receipt: Option<Receipt>,
}

impl Execute {
    async fn carry_out(
        &self,
        config: &Config,
        executor: &ExecutorCode,
        step: &Step,
    ) -> Result<CarriedOut, Failure> {
        if *executor == ExecutorCode::dry_run_v1() {
            return self.rehearse(config, step).await;
        }
        let registry =
            ExecutorRegistry::open(config, &self.store.open()?, &self.runtime.start()?).await?;
        let executor = match registry.executor(executor) {
            Ok(executor) => executor,
            Err(error) => return Err(unavailable(error, &registry.status().await)),
        };
        let outcome = executor.execute(step, &FolderCatalog::single(&self.folder)).await;
        Ok(CarriedOut { outcome, rehearsed: Vec::new(), receipt: receipt(config, &step.key).await })
    }

    async fn rehearse(&self, config: &Config, step: &Step) -> Result<CarriedOut, Failure> {
        let sql = ExecutorCode::sql_jdbc_v1();
        let policy = sandbox::load_pinned(&self.runtime.start()?, &self.store.open()?, &sql)?;
        let catalog = match &config.sql_target {
            Some(target) => target.catalog.clone(),
            None => REHEARSAL_CATALOG.parse::<Catalog>().map_err(Failure::usage)?,
        };
        let dry_run = DryRunV1::new(policy, catalog);
        let rehearsal = dry_run.rehearse(step, &FolderCatalog::single(&self.folder)).await;
        let (outcome, rehearsed) = match rehearsal {
            Ok(report) => (
                Outcome::Applied(report.receipt().clone()),
                report.statements().iter().map(|statement| statement.text.clone()).collect(),
            ),
            Err(error) => {
                let retryable = error.is_retryable();
                (Outcome::NotApplied { error, retryable }, Vec::new())
            }
        };
        Ok(CarriedOut { outcome, rehearsed, receipt: None })
    }
}

/// The step that a plan of schema 1.2, published from this very release, would carry.
pub(super) fn step(
    release: &InstalledRelease,
    contribution: &ContributionKey,
    key: StepKey,
    direction: Direction,
    reverses: Option<StepKey>,
) -> Result<Step, Failure> {
    let Some(contribution) = release.contribution(contribution) else {
        let keys: Vec<String> =
            release.contributions().iter().map(|it| format!("`{}`", it.key)).collect();
        return Err(Failure::usage(format!(
            "`{}` has no contribution `{contribution}`",
            release.release()
        ))
        .with_help(format!("it has {}", keys.join(", "))));
    };
    let Some(payload) = contribution.payload(direction) else {
        return Err(Failure::usage(format!(
            "contribution `{}` has no compensation payload",
            contribution.key
        ))
        .with_help("name its file in plugin.toml: `compensation = \"compensate.sql\"`"));
    };
    Ok(Step {
        key,
        direction,
        release: release.release().clone(),
        contribution: contribution.key.clone(),
        kind: contribution.kind.clone(),
        target: contribution.target.clone(),
        content_hash: payload.content_hash(),
        reverses: reverses
            .map(|key| Reversed { key, content_hash: contribution.forward.content_hash() }),
        declaration: Some(Declaration {
            idempotent: contribution.idempotent,
            publication_fingerprint: release.publication_fingerprint(),
        }),
    })
}

/// The receipt as the ledger has it now. What came of the step is known already, so a ledger that
/// cannot be read now takes nothing away but these lines.
async fn receipt(config: &Config, key: &StepKey) -> Option<Receipt> {
    let target = config.sql_target.as_ref()?;
    let reading = Target::new(target).read_only();
    let mut connection = reading.open(&SessionContract::default()).await.ok()?;
    let receipt = receipts::ledger(target).read(&mut connection, key).await;
    connection.close().await;
    receipt.ok().flatten()
}

/// Why there is no such executor: of a target that is not ready, everything that is missing.
fn unavailable(error: ExecutorUnavailable, status: &RegistryStatus) -> Failure {
    let exit = match error {
        ExecutorUnavailable::TargetIncomplete(_) => Exit::NOT_READY,
        ExecutorUnavailable::Unknown(_) | ExecutorUnavailable::TargetDisabled(_) => Exit::Usage,
    };
    let help = error.help();
    let SqlTargetState::Incomplete { missing } = &status.sql_target else {
        return Failure::new(exit, error).with_help(help);
    };
    let missing: Vec<String> = missing
        .iter()
        .map(|missing| {
            format!("\n  {}: {}\n    help: {}", missing.key, missing.message, missing.help)
        })
        .collect();
    Failure::new(exit, format!("{error}{}", missing.concat())).with_help("run `tollgate doctor`")
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Applied(_) => Exit::Done,
        // The policy gave no answer: not a refusal.
        Outcome::NotApplied { error: ExecutionError::NoDecision(_), .. } => Exit::NoDecision,
        Outcome::NotApplied { .. } => Exit::NOT_APPLIED,
        Outcome::Indeterminate { .. } => Exit::INDETERMINATE,
    }
}

impl From<ReleaseError> for Failure {
    fn from(error: ReleaseError) -> Self {
        let helps: Vec<&str> = error.problems.iter().map(|problem| problem.help.as_str()).collect();
        let help = helps.join("; ");
        Self::usage(error).with_help(help)
    }
}
