//! No URL, user or password is in anything the page answers or logs.

use tollgate_tests::page::{InUse, SECRETS, Served};
use tollgate_tests::process::tollgate;

#[tokio::test]
async fn no_secret_is_in_any_answer_or_log() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    // Accounts whose names can be told from the program's own words.
    let (target, control) = ("canary_reader", "canary_listener");
    in_use
        .chain
        .server
        .create_account(target, "canary-1", &[r"SELECT ON `plugin\_preview`.*"])
        .await;
    in_use
        .chain
        .server
        .create_account(control, "canary-2", &[r"SELECT ON `control\_plane`.*"])
        .await;
    let accounts = [
        ("SQL_TARGET_USERNAME", target),
        ("SQL_TARGET_PASSWORD", "canary-1"),
        ("CONTROL_USERNAME", control),
        ("CONTROL_PASSWORD", "canary-2"),
    ];
    let port = format!(":{}", in_use.chain.server.port());
    let url = format!("jdbc:mysql://127.0.0.1:1/{}", tollgate_tests::chain::TARGET);
    let odd = "jdbc:mysql://canary-user:canary-pass@127.0.0.1/plugin_preview";
    let cases: &[&[(&str, &str)]] = &[
        &[],
        &[("SQL_TARGET_PASSWORD", "canary-wrong")],
        &[("CONTROL_PASSWORD", "canary-wrong")],
        &[("SQL_TARGET_JDBC_URL", &url)],
        &[("SQL_TARGET_JDBC_URL", odd)],
        &[("SQL_TARGET_ALLOWED_CATALOG", "elsewhere")],
        &[("CONTROL_JDBC_URL", &in_use.chain.server.jdbc_url(tollgate_tests::chain::TARGET))],
    ];
    for (number, changes) in cases.iter().enumerate() {
        let log = folder.path().join(number.to_string());
        let changes = [&accounts[..], changes].concat();
        let mut command = tollgate(&in_use.chain, &changes, &["serve", "--listen", "127.0.0.1:0"]);
        // However much is logged.
        command.env("TOLLGATE_LOG", "trace").env("RUST_BACKTRACE", "full");
        let mut served = Served::of(&mut command, &log);
        let status = served.get("/api/status").body;
        assert_eq!(status.contains("\"ready\""), number == 0, "{status}");
        for path in [
            "/",
            "/executions",
            "/executions/summer-7:5",
            "/outbox",
            "/api/status",
            "/readyz",
            "/metrics",
        ] {
            let answer = served.get(path);
            for secret in SECRETS.iter().copied().chain([&*port]) {
                assert!(!answer.body.contains(secret), "{path} shows `{secret}`: {}", answer.body);
                let headers = format!("{:?}", answer.headers);
                assert!(!headers.contains(secret), "{path} shows `{secret}`: {headers}");
            }
        }
        served.process.signal("TERM");
        served.process.wait();
        // Its own address is what it prints.
        let log = served.process.log().replace(&served.url(), "");
        let is_heard = ["DEBUG", "TRACE"].iter().any(|level| log.contains(level));
        assert!(is_heard, "nothing beyond the usual is logged, so nothing is shown: {log}");
        for secret in SECRETS {
            assert!(!log.contains(secret), "the log shows `{secret}`: {log}");
        }
    }
}
