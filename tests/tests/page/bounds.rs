//! Whatever is away, every answer comes in bounded time, and nothing piles up on the servers.

use std::io::ErrorKind::WouldBlock;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tollgate_tests::chain::{Chain, Plugin, TARGET, TARGET_USER};
use tollgate_tests::page::{Served, ask, connections_to};
use tollgate_tests::process::{Process, tollgate};

/// An address that takes connections and never says a word.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("jdbc:mysql://{}/{TARGET}", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn a_silent_target_is_said_at_once_and_known_soon() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let (_listener, url) = silent();
    let served =
        Served::start(&chain, &[("SQL_TARGET_JDBC_URL", &url)], &[], &folder.path().join("log"));
    let begun = Instant::now();
    let first = served.get("/");
    let took = begun.elapsed();
    assert!(first.body.contains("being verified") && first.header("refresh") == "2", "{first:?}");
    assert!(first.body.contains("Nothing is enqueued"), "the other side is shown: {}", first.body);
    assert!(took < Duration::from_secs(3), "{took:?}");
    let known = loop {
        assert!(begun.elapsed() < Duration::from_secs(20), "the look never ends");
        let page = served.get("/").body;
        if page.contains("target-timed-out") {
            break page;
        }
    };
    assert!(known.contains("SQL target: <strong>incomplete</strong>"), "{known}");
    for path in ["/executions", "/executions/any", "/api/status", "/readyz", "/metrics"] {
        let begun = Instant::now();
        let answer = served.get(path);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(8), "{path}: {took:?}");
        assert!(!answer.body.is_empty());
    }
    let executions = served.get("/executions").body;
    assert!(executions.contains("role=\"alert\"") && executions.contains("target-timed-out"));
}

#[tokio::test]
async fn a_crowd_before_a_stopped_server_is_answered_and_opens_few_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::start_apart().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    assert!(served.get("/").body.contains("<strong>ready</strong>"));
    let (target, control) = (chain.server.port(), chain.control_server().port());
    let (idle_target, idle_control) = (connections_to(target), connections_to(control));
    chain.server.signal("STOP");
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (of_target, of_control) = std::thread::scope(|scope| {
        // While they are asked, since afterwards there are none, however many there were.
        let watching = scope.spawn(|| {
            let mut most = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                most.0 = connections_to(target).max(most.0);
                most.1 = connections_to(control).max(most.1);
                std::thread::sleep(Duration::from_millis(2));
            }
            most
        });
        let ask = |number: usize| {
            let path = ["/", "/executions", "/executions/a", "/metrics"][number % 4];
            assert!([200, 503].contains(&served.get(path).status));
        };
        let asking: Vec<_> = (0..40).map(|number| scope.spawn(move || ask(number))).collect();
        for one in asking {
            one.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    let took = begun.elapsed();
    chain.server.signal("CONT");
    let (of_target, of_control) = (of_target - idle_target, of_control - idle_control);
    println!("40 answers in {took:?}; at once {of_target} and {of_control} connections at most");
    assert!(took < Duration::from_secs(12), "{took:?}");
    // Four that read, and one that looks whether the target is ready.
    assert!((4..=5).contains(&of_target), "{of_target}");
    // Each of the target's proves on one here that it is not here, beside four that read.
    assert!((4..=9).contains(&of_control), "{of_control}");
    let begun = Instant::now();
    while !served.get("/").body.contains("<strong>ready</strong>") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come back");
    }
    chain.server.assert_session_count(TARGET_USER, 0).await;
}

#[tokio::test]
async fn half_a_request_is_given_up_while_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("page"));
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused;", None);
    let log = folder.path().join("worker");
    let worker = Process::start(&chain, &plugin, &[], &["--probes-listen", "127.0.0.1:0"], &log);
    worker.wait_until_it_says("probes are answered");
    let said = worker.log();
    let probes = said.split_once("address=").unwrap().1.split_whitespace().next().unwrap();
    let half = |address: &str| {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Never").unwrap();
        client
    };
    let halves = [half(&served.address), half(probes)];
    assert_eq!(served.get("/healthz").status, 200);
    assert_eq!(ask(probes, "GET", "/healthz", probes).status, 200);
    // The probes' first: the page still waits for the rest then.
    let [of_page, of_probes] = halves;
    let waiting = of_page.try_clone().unwrap();
    for (mut client, is_first) in [(of_probes, true), (of_page, false)] {
        let mut answer = Vec::new();
        let ended = client.read_to_end(&mut answer);
        assert!(!matches!(&ended, Err(error) if error.kind() == WouldBlock), "{ended:?}");
        assert_eq!(answer, b"", "there is nothing to answer");
        if is_first {
            waiting.set_nonblocking(true).unwrap();
            let still = waiting.peek(&mut [0]);
            waiting.set_nonblocking(false).unwrap();
            assert!(matches!(&still, Err(error) if error.kind() == WouldBlock), "{still:?}");
        }
    }
}

#[tokio::test]
async fn a_control_catalog_that_is_away_hides_nothing_of_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    // Without its table.
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let page = served.get("/");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("The outbox cannot be read"), "{}", page.body);
    assert!(page.body.contains("<strong>ready</strong>"), "{}", page.body);
    assert!(served.get("/outbox").body.contains("tollgate init control"));
    assert_eq!(served.get("/executions").status, 200);
}

/// The target's isolation is proven against the control catalog: its silence is not the target's.
#[tokio::test]
async fn a_control_server_that_is_frozen_is_not_said_to_be_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::start_apart().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    chain.control_server_mut().signal("STOP");
    let status = tollgate_tests::cli::run(&mut tollgate(&chain, &[], &["status", "--json"]));
    let answers = ["/readyz", "/executions", "/"].map(|path| served.get(path).body);
    chain.control_server_mut().signal("CONT");
    assert_eq!(status.code(), Some(1), "{}", status.stdout);
    let missing = &status.json_lines()[0]["sqlTarget"]["missing"][0];
    assert_eq!(missing["key"], "control-timed-out", "{missing}");
    assert!(missing["help"].as_str().unwrap().contains("CONTROL_JDBC_URL"), "{missing}");
    for answer in answers {
        assert!(!answer.contains("target-timed-out"), "{answer}");
        assert!(answer.contains("control-timed-out"), "{answer}");
    }
}

#[tokio::test]
async fn what_was_missing_is_shown_while_it_is_looked_at_again() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let (_listener, url) = silent();
    let served =
        Served::start(&chain, &[("SQL_TARGET_JDBC_URL", &url)], &[], &folder.path().join("log"));
    // It ends with a look.
    assert!(served.get("/api/status").body.contains("target-timed-out"));
    let begun = Instant::now();
    let again = loop {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not looked at again");
        let page = served.get("/");
        assert!(page.body.contains("<strong>incomplete</strong>"), "{}", page.body);
        if page.body.contains("It is being looked at again") {
            break page;
        }
    };
    assert_eq!(again.header("refresh"), "2");
    assert!(again.body.contains("target-timed-out") && again.body.contains("As of "), "{again:?}");
}

/// One after the other they would take as long as a monitor waits at most.
#[tokio::test]
async fn what_a_monitor_asks_for_is_read_at_once_and_complete_without_what_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::start_apart().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let port = chain.server.port();
    let idle = connections_to(port);
    chain.server.signal("STOP");
    let (answer, most) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| served.get("/metrics"));
        let mut most = 0;
        while !asking.is_finished() {
            most = connections_to(port).max(most);
            std::thread::sleep(Duration::from_millis(2));
        }
        (asking.join().unwrap(), most)
    });
    chain.server.signal("CONT");
    assert_eq!(most - idle, 2, "the look at the target, and the ledger's figures beside it");
    let has = |line: &str| answer.body.lines().any(|it| it == line);
    assert!(has("tollgate_source_up{source=\"target\"} 0"), "{}", answer.body);
    assert!(has("tollgate_sql_target{state=\"incomplete\"} 1"), "{}", answer.body);
    assert!(!answer.body.contains("tollgate_executions{"), "{}", answer.body);
    assert!(has("tollgate_source_up{source=\"control\"} 1"), "{}", answer.body);
    assert!(has("tollgate_outbox_steps{status=\"PENDING\"} 0"), "{}", answer.body);
    assert!(answer.body.contains("tollgate_policy_info{") && answer.body.ends_with("# EOF\n"));
}

/// Every session of the target is proven to lead elsewhere than to the control catalog.
#[tokio::test]
async fn executions_are_not_shown_while_the_control_server_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::start_apart().await;
    chain.control().await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    assert!(served.get("/executions").body.contains("No execution yet"));
    chain.control_server_mut().kill9();
    let executions = served.get("/executions").body;
    assert!(executions.contains("The executions cannot be read"), "{executions}");
    assert!(executions.contains("control-unreachable"), "{executions}");
}
