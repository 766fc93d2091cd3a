//! `tollgate outbox reconcile`

use clap::Args;
use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::outbox::Outbox;
use tollgate::target::Target;
use tollgate::worker::{ReconcileError, reconcile};

use super::outbox::table;
use super::{Exit, Failure, configuration, output, receipts};

/// Find applied steps that the target's ledger does not know
///
/// After a failover to a replica that was behind, or from a backup, the target may have lost what the
/// outbox counts as applied. Compares every SQL step applied in the configured environment with its ledger, and writes nothing.
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
            let count = unknown.len();
            output::print(&format!(
                "{count} applied step(s) without a receipt: what they did may be lost\n\n{}\n\
                 look at the target, then take their plans back (each of these compensations waits for your \
                 `tollgate outbox retry`) and submit new ones\n",
                table(&unknown)
            ))?;
        }
        Ok(if unknown.is_empty() { Exit::Done } else { Exit::NOT_READY })
    }
}

impl From<ReconcileError> for Failure {
    fn from(error: ReconcileError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
