//! A node that is cut off from the majority.

use std::time::{Duration, Instant};

use tollgate::executor::{ExecutionError, Outcome};
use tollgate::ids::Direction;
use tollgate::ledger::Ledger;
use tollgate::outbox::Outbox;
use tollgate_tests::chain::Plugin;
use tollgate_tests::claims::{forward, granted};

use crate::nodes::Nodes;

#[tokio::test]
async fn a_node_without_its_majority_is_waited_for_and_nothing_is_refused_for_good() {
    let Some(mut nodes) = Nodes::start().await else { return };
    let plugin = Plugin::install("CREATE TABLE IF NOT EXISTS entry (id INT PRIMARY KEY)", None);
    let step = plugin.step("up", Direction::Forward);
    let ledger = Ledger::default();
    let mut connection = nodes.target(0).await;
    granted(ledger.claim(&mut connection, &forward("before")).await.unwrap());
    nodes.chains[1].server.kill9();
    nodes.chains[2].server.kill9();
    let begun = Instant::now();
    while nodes.chains[0].server.status("wsrep_ready").await != "OFF" {
        assert!(begun.elapsed() < Duration::from_secs(30), "the fault did not fire");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let error = ledger.claim(&mut connection, &forward("meanwhile")).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    // What is asked when a session is opened is answered all the same.
    let mut control = nodes.control(0).open().await.unwrap();
    let fault = Outbox::default().claim(&mut control).await.unwrap_err();
    assert!(fault.is_transient() && fault.breaks_the_connection(), "{fault:?}");
    match nodes.chains[0].deliver(&plugin, &step).await {
        Outcome::NotApplied { error: ExecutionError::Target(_), retryable: true } => {}
        other => panic!("expected a target that is away, got {other:?}"),
    }

    // An operator decides that this node goes on alone.
    let goes_on = "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'";
    nodes.chains[0].server.execute(&[goes_on]).await;
    while nodes.chains[0].server.status("wsrep_ready").await != "ON" {
        assert!(begun.elapsed() < Duration::from_mins(1), "the node does not go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let outcome = nodes.chains[0].deliver(&plugin, &step).await;
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}
