//! `sql-jdbc:v1` when something goes wrong: dead holders, lost leases, killed sessions, bounds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _, Outcome, SqlJdbcV1, Uncertainty};
use tollgate::ids::Direction;
use tollgate::plan::Step;
use tollgate_tests::chain::{Chain, Plugin, TARGET_USER};

/// Two rows; a test blocks the second statement by holding a lock on row 2.
const ROWS: &str = "
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
    DELETE FROM entry WHERE id = 2;
";

/// A chain whose table has row 2.
async fn chain() -> Chain {
    let chain = Chain::start().await;
    chain
        .admin_run(
            "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB",
        )
        .await;
    chain.admin_run("INSERT INTO entry VALUES (2, 'two')").await;
    chain
}

/// Holds row 2 until it is dropped or rolled back.
async fn hold_row_2(chain: &Chain) -> Conn {
    let mut holder = chain.admin().await;
    holder.query_drop("START TRANSACTION").await.unwrap();
    holder.query_drop("SELECT * FROM entry WHERE id = 2 FOR UPDATE").await.unwrap();
    holder
}

/// Waits until a statement of the target's account waits for row 2, and gives its session.
async fn blocked_session(chain: &Chain) -> u64 {
    let query = format!(
        "SELECT id FROM information_schema.processlist WHERE user = '{TARGET_USER}' AND \
         info LIKE '%DELETE%'"
    );
    let begun = Instant::now();
    loop {
        if let Some(session) = chain.rows::<u64>(&query).await.into_iter().next() {
            return session;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no statement is blocked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Delivers in the background.
fn delivery(executor: SqlJdbcV1, plugin: &Plugin, step: &Step) -> tokio::task::JoinHandle<Outcome> {
    let (catalog, step) = (plugin.catalog(), step.clone());
    let executor = Arc::new(executor);
    tokio::spawn(async move { executor.execute(&step, &catalog).await })
}

fn applied(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Applied(receipt) => receipt.as_str(),
        other => panic!("expected the step to be applied, got {other:?}"),
    }
}

async fn words(chain: &Chain) -> Vec<u32> {
    chain.rows("SELECT id FROM entry ORDER BY id").await
}

#[tokio::test]
async fn a_lease_held_by_another_is_busy_and_not_stolen() {
    let chain = chain().await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    blocked_session(&chain).await;

    match chain.deliver(&plugin, &step).await {
        Outcome::Indeterminate { reason: Uncertainty::Busy(busy), retry_after } => {
            assert_eq!(busy.code(), "lease-held");
            assert!(busy.lease_deadline.is_some());
            assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_mins(5));
        }
        other => panic!("expected busy, got {other:?}"),
    }
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&first.await.unwrap()), "sql:preview:up:1");
    assert_eq!(words(&chain).await, [1]);
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 1, None));
}

#[tokio::test]
async fn a_dead_holders_statement_is_ended_before_the_step_runs_again() {
    let chain = chain().await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = blocked_session(&chain).await;
    // The holder's future is dropped in the middle of a statement; the server goes on with it.
    first.abort();
    assert!(first.await.is_err());
    chain.expire_leases().await;
    drop(holder);

    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    let (status, count, _) = chain.receipt("up:1").await.unwrap();
    assert_eq!((status.as_str(), count), ("SUCCEEDED", 2));
    assert_eq!(words(&chain).await, [1]);
    let old: Vec<u64> = chain
        .rows(&format!("SELECT id FROM information_schema.processlist WHERE id = {session}"))
        .await;
    assert_eq!(old, [] as [u64; 0]);
    chain.server.assert_session_count(TARGET_USER, 0).await;
}

#[tokio::test]
async fn a_stale_holders_rows_are_rolled_back() {
    let chain = chain().await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    blocked_session(&chain).await;
    // Somebody else has the row now; the holder does not know yet.
    chain
        .admin_run(
            "UPDATE factory_plugin_target_receipt SET lease_token = \
             '00000000000000000000000000000000', generation = generation + 1",
        )
        .await;
    holder.query_drop("ROLLBACK").await.unwrap();
    match first.await.unwrap() {
        Outcome::Indeterminate { reason: Uncertainty::LeaseLost, .. } => {}
        other => panic!("expected a lost lease, got {other:?}"),
    }
    // Neither its insert nor its delete: only what was there before.
    assert_eq!(words(&chain).await, [2]);
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("RUNNING".to_owned(), 1, None));
}

#[tokio::test]
async fn a_payload_that_never_succeeds_ends_with_a_person() {
    let chain = Chain::start().await;
    let plugin = Plugin::install("DELETE FROM missing WHERE id = 1", None);
    let step = plugin.step("up", Direction::Forward);
    let executor = chain.executor_with(&[("SQL_TARGET_EXECUTION_COUNT_MAX", "2")]);
    for _ in 0..2 {
        let outcome = executor.execute(&step, &plugin.catalog()).await;
        assert_eq!(outcome.code(), Some("statement-failed"));
    }
    let outcome = executor.execute(&step, &plugin.catalog()).await;
    assert_eq!(outcome.code(), Some("needs-attention"));
    assert_eq!(chain.receipt("up:1").await.unwrap().1, 2);
}

#[tokio::test]
async fn an_unreachable_target_is_retried_and_claims_nothing() {
    let mut chain = chain().await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    chain.server.stop();
    match chain.deliver(&plugin, &step).await {
        Outcome::NotApplied { error: ExecutionError::Target(_), retryable: true } => {}
        other => panic!("expected an unreachable target, got {other:?}"),
    }
    chain.server.start_again();
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
}
