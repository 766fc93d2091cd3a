//! `tollgate receipts`

mod export;
mod prune;
mod table;

use std::io::Write as _;

use clap::{Args, Subcommand, ValueEnum};
use tollgate::config::SqlTargetConfig;
use tollgate::ids::{Direction, EnvironmentCode, PluginCode, StepKey};
use tollgate::ledger::{
    Filter, Ledger, LedgerOptions, ListError, PAGE_SIZE_MAX, Page, ReadError, Receipt, Standing,
    UnreadableRow,
};
use tollgate::target::{SessionContract, Target, TargetConnection};

use super::{Exit, Failure, Global, Run, configuration, output};

pub(super) use table::table;

/// List the receipts of the target's ledger, the youngest first
///
/// The state is what can honestly be said now: a RUNNING row whose lease is over is not "running".
/// Pages are by key: receipts that are added while you page shift nothing.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tollgate receipts
  tollgate receipts --state failed --plugin loyalty
  tollgate receipts --limit 100 --before 4711
  tollgate receipts --key order-7:1 --format json
  tollgate receipts prune --older-than 365
  tollgate receipts export --releases plugins

States:
  running                 a holder's lease is open
  lease-expired           the lease ended without a result; its holder is not known
  possibly-still-running  the lease ended, the holder's session is still on the server
  succeeded               done, for good
  not-applicable          a compensation of a step that never ran
  failed                  the last attempt failed; tried again while its step is PENDING, see
                          `tollgate outbox`
  needs-attention         started as often as it may be; a person has to look
  pruned                  done long ago; its receipt was made small

Exit codes:
  0  listed
  1  the target is not ready, or no receipt has the key
  2  usage or configuration"
)]
pub(super) struct Receipts {
    /// The receipt of this step only
    #[arg(long, conflicts_with_all = ["environment", "plugin", "direction", "state", "before", "all"])]
    key: Option<StepKey>,
    /// Of this environment only
    #[arg(long, value_name = "CODE")]
    environment: Option<EnvironmentCode>,
    /// Of this plugin only
    #[arg(long, value_name = "CODE")]
    plugin: Option<PluginCode>,
    /// Of this direction only: forward or compensate
    #[arg(long, value_enum)]
    direction: Option<Way>,
    /// In this state only
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Receipts on a page, 1 to 500
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_SIZE_MAX)))]
    limit: u32,
    /// Start below this receipt, as the page before says
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
    /// Every page, one after the other
    #[arg(long)]
    all: bool,
    /// How to print them
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Prune(prune::Prune),
    Export(export::Export),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// A table
    #[default]
    Human,
    /// One object a line
    Json,
}

/// A direction as it is written on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Way {
    /// What a contribution applies
    #[default]
    Forward,
    /// What takes it back
    Compensate,
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::Forward => Self::Forward,
            Way::Compensate => Self::Compensate,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    Running,
    LeaseExpired,
    PossiblyStillRunning,
    Succeeded,
    NotApplicable,
    Failed,
    NeedsAttention,
    Pruned,
}

impl From<State> for Standing {
    fn from(state: State) -> Self {
        match state {
            State::Running => Self::Running,
            State::LeaseExpired => Self::LeaseExpired,
            State::PossiblyStillRunning => Self::PossiblyStillRunning,
            State::Succeeded => Self::Succeeded,
            State::NotApplicable => Self::NotApplicable,
            State::Failed => Self::Failed,
            State::NeedsAttention => Self::NeedsAttention,
            State::Pruned => Self::Pruned,
        }
    }
}

impl Run for Receipts {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let target = configuration::sql_target(&config)?;
        match &self.command {
            Some(Command::Prune(prune)) => configuration::block_on(prune.run(target))?,
            Some(Command::Export(export)) => configuration::block_on(export.run(target))?,
            None => configuration::block_on(self.show(target))?,
        }
    }
}

impl Receipts {
    async fn show(&self, config: &SqlTargetConfig) -> Result<Exit, Failure> {
        let ledger = ledger(config);
        let mut connection =
            Target::new(config).read_only().open(&SessionContract::default()).await?;
        let shown = match &self.key {
            Some(key) => self.one(&ledger, &mut connection, key).await,
            None => self.pages(&ledger, &mut connection).await,
        };
        connection.close().await;
        shown
    }

    async fn one(
        &self,
        ledger: &Ledger,
        connection: &mut TargetConnection,
        key: &StepKey,
    ) -> Result<Exit, Failure> {
        let Some(receipt) = ledger.read(connection, key).await? else {
            return Err(unknown(key));
        };
        output::print(&match self.format {
            Format::Human => table::details(&receipt),
            Format::Json => output::json_line(&receipt),
        })?;
        Ok(Exit::Done)
    }

    async fn pages(
        &self,
        ledger: &Ledger,
        connection: &mut TargetConnection,
    ) -> Result<Exit, Failure> {
        let filter = Filter {
            environment: self.environment.clone(),
            plugin: self.plugin.clone(),
            direction: self.direction.map(Direction::from),
            standing: self.state.map(Standing::from),
        };
        let mut before = self.before;
        loop {
            let page = ledger.list(connection, &filter, before, self.limit).await?;
            let Page { receipts, next, unreadable, .. } = page;
            output::print(&self.page(&receipts))?;
            tell_unreadable(&unreadable)?;
            before = next;
            match before {
                None => return Ok(Exit::Done),
                Some(_) if self.all => {}
                Some(id) => {
                    // Not among the receipts: a reader of standard output takes every line as one.
                    writeln!(std::io::stderr(), "older receipts: add `--before {id}`")?;
                    return Ok(Exit::Done);
                }
            }
        }
    }

    fn page(&self, receipts: &[Receipt]) -> String {
        match self.format {
            Format::Human if receipts.is_empty() => "no receipts\n".to_owned(),
            Format::Human => table(receipts),
            Format::Json => receipts.iter().map(output::json_line).collect(),
        }
    }
}

/// The ledger with the bounds an executor of this configuration has: the states depend on them.
pub(super) fn ledger(config: &SqlTargetConfig) -> Ledger {
    Ledger::new(LedgerOptions {
        executions_max: config.bounds.execution_count_max,
        ..LedgerOptions::default()
    })
}

/// No receipt has this key.
pub(super) fn unknown(key: &StepKey) -> Failure {
    Failure::new(Exit::NOT_READY, format!("no receipt has the key `{key}`"))
        .with_help("run `tollgate receipts` to see what is there")
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

/// Rows that are left out, on standard error: a reader of standard output takes every line as a receipt.
fn tell_unreadable(rows: &[UnreadableRow]) -> std::io::Result<()> {
    for UnreadableRow { id, column, .. } in rows {
        writeln!(
            std::io::stderr(),
            "row {id} is left out: its `{column}` does not read as this version writes it"
        )?;
    }
    Ok(())
}
