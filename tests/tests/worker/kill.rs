//! Three workers on one outbox and one target, one of them killed at random, again and again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::history::{History, watch};
use tollgate_tests::process::Process;
use tollgate_tests::workload::{HASTY, Workload};

const PLAN_COUNT: usize = 30;
const KILL_COUNT: usize = 6;
/// How long all of it may take, dead holders' leases on the target (30 s) included.
const PATIENCE: Duration = Duration::from_mins(4);

/// A number that differs from run to run, below a bound.
fn random_below(bound: usize) -> usize {
    usize::try_from(uuid::Uuid::new_v4().as_u128() & 0xffff).unwrap() % bound
}

struct Workers<'a> {
    chain: &'a Chain,
    plugin: &'a Plugin,
    processes: Vec<Process>,
    started: usize,
}

impl Workers<'_> {
    fn start(&mut self) -> Process {
        self.started += 1;
        let log: PathBuf = self.plugin.root().join(format!("log{}", self.started));
        Process::start(self.chain, self.plugin, HASTY, &["--concurrency", "3"], &log)
    }

    fn kill_one(&mut self) {
        let index = random_below(self.processes.len());
        self.processes[index].kill9();
        self.processes[index] = self.start();
    }
}

#[tokio::test]
async fn killed_workers_lose_nothing_and_repeat_nothing() {
    let chain = Chain::start().await;
    let (control, work) = (chain.control().await, Workload::of(PLAN_COUNT));
    work.submit(&control).await;
    watch(&chain).await;

    let begun = Instant::now();
    let mut workers =
        Workers { chain: &chain, plugin: &work.plugin, processes: Vec::new(), started: 0 };
    for _ in 0..3 {
        let process = workers.start();
        workers.processes.push(process);
    }
    let all = work.step_count();
    let mut kills = 0;
    loop {
        let open = work.open_steps(&chain).await;
        if open == 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{open} steps are not done after {PATIENCE:?}");
        // The kills are spread over the work: one for each part of it that is done.
        let due = (all - open) * (KILL_COUNT + 1) / all;
        if kills < due.min(KILL_COUNT) {
            tokio::time::sleep(Duration::from_millis(random_below(150) as u64)).await;
            workers.kill_one();
            kills += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for worker in &workers.processes {
        worker.signal("TERM");
    }
    for worker in &mut workers.processes {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
    let history = History::read(&chain, BTreeSet::new()).await;
    println!("kill test: {kills} workers killed in {} s: {history}", begun.elapsed().as_secs());
    assert!(kills >= 3, "the fault did not fire: {kills} kills");
    history.check(all);
    work.assert_effects(&chain).await;
}
