//! Which executors are installed, and which policy decides for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::Executor;
use super::dry_run::DryRunV1;
use super::sql_jdbc::SqlJdbcV1;
use super::status::{Missing, PolicyStatus, RegistryStatus, SqlTargetState};
use crate::config::Config;
use crate::ids::{Catalog, ExecutorCode, InvalidName};
use crate::policy::{LoadError, Policy, PolicyRuntime, PolicyStore, StoreError};

/// How long a status may take when the target does not answer. Shorter than people and probes wait.
pub const STATUS_BUDGET: Duration = Duration::from_secs(5);

/// How long a status is given again without looking: a page that many people watch opens no more
/// connections than one that nobody does.
const STATUS_FRESH: Duration = Duration::from_secs(1);

/// The catalog a dry run decides for while no target is enabled.
const REHEARSAL_CATALOG: &str = "tollgate_rehearsal";

/// The installed executors.
pub struct ExecutorRegistry {
    configured: ExecutorCode,
    installed: BTreeMap<ExecutorCode, Arc<dyn Executor>>,
    policy: Option<PolicyStatus>,
    sql_target: Option<SqlTarget>,
}

/// `sql-jdbc:v1` while its target is enabled.
struct SqlTarget {
    executor: Arc<SqlJdbcV1>,
    /// Whether everything held once. Every execution verifies it again for itself.
    was_ready: AtomicBool,
    last: Mutex<Option<(Instant, SqlTargetState)>>,
}

/// The registry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The policy of `sql-jdbc:v1` is not in the store.
    #[error("the policy of `sql-jdbc:v1` cannot be found")]
    Store(#[source] StoreError),
    /// The policy of `sql-jdbc:v1` was refused.
    #[error("the policy of `sql-jdbc:v1` cannot be loaded")]
    Load(#[source] LoadError),
    /// Loading was interrupted: the process is shutting down.
    #[error("loading the policy was interrupted")]
    Interrupted(#[source] tokio::task::JoinError),
    /// The catalog for rehearsals is no catalog.
    #[error("there is no catalog to rehearse for")]
    Rehearsal(#[source] InvalidName),
}

impl RegistryError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Store(error) => error.help(),
            Self::Load(error) => error.help(),
            Self::Interrupted(_) | Self::Rehearsal(_) => "start again",
        }
    }
}

/// There is no such executor now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorUnavailable {
    /// Nobody installed one with this code.
    #[error("no executor `{0}` is installed")]
    Unknown(ExecutorCode),
    /// `sql-jdbc:v1` without an enabled target.
    #[error("`{0}` is not installed: the SQL target is disabled")]
    TargetDisabled(ExecutorCode),
    /// `sql-jdbc:v1` whose target was never ready.
    #[error("`{0}` is not installed: the SQL target is incomplete")]
    TargetIncomplete(ExecutorCode),
}

impl ExecutorUnavailable {
    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "set `FACTORY_PLUGIN_EXECUTOR_CODE` to an installed executor",
            Self::TargetDisabled(_) => "set `FACTORY_PLUGIN_SQL_TARGET_ENABLED=true`",
            Self::TargetIncomplete(_) => "run `tollgate status`: it names what is missing",
        }
    }
}

impl ExecutorRegistry {
    /// A registry without executors, for an embedder that brings its own.
    pub fn empty(configured: ExecutorCode) -> Self {
        Self { configured, installed: BTreeMap::new(), policy: None, sql_target: None }
    }

    /// The registry of a configuration: `dry-run:v1` always, and `sql-jdbc:v1` once its target is
    /// enabled and ready. Looks at the target, for [`STATUS_BUDGET`] at most.
    ///
    /// # Errors
    ///
    /// The policy pinned to `sql-jdbc:v1` cannot be loaded. A target that is not ready is no error:
    /// [`ExecutorRegistry::status`] tells what is missing.
    pub async fn open(
        config: &Config,
        store: &PolicyStore,
        runtime: &PolicyRuntime,
    ) -> Result<Self, RegistryError> {
        let policy = load(store, runtime).await?;
        let catalog = match &config.sql_target {
            Some(target) => target.catalog.clone(),
            None => REHEARSAL_CATALOG.parse::<Catalog>().map_err(RegistryError::Rehearsal)?,
        };
        let mut registry = Self::empty(config.executor.clone());
        registry.policy = Some(PolicyStatus::from(policy.pin()));
        registry.install(Arc::new(DryRunV1::new(policy.clone(), catalog)));
        registry.sql_target = config.sql_target.as_ref().map(|target| SqlTarget {
            executor: Arc::new(SqlJdbcV1::new(target, policy)),
            was_ready: AtomicBool::new(false),
            last: Mutex::new(None),
        });
        if let Some(target) = &registry.sql_target {
            target.state().await;
        }
        Ok(registry)
    }

    /// Installs an executor under its code, in place of another with the same code.
    pub fn install(&mut self, executor: Arc<dyn Executor>) {
        self.installed.insert(executor.code().clone(), executor);
    }

    /// The executor with this code.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub fn executor(&self, code: &ExecutorCode) -> Result<Arc<dyn Executor>, ExecutorUnavailable> {
        if let Some(executor) = self.installed.get(code) {
            return Ok(Arc::clone(executor));
        }
        if *code != ExecutorCode::sql_jdbc_v1() {
            return Err(ExecutorUnavailable::Unknown(code.clone()));
        }
        match &self.sql_target {
            None => Err(ExecutorUnavailable::TargetDisabled(code.clone())),
            Some(target) if target.was_ready.load(Ordering::Relaxed) => {
                let executor: Arc<dyn Executor> = target.executor.clone();
                Ok(executor)
            }
            Some(_) => Err(ExecutorUnavailable::TargetIncomplete(code.clone())),
        }
    }

    /// The executor that steps are given to.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub fn configured(&self) -> Result<Arc<dyn Executor>, ExecutorUnavailable> {
        self.executor(&self.configured)
    }

    /// The status: looks at the target, for [`STATUS_BUDGET`] at most, and installs `sql-jdbc:v1`
    /// when it has become ready.
    pub async fn status(&self) -> RegistryStatus {
        let sql_target = match &self.sql_target {
            None => SqlTargetState::Disabled,
            Some(target) => target.state().await,
        };
        let sql = self.sql_target.as_ref();
        let sql_code = sql
            .filter(|target| target.was_ready.load(Ordering::Relaxed))
            .map(|target| target.executor.code());
        let mut executors: Vec<_> = self.installed.keys().chain(sql_code).cloned().collect();
        executors.sort();
        executors.dedup();
        let executor_missing = self.configured_missing(&executors);
        RegistryStatus {
            executor: self.configured.clone(),
            executor_missing,
            executors,
            sql_target,
            environment: sql.map(|target| target.executor.environment().clone()),
            catalog: sql.map(|target| target.executor.catalog().clone()),
            policy: self.policy.clone(),
        }
    }
}

impl ExecutorRegistry {
    /// Why the configured executor is none of the installed ones. Of a target that is incomplete, the
    /// target's own state says all of it.
    fn configured_missing(&self, installed: &[ExecutorCode]) -> Option<Missing> {
        let error = match self.configured() {
            Ok(_) | Err(ExecutorUnavailable::TargetIncomplete(_)) => return None,
            Err(error) => error,
        };
        let key = match error {
            ExecutorUnavailable::TargetDisabled(_) => "executor-target-disabled",
            _ => "executor-unknown",
        };
        let installed: Vec<&str> = installed.iter().map(ExecutorCode::as_str).collect();
        let message = format!("{error}; installed are {}", installed.join(", "));
        Some(Missing::new(key, message, error.help()))
    }
}

impl SqlTarget {
    async fn state(&self) -> SqlTargetState {
        let looked = tokio::time::timeout(STATUS_BUDGET, async {
            // One look at a time: callers that wait get what the one before them found.
            let mut last = self.last.lock().await;
            if let Some((at, state)) = last.as_ref()
                && at.elapsed() < STATUS_FRESH
            {
                return state.clone();
            }
            let state = match self.executor.probe().await {
                Ok(warnings) => SqlTargetState::Ready { warnings },
                Err(missing) => SqlTargetState::Incomplete { missing },
            };
            *last = Some((Instant::now(), state.clone()));
            state
        });
        let state = looked.await.unwrap_or_else(|_| SqlTargetState::Incomplete {
            missing: vec![Missing::new(
                "target-timed-out",
                format!("the target was not verified within {} s", STATUS_BUDGET.as_secs()),
                "check that the server runs, and host, port and firewall",
            )],
        });
        if matches!(state, SqlTargetState::Ready { .. }) {
            self.was_ready.store(true, Ordering::Relaxed);
        }
        state
    }
}

/// Loads the policy that is pinned to `sql-jdbc:v1`, on a thread that may block: without a cached
/// compilation it takes seconds.
async fn load(store: &PolicyStore, runtime: &PolicyRuntime) -> Result<Policy, RegistryError> {
    let (store, runtime) = (store.clone(), runtime.clone());
    let loading = tokio::task::spawn_blocking(move || {
        let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).map_err(RegistryError::Store)?;
        let component = store.component(pin).map_err(RegistryError::Store)?;
        runtime.load(pin, &component).map_err(RegistryError::Load)
    });
    loading.await.map_err(RegistryError::Interrupted)?
}

impl fmt::Debug for ExecutorRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorRegistry")
            .field("configured", &self.configured)
            .field("installed", &self.installed.keys().collect::<Vec<_>>())
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
