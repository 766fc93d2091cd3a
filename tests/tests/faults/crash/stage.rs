//! A chain with one step to deliver, and what can be seen of it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::task::JoinHandle;
use tollgate::executor::{Executor as _, Outcome, SqlJdbcV1, Uncertainty};
use tollgate::fault_points::Faults;
use tollgate::ids::Direction;
use tollgate::plan::Step;
use tollgate_tests::chain::{Chain, Plugin, TARGET_USER};
use tollgate_tests::process::{Process, run_until_killed, tollgate};
use tollgate_tests::server::Flavour;
use tollgate_tests::staged::Staged;

/// DML alone: a row comes and row 2 goes, for which a test can hold the second statement up.
pub(crate) const ROWS: &str = "
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
    DELETE FROM entry WHERE id = 2;
";

/// DDL before and between the same.
pub(crate) const MIXED: &str = "
    CREATE TABLE IF NOT EXISTS first_made (id INT NOT NULL PRIMARY KEY, word VARCHAR(20));
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
    CREATE TABLE IF NOT EXISTS later_made (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB;
    DELETE FROM entry WHERE id = 2;
";

/// What the step hands back.
pub(crate) const RECEIPT: &str = "sql:preview:up:1";

/// How long what was staged may take until it is seen.
const PATIENCE: Duration = Duration::from_mins(1);

/// The chain, the release and its one step, `up:1`.
pub(crate) struct Stage {
    pub(crate) chain: Chain,
    pub(crate) plugin: Plugin,
    pub(crate) step: Step,
}

impl Stage {
    /// A step with this payload, the table `entry` with row 2, and counters of what happens to it.
    pub(crate) async fn of(flavour: Flavour, payload: &str) -> Self {
        let chain = Chain::start_on(flavour.builder()).await;
        let plugin = Plugin::install(payload, Some("DELETE FROM entry WHERE id = 1"));
        let step = plugin.step("up", Direction::Forward);
        for statement in [
            "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB",
            "INSERT INTO entry VALUES (2, 'two')",
            // An engine without transactions keeps count of what was rolled back, too.
            "CREATE DATABASE watched",
            "CREATE TABLE watched.attempt (id INT) ENGINE=MyISAM",
            "CREATE TABLE watched.effect (id INT) ENGINE=InnoDB",
            // Before: an INSERT IGNORE that finds its row there already is counted as well.
            "CREATE TRIGGER watch BEFORE INSERT ON entry FOR EACH ROW BEGIN \
             INSERT INTO watched.attempt VALUES (NEW.id); \
             INSERT INTO watched.effect VALUES (NEW.id); END",
        ] {
            chain.admin_run(statement).await;
        }
        Self { chain, plugin, step }
    }

    /// `tollgate execute` of the step.
    pub(crate) fn execute(&self) -> Command {
        self.execute_with(&[])
    }

    /// The same under a changed configuration.
    pub(crate) fn execute_with(&self, changes: &[(&str, &str)]) -> Command {
        let folder = self.plugin.release_folder("1.0.0").display().to_string();
        let step = ["execute", &folder, "schema", "--step-key", "up:1", "--format", "json"];
        tollgate(&self.chain, changes, &step)
    }

    /// Starts `tollgate execute` under faults.
    pub(crate) fn spawn(&self, staged: &Staged) -> Process {
        Process::spawn(staged.on(&mut self.execute()), &self.file("printed"))
    }

    /// Delivers the step to a process that dies of this fault, `point=crash@n`.
    pub(crate) fn crash(&self, points: &str) {
        self.crash_with(&[], points);
    }

    /// The same under a changed configuration.
    pub(crate) fn crash_with(&self, changes: &[(&str, &str)], points: &str) {
        let staged = Staged::new(points);
        run_until_killed(staged.on(&mut self.execute_with(changes)));
        let (point, _) = points.split_once('=').unwrap();
        let fired = staged.fired();
        assert!(fired.len() == 1 && fired[0].starts_with(&format!("{point} crash")), "{fired:?}");
    }

    /// A new path in a folder that goes with the stage.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.plugin.root().join(format!("{name}-{}", uuid::Uuid::new_v4().simple()))
    }

    /// Delivers the step.
    pub(crate) async fn deliver(&self) -> Outcome {
        self.chain.deliver(&self.plugin, &self.step).await
    }

    /// Delivers it under faults.
    pub(crate) async fn deliver_under(&self, faults: &Arc<Faults>) -> Outcome {
        faults.during(self.deliver()).await
    }

    /// Delivers it in the background.
    pub(crate) fn delivery(&self) -> JoinHandle<Outcome> {
        self.delivery_under(&faults(""))
    }

    /// Delivers it in the background under faults.
    pub(crate) fn delivery_under(&self, faults: &Arc<Faults>) -> JoinHandle<Outcome> {
        self.delivery_by(self.chain.executor(), faults)
    }

    /// The same by an executor of the test's.
    pub(crate) fn delivery_by(
        &self,
        executor: SqlJdbcV1,
        faults: &Arc<Faults>,
    ) -> JoinHandle<Outcome> {
        let (catalog, step) = (self.plugin.catalog(), self.step.clone());
        let faults = Arc::clone(faults);
        tokio::spawn(async move { faults.during(executor.execute(&step, &catalog)).await })
    }

    /// Holds row 2 until it is dropped or rolled back: the payload's DELETE waits.
    pub(crate) async fn hold_row_2(&self) -> Conn {
        let mut holder = self.chain.admin().await;
        holder.query_drop("START TRANSACTION").await.unwrap();
        holder.query_drop("SELECT * FROM entry WHERE id = 2 FOR UPDATE").await.unwrap();
        holder
    }

    /// Waits until a session of the target's account, other than this one, runs the DELETE.
    pub(crate) async fn deleting_session(&self, other_than: u64) -> u64 {
        let query = format!(
            "SELECT id FROM information_schema.processlist WHERE user = '{TARGET_USER}' \
             AND id <> {other_than} AND info LIKE '%DELETE%'"
        );
        let begun = Instant::now();
        loop {
            if let Some(session) = self.chain.rows::<u64>(&query).await.into_iter().next() {
                return session;
            }
            assert!(begun.elapsed() < PATIENCE, "no session runs the statement");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether the session is on the server.
    pub(crate) async fn has_session(&self, session: u64) -> bool {
        let query = format!("SELECT id FROM information_schema.processlist WHERE id = {session}");
        !self.chain.rows::<u64>(&query).await.is_empty()
    }

    /// The receipt's status, execution count and error code.
    pub(crate) async fn receipt(&self) -> Option<(String, u32, Option<String>)> {
        self.chain.receipt("up:1").await
    }

    /// Receipts in the ledger.
    pub(crate) async fn receipt_count(&self) -> u64 {
        self.chain.value("SELECT COUNT(*) FROM factory_plugin_target_receipt").await
    }

    /// The receipt's generation.
    pub(crate) async fn generation(&self) -> u64 {
        self.chain.value("SELECT generation FROM factory_plugin_target_receipt").await
    }

    /// How often the payload's INSERT ran, whatever became of it.
    pub(crate) async fn attempts(&self) -> u64 {
        self.chain.value("SELECT COUNT(*) FROM watched.attempt").await
    }

    /// How often what it did was committed.
    pub(crate) async fn effects(&self) -> u64 {
        self.chain.value("SELECT COUNT(*) FROM watched.effect").await
    }

    /// The rows of `entry`.
    pub(crate) async fn entries(&self) -> Vec<u32> {
        self.chain.rows("SELECT id FROM entry ORDER BY id").await
    }

    /// Every table but the ledger, as the server defines it, and the rows of `entry`.
    pub(crate) async fn schema_and_data(&self) -> (Vec<(String, String)>, Vec<(u32, String)>) {
        let mut tables = Vec::new();
        for table in self.chain.rows::<String>("SHOW TABLES").await {
            if table != "factory_plugin_target_receipt" {
                tables.push(self.chain.value(&format!("SHOW CREATE TABLE `{table}`")).await);
            }
        }
        (tables, self.chain.rows("SELECT id, word FROM entry ORDER BY id").await)
    }

    /// Ends every lease, as if its time had passed.
    pub(crate) async fn expire_leases(&self) {
        self.chain.expire_leases().await;
    }

    /// The step was applied, by the one delivery that could, and its DML took effect once.
    pub(crate) async fn assert_applied_once(&self, outcome: &Outcome, execution_count: u32) {
        assert_eq!(applied(outcome), RECEIPT);
        let receipt = ("SUCCEEDED".to_owned(), execution_count, None);
        assert_eq!(self.receipt().await, Some(receipt));
        assert_eq!(self.receipt_count().await, 1);
        assert_eq!(self.effects().await, 1, "the payload's rows took effect once");
        assert_eq!(self.entries().await, [1]);
    }
}

/// Faults of one delivery in this process.
pub(crate) fn faults(points: &str) -> Arc<Faults> {
    Faults::parse(points, 0).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until so many of the faults took place.
pub(crate) async fn until_fired(faults: &Faults, count: usize) {
    let begun = Instant::now();
    while faults.fired().len() < count {
        assert!(begun.elapsed() < PATIENCE, "{count} faults did not happen: {faults:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The external receipt of an applied step.
pub(crate) fn applied(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Applied(receipt) => receipt.as_str(),
        other => panic!("expected the step to be applied, got {other:?}"),
    }
}

/// How long a busy step is to wait; its code must be this one.
pub(crate) fn busy(outcome: &Outcome, code: &str) -> Duration {
    match outcome {
        Outcome::Indeterminate { reason: Uncertainty::Busy(busy), retry_after } => {
            assert_eq!(busy.code(), code);
            *retry_after
        }
        other => panic!("expected the step to be busy, got {other:?}"),
    }
}
