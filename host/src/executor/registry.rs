//! Which executors are installed, and which policy decides for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Executor;
use super::dry_run::DryRunV1;
use super::sql_jdbc::SqlJdbcV1;
use super::status::RegistryStatus;
use super::status_reader::StatusReader;
use crate::config::Config;
use crate::ids::{Catalog, ExecutorCode, InvalidName};
use crate::ledger::Ledger;
use crate::policy::{LoadError, Policy, PolicyRuntime, PolicyStore, StoreError};
use crate::target::TargetPool;

/// The catalog a dry run decides for while no target is enabled.
const REHEARSAL_CATALOG: &str = "tollgate_rehearsal";

/// The installed executors.
pub struct ExecutorRegistry {
    installed: BTreeMap<ExecutorCode, Arc<dyn Executor>>,
    /// `sql-jdbc:v1` while its target is enabled; given out once that was ready.
    sql: Option<Arc<SqlJdbcV1>>,
    reader: StatusReader,
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
    /// Loading was interrupted: the process is shutting down, or a bug stopped it. What a panic said is
    /// not kept: it may quote what it was about.
    #[error("loading the policy was interrupted")]
    Interrupted,
    /// The catalog for rehearsals is no catalog.
    #[error("there is no catalog to rehearse for")]
    Rehearsal(#[source] InvalidName),
}

impl RegistryError {
    /// Whether the policy is another one than is pinned, or not signed as it has to be.
    pub const fn is_pin_mismatch(&self) -> bool {
        match self {
            Self::Store(error) => error.is_mismatch(),
            Self::Load(error) => error.is_pin_mismatch(),
            _ => false,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Store(error) => error.help(),
            Self::Load(error) => error.help(),
            Self::Interrupted | Self::Rehearsal(_) => "start again",
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
        Self { installed: BTreeMap::new(), sql: None, reader: StatusReader::bare(configured) }
    }

    /// The registry of a configuration: `dry-run:v1` always, and `sql-jdbc:v1` once its target is
    /// enabled and ready. Looks at the target, for [`STATUS_BUDGET`](super::STATUS_BUDGET) at most.
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
        let reader = StatusReader::new(config, &policy);
        let mut registry = Self { installed: BTreeMap::new(), sql: None, reader };
        registry.install(Arc::new(DryRunV1::new(policy.clone(), catalog)));
        registry.sql =
            config.sql_target.as_ref().map(|target| Arc::new(SqlJdbcV1::new(target, policy)));
        registry.status().await;
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
        match &self.sql {
            None => Err(ExecutorUnavailable::TargetDisabled(code.clone())),
            Some(sql) if self.reader.was_ready() == Some(true) => {
                let executor: Arc<dyn Executor> = sql.clone();
                Ok(executor)
            }
            Some(_) => Err(ExecutorUnavailable::TargetIncomplete(code.clone())),
        }
    }

    /// Where an executor of ours keeps its receipts.
    pub(super) fn ledger_of(&self, code: &ExecutorCode) -> Option<(&TargetPool, Ledger)> {
        let own = self.sql.as_ref().filter(|own| own.code() == code)?;
        Some((own.sessions(), Ledger::default()))
    }

    /// Lets every executor go of what it keeps between steps.
    pub async fn rest(&self) {
        for executor in self.installed.values() {
            executor.rest().await;
        }
        if let Some(sql) = &self.sql {
            sql.rest().await;
        }
    }

    /// The executor that steps are given to.
    ///
    /// # Errors
    ///
    /// It is not installed.
    pub fn configured(&self) -> Result<Arc<dyn Executor>, ExecutorUnavailable> {
        self.executor(self.reader.executor())
    }

    /// The status: looks at the target, for [`STATUS_BUDGET`](super::STATUS_BUDGET) at most, and installs `sql-jdbc:v1`
    /// when it has become ready.
    pub async fn status(&self) -> RegistryStatus {
        self.reader.status_with(self.installed.keys().cloned().collect()).await
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
    loading.await.unwrap_or(Err(RegistryError::Interrupted))
}

impl fmt::Debug for ExecutorRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorRegistry")
            .field("installed", &self.installed.keys().collect::<Vec<_>>())
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}
