//! Workers, a control server and a target server, and everything that can happen to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::control::Control;
use tollgate::ids::ExecutorCode;
use tollgate::outbox::{CompensateError, ExecutorChoice, Outbox};
use tollgate::plan::Plan;
use tollgate_tests::asked::number;
use tollgate_tests::chain::{CONTROL_USER, Chain, Plugin, TARGET_USER};
use tollgate_tests::history::{History, watch};
use tollgate_tests::process::Process;

use crate::seed::Choices;
use crate::steady::{Samples, resident_kib};

const WORKER_COUNT: usize = 3;
/// How long faults happen in CI; `TOLLGATE_CHAOS_SECONDS` asks for another time.
const SECONDS: u64 = 60;
/// How long it may take until all is done once they stop: dead holders' leases (30 s) and what
/// backed off meanwhile.
const PATIENCE: Duration = Duration::from_mins(5);
/// Plans that are open at once.
const OPEN_MAX: u64 = 12;
/// A worker's memory may vary by this much, in KiB: what an allocator keeps.
const RESIDENT_ALLOWANCE_KIB: u64 = 16 * 1024;
/// Sessions on both servers may vary by this much: a renewal's second one for each slot.
const SESSIONS_ALLOWANCE: u64 = 9;

/// The shortest leases there are, and no end of trying: no person looks at this.
const HASTY: &[(&str, &str)] = &[
    ("WORKER_LEASE_SECONDS", "5"),
    ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30"),
    ("WORKER_ATTEMPTS_MAX", "1000"),
    ("SQL_TARGET_EXECUTION_COUNT_MAX", "1000"),
];

/// What happened to them.
#[derive(Debug, Default)]
struct Happened {
    kills: usize,
    pauses: usize,
    restarts: usize,
    cuts: usize,
    taken_back: usize,
    refused_running: usize,
    refused_by_contention: usize,
}

struct Storm {
    chain: Chain,
    control: Control,
    plugin: Plugin,
    /// The first one is never killed: its memory is looked at.
    workers: Vec<Process>,
    paused: BTreeMap<usize, Instant>,
    started: usize,
    submitted: usize,
    taken_back: BTreeSet<String>,
    happened: Happened,
}

/// The forward and the compensating payload of each step. Rows have the server's own keys, so that a
/// second run of anything would show.
fn payloads(plan: usize) -> Vec<(String, String)> {
    let table = format!("t{plan}");
    let create = format!(
        "CREATE TABLE IF NOT EXISTS {table} (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20))"
    );
    let add = |word: String| format!("INSERT IGNORE INTO {table} (word) VALUES ('{word}')");
    let step = |number: u32| {
        let back = format!(
            "DELETE FROM {table} WHERE word = 'on-{number}'; {}",
            add(format!("back-{number}"))
        );
        (add(format!("on-{number}")), back)
    };
    let mut all = vec![(create.clone(), format!("{create}; {}", add("back-0".to_owned())))];
    all.extend([step(1), step(2), step(3)]);
    all
}

impl Storm {
    async fn begin() -> Self {
        let chain = Chain::start_apart().await;
        let control = chain.control().await;
        watch(&chain).await;
        let mut storm = Self {
            chain,
            control,
            plugin: Plugin::install("DROP TABLE IF EXISTS unused", None),
            workers: Vec::new(),
            paused: BTreeMap::new(),
            started: 0,
            submitted: 0,
            taken_back: BTreeSet::new(),
            happened: Happened::default(),
        };
        for _ in 0..WORKER_COUNT {
            let worker = storm.start_worker();
            storm.workers.push(worker);
        }
        storm
    }

    fn start_worker(&mut self) -> Process {
        self.started += 1;
        let log = self.plugin.root().join(format!("log{}", self.started));
        Process::start(&self.chain, &self.plugin, HASTY, &["--concurrency", "3"], &log)
    }

    async fn open_steps(&self) -> u64 {
        let query = "SELECT COUNT(*) FROM factory_plugin_control_outbox \
                     WHERE status NOT IN ('APPLIED', 'SUPERSEDED')";
        self.chain.control_rows(query).await[0]
    }

    /// Enqueues plans until enough are open.
    async fn feed(&mut self) {
        let mut open = self.open_steps().await / 4;
        while open < OPEN_MAX {
            let number = self.submitted;
            let mut names = Vec::new();
            for (step, (forward, back)) in payloads(number).iter().enumerate() {
                let name = format!("p{number}-{step}");
                self.plugin.install_as(&name, "1.0.0", forward, Some(back));
                names.push(name);
            }
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let document = self.plugin.document_of(&format!("plan{number}"), &names);
            let plan = Plan::parse(document.as_bytes()).unwrap();
            let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
            let mut connection = self.control.open().await.unwrap();
            Outbox::of(&self.chain.config(&[])).submit(&mut connection, &plan, &sql).await.unwrap();
            connection.close().await;
            self.submitted += 1;
            open += 1;
        }
    }

    fn kill(&mut self, choices: &mut Choices) {
        let index = 1 + choices.index(WORKER_COUNT - 1);
        self.paused.remove(&index);
        self.workers[index].kill9();
        self.workers[index] = self.start_worker();
        self.happened.kills += 1;
    }

    fn pause(&mut self, choices: &mut Choices, length: Duration) {
        let index = choices.index(WORKER_COUNT);
        if self.paused.contains_key(&index) {
            return;
        }
        self.workers[index].signal("STOP");
        self.paused.insert(index, Instant::now() + length);
        self.happened.pauses += 1;
    }

    fn wake(&mut self, all: bool) {
        let due: Vec<usize> = self
            .paused
            .iter()
            .filter(|(_, until)| all || **until <= Instant::now())
            .map(|(index, _)| *index)
            .collect();
        for index in due {
            self.paused.remove(&index);
            self.workers[index].signal("CONT");
        }
    }

    fn restart(&mut self, choices: &mut Choices) {
        let server = if choices.below(2) == 0 {
            &mut self.chain.server
        } else {
            self.chain.control_server_mut()
        };
        server.kill9();
        server.start_again();
        self.happened.restarts += 1;
    }

    /// Kills a session of a worker's, on either server.
    async fn cut(&mut self, choices: &mut Choices) {
        let (server, user) = if choices.below(2) == 0 {
            (&self.chain.server, TARGET_USER)
        } else {
            (self.chain.control_server(), CONTROL_USER)
        };
        let mut admin = server.admin().await;
        let query = format!(
            "SELECT id FROM information_schema.processlist WHERE user = '{user}' ORDER BY id"
        );
        let sessions: Vec<u64> = admin.query(query).await.unwrap();
        if !sessions.is_empty() {
            let session = sessions[choices.index(sessions.len())];
            // It may have ended meanwhile.
            if admin.query_drop(format!("KILL {session}")).await.is_ok() {
                self.happened.cuts += 1;
            }
        }
        admin.disconnect().await.unwrap();
    }

    /// Takes a plan back, wherever it is, unless a step of it is being carried out.
    async fn take_back(&mut self, choices: &mut Choices) {
        let code = format!("plan{}", choices.index(self.submitted));
        let mut connection = self.control.open().await.unwrap();
        let plan = code.parse().unwrap();
        let outbox = Outbox::of(&self.chain.config(&[]));
        match outbox.compensate(&mut connection, &plan, None).await {
            Ok(_) => {
                self.taken_back.insert(code);
                self.happened.taken_back = self.taken_back.len();
            }
            Err(CompensateError::Running(_)) => self.happened.refused_running += 1,
            // A worker's transaction was in the way each time it was run again.
            Err(CompensateError::Fault(fault)) if fault.is_transient() => {
                self.happened.refused_by_contention += 1;
            }
            Err(error) => panic!("`{code}` is not taken back: {error} ({error:?})"),
        }
        connection.close().await;
    }

    async fn strike(&mut self, choices: &mut Choices) {
        match choices.below(100) {
            0..30 => self.kill(choices),
            30..45 => {
                let length = choices.millis(200, 3_000);
                self.pause(choices, length);
            }
            // Past the lease of a claim.
            45..52 => {
                let length = choices.millis(6_000, 9_000);
                self.pause(choices, length);
            }
            // Past the lease of a receipt.
            52..54 => {
                let length = choices.millis(31_000, 35_000);
                self.pause(choices, length);
            }
            54..62 => self.restart(choices),
            62..85 => self.cut(choices).await,
            _ => self.take_back(choices).await,
        }
    }

    async fn sessions(&self) -> u64 {
        let target = self.chain.server.session_count(TARGET_USER).await;
        let control = self.chain.control_server().session_count(CONTROL_USER).await;
        (target + control) as u64
    }

    async fn settle(&mut self) {
        self.wake(true);
        let begun = Instant::now();
        while self.open_steps().await > 0 {
            let open = "SELECT step_idempotency_key, status, last_error FROM \
                        factory_plugin_control_outbox WHERE status NOT IN ('APPLIED', 'SUPERSEDED')";
            if begun.elapsed() > PATIENCE {
                let left: Vec<(String, String, Option<String>)> =
                    self.chain.control_rows(open).await;
                panic!("not done after {PATIENCE:?}: {left:#?}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for worker in &self.workers {
            worker.signal("TERM");
        }
        for worker in &mut self.workers {
            assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
        }
    }

    /// Every step that stands has its row exactly once, and every compensation that ran has its own.
    async fn check_rows(&self) {
        let receipts: Vec<(String, String, u32)> = self
            .chain
            .rows(
                "SELECT step_idempotency_key, status, execution_count \
                 FROM factory_plugin_target_receipt",
            )
            .await;
        let receipts: BTreeMap<String, (String, u32)> =
            receipts.into_iter().map(|(key, status, count)| (key, (status, count))).collect();
        let ran = |key: &str| {
            receipts.get(key).is_some_and(|(status, count)| status == "SUCCEEDED" && *count > 0)
        };
        let tables: Vec<String> = self.chain.rows("SHOW TABLES LIKE 't%'").await;
        for plan in 0..self.submitted {
            let table = format!("t{plan}");
            if !tables.contains(&table) {
                assert!(!ran(&format!("plan{plan}:1")), "{table} is missing");
                continue;
            }
            let words: Vec<String> = self.chain.rows(&format!("SELECT word FROM {table}")).await;
            let count = |word: String| words.iter().filter(|other| **other == word).count();
            for step in 0..4 {
                let key = format!("plan{plan}:{}", step + 1);
                let back = ran(&format!("{key}:compensate"));
                let stands = step > 0 && ran(&key) && !back;
                assert_eq!(count(format!("on-{step}")), usize::from(stands), "{key}: {words:?}");
                assert_eq!(count(format!("back-{step}")), usize::from(back), "{key}: {words:?}");
            }
        }
    }
}

#[tokio::test]
async fn whatever_happens_every_step_is_applied_once_and_in_order() {
    let mut choices = Choices::of_this_run("storm");
    let length = Duration::from_secs(number("TOLLGATE_CHAOS_SECONDS").unwrap_or(SECONDS));
    let mut storm = Storm::begin().await;
    let (mut resident, mut sessions) = (Samples::default(), Samples::default());
    let begun = Instant::now();
    storm.feed().await;
    let mut sampled = Instant::now();
    while begun.elapsed() < length {
        tokio::time::sleep(choices.millis(200, 1_000)).await;
        storm.wake(false);
        storm.strike(&mut choices).await;
        storm.feed().await;
        if sampled.elapsed() > Duration::from_secs(1) {
            sampled = Instant::now();
            resident.add(resident_kib(storm.workers[0].id()).expect("it is never killed"));
            sessions.add(storm.sessions().await);
        }
    }
    storm.settle().await;
    let history = History::read(&storm.chain, storm.taken_back.clone()).await;
    println!(
        "storm: {:?} in {} s: {history}; first and last third: resident {:?} KiB, sessions {:?}",
        storm.happened,
        begun.elapsed().as_secs(),
        resident.thirds(),
        sessions.thirds(),
    );
    history.check(storm.submitted * 4);
    storm.check_rows().await;
    let Happened { kills, pauses, restarts, cuts, taken_back, .. } = storm.happened;
    let least = [kills, pauses, restarts, cuts, taken_back].into_iter().min();
    assert!(least > Some(0), "not every fault fired: {:?}", storm.happened);
    resident.assert_flat("the resident memory of a worker", RESIDENT_ALLOWANCE_KIB);
    sessions.assert_flat("the number of sessions", SESSIONS_ALLOWANCE);
    storm.chain.server.assert_session_count(TARGET_USER, 0).await;
}
