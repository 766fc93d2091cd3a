//! Spans arrive at a collector as they are documented, and a collector that is away costs nothing.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tollgate::spans::LIST;
use tollgate_tests::authority::Authority;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::run;
use tollgate_tests::collector::{Collector, Received};
use tollgate_tests::hung::Hung;
use tollgate_tests::page::Served;
use tollgate_tests::process::{Process, submit, tollgate};
use tollgate_tests::source::repository;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Two statements, whose literal no span may hold.
const FORWARD: &str = "CREATE TABLE IF NOT EXISTS note (id INT NOT NULL PRIMARY KEY, body TEXT);\n\
                       INSERT IGNORE INTO note (id, body) VALUES (1, 'canary-literal');\n";

/// What no span may hold, besides.
const SECRETS: &[&str] = &["canary", "127.0.0.1", "jdbc:mysql", "INSERT IGNORE", "tollgate_target"];

/// The command without anything of OpenTelemetry's of this test's environment.
fn bare(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(&name);
        }
    }
    command
}

fn sends_to<'a>(command: &'a mut Command, endpoint: &str) -> &'a mut Command {
    bare(command).env(ENDPOINT, endpoint)
}

fn assert_documented(spans: &[Received]) {
    assert!(!spans.is_empty());
    for span in spans {
        let listed = LIST.iter().find(|it| it.name == span.name);
        let listed = listed.unwrap_or_else(|| panic!("`{}` is not listed", span.name));
        for field in span.fields.keys() {
            assert!(listed.fields.contains(&field.as_str()), "{}: `{field}`", span.name);
            let is_number = listed.numbers.contains(&field.as_str());
            assert_eq!(span.numbers.contains(field), is_number, "{}: `{field}`", span.name);
        }
        assert_eq!(span.event_count, 0, "events are the log's: {span:?}");
        let has_failed = span.name == "request" && span.fields["status"].starts_with('5');
        let expected = span.fields.get("code").cloned().or(has_failed.then(String::new));
        assert_eq!(span.error, expected, "{span:?}");
    }
}

fn only(collector: &Collector, name: &str) -> Received {
    let mut named = collector.named(name);
    assert_eq!(named.len(), 1, "{name}: {named:?}");
    named.remove(0)
}

fn assert_within(inner: &[Received], outer: &Received) {
    assert!(!inner.is_empty());
    for span in inner {
        assert_eq!(span.parent, outer.id, "{} in {}", span.name, outer.name);
        assert_eq!(span.trace, outer.trace, "{}", span.name);
    }
}

#[tokio::test]
async fn a_workers_step_is_a_trace() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let hung = Hung::hold(&chain, &plugin).await;
    let collector = Collector::start();
    let releases = plugin.root().display().to_string();
    let arguments = ["work", "--releases", &releases, "--until-idle"];
    let worked = run(sends_to(&mut tollgate(&chain, &[], &arguments), collector.endpoint()));
    assert_eq!(worked.code(), Some(0), "{}", worked.stderr);
    drop(hung);

    let spans = collector.spans();
    assert_documented(&spans);
    assert_eq!(collector.paths()[0], "/v1/traces");
    let delivery = only(&collector, "delivery");
    assert_eq!(delivery.parent, Vec::<u8>::new());
    for (field, value) in
        [("step_key", "up:1"), ("plan", "up"), ("attempt", "2"), ("status", "APPLIED")]
    {
        assert_eq!(delivery.fields[field], value);
    }
    assert_eq!(delivery.sender["service.name"], "tollgate");
    assert_eq!(delivery.sender["service.version"], env!("CARGO_PKG_VERSION"));
    let step = only(&collector, "step");
    assert_within(std::slice::from_ref(&step), &delivery);
    assert_eq!(step.fields["outcome"], "applied");
    assert_eq!(step.fields["plugin"], "orders@1.0.0");
    for name in ["decision", "open", "claim", "statement", "completion"] {
        assert_within(&collector.named(name), &step);
    }
    let claim = only(&collector, "claim");
    assert_eq!(claim.fields["result"], "granted");
    assert_within(&collector.named("takeover"), &claim);
    assert_eq!(only(&collector, "decision").fields["outcome"], "allow");
    let statements = collector.named("statement");
    let operations: Vec<_> = statements.iter().map(|it| it.fields["operation"].as_str()).collect();
    assert_eq!(operations.len(), 2, "{operations:?}");
    assert_eq!(statements[1].fields["affected_rows"], "1");
    let text = collector.text();
    for secret in SECRETS {
        assert!(!text.contains(secret), "`{secret}` was sent: {text}");
    }
    let seen: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let listed: BTreeSet<&str> = LIST.iter().map(|it| it.name).collect();
    assert_eq!(listed.difference(&seen).collect::<Vec<_>>(), [&"request"], "the page's alone");
}

#[tokio::test]
async fn what_is_denied_and_what_fails_has_its_code_and_an_error() {
    let chain = Chain::start().await;
    let plugin = Plugin::install("TRUNCATE TABLE note;", None);
    let folder = plugin.release_folder("1.0.0").display().to_string();
    let arguments = ["execute", &folder, "schema", "--step-key", "s:1"];
    let denied = Collector::start();
    let ran = run(sends_to(&mut tollgate(&chain, &[], &arguments), denied.endpoint())
        .env("OTEL_SERVICE_NAME", "gate-7"));
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert_documented(&denied.spans());
    let decision = only(&denied, "decision");
    assert_eq!(decision.fields["outcome"], "deny");
    assert!(decision.error.is_some(), "{decision:?}");
    let step = only(&denied, "step");
    assert_eq!((&*step.fields["outcome"], &*step.fields["code"]), ("not-applied", "refused"));
    assert_eq!(step.sender["service.name"], "gate-7");

    plugin.reinstall("1.0.0", "INSERT IGNORE INTO nowhere (id) VALUES (1);", None);
    let failed = Collector::start();
    let traces = format!("{}/anywhere", failed.endpoint());
    let mut command = tollgate(&chain, &[], &arguments);
    // The variable for traces wins, and is taken as it is.
    bare(&mut command).env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", traces);
    let ran = run(command.env(ENDPOINT, "http://127.0.0.1:1"));
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert_eq!(failed.paths()[0], "/anywhere");
    assert_eq!(only(&failed, "statement").fields["code"], "server-1146");
    assert_eq!(only(&failed, "step").fields["code"], "statement-failed");
    assert_documented(&failed.spans());

    let away = Collector::start();
    let wrong = [("SQL_TARGET_PASSWORD", "canary-wrong")];
    let ran = run(sends_to(&mut tollgate(&chain, &wrong, &arguments), away.endpoint()));
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert!(!away.text().contains("canary"), "{}", away.text());
}

/// What a collector's headers hold is for the collector that was named.
#[tokio::test]
async fn a_collector_that_redirects_sends_nobody_elsewhere() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let elsewhere = Collector::start();
    let redirecting = Collector::redirecting_to(elsewhere.endpoint());
    let log = work(&chain, &plugin, redirecting.endpoint()).log();
    assert_eq!(log.matches("spans cannot be sent to the collector").count(), 1, "{log}");
    assert!(!redirecting.paths().is_empty());
    assert_eq!(elsewhere.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn the_page_sends_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let collector = Collector::start();
    let mut command = tollgate(&chain, &[], &["serve", "--listen", "127.0.0.1:0"]);
    let mut served =
        Served::of(sends_to(&mut command, collector.endpoint()), &folder.path().join("log"));
    assert_eq!(served.get("/executions").status, 200);
    // What a client writes is no field of a span.
    assert_eq!(served.get("/canary-path/password=canary").status, 404);
    served.process.signal("TERM");
    assert_eq!(served.process.wait().code(), Some(0), "{}", served.process.log());
    assert!(!collector.text().contains("canary-path"), "{}", collector.text());
    let (unmatched, request): (Vec<Received>, Vec<Received>) = collector
        .spans()
        .into_iter()
        .filter(|span| span.name == "request")
        .partition(|span| span.fields["path"] == "unmatched");
    assert_eq!(unmatched.len(), 1);
    let [request] = &request[..] else { panic!("{request:?}") };
    for (field, value) in [("method", "GET"), ("path", "/executions"), ("status", "200")] {
        assert_eq!(request.fields[field], value);
    }
    assert_documented(&collector.spans());
}

/// What the server failed at is an error, what the client did is none.
#[tokio::test]
async fn an_answer_that_says_that_the_server_failed_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let collector = Collector::start();
    let wrong = [("SQL_TARGET_PASSWORD", "wrong")];
    let mut command = tollgate(&chain, &wrong, &["serve", "--listen", "127.0.0.1:0"]);
    let mut served =
        Served::of(sends_to(&mut command, collector.endpoint()), &folder.path().join("log"));
    for (path, status) in [("/readyz", 503), ("/nothing", 404), ("/healthz", 200)] {
        assert_eq!(served.get(path).status, status);
    }
    served.process.signal("TERM");
    assert_eq!(served.process.wait().code(), Some(0), "{}", served.process.log());
    assert_documented(&collector.spans());
    let errors: Vec<(String, bool)> = collector
        .named("request")
        .into_iter()
        .map(|it| (it.fields["status"].clone(), it.error.is_some()))
        .collect();
    let expected = [("503", true), ("404", false), ("200", false)];
    assert_eq!(errors, expected.map(|(status, is_error)| (status.to_owned(), is_error)));
}

/// A worker on one step; it ends by itself.
fn work(chain: &Chain, plugin: &Plugin, endpoint: &str) -> Process {
    work_with(chain, plugin, &[(ENDPOINT, endpoint)])
}

/// The same with these of OpenTelemetry's variables.
fn work_with(chain: &Chain, plugin: &Plugin, variables: &[(&str, &str)]) -> Process {
    // Each time a plan of its own.
    static PLANS: AtomicU32 = AtomicU32::new(0);
    let plan = format!("up-{}", PLANS.fetch_add(1, Ordering::Relaxed));
    let submitted = submit(chain, plugin, &plugin.document_of(&plan, &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let releases = plugin.root().display().to_string();
    let arguments = ["work", "--releases", &releases, "--until-idle"];
    let mut command = tollgate(chain, &[], &arguments);
    bare(&mut command).envs(variables.iter().copied());
    let mut worker = Process::spawn(&mut command, &plugin.root().join("log"));
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert!(worker.log().contains("applied=1"), "{}", worker.log());
    worker
}

#[tokio::test]
async fn a_collector_that_is_away_is_said_once_and_fails_nothing() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = work(&chain, &plugin, &format!("http://{free}/canary")).log();
    assert_eq!(log.matches("spans cannot be sent to the collector").count(), 1, "{log}");
    assert!(!log.contains("canary") && !log.contains(&free.to_string()), "{log}");
}

#[tokio::test]
async fn a_collector_that_hangs_holds_nothing_up() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    // The exporter itself waits for 10 s: that this is said means that the end did not.
    let log = work(&chain, &plugin, &endpoint).log();
    assert!(log.contains("the collector did not take them in time budget_s=2"), "{log}");
    assert!(!log.contains("spans cannot be sent"), "nobody waited for the exporter: {log}");
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_said_and_not_shown() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let log = work(&chain, &plugin, "http://canary host/").log();
    assert_eq!(log.matches("the endpoint is no URL").count(), 1, "{log}");
    assert!(log.contains(ENDPOINT) && !log.contains("canary"), "{log}");
}

/// OpenTelemetry's own reading would send the spans without them, to a collector that refuses them.
#[tokio::test]
async fn a_login_in_a_url_and_a_header_that_is_none_are_said_and_not_shown() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let collector = Collector::start();
    let with_login = collector.endpoint().replace("http://", "http://canary-user:canary-pass@");
    let said = |variables: &[(&str, &str)], problem: &str| {
        let log = work_with(&chain, &plugin, variables).log();
        assert_eq!(log.matches(problem).count(), 1, "{log}");
        assert!(log.contains(variables[0].0) && log.contains("help="), "{log}");
        assert!(!log.contains("canary"), "{log}");
    };
    let problem = "no spans are sent: the endpoint holds a user or a password";
    said(&[(ENDPOINT, &with_login)], problem);
    let traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    said(&[(traces, &with_login), (ENDPOINT, collector.endpoint())], problem);
    let problem = "no spans are sent: a header is not `name=value`";
    for headers in ["canary-token", "a=b,canary-token", "canary name=b", "canary="] {
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", headers);
        said(&[headers, (ENDPOINT, collector.endpoint())], problem);
    }
    assert_eq!(collector.paths(), Vec::<String>::new());
    let own = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20canary, x-own=a=b,");
    // The variable of traces wins.
    let other = ("OTEL_EXPORTER_OTLP_HEADERS", "canary-token");
    let log = work_with(&chain, &plugin, &[own, other, (ENDPOINT, collector.endpoint())]).log();
    assert!(!log.contains("no spans are sent") && !log.contains("canary"), "{log}");
    assert_eq!(collector.named("delivery").len(), 1);
}

#[tokio::test]
async fn a_collector_behind_tls_is_sent_to_when_its_certificate_is_trusted() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let authority = Authority::new("IP:127.0.0.1");
    let collector = Collector::over_tls(&authority);
    let to = (ENDPOINT, collector.endpoint());
    // Nobody that the system trusts has signed it.
    let log = work_with(&chain, &plugin, &[to]).log();
    assert_eq!(log.matches("spans cannot be sent to the collector").count(), 1, "{log}");
    assert_eq!(collector.spans().len(), 0);
    let trusted = authority.path("ca.pem").display().to_string();
    let log = work_with(&chain, &plugin, &[to, ("SSL_CERT_FILE", &trusted)]).log();
    assert!(!log.contains("spans cannot be sent"), "{log}");
    assert_eq!(collector.named("delivery").len(), 1);
    assert_documented(&collector.spans());
}

#[test]
fn the_documentation_has_every_span_and_no_other() {
    let text = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let (_, section) =
        text.split_once("| span | fields | what lies in it |\n|---|---|---|\n").unwrap();
    let rows: Vec<&str> = section.lines().take_while(|line| line.starts_with('|')).collect();
    let expected: Vec<String> = LIST
        .iter()
        .map(|it| {
            let fields: Vec<String> = it.fields.iter().map(|field| format!("`{field}`")).collect();
            format!("| `{}` | {} | {} |", it.name, fields.join(" "), it.about)
        })
        .collect();
    assert_eq!(rows, expected, "what docs/metrics.md has to say:\n{}", expected.join("\n"));
    let numbers: BTreeSet<&str> = LIST.iter().flat_map(|it| it.numbers).copied().collect();
    let numbers: Vec<String> = numbers.iter().map(|it| format!("`{it}`")).collect();
    let said = format!("Numbers arrive as numbers: {}.", numbers.join(", "));
    assert!(text.contains(&said), "docs/metrics.md has to say: {said}");
}
