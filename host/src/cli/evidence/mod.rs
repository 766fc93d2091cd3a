//! `tollgate evidence`: decisions as single files that anyone can verify. One file per subcommand.

mod export;
mod verify;

use clap::{Args, Subcommand};

use super::{Exit, Failure, Global, Run};

/// Make and verify evidence of decisions
#[derive(Debug, Args)]
pub(super) struct Evidence {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Export(export::Export),
    Verify(verify::Verify),
}

impl Run for Evidence {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self.command {
            Command::Export(export) => export.run(global),
            Command::Verify(verify) => verify.run(global),
        }
    }
}
