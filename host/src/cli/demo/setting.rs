//! What the demo's story needs: a server with two catalogs and two accounts, and a configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tollgate::config::Config;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{Policy, PolicyRuntime, PolicyStore};
use tollgate::target::grants_sql;

use super::super::sandbox::{self, RuntimeArguments};
use super::super::{Exit, Failure};
use super::files;
use super::server::PrivateServer;

/// The isolated catalog.
pub(super) const TARGET: &str = "plugin_preview";
/// The control side's catalog, which nothing of a plugin may ever touch.
pub(super) const CONTROL: &str = "control_plane";

/// Where the story plays.
pub(super) struct Setting {
    pub(super) server: PrivateServer,
    pub(super) config: Config,
    /// What the configuration was read from, for the workers' processes.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) runtime: PolicyRuntime,
    pub(super) store: PolicyStore,
    pub(super) policy: Policy,
    /// What made the target's account, without its password.
    pub(super) grants: String,
    /// The folder with the sample plugin's releases.
    pub(super) releases: PathBuf,
}

impl Setting {
    /// Starts the server and sets it up as an operator would: catalogs and accounts by hand.
    pub(super) async fn build(runtime: &RuntimeArguments) -> Result<Self, Failure> {
        let server = PrivateServer::start().await?;
        let (target_password, control_password) = (password(), password());
        let catalog = TARGET.parse().map_err(Failure::usage)?;
        let grants = grants_sql(&catalog);
        let control_catalog = CONTROL.replace('_', r"\_");
        server
            .rows(&format!(
                "CREATE DATABASE `{TARGET}` CHARACTER SET utf8mb4;\n\
                 CREATE DATABASE `{CONTROL}` CHARACTER SET utf8mb4;\n\
                 CREATE TABLE `{CONTROL}`.sys_user (user_name VARCHAR(64) PRIMARY KEY);\n\
                 CREATE USER 'tollgate_control'@'%' IDENTIFIED BY '{control_password}';\n\
                 GRANT ALL ON `{control_catalog}`.* TO 'tollgate_control'@'%';\n{}",
                grants.replace("<password>", &target_password)
            ))
            .await?;
        let releases = server.folder().join("plugins");
        files::write(&releases)?;
        let variables = variables(server.port(), target_password, control_password);
        let config = Config::from_source(variables.clone())?;
        let store = PolicyStore::embedded()?;
        let runtime = runtime.start()?;
        let policy = sandbox::load_pinned(&runtime, &store, &ExecutorCode::sql_jdbc_v1())?;
        Ok(Self { server, config, variables, runtime, store, policy, grants, releases })
    }
}

/// The variables an operator sets, in a map of the demo's own: no other configuration is read.
fn variables(port: u16, target: String, control: String) -> BTreeMap<String, String> {
    let url = |catalog: &str| format!("jdbc:mysql://127.0.0.1:{port}/{catalog}");
    let variables = [
        ("EXECUTOR_CODE", "sql-jdbc:v1".to_owned()),
        ("SQL_TARGET_ENABLED", "true".to_owned()),
        ("SQL_TARGET_ENVIRONMENT_CODE", "preview".to_owned()),
        ("SQL_TARGET_JDBC_URL", url(TARGET)),
        ("SQL_TARGET_USERNAME", "tollgate_target".to_owned()),
        ("SQL_TARGET_PASSWORD", target),
        ("SQL_TARGET_ALLOWED_CATALOG", TARGET.to_owned()),
        ("CONTROL_JDBC_URL", url(CONTROL)),
        ("CONTROL_USERNAME", "tollgate_control".to_owned()),
        ("CONTROL_PASSWORD", control),
    ];
    variables.into_iter().map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), value)).collect()
}

fn password() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// The story goes on only while it is true.
pub(super) fn unexpected(what: impl Into<String>) -> Failure {
    Failure::new(Exit::NOT_APPLIED, what.into())
}
