//! `tollgate policy`: the store and its components. One file per subcommand.

mod about;
mod build;
mod component_file;
mod diff;
mod inspect;
mod list;
mod made;
mod pin;
mod pins_file;
mod place_name;
mod publish;
mod pull;
mod store_lock;

use clap::{Args, Subcommand, ValueEnum};

use super::{Exit, Failure, Global, Run};

/// Look at, compare, pin, build, publish and pull policy components
#[derive(Debug, Args)]
pub(super) struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Inspect(inspect::Inspect),
    Diff(diff::Diff),
    Pin(pin::Pin),
    Build(build::Build),
    Publish(publish::Publish),
    Pull(pull::Pull),
}

impl Run for Policy {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self.command {
            Command::List(list) => list.run(global),
            Command::Inspect(inspect) => inspect.run(global),
            Command::Diff(diff) => diff.run(global),
            Command::Pin(pin) => pin.run(global),
            Command::Build(build) => build.run(global),
            Command::Publish(publish) => publish.run(global),
            Command::Pull(pull) => pull.run(global),
        }
    }
}

/// How a listing is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Human,
    /// One object a line
    Json,
}
