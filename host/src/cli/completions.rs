//! `tollgate completions`

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{CommandLine, Exit, Failure, Global, Run, output};

/// Print shell completions
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate completions bash > ~/.local/share/bash-completion/completions/tollgate
  tollgate completions zsh > ~/.zfunc/_tollgate")]
pub(super) struct Completions {
    /// The shell to print them for
    shell: Shell,
}

impl Run for Completions {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "tollgate", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
