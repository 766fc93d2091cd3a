//! The kit's own claims: a private server starts quickly, keeps its data over restarts and never
//! outlives the test.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate_tests::server::{Flavour, MariaDb};

async fn count_rows(conn: &mut Conn) -> u64 {
    conn.query_first("SELECT COUNT(*) FROM kept.t").await.unwrap().unwrap()
}

#[tokio::test]
async fn committed_rows_survive_a_restart_and_a_kill() {
    for flavour in Flavour::available() {
        let mut server = flavour.builder().durable().start();
        let port = server.port();
        server.create_catalog("kept").await;
        server.execute(&["CREATE TABLE kept.t (id INT PRIMARY KEY) ENGINE=InnoDB"]).await;

        server.execute(&["INSERT INTO kept.t VALUES (1)"]).await;
        server.restart();
        assert_eq!(count_rows(&mut server.admin().await).await, 1, "{flavour}");

        server.execute(&["INSERT INTO kept.t VALUES (2)"]).await;
        server.kill9();
        assert!(server.pid().is_none());
        server.start_again();
        assert_eq!(count_rows(&mut server.admin().await).await, 2, "{flavour}");
        assert_eq!(server.port(), port);
    }
}

#[tokio::test]
async fn an_account_reaches_only_what_it_was_granted() {
    for flavour in Flavour::available() {
        let server = flavour.start();
        server.create_catalog("plugin_preview").await;
        server.create_catalog("host_core").await;
        server.create_account("tollgate", "pa'ss", &["ALL PRIVILEGES ON `plugin_preview`.*"]).await;

        let mut conn = server.connect("tollgate", "pa'ss", Some("plugin_preview")).await;
        assert!(conn.query_drop("CREATE TABLE t (id INT)").await.is_ok(), "{flavour}");
        assert!(conn.query_drop("CREATE TABLE host_core.t (id INT)").await.is_err(), "{flavour}");
        assert_eq!(server.session_count("tollgate").await, 1);
        conn.disconnect().await.unwrap();
        server.assert_session_count("tollgate", 0).await;
    }
}

#[tokio::test]
async fn root_cannot_log_in_over_the_network() {
    for flavour in Flavour::available() {
        let server = flavour.start();
        let url = format!("mysql://root@127.0.0.1:{}/?prefer_socket=false", server.port());
        assert!(Conn::from_url(url).await.is_err(), "{flavour}");
    }
}

#[test]
fn dropped_server_leaves_neither_process_nor_folder() {
    for flavour in Flavour::available() {
        let server = flavour.start();
        let folder = server.folder().to_path_buf();
        let process = PathBuf::from(format!("/proc/{}", server.pid().unwrap()));
        assert!(process.exists());
        drop(server);
        assert!(!process.exists() && !folder.exists(), "{flavour}");
    }
}

#[test]
fn killed_test_process_takes_its_server_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("pid");
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_server_until_killed", "--ignored"])
        .env(PID_REPORT, &report)
        // What it cannot remove any more goes with this test's own folder.
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = wait_for(|| std::fs::read_to_string(&report).ok().filter(|pid| pid.ends_with('\n')));
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists());
    test.kill().unwrap();
    test.wait().unwrap();
    wait_for(|| (!process.exists()).then_some(()));
}

/// Where the test below writes its server's pid.
const PID_REPORT: &str = "TOLLGATE_TEST_PID_REPORT";

#[test]
#[ignore = "the other half of `killed_test_process_takes_its_server_with_it`"]
fn holds_a_server_until_killed() {
    let report = std::env::var(PID_REPORT).unwrap();
    let server = MariaDb::start();
    std::fs::write(report, format!("{}\n", server.pid().unwrap())).unwrap();
    std::thread::sleep(Duration::from_mins(1));
}

fn wait_for<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn server_outlives_the_thread_that_started_it() {
    let mut server = std::thread::spawn(MariaDb::start).join().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    server.signal("CONT");
    assert!(std::os::unix::net::UnixStream::connect(server.socket()).is_ok());
}

#[test]
fn failed_start_shows_what_the_server_said() {
    let error = MariaDb::builder().arg("--no-such-option").try_start().unwrap_err();
    assert!(error.contains("no-such-option"), "{error}");
}

#[test]
fn start_is_quick_enough_for_a_server_per_test() {
    // The first start may have to initialise the data directory.
    drop(MariaDb::start());
    let begin = Instant::now();
    drop(MariaDb::start());
    // Measured 0.3 s on an idle machine; the bound is for a busy one.
    assert!(begin.elapsed() < Duration::from_secs(5), "took {:?}", begin.elapsed());
}
