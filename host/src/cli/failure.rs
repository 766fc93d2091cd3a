//! How a command ends.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use tollgate::text::with_causes;

use super::output::visible;

/// The exit code of a command. When several apply, the highest is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done; for a check: everything is allowed.
    Done = 0,
    /// Something is denied.
    Denied = 1,
    /// Usage or configuration, files that cannot be read included.
    Usage = 2,
    /// The policy could not decide.
    NoDecision = 3,
    /// A pin or a digest does not match.
    PinMismatch = 4,
    /// A worker was told to stop and dropped steps that did not end in time.
    Dropped = 5,
    /// A worker has nothing left to do, and steps it delivered need a person.
    Attention = 6,
    /// A second SIGINT, as shells report it.
    Interrupted = 130,
    /// A second SIGTERM, as shells report it.
    Terminated = 143,
}

impl Exit {
    /// The step was not applied.
    pub(crate) const NOT_APPLIED: Self = Self::Denied;
    /// The target is not ready, or does not have what was asked for.
    pub(crate) const NOT_READY: Self = Self::Denied;
    /// It could not be told whether the step was applied.
    pub(crate) const INDETERMINATE: Self = Self::NoDecision;
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A command that could not be done.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: Box<dyn Error + Send + Sync>,
    help: Option<String>,
}

impl Failure {
    /// Ends the command with this code and this error.
    pub(crate) fn new(exit: Exit, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { exit, error: error.into(), help: None }
    }

    /// Ends the command with [`Exit::Usage`].
    pub(crate) fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Exit::Usage, error)
    }

    /// Says what to do: a command or an exact edit.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error and its causes, to be quoted in one line.
    pub(crate) fn told(&self) -> String {
        with_causes(&*self.error)
    }

    /// Prints the error, its causes and the help to standard error.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.is_broken_pipe() {
            let mut text = format!("error: {}\n", indented(&*self.error));
            let mut cause = self.error.source();
            while let Some(error) = cause {
                let _ = writeln!(text, "  because: {}", indented(error));
                cause = error.source();
            }
            if let Some(help) = &self.help {
                let _ = writeln!(text, "  help: {help}");
            }
            // Nobody is left to tell when this fails.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        self.exit.into()
    }

    /// The reader of the output went away, as `head` does: that needs no words.
    fn is_broken_pipe(&self) -> bool {
        self.error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// An error may quote a file of anyone's: its further lines stand further in, so that none of them
/// looks like one of ours.
fn indented(error: &dyn Error) -> String {
    visible(error.to_string().trim_end()).replace('\n', "\n    ")
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::usage(error)
    }
}
