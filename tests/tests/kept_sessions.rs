//! Sessions kept between steps: used again as long as they are what they were, and never otherwise.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _, ExecutorRegistry, Outcome, SqlJdbcV1};
use tollgate::ids::Direction;
use tollgate::ledger::ClaimError;
use tollgate::plan::Step;
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate::worker::{Worker, WorkerOptions};
use tollgate_tests::chain::{Chain, Plugin, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::place::{Place, forward};
use tollgate_tests::server::Flavour;
use tollgate_tests::workload::Workload;

const ENTRY: &str =
    "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB";

/// Plugins `p1`, `p2`, …, each of which inserts its row.
struct Steps {
    chain: Chain,
    plugin: Plugin,
}

impl Steps {
    async fn on(flavour: Flavour) -> Self {
        let chain = Chain::start_on(flavour.builder()).await;
        chain.admin_run(ENTRY).await;
        let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
        for id in 1..=4 {
            let text = format!("INSERT IGNORE INTO entry (id, word) VALUES ({id}, 'one')");
            plugin.install_as(&format!("p{id}"), "1.0.0", &text, None);
        }
        Self { chain, plugin }
    }

    fn step(&self, id: u32) -> Step {
        let plan = self.plugin.plan_of(&format!("p{id}"), &format!("up{id}"), "1.0.0");
        plan.steps()[0].step(Direction::Forward).unwrap()
    }

    async fn deliver(&self, executor: &SqlJdbcV1, id: u32) -> Outcome {
        executor.execute(&self.step(id), &self.plugin.catalog()).await
    }

    async fn applies(&self, executor: &SqlJdbcV1, id: u32) {
        let outcome = self.deliver(executor, id).await;
        assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
        let receipt = self.chain.receipt(&format!("up{id}:1")).await;
        assert_eq!(receipt, Some(("SUCCEEDED".to_owned(), 1, None)));
    }

    /// The session that the step's receipt names.
    async fn session_of(&self, id: u32) -> u64 {
        let query = format!(
            "SELECT session_id FROM factory_plugin_target_receipt \
             WHERE step_idempotency_key = 'up{id}:1'"
        );
        self.chain.value(&query).await
    }

    async fn session_count(&self, count: usize) {
        self.chain.server.assert_session_count(TARGET_USER, count).await;
    }
}

async fn one_session_carries_out_one_step_after_the_other(flavour: Flavour) {
    let steps = Steps::on(flavour).await;
    let executor = steps.chain.executor();
    for id in 1..=3 {
        steps.applies(&executor, id).await;
    }
    // A duplicate and a refusal leave it in order, too.
    steps.applies(&executor, 3).await;
    assert_eq!(steps.session_of(1).await, steps.session_of(3).await);
    steps.session_count(1).await;
    executor.rest().await;
    steps.session_count(0).await;
    // It goes on, in another session.
    steps.applies(&executor, 4).await;
    assert_ne!(steps.session_of(1).await, steps.session_of(4).await);
    drop(executor);
    steps.session_count(0).await;
}
over_servers!(one_session_carries_out_one_step_after_the_other);

#[tokio::test]
async fn no_more_are_kept_than_the_configuration_says() {
    let steps = Steps::on(Flavour::MariaDb).await;
    let executor = steps.chain.executor_with(&[("SQL_TARGET_POOL_SESSIONS_MAX", "2")]);
    let outcomes = tokio::join!(
        steps.deliver(&executor, 1),
        steps.deliver(&executor, 2),
        steps.deliver(&executor, 3),
        steps.deliver(&executor, 4),
    );
    for outcome in [outcomes.0, outcomes.1, outcomes.2, outcomes.3] {
        assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
    }
    steps.session_count(2).await;
}

#[tokio::test]
async fn none_is_kept_when_none_is_to_be_used_again() {
    let steps = Steps::on(Flavour::MariaDb).await;
    let executor = steps.chain.executor_with(&[("SQL_TARGET_SESSION_REUSE_SECONDS", "0")]);
    for id in 1..=2 {
        steps.applies(&executor, id).await;
        steps.session_count(0).await;
    }
}

/// A worker that has nothing to do holds nothing open, either.
#[tokio::test]
async fn a_kept_session_is_closed_when_its_time_is_over() {
    let steps = Steps::on(Flavour::MariaDb).await;
    let executor = steps.chain.executor_with(&[("SQL_TARGET_SESSION_REUSE_SECONDS", "2")]);
    steps.applies(&executor, 1).await;
    steps.session_count(0).await;
    steps.applies(&executor, 2).await;
    assert_ne!(steps.session_of(1).await, steps.session_of(2).await);
}

async fn a_session_that_ended_meanwhile_is_replaced_unseen(flavour: Flavour) {
    let mut steps = Steps::on(flavour).await;
    let executor = steps.chain.executor();
    steps.applies(&executor, 1).await;
    let killed = steps.session_of(1).await;
    steps.chain.admin_run(&format!("KILL {killed}")).await;
    steps.session_count(0).await;
    steps.applies(&executor, 2).await;
    assert_ne!(steps.session_of(2).await, killed);
    steps.chain.server.restart();
    steps.applies(&executor, 3).await;
    // Of a server that is away the step says so, and is applied once it is back.
    steps.chain.server.stop();
    match steps.deliver(&executor, 4).await {
        Outcome::NotApplied { error: ExecutionError::Target(_), retryable: true } => {}
        other => panic!("expected an unreachable target, got {other:?}"),
    }
    steps.chain.server.start_again();
    steps.applies(&executor, 4).await;
}
over_servers!(a_session_that_ended_meanwhile_is_replaced_unseen);

/// As after a failover: the connection still leads to the former writer.
async fn a_server_that_takes_no_writes_any_more_is_noticed(flavour: Flavour) {
    let steps = Steps::on(flavour).await;
    let executor = steps.chain.executor();
    steps.applies(&executor, 1).await;
    steps.chain.admin_run("SET GLOBAL read_only = 1").await;
    match steps.deliver(&executor, 2).await {
        Outcome::NotApplied { error: ExecutionError::Target(error), .. } => {
            assert_eq!(error.code(), "server-read-only");
        }
        other => panic!("expected a read-only target, got {other:?}"),
    }
    assert_eq!(steps.chain.receipt("up2:1").await, None);
    steps.chain.admin_run("SET GLOBAL read_only = 0").await;
    steps.applies(&executor, 2).await;
}
over_servers!(a_server_that_takes_no_writes_any_more_is_noticed);

/// Grants are proven when a session is opened: within the time a session is used again, and then.
#[tokio::test]
async fn a_grant_that_is_too_many_is_noticed_when_its_time_is_over() {
    let steps = Steps::on(Flavour::MariaDb).await;
    let keeps = steps.chain.executor();
    let opens = steps.chain.executor_with(&[("SQL_TARGET_SESSION_REUSE_SECONDS", "0")]);
    steps.applies(&keeps, 1).await;
    steps.applies(&opens, 2).await;
    let grant = format!("GRANT SELECT ON control_plane.* TO '{TARGET_USER}'@'%'");
    steps.chain.admin_run(&grant).await;
    let outcome = steps.deliver(&opens, 3).await;
    assert_eq!(outcome.code(), Some("grants-beyond-catalog"), "{outcome:?}");
    assert_eq!(steps.chain.receipt("up3:1").await, None);
    steps.applies(&keeps, 4).await;
    keeps.rest().await;
    assert_eq!(steps.deliver(&keeps, 3).await.code(), Some("grants-beyond-catalog"));
}

/// A privilege that is missing is the server's to refuse, at the next step of any session.
async fn a_revoked_privilege_holds_for_a_kept_session_at_once(flavour: Flavour) {
    let steps = Steps::on(flavour).await;
    let executor = steps.chain.executor();
    steps.applies(&executor, 1).await;
    let account = format!("`plugin\\_preview`.* FROM '{TARGET_USER}'@'%'");
    steps.chain.admin_run(&format!("REVOKE INSERT ON {account}")).await;
    let outcome = steps.deliver(&executor, 2).await;
    assert_eq!(outcome.code(), Some("ledger-statement-refused"), "{outcome:?}");
    assert_eq!(steps.chain.receipt("up2:1").await, None);
}
over_servers!(a_revoked_privilege_holds_for_a_kept_session_at_once);

/// What somebody else did in it, as behind a proxy that shares sessions.
async fn a_session_that_is_set_otherwise_claims_nothing(flavour: Flavour) {
    let place = Place::on(flavour).await;
    for setting in ["SET SESSION sql_mode = ''", "SET time_zone = '+05:00'"] {
        let (mut connection, wire) = place.open_wired().await;
        wire.say(setting).await;
        let claim = place.ledger.claim(&mut connection, &forward("step-1")).await;
        assert_eq!(claim, Err(ClaimError::NotAsKept), "{setting}");
        let rows: u64 =
            place.one("SELECT COUNT(*) FROM plugin_preview.factory_plugin_target_receipt").await;
        assert_eq!(rows, 0, "{setting}");
    }
}
over_servers!(a_session_that_is_set_otherwise_claims_nothing);

async fn a_session_whose_statement_was_killed_or_dropped_is_not_used_again(flavour: Flavour) {
    let steps = Steps::on(flavour).await;
    steps.chain.admin_run("INSERT INTO entry VALUES (2, 'held')").await;
    let executor = Arc::new(steps.chain.executor());
    steps.applies(&executor, 1).await;
    let first = steps.session_of(1).await;

    // Killed in the middle of its statement.
    let mut holder = steps.chain.admin().await;
    holder.query_drop("BEGIN").await.unwrap();
    holder.query_drop("SELECT * FROM entry WHERE id = 2 FOR UPDATE").await.unwrap();
    let delivery = delivery(&steps, &executor, 2);
    until_blocked(&steps, first).await;
    steps.chain.admin_run(&format!("KILL {first}")).await;
    let outcome = delivery.await.unwrap();
    assert!(!matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
    steps.applies(&executor, 3).await;
    let second = steps.session_of(3).await;
    assert_ne!(second, first);

    // Dropped in the middle of its statement.
    let delivery = self::delivery(&steps, &executor, 2);
    until_blocked(&steps, second).await;
    delivery.abort();
    assert!(delivery.await.is_err());
    holder.query_drop("ROLLBACK").await.unwrap();
    steps.applies(&executor, 4).await;
    assert_ne!(steps.session_of(4).await, second);
}
over_servers!(a_session_whose_statement_was_killed_or_dropped_is_not_used_again);

fn delivery(steps: &Steps, executor: &Arc<SqlJdbcV1>, id: u32) -> tokio::task::JoinHandle<Outcome> {
    let (executor, step, catalog) = (Arc::clone(executor), steps.step(id), steps.plugin.catalog());
    tokio::spawn(async move { executor.execute(&step, &catalog).await })
}

/// Waits until the session waits for the row.
async fn until_blocked(steps: &Steps, session: u64) {
    let query = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {session} \
         AND info LIKE '%INSERT IGNORE%'"
    );
    let begun = Instant::now();
    while steps.chain.value::<u64>(&query).await == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "no statement is blocked");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The executor lives on, as an embedder's may.
#[tokio::test]
async fn a_worker_that_ends_leaves_no_session_behind() {
    let chain = Chain::start().await;
    let (control, workload) = (chain.control().await, Workload::of(2));
    workload.submit(&control).await;
    let config = chain.config(&[]);
    let store = PolicyStore::embedded().unwrap();
    let sandbox = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    let registry = Arc::new(ExecutorRegistry::open(&config, &store, &sandbox).await.unwrap());
    let options = WorkerOptions { until_idle: true, ..WorkerOptions::from(&config) };
    let catalog = Arc::new(workload.plugin.catalog());
    let ended = Worker::new(control, Arc::clone(&registry), catalog, options).run().await;
    assert_eq!(ended.applied, 8);
    chain.server.assert_session_count(TARGET_USER, 0).await;
    workload.assert_effects(&chain).await;
    drop(registry);
}

/// A step that failed in order leaves its session in order: out of its transaction, with nothing of it.
async fn a_failed_step_leaves_nothing_to_the_next(flavour: Flavour) {
    let steps = Steps::on(flavour).await;
    let fails =
        "INSERT IGNORE INTO entry (id, word) VALUES (9, 'nine'); DELETE FROM absent WHERE id = 1";
    steps.plugin.install_as("p2", "1.0.0", fails, None);
    let executor = steps.chain.executor();
    steps.applies(&executor, 1).await;
    let outcome = steps.deliver(&executor, 2).await;
    assert_eq!(outcome.code(), Some("statement-failed"), "{outcome:?}");
    steps.applies(&executor, 3).await;
    assert_eq!(steps.session_of(1).await, steps.session_of(3).await);
    let ids: Vec<u32> = steps.chain.rows("SELECT id FROM entry ORDER BY id").await;
    assert_eq!(ids, [1, 3]);
}
over_servers!(a_failed_step_leaves_nothing_to_the_next);

/// What a session remembers of what ran in it, and no pin resets: no payload can ask for it.
#[tokio::test]
async fn what_a_session_remembers_is_out_of_a_payloads_reach() {
    let steps = Steps::on(Flavour::MariaDb).await;
    let executor = steps.chain.executor();
    for word in [
        "LAST_INSERT_ID()",
        "FOUND_ROWS()",
        "ROW_COUNT()",
        "CONNECTION_ID()",
        "GET_LOCK('a', 0)",
        "IS_USED_LOCK('a')",
        "RELEASE_LOCK('a')",
        "@a",
        "@@identity",
        "@@warning_count",
    ] {
        let text = format!("INSERT IGNORE INTO entry (id, word) VALUES (1, {word})");
        steps.plugin.install_as("p1", "1.0.0", &text, None);
        let outcome = steps.deliver(&executor, 1).await;
        let ExecutionError::Refused { refusals, .. } = (match outcome {
            Outcome::NotApplied { error, .. } => error,
            other => panic!("{word}: {other:?}"),
        }) else {
            panic!("{word} is not refused");
        };
        assert!(refusals.iter().any(|it| it.code.as_str() == "policy-denied"), "{word}");
    }
}
