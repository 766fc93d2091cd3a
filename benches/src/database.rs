//! What the benches against a database stand on: a durable server with everything in place.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::control::{Control, ControlConnection};
use tollgate::executor::{Executor as _, Outcome, SqlJdbcV1};
use tollgate::fault_points::Faults;
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::outbox::{Claim, ExecutorChoice, Report};
use tollgate::plan::{FolderCatalog, Step};
use tollgate_tests::chain::{Chain, Plugin, TARGET, TARGET_PASSWORD, TARGET_USER, outbox};
use tollgate_tests::server::MariaDb;

/// The table that bare statements keep their receipts in.
const BARE_LEDGER: &str = "bare_ledger";

/// Rows copied by one statement: each is locked, and a small server has little room for locks.
const COPIED_AT_ONCE: u64 = 50_000;

/// What a payload is made of.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// One row.
    Insert,
    /// A table of its own and its first row.
    CreateInsert,
    /// Five rows, each by a statement of its own.
    Five,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 3] = [Self::Insert, Self::CreateInsert, Self::Five];

    /// What its group is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::CreateInsert => "create-insert",
            Self::Five => "five-inserts",
        }
    }

    /// The statements of the payload with this number, each as long as in most real files.
    fn statements(self, number: u64) -> Vec<String> {
        let row = |table: &str, id: u64| {
            let note = "a note of the length that is usual in files like this one, ".repeat(2);
            format!("INSERT IGNORE INTO {table} (id, word, note) VALUES ({id}, 'word', '{note}')")
        };
        match self {
            Self::Insert => vec![row("entry", number * 10)],
            Self::CreateInsert => {
                let table = format!("made_{number}");
                let columns = (0..8).fold(String::new(), |mut columns, column| {
                    let _ =
                        write!(columns, ", column_number_{column} VARCHAR(64) NULL DEFAULT NULL");
                    columns
                });
                let create = format!(
                    "CREATE TABLE IF NOT EXISTS {table} (id BIGINT NOT NULL PRIMARY KEY, \
                     word VARCHAR(20), note VARCHAR(200){columns}) ENGINE=InnoDB"
                );
                vec![create, row(&table, 1)]
            }
            Self::Five => (0..5).map(|place| row("entry", number * 10 + place)).collect(),
        }
    }

    /// What takes the table away again.
    fn undo(self, number: u64) -> Option<String> {
        matches!(self, Self::CreateInsert).then(|| format!("DROP TABLE made_{number}"))
    }
}

/// A durable server, an executor that has carried out a step, and a bare connection.
pub struct Stand {
    /// The server and the catalogs on it.
    pub chain: Chain,
    executor: SqlJdbcV1,
    plugin: Plugin,
    bare: Conn,
    admin: Conn,
    number: u64,
}

impl Stand {
    /// Starts it.
    pub async fn start() -> Self {
        let chain = Chain::start_on(MariaDb::builder().durable()).await;
        chain
            .admin_run(
                "CREATE TABLE entry (id BIGINT NOT NULL PRIMARY KEY, word VARCHAR(20), \
                 note VARCHAR(200)) ENGINE=InnoDB",
            )
            .await;
        chain
            .admin_run(&format!("CREATE TABLE {BARE_LEDGER} LIKE factory_plugin_target_receipt"))
            .await;
        let mut bare = chain.server.connect(TARGET_USER, TARGET_PASSWORD, Some(TARGET)).await;
        bare.query_drop("SET autocommit = 0").await.unwrap();
        let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
        let (executor, admin) = (chain.executor(), chain.admin().await);
        let mut stand = Self { chain, executor, plugin, bare, admin, number: 0 };
        stand.step(Shape::Insert).await;
        stand.bare(Shape::Insert).await;
        stand
    }

    /// Installs the next payload of this shape in the place of the last one.
    fn install(&mut self, shape: Shape) -> (Step, FolderCatalog) {
        self.number += 1;
        let text = shape.statements(self.number).join(";\n");
        self.plugin.reinstall("1.0.0", &text, None);
        let step = self.plugin.step(&format!("plan{}", self.number), Direction::Forward);
        (step, self.plugin.catalog())
    }

    /// Carries out a new step, and tells how long that took.
    pub async fn step(&mut self, shape: Shape) -> Duration {
        let (step, catalog) = self.install(shape);
        let took = timed_delivery(&self.executor, &step, &catalog).await;
        self.undo(shape).await;
        took
    }

    /// Carries out a step and gives it, to be delivered again.
    pub async fn done(&mut self) -> (Step, FolderCatalog) {
        let (step, catalog) = self.install(Shape::Insert);
        timed_delivery(&self.executor, &step, &catalog).await;
        (step, catalog)
    }

    /// Delivers a step that was carried out.
    pub async fn again(&self, (step, catalog): &(Step, FolderCatalog)) -> Duration {
        timed_delivery(&self.executor, step, catalog).await
    }

    /// The statements that a step of this shape runs, by themselves: a row that says that they are about
    /// to run is committed before, and its change with what they do.
    pub async fn bare(&mut self, shape: Shape) -> Duration {
        self.number += 1;
        let digest = "0123456789abcdef".repeat(4);
        let insert = format!(
            "INSERT INTO {BARE_LEDGER} (step_idempotency_key, environment_code, plugin_code, \
             plugin_version, direction, content_hash, executor_code, policy_digest, \
             decision_digest, status, lease_token, lease_deadline, generation, execution_count, \
             statement_count, created_at, updated_at) VALUES ('plan{0}:1', 'preview', 'orders', \
             '1.0.0', 'FORWARD', 'sha256:{digest}', 'sql-jdbc:v1', 'sha256:{digest}', \
             'sha256:{digest}', 'RUNNING', '{1}', UTC_TIMESTAMP(6) + INTERVAL 5 MINUTE, 1, 1, 1, \
             UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
            self.number,
            &digest[..32],
        );
        let update = format!(
            "UPDATE {BARE_LEDGER} SET status = 'SUCCEEDED', external_receipt = 'receipt', \
             completed_at = UTC_TIMESTAMP(6), generation = generation + 1, \
             updated_at = UTC_TIMESTAMP(6) WHERE step_idempotency_key = 'plan{}:1' \
             AND lease_token = '{}' AND status = 'RUNNING'",
            self.number,
            &digest[..32],
        );
        let mut statements = vec![insert, "COMMIT".to_owned()];
        statements.extend(shape.statements(self.number));
        statements.extend([update, "COMMIT".to_owned()]);
        let begun = Instant::now();
        for statement in &statements {
            self.bare.query_drop(statement.as_str()).await.unwrap();
        }
        let took = begun.elapsed();
        self.undo(shape).await;
        took
    }

    /// Carries out a step whose holder died in the middle and whose lease is over.
    pub async fn takeover(&mut self) -> Duration {
        let (step, catalog) = self.install(Shape::Insert);
        let dies = "statement=error-before;inspect=error-before@1..;fail-record=error-before@1..";
        let dies = Faults::parse(dies, 0).unwrap();
        let holder = self.chain.executor();
        let outcome = dies.during(holder.execute(&step, &catalog)).await;
        assert!(matches!(outcome, Outcome::Indeterminate { .. }), "{outcome:?}");
        drop(holder);
        self.chain.server.assert_session_count(TARGET_USER, 2).await;
        self.chain.expire_leases().await;
        timed_delivery(&self.executor, &step, &catalog).await
    }

    async fn undo(&mut self, shape: Shape) {
        if let Some(undo) = shape.undo(self.number) {
            self.admin.query_drop(undo).await.unwrap();
        }
    }
}

async fn timed_delivery(executor: &SqlJdbcV1, step: &Step, catalog: &FolderCatalog) -> Duration {
    let begun = Instant::now();
    let outcome = executor.execute(step, catalog).await;
    let took = begun.elapsed();
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
    took
}

/// An outbox with one step that is due, among many rows that are not.
pub struct Crowd {
    chain: Chain,
    connection: ControlConnection,
}

impl Crowd {
    /// Fills it.
    pub async fn of(row_count: u64) -> Self {
        let builder = MariaDb::builder().durable();
        let chain = Chain::start_on(builder.arg("--innodb-buffer-pool-size=256M")).await;
        let control: Control = chain.control().await;
        let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
        let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
        let mut connection = control.open().await.unwrap();
        outbox().submit(&mut connection, &plugin.plan("due", "1.0.0"), &sql).await.unwrap();
        let mut crowd = Self { chain, connection };
        crowd.fill(row_count).await;
        let claim = crowd.claim().await;
        crowd.release(&claim).await;
        crowd
    }

    /// Copies the row under other keys: waiting, applied, claimed, or due later.
    async fn fill(&mut self, row_count: u64) {
        let columns = "environment_code, plan_fingerprint, plan_step_count, direction, \
                       executor_code, step, created_at, updated_at";
        let table = "factory_plugin_control_outbox";
        let mut count = 1;
        while count < row_count {
            let copy = format!(
                "INSERT INTO control_plane.{table} (plan_code, position, step_idempotency_key, \
                 status, not_before, {columns}) SELECT CONCAT('copy', {count}, '-', id), position, \
                 CONCAT('copy', {count}, '-', id), \
                 ELT(1 + id % 4, 'WAITING', 'APPLIED', 'CLAIMED', 'PENDING'), \
                 UTC_TIMESTAMP(6) + INTERVAL 10 DAY, {columns} \
                 FROM control_plane.{table} LIMIT {COPIED_AT_ONCE}"
            );
            self.chain.control_server().execute(&[&copy]).await;
            count += count.min(COPIED_AT_ONCE);
        }
    }

    /// Claims the step that is due, and hands it back; how long claiming took.
    pub async fn timed_claim(&mut self) -> Duration {
        let begun = Instant::now();
        let claim = self.claim().await;
        let took = begun.elapsed();
        self.release(&claim).await;
        took
    }

    async fn claim(&mut self) -> Claim {
        outbox().claim(&mut self.connection).await.unwrap().expect("one step is due")
    }

    async fn release(&mut self, claim: &Claim) {
        let released = outbox().record(&mut self.connection, claim, &Report::Released).await;
        released.unwrap().unwrap();
    }
}
