//! Reads through a node that has not applied yet what another one has committed.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tokio::task::JoinHandle;
use tollgate::ids::ExecutorCode;
use tollgate::ledger::{Claim, Ledger};
use tollgate::outbox::{ExecutorChoice, Outbox};
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::claims::{compensation, forward, granted};

use crate::nodes::Nodes;

/// Stops a node from applying what the others commit; it answers reads all the while.
async fn pause(chain: &Chain) -> Conn {
    let mut pause = chain.admin().await;
    pause.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
    pause
}

/// What a plain session reads of a receipt's counterpart on a node.
async fn stale(chain: &Chain, key: &str) -> Vec<Option<String>> {
    let query = format!(
        "SELECT counterpart_key FROM factory_plugin_target_receipt \
         WHERE step_idempotency_key = '{key}'"
    );
    chain.rows(&query).await
}

/// Lets the node go on once the session waits for it, and gives what it was answered.
async fn answered<T>(chain: &Chain, session: u64, pause: Conn, asking: JoinHandle<T>) -> T {
    let query = format!(
        "SELECT id FROM information_schema.processlist WHERE id = {session} AND command <> 'Sleep'"
    );
    let begun = Instant::now();
    loop {
        assert!(!asking.is_finished(), "it was answered by a node that lags behind");
        if !chain.rows::<u64>(&query).await.is_empty() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing was asked");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Long enough for an answer that does not wait.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!asking.is_finished(), "it was answered by a node that lags behind");
    drop(pause);
    asking.await.unwrap()
}

#[tokio::test]
async fn a_step_that_was_taken_back_through_another_node_is_superseded() {
    let Some(nodes) = Nodes::start().await else { return };
    let ledger = Ledger::default();
    let (mut here, mut there) = (nodes.target(0).await, nodes.target(1).await);
    let request = forward("up");
    let lease = granted(ledger.claim(&mut here, &request).await.unwrap());
    ledger.complete(&mut here, &lease).await.unwrap();
    here.close().await;
    let claim = ledger.claim(&mut there, &request).await.unwrap();
    assert!(matches!(claim, Claim::AlreadySucceeded(..)), "{claim:?}");

    let pause = pause(&nodes.chains[1]).await;
    let mut here = nodes.target(0).await;
    let back = compensation("back", &request);
    let lease = granted(ledger.claim(&mut here, &back).await.unwrap());
    ledger.complete(&mut here, &lease).await.unwrap();
    assert_eq!(stale(&nodes.chains[1], "up").await, [None], "the fault did not fire");
    let session = there.session_id();
    let asking = tokio::spawn(async move { ledger.claim(&mut there, &request).await.unwrap() });
    let claim = answered(&nodes.chains[1], session, pause, asking).await;
    assert!(matches!(claim, Claim::Superseded { .. }), "{claim:?}");
}

#[tokio::test]
async fn a_receipt_committed_through_another_node_is_read() {
    let Some(nodes) = Nodes::start().await else { return };
    let ledger = Ledger::default();
    let mut there = nodes.target(1).await;
    let request = forward("up");
    let pause = pause(&nodes.chains[1]).await;
    let mut here = nodes.target(0).await;
    granted(ledger.claim(&mut here, &request).await.unwrap());
    assert!(stale(&nodes.chains[1], "up").await.is_empty(), "the fault did not fire");
    let (session, key) = (there.session_id(), request.key.clone());
    let asking = tokio::spawn(async move { ledger.read(&mut there, &key).await.unwrap() });
    let receipt = answered(&nodes.chains[1], session, pause, asking).await;
    assert_eq!(receipt.map(|receipt| receipt.execution_count), Some(1));
}

#[tokio::test]
async fn work_submitted_through_another_node_is_seen() {
    let Some(nodes) = Nodes::start().await else { return };
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
    let (mut here, mut there) =
        (nodes.control(0).open().await.unwrap(), nodes.control(1).open().await.unwrap());
    let session: Option<u64> = there.conn().query_first("SELECT CONNECTION_ID()").await.unwrap();
    let pause = pause(&nodes.chains[1]).await;
    let outbox = Outbox::default();
    outbox.submit(&mut here, &plugin.plan("up", "1.0.0"), &sql).await.unwrap();
    let rows = nodes.chains[1].control_rows::<u32>("SELECT id FROM factory_plugin_control_outbox");
    assert!(rows.await.is_empty(), "the fault did not fire");
    let asking = tokio::spawn(async move { outbox.is_idle(&mut there).await.unwrap() });
    let is_idle = answered(&nodes.chains[1], session.unwrap(), pause, asking).await;
    assert!(!is_idle, "a worker that ends when nothing is to do would have ended");
}
