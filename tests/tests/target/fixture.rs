//! A private server with a target catalog, a control catalog and an account for each.

use std::collections::BTreeMap;

use tollgate::config::{Config, SqlTargetConfig};
use tollgate::jdbc::JdbcUrl;
use tollgate::target::{SessionContract, Target, TargetConnection, TargetError};
use tollgate_tests::server::{Flavour, PrivateServer};

pub(crate) const CATALOG: &str = "plugin_preview";
pub(crate) const CONTROL_CATALOG: &str = "host_core";
pub(crate) const USER: &str = "tollgate_target";
pub(crate) const CONTROL_USER: &str = "host_control";
pub(crate) const PASSWORD: &str = "t4rget-pass";

/// What a confined account has.
pub(crate) const CONFINED: &str =
    r"SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES ON `plugin\_preview`.*";

pub(crate) struct Place {
    pub(crate) server: PrivateServer,
}

impl Place {
    pub(crate) async fn on(flavour: Flavour) -> Self {
        Self::of(flavour.start()).await
    }

    pub(crate) async fn of(server: PrivateServer) -> Self {
        server.create_catalog(CATALOG).await;
        server.create_catalog(CONTROL_CATALOG).await;
        server.create_account(USER, PASSWORD, &[CONFINED]).await;
        let control = r"ALL PRIVILEGES ON `host\_core`.*";
        server.create_account(CONTROL_USER, PASSWORD, &[control]).await;
        Self { server }
    }

    /// The variables an operator sets for this place.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let target = self.server.jdbc_url(CATALOG);
        let control = self.server.jdbc_url(CONTROL_CATALOG);
        [
            ("EXECUTOR_CODE", "sql-jdbc:v1"),
            ("SQL_TARGET_ENABLED", "true"),
            ("SQL_TARGET_ENVIRONMENT_CODE", "preview"),
            ("SQL_TARGET_JDBC_URL", &target),
            ("SQL_TARGET_USERNAME", USER),
            ("SQL_TARGET_PASSWORD", PASSWORD),
            ("SQL_TARGET_ALLOWED_CATALOG", CATALOG),
            ("CONTROL_JDBC_URL", &control),
            ("CONTROL_USERNAME", CONTROL_USER),
            ("CONTROL_PASSWORD", PASSWORD),
        ]
        .into_iter()
        .map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), value.to_owned()))
        .collect()
    }

    pub(crate) fn config(&self) -> SqlTargetConfig {
        self.config_with(&[])
    }

    /// The configuration with some target variables changed.
    pub(crate) fn config_with(&self, changes: &[(&str, &str)]) -> SqlTargetConfig {
        let mut variables = self.variables();
        for (name, value) in changes {
            variables.insert(format!("FACTORY_PLUGIN_{name}"), (*value).to_owned());
        }
        Config::from_source(variables).unwrap().sql_target.unwrap()
    }

    /// Opens a configuration that must be refused, and proves that nothing of it stays open.
    pub(crate) async fn refused(&self, config: &SqlTargetConfig) -> TargetError {
        let error = open(config).await.expect_err("the target was opened");
        self.server.assert_session_count(USER, 0).await;
        self.server.assert_session_count(CONTROL_USER, 0).await;
        error
    }
}

pub(crate) async fn open(config: &SqlTargetConfig) -> Result<TargetConnection, TargetError> {
    Target::new(config).open(&SessionContract::default()).await
}

pub(crate) fn url(text: &str) -> JdbcUrl {
    JdbcUrl::parse(text).unwrap_or_else(|problems| panic!("{problems:?}"))
}
