//! Three workers on one outbox and one target, one of them killed at random, again and again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate::ids::ExecutorCode;
use tollgate::outbox::{ExecutorChoice, Outbox};
use tollgate::plan::Plan;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::history::{History, watch};
use tollgate_tests::process::Process;

const PLAN_COUNT: usize = 30;
const STEPS_PER_PLAN: usize = 4;
const KILL_COUNT: usize = 6;
/// How long all of it may take, dead holders' leases on the target (30 s) included.
const PATIENCE: Duration = Duration::from_mins(4);

/// The shortest leases there are, so that the dead are found soon.
const HASTY: &[(&str, &str)] =
    &[("WORKER_LEASE_SECONDS", "5"), ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30")];

/// A number that differs from run to run, below a bound.
fn random_below(bound: usize) -> usize {
    usize::try_from(uuid::Uuid::new_v4().as_u128() & 0xffff).unwrap() % bound
}

/// Plugins whose steps create, fill and clean a table of their plan's own.
fn plugins() -> Plugin {
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    for plan in 0..PLAN_COUNT {
        let table = format!("t{plan}");
        for (number, text) in [
            format!("CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY, word VARCHAR(20))"),
            format!("INSERT IGNORE INTO {table} (id, word) VALUES (1, 'one'), (2, 'two')"),
            format!("DELETE FROM {table} WHERE id = 1"),
            format!("INSERT IGNORE INTO {table} (id, word) VALUES (3, 'three')"),
        ]
        .iter()
        .enumerate()
        {
            plugin.install_as(&format!("p{plan}-{number}"), "1.0.0", text, None);
        }
    }
    plugin
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

async fn open_steps(chain: &Chain) -> u64 {
    let query = "SELECT COUNT(*) FROM factory_plugin_control_outbox WHERE status <> 'APPLIED'";
    chain.control_rows(query).await[0]
}

#[tokio::test]
async fn killed_workers_lose_nothing_and_repeat_nothing() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins());
    let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
    let mut connection = control.open().await.unwrap();
    for number in 0..PLAN_COUNT {
        let names: Vec<String> =
            (0..STEPS_PER_PLAN).map(|step| format!("p{number}-{step}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let document = plugin.document_of(&format!("plan{number}"), &names);
        let plan = Plan::parse(document.as_bytes()).unwrap();
        Outbox::default().submit(&mut connection, &plan, &sql).await.unwrap();
    }
    connection.close().await;
    watch(&chain).await;

    let begun = Instant::now();
    let mut workers = Workers { chain: &chain, plugin: &plugin, processes: Vec::new(), started: 0 };
    for _ in 0..3 {
        let process = workers.start();
        workers.processes.push(process);
    }
    let step_count = PLAN_COUNT * STEPS_PER_PLAN;
    let all = u64::try_from(step_count).unwrap();
    let mut kills = 0;
    loop {
        let open = open_steps(&chain).await;
        if open == 0 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{open} steps are not done after {PATIENCE:?}");
        // The kills are spread over the work: one for each part of it that is done.
        let due = usize::try_from(all - open).unwrap() * (KILL_COUNT + 1) / step_count;
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
    history.check(step_count);
    for number in 0..PLAN_COUNT {
        let ids: Vec<u32> = chain.rows(&format!("SELECT id FROM t{number} ORDER BY id")).await;
        assert_eq!(ids, [2, 3], "plan{number}");
    }
}
