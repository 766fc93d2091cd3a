//! The configuration once it is checked.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use secrecy::SecretString;

use super::environment::{Environment, Layered, ProcessEnvironment, TomlFile};
use super::problem::ConfigErrors;
use super::read;
use crate::ids::{Catalog, EnvironmentCode, ExecutorCode};
use crate::jdbc::JdbcUrl;

/// Everything the host is told from outside.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The executor steps run under unless a plan says otherwise.
    pub executor: ExecutorCode,
    /// The control catalog; always there when the target is enabled.
    pub control: Option<ControlConfig>,
    /// The SQL target; none when it is disabled.
    pub sql_target: Option<SqlTargetConfig>,
    /// Bounds of the worker.
    pub worker: WorkerBounds,
}

impl Config {
    /// The environment the target stands for; none without an enabled target.
    pub fn environment(&self) -> Option<&EnvironmentCode> {
        self.sql_target.as_ref().map(|target| &target.environment)
    }

    /// Reads the variables of this process.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn from_env() -> Result<Self, ConfigErrors> {
        Self::from_source(ProcessEnvironment)
    }

    /// Reads the variables of this process and, below them, a TOML file with the same keys.
    ///
    /// # Errors
    /// Every problem of the file, or every problem of what both give together.
    pub fn from_env_and_file(path: &Path) -> Result<Self, ConfigErrors> {
        Self::from_source(Layered::new(ProcessEnvironment, TomlFile::read(path)?))
    }

    /// Reads a source.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn from_source(source: impl Environment) -> Result<Self, ConfigErrors> {
        read::config(&source)
    }
}

/// A user name and a password. Both are secrets: neither is ever printed.
#[derive(Clone)]
pub struct Credentials {
    /// The account's user name.
    pub username: SecretString,
    /// Its password.
    pub password: SecretString,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// How to reach the control catalog.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControlConfig {
    /// Where it is.
    pub endpoint: JdbcUrl,
    /// Who we are there.
    pub credentials: Credentials,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

/// The isolated catalog payloads run on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqlTargetConfig {
    /// The environment it stands for; part of every external receipt.
    pub environment: EnvironmentCode,
    /// Where it is.
    pub endpoint: JdbcUrl,
    /// Who we are there.
    pub credentials: Credentials,
    /// The one catalog payloads may touch.
    pub catalog: Catalog,
    /// How long a claim holds without renewal.
    pub receipt_lease: Duration,
    /// The control catalog, which the target must never be.
    pub control: ControlConfig,
    /// What happens when the account may do more than the catalog needs.
    pub grant_check: GrantCheck,
    /// Server identities the target may have; empty means any.
    pub allowed_servers: Vec<String>,
    /// Bounds of our own.
    pub bounds: TargetBounds,
}

/// What an account with grants beyond the catalog means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrantCheck {
    /// The target is not opened.
    #[default]
    Enforce,
    /// The target is opened and the status carries a warning.
    Warn,
}

/// Bounds of our own, none of them infinite.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetBounds {
    /// How long connecting may take: name resolution, TCP, TLS and login together.
    pub connect_timeout: Duration,
    /// How long opening may take: connecting to both catalogs and every isolation check.
    pub open_budget: Duration,
    /// How long one statement may run before it is killed.
    pub statement_budget: Duration,
    /// How long a statement waits for a metadata or a row lock.
    pub lock_wait_timeout: Duration,
    /// How long the server keeps an idle session of ours.
    pub idle_session: Duration,
    /// Sessions kept open between steps, at most.
    pub pool_sessions_max: usize,
    /// How long after everything was verified on a session it is used for further steps; zero keeps
    /// none.
    pub session_reuse: Duration,
    /// Executions of a step before it needs a person.
    pub execution_count_max: u32,
}

impl Default for TargetBounds {
    fn default() -> Self {
        Self {
            // Long enough for one lost SYN (1 s, 3 s) and a slow resolver, short against a lease.
            connect_timeout: Duration::from_secs(10),
            // Two connections and a dozen short queries; a status call waits for it at most.
            open_budget: Duration::from_secs(30),
            // A CREATE TABLE takes milliseconds, a 1 MiB INSERT seconds; a quarter of an hour is
            // a statement that will not end.
            statement_budget: Duration::from_mins(15),
            // The server's default for metadata locks is a year; a pile-up starts in seconds.
            lock_wait_timeout: Duration::from_secs(30),
            // A holder that vanished without closing keeps its row locks this long, not 8 hours.
            idle_session: Duration::from_mins(10),
            // One for each step that a worker carries out at once by default.
            pool_sessions_max: 4,
            // A grant that is too many, or a server that moved, is seen within a minute.
            session_reuse: Duration::from_mins(1),
            // A payload that takes its executor down must not do so for ever.
            execution_count_max: 20,
        }
    }
}

/// Bounds of the worker, none of them infinite.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerBounds {
    /// Steps carried out at once.
    pub concurrency: usize,
    /// How long a claim in the outbox holds without renewal.
    pub lease: Duration,
    /// How long running steps may go on once a drain is asked for.
    pub grace: Duration,
    /// Failed deliveries of a step before it needs a person.
    pub attempts_max: u32,
}

impl Default for WorkerBounds {
    fn default() -> Self {
        Self {
            // A step is mostly waiting for the target; more would be its load, not ours.
            concurrency: 4,
            // Long enough for a control server's restart, and a dead worker's step waits no longer.
            lease: Duration::from_mins(1),
            // Service managers wait 90 s before they kill; a step takes seconds.
            grace: Duration::from_secs(30),
            // With a backoff that doubles up to 5 minutes, about a quarter of an hour of trying.
            attempts_max: 10,
        }
    }
}
