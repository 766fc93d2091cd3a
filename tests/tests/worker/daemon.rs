//! `tollgate work` under signals.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate_tests::chain::{Chain, Plugin, TARGET_USER};
use tollgate_tests::process::{Process, submit};

/// A row that the test can hold, so that the step waits for it.
const FORWARD: &str = "DELETE FROM entry WHERE id = 1";

async fn chain() -> Chain {
    let chain = Chain::start().await;
    chain.control().await;
    chain.admin_run("CREATE TABLE entry (id INT PRIMARY KEY) ENGINE=InnoDB").await;
    chain.admin_run("INSERT INTO entry VALUES (1)").await;
    chain
}

async fn hold(chain: &Chain) -> mysql_async::Conn {
    let mut holder = chain.admin().await;
    holder.query_drop("START TRANSACTION").await.unwrap();
    holder.query_drop("SELECT * FROM entry WHERE id = 1 FOR UPDATE").await.unwrap();
    holder
}

async fn wait_until_blocked(chain: &Chain) {
    let query = format!(
        "SELECT id FROM information_schema.processlist WHERE user = '{TARGET_USER}' AND info LIKE \
         '%DELETE%'"
    );
    let begun = Instant::now();
    while chain.rows::<u64>(&query).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no statement is blocked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn status(chain: &Chain) -> String {
    chain.control_rows("SELECT status FROM factory_plugin_control_outbox").await.remove(0)
}

#[tokio::test]
async fn a_signal_drains_and_the_running_step_ends() {
    for signal in ["TERM", "INT"] {
        let chain = chain().await;
        let plugin = Plugin::install(FORWARD, None);
        let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
        assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
        let mut holder = hold(&chain).await;
        let log = plugin.root().join("log");
        let mut worker = Process::start(&chain, &plugin, &[], &[], &log);
        wait_until_blocked(&chain).await;
        worker.signal(signal);
        worker.wait_until_it_says("draining");
        holder.query_drop("ROLLBACK").await.unwrap();
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
        assert_eq!(status(&chain).await, "APPLIED");
        for part in ["step_key=up:1", "plan=up", "attempt=1"] {
            assert!(worker.log().contains(part), "{part}: {}", worker.log());
        }
        assert!(!worker.log().contains("canary"), "{}", worker.log());
    }
}

#[tokio::test]
async fn after_the_grace_period_the_step_is_dropped_and_handed_back() {
    let chain = chain().await;
    let plugin = Plugin::install(FORWARD, None);
    submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    let holder = hold(&chain).await;
    let log = plugin.root().join("log");
    let mut worker =
        Process::start(&chain, &plugin, &[], &["--grace", "1", "--log-format", "json"], &log);
    wait_until_blocked(&chain).await;
    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(5), "{}", worker.log());
    assert_eq!(status(&chain).await, "PENDING");
    for line in worker.log().lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(event["timestamp"].is_string(), "{line}");
    }
    drop(holder);
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let chain = chain().await;
        let plugin = Plugin::install(FORWARD, None);
        submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
        let holder = hold(&chain).await;
        let log = plugin.root().join("log");
        let mut worker = Process::start(&chain, &plugin, &[], &[], &log);
        wait_until_blocked(&chain).await;
        worker.signal(signal);
        worker.wait_until_it_says("draining");
        let begun = Instant::now();
        worker.signal(signal);
        assert_eq!(worker.wait().code(), Some(code), "{}", worker.log());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(status(&chain).await, "CLAIMED", "its lease runs out by itself");
        drop(holder);
    }
}

#[tokio::test]
async fn a_restart_of_both_servers_is_survived() {
    let mut chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let mut names = Vec::new();
    for number in 0..20 {
        let name = format!("p{number}");
        let text = format!("CREATE TABLE IF NOT EXISTS t{number} (id INT PRIMARY KEY)");
        plugin.install_as(&name, "1.0.0", &text, None);
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    submit(&chain, &plugin, &plugin.document_of("up", &names));
    let log = plugin.root().join("log");
    let hasty = [("WORKER_LEASE_SECONDS", "5"), ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30")];
    let mut worker = Process::start(&chain, &plugin, &hasty, &["--until-idle"], &log);
    worker.wait_until_it_says("status=\"APPLIED\"");
    chain.server.kill9();
    worker.wait_until_it_says("the server does not answer");
    chain.server.start_again();
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    worker.wait_until_it_says("the server can be used again");
    let applied: Vec<(String, u32)> = chain
        .control_rows("SELECT status, COUNT(*) FROM factory_plugin_control_outbox GROUP BY status")
        .await;
    assert_eq!(applied, [("APPLIED".to_owned(), 20)], "{}", worker.log());
    let tables = chain.rows::<String>("SHOW TABLES LIKE 't%'").await;
    assert_eq!(tables.len(), 20);
}
