//! `tollgate outbox reconcile`

use std::fmt::Write as _;

use clap::Args;
use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::ids::Direction;
use tollgate::outbox::{ListedStep, Outbox};
use tollgate::target::Target;
use tollgate::worker::{ReconcileError, reconcile};

use super::{Exit, Failure, configuration, output, receipts};

/// Find applied steps that the target's ledger does not know
///
/// After a failover to a replica that was behind, or from a backup, the target may have lost what the
/// outbox counts as applied. Compares every SQL step applied in the configured environment with its
/// ledger, and writes nothing. What a compensation took back is not missed. Each step comes with the
/// command that carries it out again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate outbox reconcile
  tollgate outbox reconcile --json

Exit codes:
  0  the ledger knows every applied step
  1  it does not, or one of the sides was not read
  2  usage or configuration")]
pub(super) struct Reconcile {
    /// One object a line: the steps the ledger does not know
    #[arg(long)]
    json: bool,
}

impl Reconcile {
    pub(super) fn run(&self, config: &Config) -> Result<Exit, Failure> {
        let control = Control::new(configuration::control(config)?);
        let sql_target = configuration::sql_target(config)?;
        let (target, ledger) = (Target::new(sql_target), receipts::ledger(sql_target));
        let unknown =
            configuration::block_on(reconcile(&Outbox::of(config), &control, &target, &ledger))??;
        if self.json {
            output::print(&unknown.iter().map(output::json_line).collect::<String>())?;
        } else if unknown.is_empty() {
            output::print("the ledger knows every applied step\n")?;
        } else {
            output::print(&human(&unknown))?;
        }
        Ok(if unknown.is_empty() { Exit::Done } else { Exit::NOT_READY })
    }
}

/// Each step with its time and the command that carries it out again under its own key: after that,
/// the ledger knows it.
fn human(unknown: &[ListedStep]) -> String {
    let mut text =
        format!("{} applied step(s) without a receipt: what they did may be lost\n", unknown.len());
    for step in unknown {
        let completed = step.completed_at.as_deref().unwrap_or("at an unknown time");
        let _ = writeln!(text, "\n{}  {}, applied {completed}", step.step_key, step.direction);
        let _ = writeln!(text, "    again:    {}", again(step));
        if step.direction == Direction::Forward {
            let _ = writeln!(text, "    or back:  tollgate compensate {}", step.plan);
        }
    }
    text.push_str(
        "\nLook at the target first. Carry the steps out again in this order, or take their plans back \
         (each of\nthese compensations waits for your `tollgate outbox retry`); then run `tollgate outbox \
         reconcile` again.\n",
    );
    text
}

/// The command; only the folder of the releases is not known here.
fn again(step: &ListedStep) -> String {
    let ListedStep { release, contribution_key, executor, step_key, .. } = step;
    let reverses = step.reverses.as_ref();
    let back = reverses.map(|key| format!(" --direction compensate --reverses {key}"));
    format!(
        "tollgate execute <releases>/{}/{} {contribution_key} --step-key {step_key} \
         --executor {executor}{}",
        release.code,
        release.version,
        back.unwrap_or_default()
    )
}

impl From<ReconcileError> for Failure {
    fn from(error: ReconcileError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
