//! The one status value: what an operator, a page and a monitor are told about the executors.
//!
//! It has no field for a URL, a user or a password, and no free text from a server.

use serde::Serialize;

use crate::config::ConfigErrors;
use crate::digest::Digest;
use crate::ids::{Catalog, EnvironmentCode, ExecutorCode};

/// Which executors there are and whether the SQL target can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryStatus {
    /// The executor that steps are given to.
    pub executor: ExecutorCode,
    /// Why that executor is not installed, when it is not and the SQL target does not say so.
    pub executor_missing: Option<Missing>,
    /// Every installed executor, in the order of their codes.
    pub executors: Vec<ExecutorCode>,
    /// The SQL target.
    pub sql_target: SqlTargetState,
    /// The environment the target stands for; none while it is disabled.
    pub environment: Option<EnvironmentCode>,
    /// The one catalog payloads may touch; none while the target is disabled.
    pub catalog: Option<Catalog>,
    /// The policy that decides for `sql-jdbc:v1`.
    pub policy: Option<PolicyStatus>,
}

/// A policy as the status shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: semver::Version,
    /// The digest of its component.
    pub digest: Digest,
}

impl RegistryStatus {
    /// The status under a configuration that has problems: what is missing are its variables.
    pub fn of_broken(errors: &ConfigErrors, policy: Option<PolicyStatus>) -> Self {
        let partial = errors.partial();
        let missing = errors.problems().iter().map(|problem| {
            Missing::new(problem.variable.clone(), &problem.message, problem.help.clone())
        });
        Self {
            executor: partial.executor.clone().unwrap_or_else(ExecutorCode::dry_run_v1),
            executor_missing: None,
            executors: vec![ExecutorCode::dry_run_v1()],
            sql_target: SqlTargetState::Incomplete { missing: missing.collect() },
            environment: partial.environment.clone(),
            catalog: partial.catalog.clone(),
            policy,
        }
    }
}

impl From<&crate::policy::PolicyPin> for PolicyStatus {
    fn from(pin: &crate::policy::PolicyPin) -> Self {
        Self { name: pin.name.clone(), version: pin.version.clone(), digest: pin.sha256 }
    }
}

/// Whether the SQL target can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum SqlTargetState {
    /// Not enabled; nothing of it is configured or looked at.
    Disabled,
    /// Enabled, and something is missing.
    Incomplete {
        /// What, at least one.
        missing: Vec<Missing>,
    },
    /// Enabled; a connection was opened, every isolation check held, and the ledger has its shape.
    Ready {
        /// What an operator should know all the same.
        warnings: Vec<Missing>,
    },
}

impl SqlTargetState {
    /// `disabled`, `incomplete` or `ready`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Incomplete { .. } => "incomplete",
            Self::Ready { .. } => "ready",
        }
    }
}

/// Something that is missing, by its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// Stable and kebab-case, such as `target-unreachable`.
    pub key: String,
    /// What is missing.
    pub message: String,
    /// The command or edit that provides it.
    pub help: String,
}

impl Missing {
    /// Something that is missing.
    pub fn new(
        key: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), message: message.into(), help: help.into() }
    }
}
