//! A private server with a bootstrapped ledger, and steps to claim in it.

use std::collections::BTreeMap;

use crate::server::{Flavour, PrivateServer, ServerBuilder};
use mysql_async::prelude::{FromRow, Queryable as _};
use tollgate::config::Config;
use tollgate::ledger::{Claim, ClaimRequest, Lease, Ledger, LedgerOptions, bootstrap};
use tollgate::target::{SessionContract, Target, TargetConnection, TargetError};

pub use crate::claims::{LEASE, compensation, failure, forward, granted, key};

use crate::wire::Wire;

/// The isolated catalog.
pub const CATALOG: &str = "plugin_preview";
/// The confined account.
pub const USER: &str = "tollgate_target";
/// The account of the control catalog.
pub const CONTROL_USER: &str = "host_control";
/// The password of both.
pub const PASSWORD: &str = "t4rget-pass";
/// The ledger, qualified.
pub const LEDGER: &str = "plugin_preview.factory_plugin_target_receipt";

/// The server, and the ledger in its catalog.
#[derive(Debug)]
pub struct Place {
    /// The server.
    pub server: PrivateServer,
    /// The ledger.
    pub ledger: Ledger,
}

impl Place {
    /// A server with an empty ledger and the table `plugin_preview.witness`.
    pub async fn on(flavour: Flavour) -> Self {
        Self::of(flavour.builder()).await
    }

    /// The same on a server with other options.
    pub async fn of(builder: ServerBuilder) -> Self {
        let place = Self::bare(builder).await;
        let mut connection = place.open().await;
        bootstrap(&mut connection).await.unwrap();
        connection.close().await;
        place
            .execute("CREATE TABLE plugin_preview.witness (id BIGINT PRIMARY KEY) ENGINE=InnoDB")
            .await;
        place
    }

    /// A server with both catalogs and accounts, and no ledger.
    pub async fn without_ledger(flavour: Flavour) -> Self {
        Self::bare(flavour.builder()).await
    }

    async fn bare(builder: ServerBuilder) -> Self {
        let server = builder.start();
        server.create_catalog(CATALOG).await;
        server.create_catalog("host_core").await;
        let confined =
            r"SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES ON `plugin\_preview`.*";
        server.create_account(USER, PASSWORD, &[confined]).await;
        let control = r"ALL PRIVILEGES ON `host\_core`.*";
        server.create_account(CONTROL_USER, PASSWORD, &[control]).await;
        Self { server, ledger: Ledger::default() }
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with(mut self, options: LedgerOptions) -> Self {
        self.ledger = Ledger::new(options);
        self
    }

    /// A verified connection.
    pub async fn open(&self) -> TargetConnection {
        self.open_at(self.server.port()).await
    }

    /// A connection whose wire the test holds.
    pub async fn open_wired(&self) -> (TargetConnection, Wire) {
        let (port, wire) = Wire::to(self.server.port()).await;
        (self.open_at(port).await, wire)
    }

    /// A connection by another port that leads to the server.
    pub async fn open_at(&self, port: u16) -> TargetConnection {
        self.try_open_at(port).await.unwrap()
    }

    /// The same where it may be refused.
    pub async fn try_open_at(&self, port: u16) -> Result<TargetConnection, TargetError> {
        let target = format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}?sslMode=DISABLED");
        let control = self.server.jdbc_url("host_core");
        let variables: BTreeMap<String, String> = [
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
        .collect();
        let config = Config::from_source(variables).unwrap().sql_target.unwrap();
        Target::new(&config).open(&SessionContract::default()).await
    }

    /// Claims a step.
    pub async fn claim(&self, connection: &mut TargetConnection, request: &ClaimRequest) -> Claim {
        self.ledger.claim(connection, request).await.unwrap()
    }

    /// Claims a step that must be granted.
    pub async fn granted(
        &self,
        connection: &mut TargetConnection,
        request: &ClaimRequest,
    ) -> Lease {
        granted(self.claim(connection, request).await)
    }

    /// Claims and completes a step on a connection of its own.
    pub async fn succeed(&self, request: &ClaimRequest) {
        let mut connection = self.open().await;
        let lease = self.granted(&mut connection, request).await;
        self.ledger.complete(&mut connection, &lease).await.unwrap();
        connection.close().await;
    }

    /// Claims and fails a step on a connection of its own.
    pub async fn fail(&self, request: &ClaimRequest) {
        let mut connection = self.open().await;
        let lease = self.granted(&mut connection, request).await;
        self.ledger.fail(&mut connection, &lease, &failure()).await.unwrap();
        connection.close().await;
    }

    /// Runs a statement as root.
    pub async fn execute(&self, statement: &str) {
        self.server.execute(&[statement]).await;
    }

    /// Sets columns of a step's row, as root.
    pub async fn set(&self, request: &ClaimRequest, assignments: &str) {
        let key = &request.key;
        self.execute(&format!(
            "UPDATE {LEDGER} SET {assignments} WHERE step_idempotency_key = '{key}'"
        ))
        .await;
    }

    /// Ends a step's lease.
    pub async fn expire(&self, request: &ClaimRequest) {
        self.set(request, "lease_deadline = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND").await;
    }

    /// The one row of a query, as root.
    pub async fn one<T: FromRow + Send + 'static>(&self, query: &str) -> T {
        let mut admin = self.server.admin().await;
        let row = admin.query_first(query).await.unwrap().unwrap();
        admin.disconnect().await.unwrap();
        row
    }

    /// A step's row as text, whatever its columns.
    pub async fn row(&self, request: &ClaimRequest) -> String {
        let key = &request.key;
        let query = format!("SELECT * FROM {LEDGER} WHERE step_idempotency_key = '{key}'");
        let row: mysql_async::Row = self.one(&query).await;
        format!("{:?}", row.unwrap())
    }

    /// A column of a step's row, as text.
    pub async fn column(&self, request: &ClaimRequest, column: &str) -> String {
        let key = &request.key;
        self.one(&format!(
            "SELECT CAST(IFNULL({column}, 'NULL') AS CHAR) FROM {LEDGER} \
             WHERE step_idempotency_key = '{key}'"
        ))
        .await
    }

    /// Rows of `witness`.
    pub async fn witnesses(&self) -> u64 {
        self.one("SELECT COUNT(*) FROM plugin_preview.witness").await
    }

    /// Whether the server has the session.
    pub async fn has_session(&self, id: u64) -> bool {
        let query = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        self.one::<u64>(&query).await == 1
    }
}
