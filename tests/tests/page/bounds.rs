//! Whatever is away, every answer comes in bounded time, and nothing piles up on the servers.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use tollgate_tests::chain::{Chain, TARGET, TARGET_USER};
use tollgate_tests::page::Served;

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
    let sockets = std::fs::read_dir(format!("/proc/{}/fd", served.process.id())).unwrap().count();
    chain.server.signal("CONT");
    println!("40 answers in {took:?}, {sockets} open files after them");
    assert!(took < Duration::from_secs(12), "{took:?}");
    assert!(sockets < 60, "{sockets}");
    let begun = Instant::now();
    while !served.get("/").body.contains("<strong>ready</strong>") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come back");
    }
    chain.server.assert_session_count(TARGET_USER, 0).await;
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
