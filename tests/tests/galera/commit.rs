//! A payload whose transaction another node's overtakes: before its COMMIT, and at it.

use std::sync::Arc;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _, Outcome};
use tollgate::ids::Direction;
use tollgate_tests::chain::{Chain, Plugin};

use crate::nodes::{Nodes, until_there_is};

const PAYLOAD: &str = "INSERT INTO entry (id, word) VALUES (1, 'payload') ON DUPLICATE KEY UPDATE word = VALUES(word)";

/// A table with one row whose changes are written down, and a gate in the completion of receipts:
/// whoever holds the user-level lock `gate` of a node holds the completions there up.
async fn prepare(nodes: &Nodes) {
    for statement in [
        "CREATE TABLE entry (id INT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB",
        "CREATE TABLE seen (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB",
        "CREATE TABLE bulk (id INT PRIMARY KEY, word VARCHAR(200)) ENGINE=InnoDB",
        "INSERT INTO entry VALUES (1, 'before')",
        "CREATE DEFINER='root'@'localhost' TRIGGER see AFTER UPDATE ON entry FOR EACH ROW \
         INSERT INTO seen (word) VALUES (NEW.word)",
        "CREATE DEFINER='root'@'localhost' TRIGGER gate BEFORE UPDATE ON \
         factory_plugin_target_receipt FOR EACH ROW \
         SET @passed = IF(NEW.status = 'SUCCEEDED', GET_LOCK('gate', 60), 0)",
    ] {
        nodes.chains[0].admin_run(statement).await;
    }
    nodes.settle().await;
}

async fn shut_gate(chain: &Chain) -> Conn {
    let mut keeper = chain.admin().await;
    let taken: Option<u8> = keeper.query_first("SELECT GET_LOCK('gate', 0)").await.unwrap();
    assert_eq!(taken, Some(1));
    keeper
}

/// Delivers through node 1; while the completion waits at the gate, `meanwhile` runs through node 0.
/// Gives the outcome and how often the status rose on node 1.
async fn overtaken(
    nodes: &Nodes,
    plugin: &Plugin,
    meanwhile: &[&str],
    counter: &str,
) -> (Outcome, u64) {
    let chain = &nodes.chains[1];
    let count = || async { chain.server.status(counter).await.parse::<u64>().unwrap() };
    let before = count().await;
    let mut keeper = shut_gate(chain).await;
    let (executor, catalog) = (Arc::new(chain.executor()), plugin.catalog());
    let step = plugin.step("up", Direction::Forward);
    let mut delivery = tokio::spawn(async move { executor.execute(&step, &catalog).await });
    // Inside the trigger the session shows as its definer's.
    let waiting = "SELECT id FROM information_schema.processlist WHERE state = 'User lock'";
    tokio::select! {
        outcome = &mut delivery => panic!("it did not come to the gate: {outcome:?}"),
        () = until_there_is(chain, waiting) => {}
    }
    for statement in meanwhile {
        nodes.chains[0].admin_run(statement).await;
    }
    keeper.query_drop("DO RELEASE_LOCK('gate')").await.unwrap();
    let outcome = delivery.await.unwrap();
    (outcome, count().await - before)
}

fn assert_rolled_back(outcome: &Outcome) {
    match outcome {
        Outcome::NotApplied { error: ExecutionError::Commit(_), retryable: true } => {}
        other => panic!("expected a commit that was rolled back, got {other:?}"),
    }
}

/// Nothing of the payload holds; delivered again it has its effect once, whichever node is asked.
async fn assert_applied_once(nodes: &Nodes, plugin: &Plugin) {
    nodes.settle().await;
    let (status, executions, code) = nodes.chains[0].receipt("up:1").await.unwrap();
    assert_eq!((status.as_str(), executions), ("FAILED", 1));
    assert_eq!(code.as_deref(), Some("commit-refused"));
    let seen = || nodes.chains[0].rows::<String>("SELECT word FROM seen ORDER BY id");
    assert_eq!(seen().await, ["other"], "the payload's change is gone");
    let step = plugin.step("up", Direction::Forward);
    for node in [1, 0, 2] {
        let outcome = nodes.chains[node].deliver(plugin, &step).await;
        let Outcome::Applied(receipt) = outcome else { panic!("node {node}: {outcome:?}") };
        assert_eq!(receipt.as_str(), "sql:preview:up:1");
    }
    nodes.settle().await;
    assert_eq!(seen().await, ["other", "payload"]);
    assert_eq!(nodes.chains[2].receipt("up:1").await.unwrap().1, 2);
}

#[tokio::test]
async fn fault_55_a_commit_that_fails_certification_leaves_nothing_and_is_applied_once() {
    let Some(nodes) = Nodes::start().await else { return };
    prepare(&nodes).await;
    let plugin = Plugin::install(PAYLOAD, None);
    // The second one is ordered before the payload's COMMIT, and node 1 is busy with the first one:
    // nothing has touched the payload's transaction yet when it is certified.
    let bulk = "INSERT INTO bulk SELECT seq, REPEAT('x', 200) FROM seq_1_to_80000";
    let other = "UPDATE entry SET word = 'other' WHERE id = 1";
    let (outcome, failures) =
        overtaken(&nodes, &plugin, &[bulk, other], "wsrep_local_cert_failures").await;
    assert_rolled_back(&outcome);
    assert!(failures > 0, "the fault did not fire: {failures} failed certifications");
    assert_applied_once(&nodes, &plugin).await;
}

#[tokio::test]
async fn fault_55_a_transaction_that_is_aborted_before_its_commit_is_applied_once() {
    let Some(nodes) = Nodes::start().await else { return };
    prepare(&nodes).await;
    let plugin = Plugin::install(PAYLOAD, None);
    let other = "UPDATE entry SET word = 'other' WHERE id = 1";
    let (outcome, aborts) = overtaken(&nodes, &plugin, &[other], "wsrep_local_bf_aborts").await;
    assert_rolled_back(&outcome);
    assert!(aborts > 0, "the fault did not fire: {aborts} aborted transactions");
    assert_applied_once(&nodes, &plugin).await;
}
