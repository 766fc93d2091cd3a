//! `tollgate status`

use std::fmt::Write as _;

use clap::Args;
use tollgate::executor::{
    ExecutorRegistry, Missing, PolicyStatus, RegistryError, RegistryStatus, SqlTargetState,
};
use tollgate::ids::{Catalog, EnvironmentCode, ExecutorCode};

use super::sandbox::{RuntimeArguments, StoreArguments};
use super::{Exit, Failure, Global, Run, configuration, output};

/// Show the configured executor and whether the SQL target can be used
///
/// Looks at the target for 5 seconds at most. `ready` is about the target alone: whether there is an
/// outbox for workers, `tollgate doctor` tells. Never shows a URL, a user or a password.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate status
  tollgate status --json | jq .sqlTarget.state

Exit codes:
  0  the SQL target is ready, or disabled
  1  the SQL target is incomplete, or the configured executor is not installed
  2  usage or configuration")]
pub(super) struct Status {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Status {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let store = self.store.open()?;
        let (status, exit) = match configuration::read(global) {
            Ok(config) => {
                let runtime = self.runtime.start()?;
                let looking = async {
                    let registry = ExecutorRegistry::open(&config, &store, &runtime).await?;
                    Ok::<_, Failure>(registry.status().await)
                };
                let status = configuration::block_on(looking)??;
                let exit = match status.sql_target {
                    _ if status.executor_missing.is_some() => Exit::NOT_READY,
                    SqlTargetState::Incomplete { .. } => Exit::NOT_READY,
                    SqlTargetState::Ready { .. } | SqlTargetState::Disabled => Exit::Done,
                };
                (status, exit)
            }
            Err(errors) => {
                let policy = store.pin(&ExecutorCode::sql_jdbc_v1()).ok().map(PolicyStatus::from);
                (RegistryStatus::of_broken(&errors, policy), Exit::Usage)
            }
        };
        let text = if self.json { output::json_line(&status) } else { human(&status) };
        output::print(&text)?;
        Ok(exit)
    }
}

/// For people.
fn human(status: &RegistryStatus) -> String {
    let RegistryStatus { executor, executors, sql_target, environment, catalog, policy, .. } =
        status;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    let installed: Vec<&str> = executors.iter().map(ExecutorCode::as_str).collect();
    line("executor", &format!("{executor}  (installed: {})", installed.join(", ")));
    line("SQL target", sql_target.as_str());
    line("environment", environment.as_ref().map_or("-", EnvironmentCode::as_str));
    line("catalog", catalog.as_ref().map_or("-", Catalog::as_str));
    if let Some(PolicyStatus { name, version, digest }) = policy {
        line("policy", &format!("{name} {version}"));
        line("", &digest.to_string());
    }
    listed(&mut text, "missing", status.executor_missing.as_slice());
    match sql_target {
        SqlTargetState::Disabled => {}
        SqlTargetState::Incomplete { missing } => listed(&mut text, "missing", missing),
        SqlTargetState::Ready { warnings } => listed(&mut text, "warnings", warnings),
    }
    text
}

fn listed(text: &mut String, what: &str, items: &[Missing]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "{what}");
    for Missing { key, message, help } in items {
        let _ = writeln!(text, "  {key}: {message}\n    help: {help}");
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        let exit = if error.is_pin_mismatch() { Exit::PinMismatch } else { Exit::Usage };
        let help = error.help();
        Self::new(exit, error).with_help(help)
    }
}
