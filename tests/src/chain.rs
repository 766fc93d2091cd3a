//! The whole chain on a private server: control catalog, isolated target, ledger, executor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::{FromRow, Queryable as _};
use tempfile::TempDir;
use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::executor::{Executor as _, Outcome, SqlJdbcV1};
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::ledger::bootstrap;
use tollgate::outbox::{Outbox, OutboxOptions};
use tollgate::plan::{FolderCatalog, Plan, Step, publish, read_release};
use tollgate::policy::{Policy, PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate::target::{SessionContract, Target};

use crate::server::{MariaDb, PrivateServer, ServerBuilder};

/// The isolated catalog.
pub const TARGET: &str = "plugin_preview";
/// The control catalog.
pub const CONTROL: &str = "control_plane";
/// The target account's name.
pub const TARGET_USER: &str = "tollgate_target";
/// The target account's password: no output may ever hold it.
pub const TARGET_PASSWORD: &str = "canary-target-password";
/// The control account's name.
pub const CONTROL_USER: &str = "tollgate_control";
/// The control account's password: no output may ever hold it.
pub const CONTROL_PASSWORD: &str = "canary-control-password";

/// How long counters stay the same before nothing is on its way to them.
const SETTLED: Duration = Duration::from_millis(300);

/// A private server with both catalogs, both accounts and the ledger.
#[derive(Debug)]
pub struct Chain {
    /// The server: the target's, and the control catalog's unless that is on one of its own.
    pub server: PrivateServer,
    control: Option<PrivateServer>,
    variables: BTreeMap<String, String>,
    policy: Policy,
}

impl Chain {
    /// Starts a MariaDB and puts everything in place.
    pub async fn start() -> Self {
        Self::start_on(MariaDb::builder()).await
    }

    /// The same on a server with other options.
    pub async fn start_on(builder: ServerBuilder) -> Self {
        Self::on(builder.start()).await
    }

    /// The same on a server that runs already.
    pub async fn on(server: PrivateServer) -> Self {
        Self::with(server, None).await
    }

    /// The control catalog on one server, the target on another.
    pub async fn start_apart() -> Self {
        Self::with(MariaDb::start(), Some(MariaDb::start())).await
    }

    async fn with(server: PrivateServer, control: Option<PrivateServer>) -> Self {
        let control_side = control.as_ref().unwrap_or(&server);
        server.create_catalog(TARGET).await;
        control_side.create_catalog(CONTROL).await;
        let grants = format!(
            "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES ON `{}`.*",
            TARGET.replace('_', r"\_")
        );
        server.create_account(TARGET_USER, TARGET_PASSWORD, &[&grants]).await;
        let grants = format!("ALL PRIVILEGES ON `{}`.*", CONTROL.replace('_', r"\_"));
        control_side.create_account(CONTROL_USER, CONTROL_PASSWORD, &[&grants]).await;
        let variables = variables(&server, control_side);
        let chain = Self { server, control, variables, policy: policy() };
        chain.bootstrap().await;
        chain
    }

    /// The same chain through another node of its server's cluster, where all of it is in place.
    #[must_use]
    pub fn through(&self, node: PrivateServer) -> Self {
        let variables = variables(&node, &node);
        Self { server: node, control: None, variables, policy: self.policy.clone() }
    }

    async fn bootstrap(&self) {
        let config = self.config(&[]);
        let target = Target::new(config.sql_target.as_ref().unwrap());
        let mut connection = target.open(&SessionContract::default()).await.unwrap();
        bootstrap(&mut connection).await.unwrap();
        connection.close().await;
    }

    /// The configuration, with other values for some variables (named without their prefix).
    pub fn config(&self, changes: &[(&str, &str)]) -> Config {
        let mut variables = self.variables.clone();
        for (name, value) in changes {
            variables.insert(format!("FACTORY_PLUGIN_{name}"), (*value).to_owned());
        }
        Config::from_source(variables).unwrap()
    }

    /// The variables of the configuration, for processes.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The control catalog, with its outbox in place.
    pub async fn control(&self) -> Control {
        let control = Control::new(self.config(&[]).control.as_ref().unwrap());
        let mut connection = control.open().await.unwrap();
        tollgate::outbox::bootstrap(&mut connection).await.unwrap();
        connection.close().await;
        control
    }

    /// The server with the control catalog.
    pub fn control_server(&self) -> &PrivateServer {
        self.control.as_ref().unwrap_or(&self.server)
    }

    /// The same, to stop and start it.
    pub fn control_server_mut(&mut self) -> &mut PrivateServer {
        self.control.as_mut().unwrap_or(&mut self.server)
    }

    /// Rows of the control catalog, as root sees them.
    pub async fn control_rows<T: FromRow + Send + 'static>(&self, query: &str) -> Vec<T> {
        let mut admin = self.control_server().admin().await;
        admin.query_drop(format!("USE `{CONTROL}`")).await.unwrap();
        let rows = admin.query(query).await.unwrap();
        admin.disconnect().await.unwrap();
        rows
    }

    /// `sql-jdbc:v1` for the target.
    pub fn executor(&self) -> SqlJdbcV1 {
        self.executor_with(&[])
    }

    /// `sql-jdbc:v1` under a changed configuration.
    pub fn executor_with(&self, changes: &[(&str, &str)]) -> SqlJdbcV1 {
        let config = self.config(changes);
        SqlJdbcV1::new(config.sql_target.as_ref().unwrap(), self.policy.clone())
    }

    /// The policy pinned to `sql-jdbc:v1`.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Delivers a step once.
    pub async fn deliver(&self, plugin: &Plugin, step: &Step) -> Outcome {
        self.executor().execute(step, &plugin.catalog()).await
    }

    /// Rows of the target, as root sees them.
    pub async fn rows<T: FromRow + Send + 'static>(&self, query: &str) -> Vec<T> {
        let mut admin = self.server.admin().await;
        admin.query_drop(format!("USE `{TARGET}`")).await.unwrap();
        let rows = admin.query(query).await.unwrap();
        admin.disconnect().await.unwrap();
        rows
    }

    /// The server's counters of these names once they stay. Servers add a session that ends to their
    /// totals a moment after its client saw it end, and old ones meanwhile count it twice or not.
    pub async fn settled_counters(&self, names: &[&str]) -> Vec<(String, u64)> {
        let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let query = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "));
        let mut admin = self.server.admin().await;
        let mut last: Vec<(String, u64)> = admin.query(&query).await.unwrap();
        let mut since = Instant::now();
        while since.elapsed() < SETTLED {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = admin.query(&query).await.unwrap();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        admin.disconnect().await.unwrap();
        assert!(!last.is_empty(), "{query} found nothing");
        last
    }

    /// How often the server was asked to change something or to end a transaction.
    pub async fn changes(&self) -> Vec<(String, u64)> {
        self.settled_counters(&[
            "Com_create_table",
            "Com_drop_table",
            "Com_insert",
            "Com_update",
            "Com_delete",
            "Com_commit",
            "Com_rollback",
            "Com_stmt_prepare",
            "Com_stmt_execute",
        ])
        .await
    }

    /// One value of the target, as root sees it.
    pub async fn value<T: FromRow + Send + 'static>(&self, query: &str) -> T {
        self.rows(query).await.into_iter().next().unwrap()
    }

    /// The receipt's status, execution count and error code; none without a receipt.
    pub async fn receipt(&self, key: &str) -> Option<(String, u32, Option<String>)> {
        let query = format!(
            "SELECT status, execution_count, last_error_code FROM factory_plugin_target_receipt \
             WHERE step_idempotency_key = '{key}'"
        );
        self.rows(&query).await.into_iter().next()
    }

    /// Ends every lease, as if its time had passed.
    pub async fn expire_leases(&self) {
        self.admin_run(
            "UPDATE factory_plugin_target_receipt SET lease_deadline = UTC_TIMESTAMP(6) - \
             INTERVAL 1 SECOND WHERE status = 'RUNNING'",
        )
        .await;
    }

    /// Ends every worker's claim in the outbox, as if its time had passed.
    pub async fn expire_claims(&self) {
        let outbox = format!("`{CONTROL}`.factory_plugin_control_outbox");
        let over = format!(
            "UPDATE {outbox} SET not_before = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND \
             WHERE status = 'CLAIMED'"
        );
        self.control_server().execute(&[&over]).await;
    }

    /// Runs a statement in the target's catalog as root.
    pub async fn admin_run(&self, statement: &str) {
        self.server.execute(&[&format!("USE `{TARGET}`"), statement]).await;
    }

    /// A root session in the target's catalog, to hold locks with.
    pub async fn admin(&self) -> Conn {
        let mut admin = self.server.admin().await;
        admin.query_drop(format!("USE `{TARGET}`")).await.unwrap();
        admin
    }
}

fn variables(server: &PrivateServer, control: &PrivateServer) -> BTreeMap<String, String> {
    let prefixed = |name: &str| format!("FACTORY_PLUGIN_{name}");
    let variables = [
        ("EXECUTOR_CODE", "sql-jdbc:v1"),
        ("SQL_TARGET_ENABLED", "true"),
        ("SQL_TARGET_ENVIRONMENT_CODE", "preview"),
        ("SQL_TARGET_JDBC_URL", &server.jdbc_url(TARGET)),
        ("SQL_TARGET_USERNAME", TARGET_USER),
        ("SQL_TARGET_PASSWORD", TARGET_PASSWORD),
        ("SQL_TARGET_ALLOWED_CATALOG", TARGET),
        ("CONTROL_JDBC_URL", &control.jdbc_url(CONTROL)),
        ("CONTROL_USERNAME", CONTROL_USER),
        ("CONTROL_PASSWORD", CONTROL_PASSWORD),
    ];
    variables.into_iter().map(|(name, value)| (prefixed(name), value.to_owned())).collect()
}

/// The outbox of the environment that every chain's configuration names.
pub fn outbox() -> Outbox {
    let environment = Some("preview".parse().unwrap());
    Outbox::new(OutboxOptions { environment, ..OutboxOptions::default() })
}

/// The policy pinned to `sql-jdbc:v1` in the embedded store.
pub fn policy() -> Policy {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    runtime.load(pin, &store.component(pin).unwrap()).unwrap()
}

/// A release folder in a temporary place: one SQL contribution called `schema`.
#[derive(Debug)]
pub struct Plugin {
    folder: TempDir,
}

impl Plugin {
    /// Installs `orders@1.0.0` with this forward payload and its compensation.
    pub fn install(forward: &str, compensation: Option<&str>) -> Self {
        let plugin = Self { folder: tempfile::tempdir().unwrap() };
        plugin.reinstall("1.0.0", forward, compensation);
        plugin
    }

    /// Installs a version in place of what the folder holds for it.
    pub fn reinstall(&self, version: &str, forward: &str, compensation: Option<&str>) {
        self.install_as("orders", version, forward, compensation);
    }

    /// Installs a release of another plugin beside.
    pub fn install_as(&self, code: &str, version: &str, forward: &str, compensation: Option<&str>) {
        let folder = self.root().join(code).join(version);
        std::fs::create_dir_all(&folder).unwrap();
        let mut manifest = format!(
            "code = \"{code}\"\nversion = \"{version}\"\n\n[[contribution]]\nkey = \"schema\"\n\
             type = \"DATABASE_MIGRATION\"\ntarget = \"sql\"\nidempotent = true\n\
             forward = \"forward.sql\"\n"
        );
        std::fs::write(folder.join("forward.sql"), forward).unwrap();
        if let Some(compensation) = compensation {
            manifest.push_str("compensation = \"compensate.sql\"\n");
            std::fs::write(folder.join("compensate.sql"), compensation).unwrap();
        }
        std::fs::write(folder.join("plugin.toml"), manifest).unwrap();
    }

    /// The folder of a version.
    pub fn release_folder(&self, version: &str) -> PathBuf {
        self.folder.path().join("orders").join(version)
    }

    /// The folder of all versions.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// What is installed.
    pub fn catalog(&self) -> FolderCatalog {
        FolderCatalog::tree(self.folder.path())
    }

    /// A plan of `version` as it is installed now.
    pub fn plan(&self, code: &str, version: &str) -> Plan {
        self.plan_of("orders", code, version)
    }

    /// The same of another plugin.
    pub fn plan_of(&self, plugin: &str, code: &str, version: &str) -> Plan {
        let folder = self.root().join(plugin).join(version);
        let release = read_release(&folder).unwrap();
        let document = publish(&code.parse().unwrap(), &[release]).unwrap();
        Plan::parse(document.as_bytes()).unwrap()
    }

    /// A plan of several plugins' `1.0.0`, in this order, as a document.
    pub fn document_of(&self, code: &str, plugins: &[&str]) -> String {
        let release =
            |plugin: &&str| read_release(&self.root().join(plugin).join("1.0.0")).unwrap();
        let releases: Vec<_> = plugins.iter().map(release).collect();
        publish(&code.parse().unwrap(), &releases).unwrap()
    }

    /// The only step of a plan of `1.0.0`, in one direction. Its key is `<plan>:1`, of a
    /// compensation `<plan>:1:compensate`.
    pub fn step(&self, plan: &str, direction: Direction) -> Step {
        self.plan(plan, "1.0.0").steps()[0].step(direction).unwrap()
    }
}
