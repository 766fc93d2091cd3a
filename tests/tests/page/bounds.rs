//! Whatever is away, every answer comes in bounded time, and nothing piles up on the servers.

use std::io::ErrorKind::WouldBlock;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tollgate_tests::chain::{Chain, Plugin, TARGET, TARGET_USER};
use tollgate_tests::page::{Served, ask};
use tollgate_tests::process::Process;

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
    chain.server.signal("STOP");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..40 {
            let served = &served;
            scope.spawn(move || {
                let path = ["/", "/executions", "/executions/a", "/metrics"][number % 4];
                assert!([200, 503].contains(&served.get(path).status));
            });
        }
    });
    let took = begun.elapsed();
    let (of_target, of_control) =
        (connections_to(chain.server.port()), connections_to(chain.control_server().port()));
    chain.server.signal("CONT");
    println!("40 answers in {took:?}; {of_target} and {of_control} connections after them");
    assert!(took < Duration::from_secs(12), "{took:?}");
    // Four that read, one that verifies, and what the test itself has open.
    assert!(of_target <= 8 && of_control <= 8, "{of_target} and {of_control}");
    let begun = Instant::now();
    while !served.get("/").body.contains("<strong>ready</strong>") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come back");
    }
    chain.server.assert_session_count(TARGET_USER, 0).await;
}

/// Connections to a port of this machine, from their clients' side: proc(5), `/proc/net/tcp`.
fn connections_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    let is_there = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2].ends_with(&remote) && columns[3] == "01"
    };
    table.lines().skip(1).filter(is_there).count()
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
    for mut client in halves {
        let mut answer = Vec::new();
        let ended = client.read_to_end(&mut answer);
        assert!(!matches!(&ended, Err(error) if error.kind() == WouldBlock), "{ended:?}");
        assert_eq!(answer, b"", "there is nothing to answer");
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
