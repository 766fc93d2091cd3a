//! The command line: one file per command, and what they share.
//!
//! A command is a `clap::Args` struct with its help text as documentation, an implementation of
//! [`Run`], and one line in [`commands!`] below (with the `mod` line above it).

mod check;
mod collector;
mod compensate;
mod completions;
mod configuration;
mod demo;
mod doctor;
mod evidence;
mod execute;
mod exposure;
mod failure;
mod init;
mod log;
mod man;
mod outbox;
mod output;
mod payloads;
mod policy;
mod receipts;
mod reconcile;
mod releases;
mod replace;
mod sandbox;
mod secrecy;
mod serve;
mod signals;
mod status;
mod submit;
mod target;
mod until;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

pub(crate) use failure::{Exit, Failure};

/// A command of the command line.
trait Run {
    /// Does it. What it prints goes to standard output; a failure is printed by the caller.
    fn run(self, global: &Global) -> Result<Exit, Failure>;
}

/// Lists the commands: their names on the command line come from the left, their help and arguments
/// from the right.
macro_rules! commands {
    ($($name:ident($arguments:ty),)*) => {
        #[derive(Debug, Subcommand)]
        enum Command { $($name($arguments),)* }

        impl Command {
            fn run(self, global: &Global) -> Result<Exit, Failure> {
                match self { $(Self::$name(arguments) => arguments.run(global),)* }
            }
        }
    };
}

commands! {
    Demo(demo::Demo),
    Check(check::Check),
    Submit(submit::Submit),
    Work(work::Work),
    Compensate(compensate::Compensate),
    Outbox(outbox::Outbox),
    Execute(execute::Execute),
    Status(status::Status),
    Receipts(receipts::Receipts),
    Evidence(evidence::Evidence),
    Serve(serve::Serve),
    Doctor(doctor::Doctor),
    Init(init::Init),
    Target(target::Target),
    Policy(policy::Policy),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs plugin-supplied SQL on an isolated MySQL catalog: a policy decides, a host executes, a
/// receipt proves it
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXIT_CODES
)]
struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done; for a check: everything is allowed
  1  something is denied, not applied or not ready
  2  usage or configuration
  3  it could not be told: no decision, or an outcome that is not known
  4  a pin or a digest does not match
  5  a worker was told to stop and dropped steps; they are delivered again
  6  a worker has nothing left to do, and a step it delivered needs a person";

/// What every command takes.
#[derive(Debug, Args)]
struct Global {
    /// Configuration file (TOML); environment variables win over it
    #[arg(long, global = true, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    config: Option<PathBuf>,
}

/// Parses the arguments, runs the command, reports.
pub(crate) fn main() -> ExitCode {
    secrecy::keep();
    tollgate::fault_points::arm();
    let CommandLine { global, command } = CommandLine::parse();
    let collector = log::begin(&command);
    let code = match command.run(&global) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    };
    collector.end();
    code
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_and_an_example() {
        fn visit(command: &clap::Command, path: &str) {
            for command in command.get_subcommands().filter(|command| command.get_name() != "help")
            {
                let path = format!("{path} {}", command.get_name());
                assert!(command.get_about().is_some(), "`{path}` has no help");
                if command.has_subcommands() {
                    visit(command, &path);
                } else {
                    let after = command.get_after_help().map(ToString::to_string);
                    let shows_itself = after.is_some_and(|text| text.contains(&path));
                    assert!(shows_itself, "`{path}` has no example of itself");
                }
            }
        }
        visit(&CommandLine::command(), "tollgate");
    }
}
