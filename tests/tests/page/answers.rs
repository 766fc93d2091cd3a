//! Every answer is held to the rules, and one status value is shown everywhere alike.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_tests::chain::{CONTROL, Chain};
use tollgate_tests::cli::{command, run};
use tollgate_tests::page::{InUse, Served, connections_to};
use tollgate_tests::process::tollgate;
use tollgate_tests::schema::Schema;

/// State, changed variables, the key of what is missing, and the code of `/readyz` when it is not 200.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

const ROUTES: &[&str] = &[
    "/",
    "/executions",
    "/executions/nothing",
    "/executions/n%C3%A9",
    "/executions/%ff",
    "/execution?key=nothing",
    "/outbox",
    "/api/status",
    "/healthz",
    "/readyz",
    "/metrics",
    "/assets/nothing",
    "/nothing",
];

#[tokio::test]
async fn the_page_the_json_and_the_command_agree_in_every_state() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let nobody = format!("jdbc:mysql://127.0.0.1:1/{CONTROL}");
    let cases: [Case<'_>; 6] = [
        ("disabled", &[("SQL_TARGET_ENABLED", "false")], "", ""),
        ("ready", &[], "", ""),
        (
            "incomplete",
            &[("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5")],
            "FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS",
            "configuration-broken",
        ),
        (
            "incomplete",
            &[("SQL_TARGET_PASSWORD", "wrong")],
            "target-access-denied",
            "target-unusable",
        ),
        (
            "incomplete",
            &[("CONTROL_PASSWORD", "wrong")],
            "control-access-denied",
            "control-unusable",
        ),
        (
            "incomplete",
            &[("CONTROL_JDBC_URL", &nobody)],
            "control-unreachable",
            "control-unreachable",
        ),
    ];
    for (number, (state, changes, key, code)) in cases.into_iter().enumerate() {
        let printed = run(&mut tollgate(&chain, changes, &["status", "--json"])).json_lines();
        let served = Served::start(&chain, changes, &[], &folder.path().join(number.to_string()));
        let shown: Value = serde_json::from_str(&served.get("/api/status").body).unwrap();
        assert_eq!(printed, std::slice::from_ref(&shown), "{state}");
        Schema::of("status").assert_accepts(&shown);
        assert_eq!(shown["sqlTarget"]["state"], state);

        let page = served.get("/").body;
        assert!(page.contains(&format!("SQL target: <strong>{state}</strong>")), "{page}");
        for fact in ["executor", "environment", "catalog"] {
            let fact = shown[fact].as_str().unwrap_or("none");
            assert!(page.contains(fact), "{fact}: {page}");
        }
        for fact in ["name", "version", "digest"] {
            let fact = shown["policy"][fact].as_str().unwrap();
            assert!(page.contains(fact), "{fact}: {page}");
        }
        let missing = shown["sqlTarget"]["missing"].as_array().cloned().unwrap_or_default();
        assert_eq!(missing.is_empty(), key.is_empty(), "{missing:?}");
        assert!(page.contains(key) && missing.iter().all(|it| it["key"] == key), "{missing:?}");

        // The configured executor is sql-jdbc:v1, which there is none of without a target.
        let lacking = shown["executorMissing"]["key"].as_str();
        assert_eq!(lacking, (state == "disabled").then_some("executor-target-disabled"));
        assert_eq!(page.contains("executor-target-disabled"), lacking.is_some(), "{page}");

        // Disabled is a state and no trouble, and whatever is missing is.
        let executions = served.get("/executions").body;
        let is_trouble = executions.contains("role=\"alert\"");
        assert_eq!(is_trouble, state == "incomplete", "{executions}");

        let ready = served.get("/readyz");
        assert_eq!(ready.status, if code.is_empty() { 200 } else { 503 }, "{ready:?}");
        let ready: Value = serde_json::from_str(&ready.body).unwrap();
        Schema::of("readyz").assert_accepts(&ready);
        let codes: Vec<&Value> =
            ready["reasons"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
        let expected: Vec<&str> = [code].into_iter().filter(|code| !code.is_empty()).collect();
        assert_eq!(json!(codes), json!(expected));
        // The causes are what the status says, each with its help.
        let told = ready["reasons"][0]["causes"].as_array().cloned().unwrap_or_default();
        assert_eq!(told, missing);
        assert_eq!(served.get("/healthz").body, "ok\n");
    }
}

#[tokio::test]
async fn every_answer_carries_what_keeps_it_safe() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let front = served.get("/").body;
    let style = front.split('"').find(|part| part.starts_with("/assets/")).unwrap();
    for route in ROUTES.iter().copied().chain([style]) {
        for (method, host) in [
            ("GET", &*served.address),
            ("HEAD", "localhost"),
            ("POST", "localhost"),
            ("GET", "x.y"),
        ] {
            let answer = served.ask(method, route, host);
            let policy = answer.header("content-security-policy");
            assert!(policy.starts_with("default-src 'none'; style-src 'self'; img-src 'self'; "));
            assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("script"));
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("referrer-policy"), "no-referrer");
            assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
            let keeps = route == style && method != "POST" && host != "x.y";
            let cache = if keeps { "public, max-age=31536000, immutable" } else { "no-store" };
            assert_eq!(answer.header("cache-control"), cache, "{method} {route}");
            assert!(!answer.body.contains("<script"), "{}", answer.body);
            match (method, host) {
                ("POST", _) => {
                    assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"));
                }
                (_, "x.y") => assert_eq!(answer.status, 421, "{route}"),
                ("HEAD", _) => assert!(answer.body.is_empty() && answer.status != 405),
                _ => assert!(![405, 421].contains(&answer.status), "{route}: {answer:?}"),
            }
        }
    }
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        assert_eq!(served.ask(method, "/", "localhost").status, 405, "{method}");
    }
}

#[test]
fn another_address_than_loopback_is_refused_unless_asked_for() {
    let refused = run(&mut command(["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(refused.code(), Some(2));
    assert!(refused.stderr.contains("--allow-remote"), "{}", refused.stderr);
    let refused = run(&mut command(["serve", "--listen", "[::]:0"]));
    assert_eq!(refused.code(), Some(2));
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(["serve", "--listen", "0.0.0.0:0", "--allow-remote"]);
    let mut served = Served::of(&mut command, &folder.path().join("log"));
    served.address = served.address.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(served.ask("GET", "/", "any.example").status, 200, "a proxy has a name of its own");
}

/// Whatever is wrong with a request, its answer is a page of ours, and never the framework's own words.
#[tokio::test]
async fn what_cannot_be_read_is_said_by_the_page_itself() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    for (path, status) in [
        ("/executions/%ff", 400),
        ("/executions/a%2Fb", 400),
        ("/executions/a/b", 404),
        ("/executions/", 404),
        ("/executions/%", 400),
        ("/execution", 400),
        ("/execution?key=%ff", 400),
        ("/execution?key=a&key=b", 400),
        ("/execution?kee=a", 400),
        ("/executions?state=failed&state=failed", 400),
        ("/executions?plugin=%ff", 400),
        ("/executions?before=%ff", 400),
        ("/executions?before=-1", 400),
        ("/executions?before=18446744073709551616", 400),
        ("/executions?before=2&after=1", 400),
        ("/executions?open=%00", 400),
        ("/outbox?before=first", 400),
        ("/outbox?state=%ff", 400),
        ("/outbox?after=1&after=2", 400),
        ("/assets/%ff", 404),
        ("/%ff", 404),
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert!(answer.body.contains("<nav aria-label=\"Pages\">"), "{path}: {}", answer.body);
    }
    // What is not known is no error.
    assert_eq!(served.get("/executions?page=%ff&=&x").status, 200);
}

#[tokio::test]
async fn a_step_is_shown_whatever_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let keys = [".", "..", "...", ".:-_"];
    for key in keys {
        in_use.copy(&format!("'{key}'"), "").await;
        in_use.change(key, "status = 'FAILED', external_receipt = NULL, completed_at = NULL").await;
    }
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let front = served.get("/").body;
    for key in keys {
        let title = format!("id=\"execution-title\"><bdi>{key}</bdi>");
        let own = match key {
            // A browser would ask for `/executions/` and for `/`.
            "." | ".." => format!("/execution?key={key}"),
            key => format!("/executions/{key}"),
        };
        assert!(front.contains(&format!("href=\"{own}\"")), "{own}: {front}");
        assert!(served.get(&own).body.contains(&title), "{own}");
        let over = served.get(&format!("/executions?open={key}")).body;
        assert!(over.contains(&title) && over.contains(&format!("href=\"{own}\"")), "{over}");
    }
}

#[tokio::test]
async fn what_was_not_read_is_said_beside_what_needs_attention() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let unread = "Executions were not read.";
    let commands = "<code>tollgate outbox</code>, <code>tollgate receipts</code>";
    let whole = Served::start(&in_use.chain, &[], &[], &folder.path().join("whole")).get("/").body;
    assert!(whole.contains("summer-7:4") && whole.contains(commands), "{whole}");
    assert!(!whole.contains(unread), "{whole}");
    let wrong = [("SQL_TARGET_PASSWORD", "wrong")];
    let half = Served::start(&in_use.chain, &wrong, &[], &folder.path().join("half")).get("/").body;
    assert!(half.contains("spring-campaign:1") && half.contains(commands), "{half}");
    assert!(half.contains(unread) && !half.contains("summer-7:4"), "{half}");
}

#[test]
fn every_loopback_address_that_is_listened_on_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    for (listen, name) in
        [("127.0.0.2:0", "two"), ("[::1]:0", "six"), ("[::ffff:127.0.0.1]:0", "mapped")]
    {
        if std::net::TcpListener::bind(listen).is_err() {
            println!("not looked at: this machine has no {listen}");
            continue;
        }
        let mut command = command(["serve", "--listen", listen]);
        let served = Served::of(&mut command, &folder.path().join(name));
        for host in [&*served.address, "localhost", "127.0.0.1", "[::1]"] {
            assert_eq!(served.ask("GET", "/healthz", host).status, 200, "{listen} as {host}");
        }
        assert_eq!(served.ask("GET", "/healthz", "evil.example").status, 421, "{listen}");
    }
}

/// Loading and compiling a policy takes its time, on some machines seconds.
#[test]
fn an_address_in_use_is_said_before_a_policy_is_loaded() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let nowhere = run(&mut command(["serve", "--listen", "127.0.0.1:0", "--store", "nowhere"]));
    assert!(nowhere.code() != Some(0) && nowhere.stderr.contains("nowhere"), "{}", nowhere.stderr);
    let in_use = run(&mut command(["serve", "--listen", &address, "--store", "nowhere"]));
    assert_eq!(in_use.code(), Some(2), "{}", in_use.stderr);
    assert!(in_use.stderr.contains("cannot be listened on"), "{}", in_use.stderr);
}

#[tokio::test]
async fn a_second_signal_waits_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::start().await;
    chain.control().await;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = tollgate(&chain, &[], &["serve", "--listen", "127.0.0.1:0"]);
        command.env("TOLLGATE_LOG", "info");
        let mut served = Served::of(&mut command, &folder.path().join(signal));
        // An answer that is under way for seconds.
        chain.server.signal("STOP");
        let mut waiting = TcpStream::connect(&served.address).unwrap();
        waiting.write_all(b"GET /executions HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let begun = Instant::now();
        while connections_to(chain.server.port()) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(4), "nothing is read");
        }
        served.process.signal(signal);
        served.process.wait_until_it_says("ending signal=");
        served.process.signal(signal);
        let ended = served.process.wait();
        chain.server.signal("CONT");
        assert_eq!(ended.code(), Some(code), "{}", served.process.log());
        assert!(served.process.log().contains("a second signal"), "{}", served.process.log());
    }
}

#[test]
fn usage_is_told_before_anything_is_served() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let in_use = run(&mut command(["serve", "--listen", &address]));
    assert_eq!(in_use.code(), Some(2), "{}", in_use.stderr);
    assert!(in_use.stderr.contains(&address) && in_use.stderr.contains("--listen"));
    let nowhere = run(&mut command(["serve", "--listen", "127.0.0.1:0", "--releases", "nowhere"]));
    assert_eq!(nowhere.code(), Some(2));
    assert!(nowhere.stderr.contains("`nowhere`"), "{}", nowhere.stderr);
}

#[test]
fn a_signal_ends_it_also_while_a_client_keeps_its_connection() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(["serve", "--listen", "127.0.0.1:0"]);
        let mut served = Served::of(&mut command, &folder.path().join("log"));
        assert_eq!(served.get("/healthz").status, 200);
        let mut idle = TcpStream::connect(&served.address).unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Never").unwrap();
        let begun = Instant::now();
        served.process.signal(signal);
        assert_eq!(served.process.wait().code(), Some(0), "{}", served.process.log());
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
