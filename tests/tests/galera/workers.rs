//! Workers at a node each, and a node that is killed while they work.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tollgate_tests::history::{History, watch};
use tollgate_tests::process::{Process, submit};
use tollgate_tests::workload::{HASTY, Workload};

use crate::nodes::{Nodes, until_there_is};

const PLAN_COUNT: usize = 15;
/// The node that is killed. What happens is looked at through another one.
const VICTIM: usize = 2;
/// How long all of it may take, the dead node's leases on the target (30 s) included.
const PATIENCE: Duration = Duration::from_mins(4);

/// How many steps a worker has begun and not recorded.
fn in_flight(worker: &Process) -> usize {
    let log = worker.log();
    let claimed = log.matches("step taken from the outbox direction").count();
    claimed.saturating_sub(log.matches("step recorded").count())
}

#[tokio::test]
async fn a_node_that_dies_takes_no_step_with_it() {
    let Some(mut nodes) = Nodes::start().await else { return };
    let work = Workload::of(PLAN_COUNT);
    work.submit(&nodes.control(0)).await;
    watch(&nodes.chains[0]).await;
    nodes.settle().await;

    let begun = Instant::now();
    let mut workers = Vec::new();
    for (number, chain) in nodes.chains.iter().enumerate() {
        let log = work.plugin.root().join(format!("log{number}"));
        workers.push(Process::start(chain, &work.plugin, HASTY, &["--concurrency", "2"], &log));
    }
    let all = work.step_count();
    loop {
        let open = work.open_steps(&nodes.chains[0]).await;
        assert!(open > 0, "all was done before the node could be killed");
        if open < all * 3 / 4 && in_flight(&workers[VICTIM]) > 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{open} steps are open after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    nodes.chains[VICTIM].server.kill9();
    let left = work.open_steps(&nodes.chains[0]).await;
    assert!(left > 0, "the fault did not fire: nothing was left to do");
    workers[VICTIM].wait_until_it_says("the server does not answer");

    loop {
        let open = work.open_steps(&nodes.chains[0]).await;
        if open == 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{open} steps are open after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let history = History::read(&nodes.chains[0], BTreeSet::new()).await;
    println!(
        "galera: a node killed with {left} of {all} steps to do, done after {} s: {history}; {} \
         conflicts on the nodes left",
        begun.elapsed().as_secs(),
        nodes.chains[0].server.certification_conflicts().await
            + nodes.chains[1].server.certification_conflicts().await
    );
    history.check(all);
    work.assert_effects(&nodes.chains[0]).await;

    // Only the worker of the node that was dead is left, and works.
    for mut worker in workers.drain(..VICTIM) {
        worker.signal("TERM");
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
        // A conflict is not an absence, however many there are.
        assert!(!worker.log().contains("the server does not answer"), "{}", worker.log());
    }
    let mut last = workers.remove(0);
    nodes.chains[VICTIM].server.rejoin().await;
    last.wait_until_it_says("the server can be used again");
    work.plugin.install_as(
        "late",
        "1.0.0",
        "CREATE TABLE IF NOT EXISTS late (id INT PRIMARY KEY)",
        None,
    );
    let submitted =
        submit(&nodes.chains[0], &work.plugin, &work.plugin.document_of("late", &["late"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let done = "SELECT 1 FROM control_plane.factory_plugin_control_outbox \
                WHERE plan_code = 'late' AND status = 'APPLIED'";
    until_there_is(&nodes.chains[0], done).await;
    last.signal("TERM");
    assert_eq!(last.wait().code(), Some(0), "{}", last.log());
    nodes.settle().await;
    work.assert_effects(&nodes.chains[VICTIM]).await;
}
