//! `tollgate man`

use clap::{Args, CommandFactory as _};

use super::{CommandLine, Exit, Failure, Global, Run, output};

/// Print the manual page, of Tollgate or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate man | man -l -
  tollgate man policy inspect > tollgate-policy-inspect.1")]
pub(super) struct Man {
    /// The command whose page it is, such as `policy inspect`
    command: Vec<String>,
}

impl Run for Man {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let mut root = CommandLine::command();
        root.build();
        let mut command = root;
        for name in &self.command {
            let Some(found) = command.find_subcommand(name) else {
                return Err(Failure::usage(format!("there is no command `{name}`"))
                    .with_help("see `tollgate help`"));
            };
            command = found.clone();
        }
        let title = command.get_bin_name().unwrap_or("tollgate").replace(' ', "-");
        let mut page = Vec::new();
        clap_mangen::Man::new(command.display_name(title.clone()))
            .title(title.to_uppercase())
            .render(&mut page)?;
        output::print(&String::from_utf8_lossy(&page))?;
        Ok(Exit::Done)
    }
}
