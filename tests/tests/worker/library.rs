//! The library's worker, with an executor of the test's own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tollgate::control::Control;
use tollgate::executor::{BoxFuture, Executor, ExecutorRegistry, Outcome};
use tollgate::ids::{ExecutorCode, ExternalReceipt};
use tollgate::outbox::{ExecutorChoice, Outbox, OutboxOptions, Status};
use tollgate::plan::{ContributionCatalog, Plan, Step};
use tollgate::worker::{Worker, WorkerOptions};
use tollgate_tests::chain::{Chain, Plugin};

/// Takes its time, and remembers what it did.
#[derive(Default)]
struct Recorder {
    code: Option<ExecutorCode>,
    takes: Duration,
    running: AtomicUsize,
    running_most: AtomicUsize,
    done: Mutex<Vec<String>>,
}

impl Executor for Recorder {
    fn code(&self) -> &ExecutorCode {
        self.code.as_ref().unwrap()
    }

    fn execute<'a>(
        &'a self,
        step: &'a Step,
        _contributions: &'a dyn ContributionCatalog,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.running_most.fetch_max(running, Ordering::SeqCst);
            tokio::time::sleep(self.takes).await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            self.done.lock().unwrap().push(step.key.to_string());
            Outcome::Applied(ExternalReceipt::sql(&"preview".parse().unwrap(), &step.key))
        })
    }
}

fn recorder(takes: Duration) -> Arc<Recorder> {
    Arc::new(Recorder { code: Some(ExecutorCode::sql_jdbc_v1()), takes, ..Recorder::default() })
}

fn worker(
    control: &Control,
    recorder: &Arc<Recorder>,
    plugin: &Plugin,
    options: WorkerOptions,
) -> Worker {
    let mut registry = ExecutorRegistry::empty(ExecutorCode::sql_jdbc_v1());
    registry.install(recorder.clone());
    Worker::new(control.clone(), Arc::new(registry), Arc::new(plugin.catalog()), options)
}

fn until_idle() -> WorkerOptions {
    WorkerOptions { until_idle: true, ..WorkerOptions::default() }
}

/// Plugins `p1`, `p2`, …, for plans of several steps.
fn plugins(count: usize) -> Plugin {
    let plugin = Plugin::install("DROP TABLE IF EXISTS t", None);
    for number in 1..=count {
        plugin.install_as(&format!("p{number}"), "1.0.0", "DROP TABLE IF EXISTS t", None);
    }
    plugin
}

async fn submit(control: &Control, plugin: &Plugin, code: &str, step_count: usize) -> Plan {
    let names: Vec<String> = (1..=step_count).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let plan = Plan::parse(plugin.document_of(code, &names).as_bytes()).unwrap();
    let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
    let mut connection = control.open().await.unwrap();
    Outbox::default().submit(&mut connection, &plan, &sql).await.unwrap();
    plan
}

async fn counts(control: &Control) -> BTreeMap<Status, u64> {
    Outbox::default().counts(&mut control.open().await.unwrap(), None).await.unwrap()
}

#[tokio::test]
async fn plans_run_side_by_side_and_their_steps_in_order() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(4));
    for code in ["a", "b", "c"] {
        submit(&control, &plugin, code, 4).await;
    }
    let recorder = recorder(Duration::from_millis(100));
    let ended = worker(&control, &recorder, &plugin, until_idle()).run().await;
    assert_eq!((ended.applied, ended.needs_attention, ended.dropped), (12, 0, 0));
    assert_eq!(counts(&control).await, BTreeMap::from([(Status::Applied, 12)]));
    let done = recorder.done.lock().unwrap().clone();
    for code in ["a", "b", "c"] {
        let of_plan: Vec<_> = done.iter().filter(|key| key.starts_with(code)).collect();
        let expected: Vec<String> = (1..=4).map(|number| format!("{code}:{number}")).collect();
        assert_eq!(of_plan, expected.iter().collect::<Vec<_>>());
    }
    assert_eq!(recorder.running_most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn no_more_steps_run_than_there_are_slots() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    for number in 0..8 {
        submit(&control, &plugin, &format!("p{number}"), 1).await;
    }
    let recorder = recorder(Duration::from_millis(50));
    let options = WorkerOptions { concurrency: 2, ..until_idle() };
    worker(&control, &recorder, &plugin, options).run().await;
    assert_eq!(recorder.running_most.load(Ordering::SeqCst), 2);
    assert_eq!(recorder.done.lock().unwrap().len(), 8);
}

#[tokio::test]
async fn a_step_longer_than_its_lease_stays_with_its_worker() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    submit(&control, &plugin, "up", 1).await;
    let recorder = recorder(Duration::from_secs(4));
    let options = || WorkerOptions {
        outbox: OutboxOptions { lease: Duration::from_secs(1), ..OutboxOptions::default() },
        ..until_idle()
    };
    let workers = [0; 2].map(|_| worker(&control, &recorder, &plugin, options()));
    tokio::join!(workers[0].run(), workers[1].run());
    assert_eq!(*recorder.done.lock().unwrap(), ["up:1"], "renewal kept it");
}

#[tokio::test]
async fn a_claim_that_was_lost_ends_the_execution_and_writes_nothing() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    submit(&control, &plugin, "up", 1).await;
    let recorder = recorder(Duration::from_mins(5));
    let options = WorkerOptions {
        outbox: OutboxOptions { lease: Duration::from_secs(2), ..OutboxOptions::default() },
        ..until_idle()
    };
    let worker = worker(&control, &recorder, &plugin, options);
    let steal = async {
        while recorder.running.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Another worker had it and is done.
        let done = "UPDATE control_plane.factory_plugin_control_outbox SET status = 'APPLIED', \
                    lease_token = 'another', external_receipt = 'sql:preview:up:1'";
        chain.server.execute(&[done]).await;
    };
    let (ended, ()) = tokio::join!(worker.run(), steal);
    assert_eq!(ended.dropped, 0);
    let rows: Vec<(String, String)> =
        chain.control_rows("SELECT status, lease_token FROM factory_plugin_control_outbox").await;
    assert_eq!(rows, [("APPLIED".to_owned(), "another".to_owned())]);
}

#[tokio::test]
async fn a_drain_lets_steps_end_and_drops_them_after_the_grace_period() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    for (takes, grace, dropped, status) in [
        (Duration::from_secs(1), Duration::from_mins(1), 0, Status::Applied),
        (Duration::from_mins(5), Duration::from_millis(300), 1, Status::Pending),
    ] {
        let code = if dropped == 0 { "ends" } else { "dropped" };
        let plan = submit(&control, &plugin, code, 1).await;
        let recorder = recorder(takes);
        let options = WorkerOptions { grace, ..WorkerOptions::default() };
        let worker = worker(&control, &recorder, &plugin, options);
        let begun = Instant::now();
        let stop = async {
            while recorder.running.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            worker.drain().request();
            assert!(worker.readiness().draining && !worker.readiness().is_ready());
        };
        let (ended, ()) = tokio::join!(worker.run(), stop);
        assert_eq!(ended.dropped, dropped, "{code}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{code}: {:?}", begun.elapsed());
        let mut connection = control.open().await.unwrap();
        let steps = Outbox::default().plan_steps(&mut connection, plan.code()).await.unwrap();
        assert_eq!(steps[0].status, status, "{code}");
    }
    chain.server.assert_session_count("tollgate_control", 0).await;
}

#[tokio::test]
async fn a_restart_of_the_control_server_is_survived_and_said() {
    let mut chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(6));
    submit(&control, &plugin, "up", 6).await;
    let recorder = recorder(Duration::from_millis(700));
    let worker = Arc::new(worker(&control, &recorder, &plugin, until_idle()));
    let running = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.run().await }
    });
    while recorder.done.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    chain.server.kill9();
    let begun = Instant::now();
    while worker.readiness().control.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", worker.readiness());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    chain.server.start_again();
    running.await.unwrap();
    assert_eq!(worker.readiness().control, None);
    assert_eq!(counts(&control).await, BTreeMap::from([(Status::Applied, 6)]));
}

#[tokio::test]
async fn an_idle_worker_asks_seldom() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    let worker = worker(&control, &recorder(Duration::ZERO), &plugin, WorkerOptions::default());
    let asked = || async {
        let rows: Vec<(String, u64)> =
            chain.control_rows("SHOW GLOBAL STATUS LIKE 'Com_begin'").await;
        rows[0].1
    };
    let watch = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = asked().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let looks = asked().await - before;
        worker.drain().request();
        looks
    };
    let (_, looks) = tokio::join!(worker.run(), watch);
    assert!(looks <= 5, "four slots looked {looks} times in 4 s");
}

#[tokio::test]
async fn a_step_nobody_can_carry_out_waits_without_using_up_attempts() {
    let chain = Chain::start().await;
    let (control, plugin) = (chain.control().await, plugins(1));
    let plan = submit(&control, &plugin, "up", 1).await;
    let registry = ExecutorRegistry::empty(ExecutorCode::dry_run_v1());
    let options = WorkerOptions::default();
    let worker =
        Worker::new(control.clone(), Arc::new(registry), Arc::new(plugin.catalog()), options);
    let outbox = Outbox::default();
    let watch = async {
        let mut connection = control.open().await.unwrap();
        let begun = Instant::now();
        loop {
            let steps = outbox.plan_steps(&mut connection, plan.code()).await.unwrap();
            if steps[0].last_error_code.is_some() {
                worker.drain().request();
                return steps;
            }
            assert!(begun.elapsed() < Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (_, steps) = tokio::join!(worker.run(), watch);
    assert_eq!(steps[0].last_error_code.as_deref(), Some("executor-unavailable"));
    assert_eq!((steps[0].status, steps[0].attempt_count), (Status::Pending, 0));
}
