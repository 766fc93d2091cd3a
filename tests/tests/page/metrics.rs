//! Metrics of the page and of a worker are those that are documented.

use std::collections::{BTreeMap, BTreeSet};

use tollgate::metrics::LIST;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::hung::Hung;
use tollgate_tests::page::{InUse, Served, ask};
use tollgate_tests::process::{Process, submit};
use tollgate_tests::source::repository;

/// Samples by name and labels, each as it is written.
fn samples(text: &str) -> BTreeMap<String, String> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

fn assert_listed(text: &str) {
    for line in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
        let (name, help) = line.split_once(' ').unwrap();
        let listed = LIST.iter().find(|it| it.family_name() == name);
        let listed = listed.unwrap_or_else(|| panic!("`{name}` is not listed"));
        assert_eq!(help, format!("{}.", listed.help));
    }
}

#[tokio::test]
async fn the_page_tells_what_is_on_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let answer = served.get("/metrics");
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    assert_listed(&answer.body);
    let samples = samples(&answer.body);
    let value =
        |name: &str| &**samples.get(name).unwrap_or_else(|| panic!("no {name}: {samples:?}"));
    assert_eq!(value("tollgate_executions{state=\"needs-attention\"}"), "1");
    assert_eq!(value("tollgate_executions{state=\"failed\"}"), "2");
    assert_eq!(value("tollgate_outbox_steps{status=\"NEEDS_ATTENTION\"}"), "1");
    assert_eq!(value("tollgate_outbox_steps{status=\"WAITING\"}"), "1");
    assert_eq!(value("tollgate_outbox_oldest_due_seconds"), "0.0");
    assert_eq!(value("tollgate_sql_target{state=\"ready\"}"), "1");
    assert_eq!(value("tollgate_source_up{source=\"target\"}"), "1");
    assert_eq!(value("tollgate_source_up{source=\"control\"}"), "1");
    let waits = in_use.plugin.document_of("waits", &["loyalty"]);
    assert_eq!(submit(&in_use.chain, &in_use.plugin, &waits).code(), Some(0));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let later = self::samples(&served.get("/metrics").body);
    let waited: f64 = later["tollgate_outbox_oldest_due_seconds"].parse().unwrap();
    assert!(waited > 0.0);

    let away = Served::start(
        &in_use.chain,
        &[("SQL_TARGET_PASSWORD", "wrong"), ("CONTROL_PASSWORD", "wrong")],
        &[],
        &folder.path().join("away"),
    );
    let away = self::samples(&away.get("/metrics").body);
    assert_eq!(away["tollgate_source_up{source=\"target\"}"], "0");
    assert_eq!(away["tollgate_source_up{source=\"control\"}"], "0");
    assert!(!away.keys().any(|name| name.starts_with("tollgate_executions")));
}

#[tokio::test]
async fn a_worker_counts_what_it_does() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused;", None);
    plugin.install_as("badges", "1.0.0", "INSERT IGNORE INTO nowhere (id) VALUES (1);", None);
    for (plan, name) in [("good", "orders"), ("bad", "badges")] {
        let submitted = submit(&chain, &plugin, &plugin.document_of(plan, &[name]));
        assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    }
    let log = plugin.root().join("log");
    let arguments = ["--probes-listen", "127.0.0.1:0", "--grace", "0"];
    let worker = Process::start(&chain, &plugin, &[("WORKER_ATTEMPTS_MAX", "1")], &arguments, &log);
    worker.wait_until_it_says("status=\"APPLIED\"");
    worker.wait_until_it_says("status=\"NEEDS_ATTENTION\"");
    let said = worker.log();
    let (_, rest) = said.split_once("address=").unwrap();
    let address = rest.split_whitespace().next().unwrap();
    let answer = ask(address, "GET", "/metrics", address);
    assert_listed(&answer.body);
    let samples = samples(&answer.body);
    let value =
        |name: &str| &**samples.get(name).unwrap_or_else(|| panic!("no {name}: {samples:?}"));
    assert_eq!(value("tollgate_worker_ready"), "1");
    assert_eq!(value("tollgate_decisions_total{outcome=\"allow\",code=\"\"}"), "2");
    assert_eq!(value("tollgate_decision_seconds_count"), "2");
    assert_eq!(value("tollgate_claims_total{result=\"granted\"}"), "2");
    let step = "tollgate_steps_total{executor=\"sql-jdbc:v1\",outcome=";
    assert_eq!(value(&format!("{step}\"applied\",code=\"\"}}")), "1");
    assert_eq!(value(&format!("{step}\"not-applied\",code=\"statement-failed\"}}")), "1");
    let opened: u32 = value("tollgate_target_opens_total{result=\"opened\"}").parse().unwrap();
    assert!(opened >= 2, "{opened}");
    // No step is under way, so every session that is open is kept for the next one.
    assert_eq!(value("tollgate_target_sessions"), value("tollgate_target_sessions_idle"));
    assert_ne!(value("tollgate_target_sessions_idle"), "0");
    assert_eq!(value("tollgate_takeovers_total"), "0");
    assert!(!answer.body.contains("canary") && !answer.body.contains("127.0.0.1"));
}

/// What a worker counts that takes a step over from one that hung, or died.
async fn taken_over(dies: bool) -> BTreeMap<String, String> {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY);", None);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let hung = Hung::hold(&chain, &plugin).await;
    let _hung = if dies {
        hung.die(&chain).await;
        None
    } else {
        Some(hung)
    };
    let log = plugin.root().join("log");
    let arguments = ["--probes-listen", "127.0.0.1:0"];
    let worker = Process::start(&chain, &plugin, &[], &arguments, &log);
    worker.wait_until_it_says("status=\"APPLIED\"");
    let said = worker.log();
    let (_, rest) = said.split_once("address=").unwrap();
    let address = rest.split_whitespace().next().unwrap();
    samples(&ask(address, "GET", "/metrics", address).body)
}

#[tokio::test]
async fn a_holder_that_hung_is_taken_over_and_its_session_killed() {
    let samples = taken_over(false).await;
    assert_eq!(samples["tollgate_takeovers_total"], "1");
    assert_eq!(samples["tollgate_zombies_killed_total"], "1");
    assert_eq!(samples["tollgate_claims_total{result=\"granted\"}"], "1");
}

#[tokio::test]
async fn a_holder_that_died_is_taken_over_and_has_no_session_to_kill() {
    let samples = taken_over(true).await;
    assert_eq!(samples["tollgate_takeovers_total"], "1");
    assert_eq!(samples["tollgate_zombies_killed_total"], "0");
}

#[test]
fn the_documentation_has_every_metric_and_no_other() {
    let text = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `tollgate_")).collect();
    let expected: Vec<String> = LIST
        .iter()
        .map(|it| {
            let labels: Vec<String> = it.labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{}` | {} | {} | {} |", it.name, it.kind_name(), labels.join(" "), it.help)
        })
        .collect();
    assert_eq!(rows, expected, "what docs/metrics.md has to say:\n{}", expected.join("\n"));
}

#[test]
fn the_example_alerts_ask_for_metrics_that_exist() {
    let text = std::fs::read_to_string(repository().join("docs/examples/alerts.yml")).unwrap();
    let names: BTreeSet<&str> = LIST.iter().map(|it| it.name).collect();
    let mut asked = BTreeSet::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        if word.starts_with("tollgate_") {
            let base = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            assert!(names.contains(base), "`{word}` is no metric");
            asked.insert(base);
        }
    }
    assert!(asked.len() >= 6, "{asked:?}");
    let alerts = text.matches("- alert: ").count();
    for part in ["expr: ", "summary: ", "description: ", "severity: "] {
        assert_eq!(text.matches(part).count(), alerts, "each alert has `{part}`");
    }
}
