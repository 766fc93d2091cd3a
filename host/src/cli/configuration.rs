//! What commands that need servers start from: the configuration, and a runtime to wait in.

use std::fmt::Write as _;

use tollgate::config::{Config, ConfigErrors, ConfigProblem, ControlConfig, SqlTargetConfig};
use tollgate::ids::ExecutorCode;
use tollgate::policy::Policy;

use super::sandbox::{self, RuntimeArguments, StoreArguments};
use super::{Failure, Global};

/// Reads the environment and, below it, the file of `--config`.
pub(super) fn read(global: &Global) -> Result<Config, ConfigErrors> {
    match &global.config {
        Some(path) => Config::from_env_and_file(path),
        None => Config::from_env(),
    }
}

/// The SQL target of a configuration, for commands that are about nothing else.
pub(super) fn sql_target(config: &Config) -> Result<&SqlTargetConfig, Failure> {
    config.sql_target.as_ref().ok_or_else(|| {
        Failure::usage("the SQL target is disabled")
            .with_help("set `FACTORY_PLUGIN_SQL_TARGET_ENABLED=true`, then run `tollgate doctor`")
    })
}

/// The control catalog of a configuration, for commands that work on the outbox.
pub(super) fn control(config: &Config) -> Result<&ControlConfig, Failure> {
    config.control.as_ref().ok_or_else(|| {
        Failure::usage("no control catalog is configured").with_help(
            "set `FACTORY_PLUGIN_CONTROL_JDBC_URL`, `FACTORY_PLUGIN_CONTROL_USERNAME` and \
             `FACTORY_PLUGIN_CONTROL_PASSWORD`",
        )
    })
}

/// The policy pinned to `sql-jdbc:v1`.
pub(super) fn sql_policy(
    store: &StoreArguments,
    runtime: &RuntimeArguments,
) -> Result<Policy, Failure> {
    sandbox::load_pinned(&runtime.start()?, &store.open()?, &ExecutorCode::sql_jdbc_v1())
}

/// Waits for a future.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Every problem with the edit that mends it, two lines each.
pub(super) fn listed(problems: &[ConfigProblem]) -> String {
    let mut text = String::new();
    for problem in problems {
        let _ = write!(text, "\n  {problem}\n    help: {}", problem.help);
    }
    text
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        let problems = errors.problems();
        let count = match problems.len() {
            1 => "a problem".to_owned(),
            count => format!("{count} problems"),
        };
        Self::usage(format!("the configuration has {count}{}", listed(problems)))
            .with_help("run `tollgate doctor` once they are mended")
    }
}
