//! Which variables make a configuration, and how they have to agree.

use super::environment::Environment;
use super::keys::{self, KEYS};
use super::model::{
    Config, ControlConfig, GrantCheck, SqlTargetConfig, TargetBounds, WorkerBounds,
};
use super::problem::{ConfigErrors, PartialConfig, ProblemCode};
use super::reader::{Reader, cut};
use crate::ids::{Catalog, EnvironmentCode, ExecutorCode, is_system_catalog};
use crate::jdbc::JdbcUrl;

/// The driver of the original deployment; the only one its configuration may still name.
const DRIVER_CLASS_NAME: &str = "com.mysql.cj.jdbc.Driver";

pub(super) fn config(source: &dyn Environment) -> Result<Config, ConfigErrors> {
    let mut reader = Reader { source, problems: Vec::new(), partial: PartialConfig::default() };
    reader.refuse_unknown_names();
    let config = reader.config();
    let Reader { mut problems, partial, .. } = reader;
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => {
            let place = |name: &str| KEYS.iter().position(|key| key.name == name);
            problems.sort_by_key(|problem| place(&problem.variable).unwrap_or(usize::MAX));
            Err(ConfigErrors { problems, partial })
        }
    }
}

impl Reader<'_> {
    fn config(&mut self) -> Option<Config> {
        let executor = self
            .optional::<ExecutorCode>(keys::EXECUTOR_CODE)
            .map(|given| given.unwrap_or_else(ExecutorCode::dry_run_v1));
        self.partial.executor.clone_from(&executor);
        let worker = self.worker();
        let enabled = self.flag(keys::ENABLED);
        self.partial.sql_target_enabled = enabled;
        if enabled? {
            let control = self.control();
            let target = self.sql_target(control);
            let target = target?;
            let control = Some(target.control.clone());
            Some(Config { executor: executor?, control, sql_target: Some(target), worker: worker? })
        } else {
            let control = if self.control_is_given() { Some(self.control()?) } else { None };
            Some(Config { executor: executor?, control, sql_target: None, worker: worker? })
        }
    }

    fn sql_target(&mut self, control: Option<ControlConfig>) -> Option<SqlTargetConfig> {
        let environment = self.required::<EnvironmentCode>(keys::ENVIRONMENT_CODE);
        let endpoint = self.url(keys::JDBC_URL);
        let credentials = self.credentials(keys::USERNAME, keys::PASSWORD, keys::PASSWORD_FILE);
        let catalog = self.required::<Catalog>(keys::ALLOWED_CATALOG);
        let receipt_lease = self.seconds(keys::RECEIPT_LEASE_SECONDS, 30..=3600, 300);
        let grant_check = self.grant_check();
        let allowed_servers = self.allowed_servers();
        let bounds = self.bounds(endpoint.as_ref());
        self.driver_class_name();
        self.partial.environment.clone_from(&environment);
        self.partial.catalog.clone_from(&catalog);
        if let (Some(endpoint), Some(catalog)) = (&endpoint, &catalog) {
            self.catalog_is_the_urls(endpoint, catalog);
            if let Some(control) = &control {
                self.control_is_not_the_target(endpoint, catalog, &control.endpoint);
            }
        }
        Some(SqlTargetConfig {
            environment: environment?,
            endpoint: endpoint?,
            credentials: credentials?,
            catalog: catalog?,
            receipt_lease: receipt_lease?,
            control: control?,
            grant_check: grant_check?,
            allowed_servers,
            bounds: bounds?,
        })
    }

    fn control(&mut self) -> Option<ControlConfig> {
        let endpoint = self.url(keys::CONTROL_JDBC_URL);
        let credentials = self.credentials(
            keys::CONTROL_USERNAME,
            keys::CONTROL_PASSWORD,
            keys::CONTROL_PASSWORD_FILE,
        );
        let connect_timeout = self.seconds(keys::CONTROL_CONNECT_TIMEOUT_SECONDS, 1..=60, 10)?;
        let endpoint = endpoint?;
        // Isolation from one of the server's own catalogs would be isolation from nothing.
        if is_system_catalog(endpoint.catalog()) {
            self.refuse(
                keys::CONTROL_JDBC_URL,
                ProblemCode::Conflict,
                format!("`{}` cannot be the control catalog", endpoint.catalog()),
                "name the catalog the control side keeps its tables in".to_owned(),
            );
        }
        let connect_timeout = endpoint.connect_timeout().unwrap_or(connect_timeout);
        Some(ControlConfig { endpoint, credentials: credentials?, connect_timeout })
    }

    fn control_is_given(&self) -> bool {
        [
            keys::CONTROL_JDBC_URL,
            keys::CONTROL_USERNAME,
            keys::CONTROL_PASSWORD,
            keys::CONTROL_PASSWORD_FILE,
        ]
        .iter()
        .any(|name| self.source.value(name).is_some())
    }

    fn bounds(&mut self, endpoint: Option<&JdbcUrl>) -> Option<TargetBounds> {
        let default = TargetBounds::default();
        let connect =
            self.seconds_or(keys::CONNECT_TIMEOUT_SECONDS, 1..=60, default.connect_timeout);
        let open = self.seconds_or(keys::OPEN_BUDGET_SECONDS, 1..=300, default.open_budget);
        let statement =
            self.seconds_or(keys::STATEMENT_BUDGET_SECONDS, 1..=86_400, default.statement_budget);
        let lock =
            self.seconds_or(keys::LOCK_WAIT_TIMEOUT_SECONDS, 1..=3_600, default.lock_wait_timeout);
        let idle = self.seconds_or(keys::IDLE_SESSION_SECONDS, 30..=86_400, default.idle_session);
        let pool_default = u64::try_from(default.pool_sessions_max).unwrap_or(1);
        let pool = self.number(keys::POOL_SESSIONS_MAX, 1..=64, pool_default);
        let reuse = self.seconds_or(keys::SESSION_REUSE_SECONDS, 0..=600, default.session_reuse);
        let executions = self.number(
            keys::EXECUTION_COUNT_MAX,
            1..=1_000,
            u64::from(default.execution_count_max),
        );
        let statement = statement?;
        Some(TargetBounds {
            connect_timeout: endpoint.and_then(JdbcUrl::connect_timeout).or(connect)?,
            open_budget: open?,
            statement_budget: endpoint
                .and_then(JdbcUrl::socket_timeout)
                .map_or(statement, |timeout| timeout.min(statement)),
            lock_wait_timeout: lock?,
            idle_session: idle?,
            pool_sessions_max: usize::try_from(pool?).ok()?,
            session_reuse: reuse?,
            execution_count_max: u32::try_from(executions?).ok()?,
        })
    }

    fn worker(&mut self) -> Option<WorkerBounds> {
        let default = WorkerBounds::default();
        let slots = u64::try_from(default.concurrency).unwrap_or(1);
        let concurrency = self.number(keys::WORKER_CONCURRENCY, 1..=64, slots);
        let lease = self.seconds_or(keys::WORKER_LEASE_SECONDS, 5..=3_600, default.lease);
        let grace = self.seconds_or(keys::WORKER_GRACE_SECONDS, 0..=3_600, default.grace);
        let attempts =
            self.number(keys::WORKER_ATTEMPTS_MAX, 1..=1_000, u64::from(default.attempts_max));
        Some(WorkerBounds {
            concurrency: usize::try_from(concurrency?).ok()?,
            lease: lease?,
            grace: grace?,
            attempts_max: u32::try_from(attempts?).ok()?,
        })
    }

    fn catalog_is_the_urls(&mut self, endpoint: &JdbcUrl, catalog: &Catalog) {
        if endpoint.catalog() != catalog.as_str() {
            self.refuse(
                keys::ALLOWED_CATALOG,
                ProblemCode::Conflict,
                format!("`{catalog}` is not the catalog of the target's URL"),
                format!("set both to the same catalog, in the same case: {}", keys::JDBC_URL),
            );
        }
    }

    fn control_is_not_the_target(
        &mut self,
        target: &JdbcUrl,
        catalog: &Catalog,
        control: &JdbcUrl,
    ) {
        let message = if target.normalised() == control.normalised() {
            "names the same place as the target's URL"
        } else if control.catalog().eq_ignore_ascii_case(catalog.as_str()) {
            "names a catalog that is called as the target's is"
        } else {
            return;
        };
        let help = "give the target a catalog of its own, with a name of its own";
        self.refuse(keys::CONTROL_JDBC_URL, ProblemCode::Conflict, message, help);
    }

    fn driver_class_name(&mut self) {
        if self.text(keys::DRIVER_CLASS_NAME).is_some_and(|given| given != DRIVER_CLASS_NAME) {
            let message = "only the MySQL driver of the original deployment may be named here";
            let help = format!("remove it, or set it to `{DRIVER_CLASS_NAME}`");
            self.refuse(keys::DRIVER_CLASS_NAME, ProblemCode::Invalid, message, help);
        }
    }

    fn grant_check(&mut self) -> Option<GrantCheck> {
        match self.text(keys::GRANT_CHECK).as_deref() {
            None | Some("enforce") => Some(GrantCheck::Enforce),
            Some("warn") => Some(GrantCheck::Warn),
            Some(other) => {
                let message = format!("`{}` is neither `enforce` nor `warn`", cut(other));
                self.refuse(keys::GRANT_CHECK, ProblemCode::Invalid, message, "write `enforce`");
                None
            }
        }
    }

    fn allowed_servers(&mut self) -> Vec<String> {
        let text = self.text(keys::ALLOWED_SERVERS).unwrap_or_default();
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }

    fn url(&mut self, name: &'static str) -> Option<JdbcUrl> {
        let Some(text) = self.text(name) else {
            self.missing(name);
            return None;
        };
        match JdbcUrl::parse(&text) {
            Ok(url) => Some(url),
            Err(problems) => {
                for problem in problems {
                    self.refuse(name, ProblemCode::Invalid, problem.to_string(), problem.help());
                }
                None
            }
        }
    }
}
