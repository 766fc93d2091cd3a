//! A worker's probes, asked as a supervisor asks them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_tests::chain::{Chain, Plugin, TARGET_PASSWORD, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::page;
use tollgate_tests::process::{Process, submit, tollgate};
use tollgate_tests::schema::Schema;
use tollgate_tests::server::Flavour;

/// Status and body of an answer.
fn ask(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Asks until the answer has this status; its reasons' codes.
fn ready(address: &str, expected: u16) -> Vec<Value> {
    reasons(address, expected).iter().map(|it| it["code"].clone()).collect()
}

/// Asks until the answer has this status; its reasons.
fn reasons(address: &str, expected: u16) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let (status, body) = ask(address, "/readyz");
        let body: Value = serde_json::from_str(&body).unwrap();
        Schema::of("readyz").assert_accepts(&body);
        assert_eq!(body["ready"], json!(status == 200), "{status} {body}");
        if status == expected {
            return body["reasons"].as_array().unwrap().clone();
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "still {status} {body}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn address(worker: &Process) -> String {
    worker.wait_until_it_says("probes are answered");
    let log = worker.log();
    let (_, rest) = log.split_once("address=").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn readiness_follows_the_control_server_and_the_drain() {
    let mut chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let arguments = ["--probes-listen", "127.0.0.1:0", "--grace", "0"];
    let mut worker = Process::start(&chain, &plugin, &[], &arguments, &log);
    let address = address(&worker);
    assert_eq!(ready(&address, 200), Vec::<Value>::new());
    assert_eq!(ask(&address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(ask(&address, "/").0, 404);

    chain.server.kill9();
    assert_eq!(ready(&address, 503), [json!("control-unreachable")]);
    assert_eq!(ask(&address, "/healthz").0, 200, "a restart would not help");
    assert!(!ask(&address, "/readyz").1.contains("canary"));
    chain.server.start_again();
    ready(&address, 200);

    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert!(TcpStream::connect(&address).is_err(), "gone with the process");
}

/// The only reason, once the answer is 503.
fn reason(address: &str) -> Value {
    let mut reasons = reasons(address, 503);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

#[tokio::test]
async fn an_outbox_that_is_gone_is_told_from_a_server_that_is_away() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let address = address(&worker);
    ready(&address, 200);
    chain.server.execute(&["DROP TABLE control_plane.factory_plugin_control_outbox"]).await;
    let reason = reason(&address);
    assert_eq!(reason["code"], "control-unusable");
    // The first statement is refused, and the next session compares the shape before it: one key.
    assert_eq!(reason["causes"][0]["key"], "outbox-missing", "{reason}");
    assert_eq!(reason["causes"][0]["help"], "run `tollgate init control`");
    worker.wait_until_it_says("the server is not usable");
    assert!(worker.log().contains("help=\"run `tollgate init control`\""), "{}", worker.log());
    chain.control().await;
    ready(&address, 200);
}

#[tokio::test]
async fn a_target_that_cannot_be_used_is_told_before_a_step_is_due_and_with_one() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let wrong = [("SQL_TARGET_PASSWORD", "wrong")];
    let arguments = ["--probes-listen", "127.0.0.1:0"];
    let worker = Process::start(&chain, &plugin, &wrong, &arguments, &log);
    let reason = reason(&address(&worker));
    assert_eq!(reason["code"], "target-unusable");
    assert_eq!(reason["causes"][0]["key"], "target-access-denied");
    worker.wait_until_it_says("the server is not usable: the target is not usable");

    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    worker.wait_until_it_says("status=\"PENDING\"");
    let query = "SELECT last_error FROM factory_plugin_control_outbox";
    let said: Vec<String> = chain.control_rows(query).await;
    assert!(said[0].contains("target-access-denied: the target is not usable"), "{said:?}");
    assert!(worker.log().contains(&said[0]) && !worker.log().contains("canary"), "{said:?}");
}

/// Where the only step is, how often it failed, and its last code.
async fn step(chain: &Chain) -> (String, u32, Option<String>) {
    let query = "SELECT status, failure_count, last_error_code FROM factory_plugin_control_outbox";
    chain.control_rows(query).await.remove(0)
}

async fn wait_for(chain: &Chain, status: &str, code: Option<&str>) {
    let begun = Instant::now();
    loop {
        let now = step(chain).await;
        assert_ne!(now.0, "NEEDS_ATTENTION", "{now:?}");
        if now.0 == status && code.is_none_or(|code| now.2.as_deref() == Some(code)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{now:?} is not {status} {code:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A target that was ready and is not any more, until somebody mends it: the worker says so, the step
/// waits and needs nobody.
async fn waits_until_mended(spoil: &[&str], code: &str, mend: &[&str]) {
    waits_in(Session::Opened, spoil, code, mend).await;
}

/// The session of the step that meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    Opened,
    /// By an earlier step, which is forgotten.
    Kept,
}

async fn waits_in(session: Session, spoil: &[&str], code: &str, mend: &[&str]) {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let address = address(&worker);
    ready(&address, 200);
    if session == Session::Kept {
        plugin.install_as("first", "1.0.0", "DROP TABLE IF EXISTS unused", None);
        let first = submit(&chain, &plugin, &plugin.document_of("first", &["first"]));
        assert_eq!(first.code(), Some(0), "{}", first.stderr);
        wait_for(&chain, "APPLIED", None).await;
        chain.server.execute(&["DELETE FROM control_plane.factory_plugin_control_outbox"]).await;
    }
    chain.server.execute(spoil).await;
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    wait_for(&chain, "PENDING", Some(code)).await;
    let reason = reason(&address);
    assert_eq!(reason["code"], "target-unusable", "{reason}");
    assert_eq!(reason["causes"][0]["key"], code, "{reason}");
    chain.server.execute(mend).await;
    wait_for(&chain, "APPLIED", None).await;
    assert_eq!(step(&chain).await.1, 0, "no attempt was used up");
    ready(&address, 200);
    assert!(!worker.log().contains("canary"), "{}", worker.log());
}

#[tokio::test]
async fn a_password_that_was_changed_leaves_its_steps_to_wait() {
    let set = |password: &str| format!("ALTER USER '{TARGET_USER}'@'%' IDENTIFIED BY '{password}'");
    let (spoil, mend) = (set("another"), set(TARGET_PASSWORD));
    waits_until_mended(&[&spoil], "target-access-denied", &[&mend]).await;
}

#[tokio::test]
async fn a_right_that_was_taken_away_leaves_its_steps_to_wait() {
    let rights = r"INSERT, UPDATE ON `plugin\_preview`.*";
    let spoil = format!("REVOKE {rights} FROM '{TARGET_USER}'@'%'");
    let mend = format!("GRANT {rights} TO '{TARGET_USER}'@'%'");
    waits_until_mended(&[&spoil], "grants-missing", &[&mend]).await;
}

/// A session that is kept was opened when the right was there: the claim is what meets the lack.
#[tokio::test]
async fn a_right_that_a_kept_session_lacks_leaves_its_steps_to_wait() {
    let rights = r"INSERT ON `plugin\_preview`.*";
    let spoil = format!("REVOKE {rights} FROM '{TARGET_USER}'@'%'");
    let mend = format!("GRANT {rights} TO '{TARGET_USER}'@'%'");
    waits_in(Session::Kept, &[&spoil], "ledger-statement-refused", &[&mend]).await;
}

/// Before any step is due, as the status says it.
async fn a_right_that_is_missing_is_told_without_a_step(flavour: Flavour) {
    let chain = Chain::start_on(flavour.builder()).await;
    chain.control().await;
    let revoke = format!(r"REVOKE INSERT ON `plugin\_preview`.* FROM '{TARGET_USER}'@'%'");
    chain.server.execute(&[&revoke]).await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let reason = reason(&address(&worker));
    assert_eq!(reason["code"], "target-unusable");
    let cause = &reason["causes"][0];
    assert_eq!(cause["key"], "grants-missing");
    assert!(cause["message"].as_str().unwrap().ends_with(": INSERT"), "{cause}");
    let status = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &["status", "--json"]));
    assert_eq!(status.code(), Some(1), "{}", status.stderr);
    assert_eq!(&status.json_lines()[0]["sqlTarget"]["missing"][0], cause);
}
over_servers!(a_right_that_is_missing_is_told_without_a_step);

/// A claim that is refused by what no look looks at: a trigger whose definer may not do what it does.
#[tokio::test]
async fn what_a_claim_met_lasts_while_its_step_waits_and_no_longer() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    chain
        .server
        .execute(&[
            "CREATE USER definer@'%'",
            r"GRANT TRIGGER ON `plugin\_preview`.* TO definer@'%'",
            "CREATE TABLE plugin_preview.forbidden (id INT)",
            "CREATE DEFINER = definer@'%' TRIGGER plugin_preview.refuses \
             BEFORE INSERT ON plugin_preview.factory_plugin_target_receipt \
             FOR EACH ROW INSERT INTO plugin_preview.forbidden VALUES (1)",
        ])
        .await;
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let address = address(&worker);
    ready(&address, 200);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    wait_for(&chain, "PENDING", Some("ledger-statement-refused")).await;
    let reason = reason(&address);
    assert_eq!(reason["code"], "target-unusable", "{reason}");
    assert_eq!(reason["causes"][0]["key"], "ledger-statement-refused", "{reason}");
    let status = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &["status", "--json"]));
    assert_eq!(status.json_lines()[0]["sqlTarget"]["state"], "ready", "no look sees it");
    // Nobody tries it again from here: the step is taken back.
    let back = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &["compensate", "up"]));
    assert_eq!(back.code(), Some(0), "{}", back.stderr);
    assert!(!worker.log().contains("the server can be used again"), "{}", worker.log());
    ready(&address, 200);
    worker.wait_until_it_says("the server can be used again");
}

/// The target's isolation is proven against the control catalog, and that is where the trouble is.
#[tokio::test]
async fn a_control_server_that_is_away_is_not_said_to_be_the_target() {
    let mut chain = Chain::start_apart().await;
    chain.control().await;
    chain.control_server_mut().kill9();
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let address = address(&worker);
    let reason = reason(&address);
    assert_eq!(reason["code"], "control-unreachable", "{reason}");
    let help = reason["causes"][0]["help"].as_str().unwrap();
    assert!(help.contains("FACTORY_PLUGIN_CONTROL_JDBC_URL"), "{reason}");
    let submitted = plugin.document_of("up", &["orders"]);
    chain.control_server_mut().start_again();
    assert_eq!(ready(&address, 200), Vec::<Value>::new());
    assert_eq!(submit(&chain, &plugin, &submitted).code(), Some(0));
    wait_for(&chain, "APPLIED", None).await;
    assert!(!worker.log().contains("server=\"target\""), "{}", worker.log());
}

#[tokio::test]
async fn a_ledger_that_is_gone_leaves_its_steps_to_wait() {
    let ledger = "plugin_preview.factory_plugin_target_receipt";
    let aside = "plugin_preview.aside";
    let spoil = format!("RENAME TABLE {ledger} TO {aside}");
    let mend = format!("RENAME TABLE {aside} TO {ledger}");
    waits_until_mended(&[&spoil], "ledger-missing", &[&mend]).await;
}

/// An earlier delivery of the step may have left something, and what it was stood in the ledger.
#[tokio::test]
async fn a_ledger_that_is_gone_leaves_a_step_that_was_delivered_before_to_a_person() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    ready(&address(&worker), 200);
    chain.server.execute(&["DROP TABLE plugin_preview.factory_plugin_target_receipt"]).await;
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    wait_for(&chain, "PENDING", Some("ledger-missing")).await;
    let outbox = "control_plane.factory_plugin_control_outbox";
    let delivered = format!("UPDATE {outbox} SET attempt_count = 1, not_before = UTC_TIMESTAMP(6)");
    chain.server.execute(&[&delivered]).await;
    worker.wait_until_it_says("status=\"NEEDS_ATTENTION\"");
    assert_eq!(step(&chain).await.2.as_deref(), Some("ledger-missing"));
}

#[tokio::test]
async fn an_address_in_use_is_said_before_anything_is_claimed() {
    let chain = Chain::start().await;
    chain.control().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["work", "--releases", ".", "--until-idle", "--probes-listen", &address];
    let run = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &arguments));
    assert_eq!(run.code(), Some(2), "{}", run.stderr);
    assert!(
        run.stderr.contains(&address) && run.stderr.contains("--probes-listen"),
        "{}",
        run.stderr
    );
}

#[tokio::test]
async fn probes_answer_this_machine_alone_and_carry_what_keeps_answers_safe() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    let address = address(&worker);
    for path in ["/healthz", "/readyz", "/metrics", "/nothing"] {
        for (method, host, refused) in [
            ("GET", &*address, None),
            ("HEAD", "localhost", None),
            ("GET", "127.0.0.2", None),
            // A name that was made to lead here is another page's (DNS rebinding).
            ("GET", "evil.example", Some(421)),
            ("POST", "localhost", Some(405)),
        ] {
            let answer = page::ask(&address, method, path, host);
            let expected = refused.unwrap_or(if path == "/nothing" { 404 } else { 200 });
            assert_eq!(answer.status, expected, "{method} {path} {host}: {answer:?}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("cache-control"), "no-store");
            assert!(answer.header("content-security-policy").starts_with("default-src 'none'"));
            let is_text = !answer.header("content-type").contains("html");
            assert!(is_text, "programs read it: {answer:?}");
        }
    }
}

#[tokio::test]
async fn other_machines_are_answered_only_when_that_was_asked_for() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let releases = plugin.root().display().to_string();
    let everywhere = ["work", "--releases", &releases, "--probes-listen", "0.0.0.0:0"];
    let refused = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &everywhere));
    assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
    for said in ["0.0.0.0 can be reached from other machines", "add --probes-allow-remote"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    let arguments = [&everywhere[3..], &["--probes-allow-remote"]].concat();
    let log = plugin.root().join("log");
    let worker = Process::start(&chain, &plugin, &[], &arguments, &log);
    let address = address(&worker).replace("0.0.0.0", "127.0.0.1");
    let answer = page::ask(&address, "GET", "/healthz", "worker-7.example");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "a pod has a name of its own");
}
