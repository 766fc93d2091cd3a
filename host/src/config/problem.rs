//! What is wrong with a configuration, as data.

use std::fmt;

use serde::Serialize;

use crate::ids::{Catalog, EnvironmentCode, ExecutorCode};

/// The kind of a problem. Stable: never renamed, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemCode {
    /// A required variable is not set, or empty.
    Missing,
    /// The value does not follow the variable's rule.
    Invalid,
    /// A number is outside its bounds.
    OutOfRange,
    /// No variable has this name.
    UnknownVariable,
    /// Two variables contradict each other.
    Conflict,
    /// A file a variable names cannot be read.
    UnreadableFile,
}

impl ProblemCode {
    /// The code as it is written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::OutOfRange => "out-of-range",
            Self::UnknownVariable => "unknown-variable",
            Self::Conflict => "conflict",
            Self::UnreadableFile => "unreadable-file",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One problem of one variable.
///
/// Neither message nor help ever holds a URL, a user name or a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The variable, or the configuration file's path.
    pub variable: String,
    /// What kind of problem.
    pub code: ProblemCode,
    /// What is wrong.
    pub message: String,
    /// The edit that mends it.
    pub help: String,
}

impl ConfigProblem {
    pub(super) fn new(
        variable: &str,
        code: ProblemCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { variable: variable.to_owned(), code, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.variable, self.message)
    }
}

/// What could be read of a configuration that has problems: enough for a status, no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialConfig {
    /// The executor code, when it is a valid one.
    pub executor: Option<ExecutorCode>,
    /// Whether the target is enabled, when that could be read.
    pub sql_target_enabled: Option<bool>,
    /// The environment code, when it is a valid one.
    pub environment: Option<EnvironmentCode>,
    /// The allowed catalog, when it is a valid one.
    pub catalog: Option<Catalog>,
}

/// Every problem of a configuration. The operator mends all of them before the next start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} problem(s): {}", .problems.len(), Listed(.problems))]
pub struct ConfigErrors {
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) partial: PartialConfig,
}

impl ConfigErrors {
    /// Every problem, in the order of the documented variables.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    /// What could be read nevertheless.
    pub fn partial(&self) -> &PartialConfig {
        &self.partial
    }
}

impl From<Vec<ConfigProblem>> for ConfigErrors {
    fn from(problems: Vec<ConfigProblem>) -> Self {
        Self { problems, partial: PartialConfig::default() }
    }
}

struct Listed<'a>(&'a [ConfigProblem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            fmt::Display::fmt(problem, f)?;
        }
        Ok(())
    }
}
