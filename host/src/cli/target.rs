//! `tollgate target`: what an operator sets up on the target's server by hand.

use clap::{Args, Subcommand};
use tollgate::ids::Catalog;
use tollgate::target::{grants_sql, reader_grants_sql};

use super::{Exit, Failure, Global, Run, configuration, output};

/// Prepare the target's server
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(super) struct Target {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Grants(Grants),
}

/// Print the SQL that makes an account confined to the target's catalog
///
/// Nothing is connected to. User name, host and password in it are placeholders: put in your own,
/// then run it as an administrator of the server.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate target grants --catalog plugin_preview
  tollgate target grants > account.sql
  tollgate target grants --read-only        # for the account of `tollgate serve`

Exit codes:
  0  printed
  2  no catalog is configured or given")]
struct Grants {
    /// The catalog [default: the configured one]
    #[arg(long)]
    catalog: Option<Catalog>,
    /// For an account that only reads: enough for the status page
    #[arg(long)]
    read_only: bool,
}

impl Run for Target {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self.command {
            Command::Grants(grants) => grants.run(global),
        }
    }
}

impl Run for Grants {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let catalog = match self.catalog {
            Some(catalog) => catalog,
            None => configured(global)?,
        };
        let sql = if self.read_only { reader_grants_sql(&catalog) } else { grants_sql(&catalog) };
        output::print(&sql)?;
        Ok(Exit::Done)
    }
}

/// The configured catalog, also of a configuration that has no account yet.
fn configured(global: &Global) -> Result<Catalog, Failure> {
    let catalog = match configuration::read(global) {
        Ok(config) => config.sql_target.map(|target| target.catalog),
        Err(errors) => errors.partial().catalog.clone(),
    };
    catalog.ok_or_else(|| {
        Failure::usage("no catalog is configured").with_help("give `--catalog CATALOG`")
    })
}
