//! Every answer is held to the rules, and one status value is shown everywhere alike.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_tests::chain::{CONTROL, Chain};
use tollgate_tests::cli::{command, run};
use tollgate_tests::page::Served;
use tollgate_tests::process::tollgate;
use tollgate_tests::schema::Schema;

/// State, changed variables, the key of what is missing, and the code of `/readyz` when it is not 200.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

const ROUTES: &[&str] = &[
    "/",
    "/executions",
    "/executions/nothing",
    "/executions/n%C3%A9",
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
        let causes = ready["reasons"][0]["causes"].as_array().cloned().unwrap_or_default();
        assert_eq!(causes, missing);
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
