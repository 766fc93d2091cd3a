//! Metrics of the page and of a worker are those that are documented.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tollgate::metrics::LIST;
use tollgate::target::{ServerFailure, TargetError};
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::hung::Hung;
use tollgate_tests::page::{InUse, Served, ask};
use tollgate_tests::process::{Process, submit};
use tollgate_tests::source::{repository, sources};

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
    assert_eq!(value("tollgate_executions_edited"), "0");
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

    let lease = [("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5")];
    let broken = Served::start(&in_use.chain, &lease, &[], &folder.path().join("broken"));
    let broken = self::samples(&broken.get("/metrics").body);
    assert_eq!(broken["tollgate_source_up{source=\"target\"}"], "0");
    assert_eq!(broken["tollgate_source_up{source=\"control\"}"], "0");
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

/// A sample's name and labels, of one as it is written.
fn labels_of(sample: &str) -> (&str, BTreeMap<&str, &str>) {
    let Some((name, rest)) = sample.split_once('{') else { return (sample, BTreeMap::new()) };
    let pairs = rest.strip_suffix("\"}").expect(sample).split("\",");
    let labels = pairs.map(|pair| pair.split_once("=\"").expect(sample));
    (name, labels.collect())
}

/// The values of a label among the samples of a metric that have these other labels.
fn values<'a>(
    samples: &'a BTreeMap<String, String>,
    metric: &str,
    others: &[(&str, &str)],
    label: &str,
) -> BTreeSet<&'a str> {
    let labels = samples.keys().map(|sample| labels_of(sample));
    labels
        .filter(|(name, labels)| {
            *name == metric && others.iter().all(|(other, value)| labels.get(other) == Some(value))
        })
        .map(|(_, labels)| labels[label])
        .collect()
}

/// What a worker and the page answer before anything happened.
async fn fresh() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused;", None);
    let served = Served::start(&chain, &[], &[], &folder.path().join("page"));
    let log = folder.path().join("worker");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    worker.wait_until_it_says("probes are answered");
    let said = worker.log();
    let address = said.split_once("address=").unwrap().1.split_whitespace().next().unwrap();
    let mut all = samples(&served.get("/metrics").body);
    all.extend(samples(&ask(address, "GET", "/metrics", address).body));
    all
}

/// A counter that is born with its first event comes as 1, and has not grown since: no alert hears it.
#[tokio::test]
async fn every_label_that_can_be_known_is_there_before_anything_happens() {
    let samples = fresh().await;
    let host = sources(&repository().join("host/src"));
    // The codes as the sources give them, so that one that is added is missed here.
    let written = |places: &[(&str, &str)]| -> BTreeSet<String> {
        let of_place = |(path, function): &(&str, &str)| {
            let source = host.iter().find(|it| it.path == Path::new(path)).expect(path);
            let texts = source.texts_in(function);
            assert!(!texts.is_empty(), "nothing is written in `{function}` of {path}");
            texts
        };
        places.iter().flat_map(of_place).collect()
    };
    let of_servers = ServerFailure::CODES
        .iter()
        .flat_map(|code| [format!("target-{code}"), format!("control-{code}")]);
    let unopened: BTreeSet<String> =
        of_servers.chain(TargetError::CODES.iter().map(|it| (*it).to_owned())).collect();
    let assert_known =
        |metric: &str, others: &[(&str, &str)], label: &str, codes: &BTreeSet<String>| {
            let found = values(&samples, metric, others, label);
            let codes: BTreeSet<&str> = codes.iter().map(String::as_str).collect();
            assert_eq!(found, codes, "{metric} {others:?} {label}");
        };

    let mut opened = unopened.clone();
    opened.insert("opened".to_owned());
    assert_known("tollgate_target_opens_total", &[], "result", &opened);
    let undecided = written(&[("policy/error.rs", "kind")]);
    assert_known("tollgate_decisions_total", &[("outcome", "error")], "code", &undecided);
    let claims = written(&[("ledger/request.rs", "as_str")]);
    assert_known("tollgate_claims_total", &[], "result", &claims);
    for lease in ["receipt", "delivery"] {
        let results = ["renewed", "lost", "error"].map(str::to_owned).into();
        assert_known("tollgate_lease_renewals_total", &[("lease", lease)], "result", &results);
    }
    let steps = "tollgate_steps_total";
    let sql = |outcome| [("executor", "sql-jdbc:v1"), ("outcome", outcome)];
    let mut not_applied = written(&[
        ("executor/error.rs", "code"),
        ("ledger/fault.rs", "code"),
        ("ledger/claim_error.rs", "code"),
        ("ledger/shape.rs", "code"),
    ]);
    not_applied.extend(unopened);
    assert_known(steps, &sql("not-applied"), "code", &not_applied);
    let unknown = written(&[
        ("executor/outcome.rs", "code"),
        ("ledger/request.rs", "code"),
        ("ledger/takeover.rs", "code"),
    ]);
    assert_known(steps, &sql("indeterminate"), "code", &unknown);
    for executor in ["sql-jdbc:v1", "dry-run:v1"] {
        let applied = [("executor", executor), ("outcome", "applied")];
        assert_eq!(values(&samples, steps, &applied, "code"), BTreeSet::from([""]));
    }
    // And every metric there is.
    for listed in LIST {
        let has_sample = samples.keys().any(|sample| {
            let (name, _) = labels_of(sample);
            name == listed.name || name == format!("{}_count", listed.name)
        });
        assert!(has_sample, "no sample of `{}`", listed.name);
    }
}

/// A selector of an alert: a metric, and what it asks of labels, each as alternatives.
#[derive(Debug)]
struct Selector {
    metric: String,
    labels: Vec<(String, Vec<String>)>,
}

/// What an expression names besides metrics and their labels.
const WORDS: &[&str] = &["increase", "rate", "histogram_quantile", "sum", "by", "le", "or"];

/// The selectors of an expression. Everything that is named in it is one, or among [`WORDS`].
fn selectors(expression: &str) -> Vec<Selector> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || "[0123456789".contains(c)) {
        rest = &rest[at..];
        if let Some(range) = rest.strip_prefix('[') {
            rest = range.split_once(']').expect(expression).1;
            continue;
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        if name.starts_with(|c: char| c.is_ascii_digit()) || WORDS.contains(&name) {
            continue;
        }
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            let (inner, after) = inner.split_once('}').expect(expression);
            rest = after;
            for matcher in inner.split("\",").map(|it| it.trim_end_matches('"')) {
                let (label, values) = matcher.split_once('=').expect(expression);
                let values = values.strip_prefix('~').unwrap_or(values);
                let values = values.strip_prefix('"').expect(expression);
                let values = values.split('|').map(str::to_owned).collect();
                labels.push((label.trim().to_owned(), values));
            }
        }
        found.push(Selector { metric: name.to_owned(), labels });
    }
    found
}

#[test]
fn what_an_expression_asks_for_is_understood() {
    let found = selectors("sum by (le) (rate(a_bucket{x=\"1\",y=~\"b|c\"}[15m])) > 0.5 or up == 0");
    let found: Vec<String> = found.iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(
        found,
        [
            "Selector { metric: \"a_bucket\", labels: [(\"x\", [\"1\"]), (\"y\", [\"b\", \"c\"])] }",
            "Selector { metric: \"up\", labels: [] }",
        ]
    );
}

/// Each selector of the example alerts finds a series that a worker or the page has from its start on.
#[tokio::test]
async fn the_example_alerts_ask_for_series_that_exist() {
    let text = std::fs::read_to_string(repository().join("docs/examples/alerts.yml")).unwrap();
    let guide = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let samples = fresh().await;
    let series: Vec<_> = samples.keys().map(|sample| labels_of(sample)).collect();
    let mut asked = BTreeSet::new();
    for alert in text.split("- alert: ").skip(1) {
        let name = alert.lines().next().unwrap();
        for part in ["expr: ", "summary: ", "description: ", "severity: "] {
            assert_eq!(alert.matches(part).count(), 1, "{name} has `{part}`");
        }
        let expression = alert.split_once("expr: ").unwrap().1.lines().next().unwrap();
        let selectors = selectors(expression);
        assert!(!selectors.is_empty(), "{name} asks for nothing");
        for Selector { metric, labels } in &selectors {
            for (label, value) in
                labels.iter().flat_map(|(label, values)| values.iter().map(move |it| (label, it)))
            {
                let exists = match metric.as_str() {
                    // Prometheus' own: jobs are named as in the configuration that is shown.
                    "up" => label == "job" && guide.contains(&format!("job_name: {value}\n")),
                    _ => series.iter().any(|(name, found)| {
                        name == metric && found.get(label.as_str()) == Some(&value.as_str())
                    }),
                };
                assert!(exists, "{name}: no series `{metric}{{{label}=\"{value}\"}}`");
            }
            let exists = metric == "up" || series.iter().any(|(name, _)| name == metric);
            assert!(exists, "{name}: no series `{metric}`");
            asked.insert(metric.clone());
        }
        // What the texts tell of a series is one of its labels.
        for label in alert.split("$labels.").skip(1) {
            let label = label.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next();
            let label = label.unwrap_or_default();
            let of_series = series.iter().any(|(name, found)| {
                selectors.iter().any(|it| it.metric == *name) && found.contains_key(label)
            });
            assert!(of_series || label == "instance", "{name}: no label `{label}`");
        }
    }
    assert!(asked.len() >= 6, "{asked:?}");
    for job in ["tollgate-worker", "tollgate-page"] {
        assert!(text.contains(&format!("up{{job=\"{job}\"}} == 0")), "{job} may be gone unheard");
    }
}
