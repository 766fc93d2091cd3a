//! A worker that cannot be started says why, and ends; one that runs says what it waits for.

use tollgate_tests::chain::{CONTROL_USER, Chain, Plugin};
use tollgate_tests::over_servers;
use tollgate_tests::process::Process;
use tollgate_tests::server::Flavour;

fn plugin() -> Plugin {
    Plugin::install("DROP TABLE IF EXISTS unused", None)
}

/// What a worker said that ended by itself, with 1.
fn refused(chain: &Chain, changes: &[(&str, &str)]) -> String {
    let plugin = plugin();
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, &plugin, changes, &[], &log);
    assert_eq!(worker.wait().code(), Some(1), "{}", worker.log());
    let log = worker.log();
    assert!(log.contains("error: the worker cannot start") && !log.contains("canary"), "{log}");
    log
}

#[tokio::test]
async fn what_no_waiting_mends_ends_a_worker_at_its_start() {
    let chain = Chain::start().await;
    let log = refused(&chain, &[]);
    assert!(log.contains("help: run `tollgate init control`"), "{log}");
    chain.control().await;
    let outbox = "control_plane.factory_plugin_control_outbox";
    chain.server.execute(&[&format!("ALTER TABLE {outbox} ENGINE = MyISAM")]).await;
    let log = refused(&chain, &[]);
    assert!(log.contains("MyISAM") && log.contains("keeping every row"), "{log}");
    chain.server.execute(&[&format!("ALTER TABLE {outbox} ENGINE = InnoDB")]).await;
    let log = refused(&chain, &[("CONTROL_PASSWORD", "wrong")]);
    assert!(log.contains("the server refused the login (error 1045)"), "{log}");
    assert!(log.contains("help: check FACTORY_PLUGIN_CONTROL_USERNAME and"), "{log}");
    let elsewhere = chain.server.jdbc_url("nope");
    let log = refused(&chain, &[("CONTROL_JDBC_URL", &elsewhere)]);
    assert!(log.contains("the account may not use the catalog"), "{log}");
    assert!(log.contains("GRANT SELECT, INSERT, UPDATE"), "{log}");
    assert!(!log.contains("target grants"), "it is not the target's account: {log}");
}

/// What a worker may not do it would find out with the first step.
async fn a_control_account_that_lacks_a_right_ends_a_worker_at_its_start(flavour: Flavour) {
    let chain = Chain::start_on(flavour.builder()).await;
    chain.control().await;
    let catalog = r"`control\_plane`.*";
    let all = format!("REVOKE ALL PRIVILEGES ON {catalog} FROM '{CONTROL_USER}'@'%'");
    let grant = |rights: &str| format!("GRANT {rights} ON {catalog} TO '{CONTROL_USER}'@'%'");
    chain.server.execute(&[&all, &grant("SELECT, INSERT")]).await;
    let log = refused(&chain, &[]);
    assert!(log.contains("the control account lacks rights in its catalog: UPDATE"), "{log}");
    assert!(log.contains("GRANT SELECT, INSERT, UPDATE"), "{log}");
    // It adds no rows.
    chain.server.execute(&[&all, &grant("SELECT, UPDATE")]).await;
    let plugin = plugin();
    let log = plugin.root().join("log");
    let mut worker = Process::start(&chain, &plugin, &[], &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
}
over_servers!(a_control_account_that_lacks_a_right_ends_a_worker_at_its_start);

#[tokio::test]
async fn a_server_that_is_away_is_waited_for_at_the_start_too() {
    let mut chain = Chain::start().await;
    chain.control().await;
    chain.server.kill9();
    let plugin = plugin();
    let log = plugin.root().join("log");
    let mut worker = Process::start(&chain, &plugin, &[], &["--until-idle"], &log);
    worker.wait_until_it_says("the server does not answer: the control catalog is not usable");
    chain.server.start_again();
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
}

#[tokio::test]
async fn the_log_says_what_runs_and_why_it_stops() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = plugin();
    let log = plugin.root().join("log");
    let mut worker = Process::start(&chain, &plugin, &[], &["--concurrency", "3"], &log);
    worker.wait_until_it_says("the worker runs");
    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    let (version, folder) = (env!("CARGO_PKG_VERSION"), plugin.root().display());
    for part in [
        format!(
            "version=\"{version}\" releases={folder} concurrency=3 grace_s=30 executor=sql-jdbc:v1"
        ),
        "environment=\"preview\"".to_owned(),
        "draining: nothing new is claimed reason=\"SIGTERM\"".to_owned(),
        "applied=0 needs_attention=0 superseded=0 put_off=0 dropped=0".to_owned(),
    ] {
        assert!(worker.log().contains(&part), "{part}: {}", worker.log());
    }
}
