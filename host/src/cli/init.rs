//! `tollgate init`: applies the scripts that have to be there before anything runs.

use clap::{Args, Subcommand};
use tollgate::config::{Config, ControlConfig, SqlTargetConfig};
use tollgate::control::{Control, ControlError};
use tollgate::ledger::{BootstrapError, Ledger, SCHEMA_VERSION, bootstrap};
use tollgate::outbox::{self, ControlBootstrapError, Outbox};
use tollgate::target::{SessionContract, Target, TargetConnection, TargetError};

use super::{Exit, Failure, Global, Run, configuration, output};

/// Apply and verify the scripts Tollgate needs
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(super) struct Init {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Control(InitControl),
    Target(InitTarget),
}

/// Create the outbox in the control catalog and verify it
///
/// Applies `sql/factory_plugin_control_outbox.sql` with the control account. Safe to repeat: an
/// outbox that is there is verified and left as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate init control

Exit codes:
  0  the outbox is there and has its shape
  1  the control catalog is not reached, or its outbox has another shape
  2  usage or configuration")]
struct InitControl {}

/// Create the receipt ledger in the target's catalog and verify it
///
/// Applies `sql/factory_plugin_sql_target.sql` over a connection that passed every isolation check.
/// Safe to repeat: a ledger that is there is verified and left as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate init target
  tollgate init target --config /etc/tollgate.toml

Exit codes:
  0  the ledger is there and has its shape
  1  the target is not ready: not reached, not isolated, or its ledger has another shape
  2  usage or configuration")]
struct InitTarget {}

impl Run for Init {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self.command {
            Command::Control(control) => control.run(global),
            Command::Target(target) => target.run(global),
        }
    }
}

impl Run for InitControl {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let control = configuration::control(&config)?;
        let what = match configuration::block_on(prepare_control(control))?? {
            Prepared::Created => "created",
            Prepared::WasThere => "was there already and has its shape",
        };
        // Without a target there is no ledger to make: plans are rehearsed.
        let next = match config.sql_target {
            Some(_) => "`tollgate init target`",
            None => "`tollgate submit PLAN.json --releases DIR`",
        };
        output::print(&format!(
            "the control outbox {what} (schema version {})\nnext: {next}\n",
            outbox::SCHEMA_VERSION
        ))?;
        Ok(Exit::Done)
    }
}

/// Creates and verifies the outbox.
pub(super) async fn prepare_control(config: &ControlConfig) -> Result<Prepared, Failure> {
    let mut connection = Control::new(config).open().await?;
    let prepared = outbox::bootstrap(&mut connection).await;
    connection.close().await;
    Ok(if prepared? { Prepared::Created } else { Prepared::WasThere })
}

impl Run for InitTarget {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let target = configuration::sql_target(&config)?;
        let (what, next) = match configuration::block_on(prepare(target))?? {
            Prepared::Created => {
                let was_used = configuration::block_on(was_used(&config, &target.control))?;
                ("created", if was_used { AFTER_A_LOSS } else { "`tollgate status`" })
            }
            Prepared::WasThere => ("was there already and has its shape", "`tollgate status`"),
        };
        output::print(&format!(
            "the receipt ledger in `{}` {what} (schema version {SCHEMA_VERSION})\nnext: {next}\n",
            target.catalog
        ))?;
        Ok(Exit::Done)
    }
}

/// What comes after a new ledger on a target that had one.
const AFTER_A_LOSS: &str = "this target was used before: restore the table's rows from a backup if there is \
     one, then `tollgate outbox reconcile`";

/// Whether the outbox has steps that were applied on this target. One that is not there or cannot be read
/// does not tell.
async fn was_used(config: &Config, control: &ControlConfig) -> bool {
    let Ok(mut connection) = Control::new(control).read_only().open().await else { return false };
    let applied = Outbox::of(config).applied_sql(&mut connection, 0, 1).await;
    connection.close().await;
    applied.is_ok_and(|steps| !steps.is_empty())
}

/// What was found of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prepared {
    Created,
    WasThere,
}

/// Creates and verifies the ledger.
pub(super) async fn prepare(config: &SqlTargetConfig) -> Result<Prepared, Failure> {
    let mut connection = Target::new(config).open(&SessionContract::default()).await?;
    let prepared = prepare_on(&mut connection).await;
    connection.close().await;
    Ok(prepared?)
}

async fn prepare_on(connection: &mut TargetConnection) -> Result<Prepared, BootstrapError> {
    let is_missing = match Ledger::default().check_shape(connection).await {
        Ok(()) => return Ok(Prepared::WasThere),
        Err(error) => error.is_missing(),
    };
    bootstrap(connection).await?;
    Ok(if is_missing { Prepared::Created } else { Prepared::WasThere })
}

impl From<BootstrapError> for Failure {
    fn from(error: BootstrapError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

impl From<ControlBootstrapError> for Failure {
    fn from(error: ControlBootstrapError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
