//! Every command that reads a configuration, under configurations that fail: neither of its streams
//! gives anything away, however much is logged.

use tollgate_tests::chain::{Chain, Plugin, TARGET};
use tollgate_tests::cli::{command, run};
use tollgate_tests::process::tollgate;

use crate::assert_clean;

/// Commands that read no configuration, or serve until they are told to stop.
const OTHERS: &[&str] =
    &["demo", "check", "serve", "work", "evidence", "policy", "completions", "man", "help"];

#[tokio::test]
async fn no_command_gives_anything_away_when_its_servers_fail_it() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DELETE FROM t WHERE c = 'word'", None);
    let plan = plugin.root().join("plan.json").display().to_string();
    std::fs::write(&plan, plugin.document_of("up", &["orders"])).unwrap();
    let releases = plugin.root().display().to_string();
    let folder = plugin.release_folder("1.0.0").display().to_string();
    let bundle = plugin.root().join("bundle.tar").display().to_string();
    let commands: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["doctor"],
        &["receipts"],
        &["receipts", "--key", "up:1", "--json"],
        &["receipts", "export", "--releases", &releases],
        &["receipts", "prune", "--older-than", "30"],
        &["outbox"],
        &["outbox", "up", "--json"],
        &["outbox", "retry", "up:1"],
        &["outbox", "reconcile"],
        &["submit", &plan, "--releases", &releases],
        &["compensate", "up"],
        &["execute", &folder, "schema", "--step-key", "up:1"],
        &["init", "control"],
        &["init", "target"],
        &["target", "grants"],
        &["evidence", "export", "up:1", "--releases", &releases, "--to", &bundle],
    ];
    let closed = format!("jdbc:mysql://127.0.0.1:1/{TARGET}");
    let odd = "jdbc:mysql://canary-user:canary-pass@127.0.0.1/plugin_preview";
    let same = chain.server.jdbc_url(TARGET);
    let target: &[(&str, &str)] =
        &[("SQL_TARGET_USERNAME", "canary_user"), ("SQL_TARGET_PASSWORD", "canary-wrong")];
    let control: &[(&str, &str)] =
        &[("CONTROL_USERNAME", "canary_user"), ("CONTROL_PASSWORD", "canary-wrong")];
    let failing: &[&[(&str, &str)]] = &[
        target,
        control,
        &[("SQL_TARGET_JDBC_URL", &closed)],
        &[("CONTROL_JDBC_URL", &closed)],
        &[("SQL_TARGET_JDBC_URL", odd), ("CONTROL_JDBC_URL", odd)],
        &[("CONTROL_JDBC_URL", &same)],
    ];
    for arguments in commands {
        let mut failed = 0;
        for changes in failing {
            let mut command = tollgate(&chain, changes, arguments);
            let run = run(command.env("TOLLGATE_LOG", "trace").env("RUST_BACKTRACE", "full"));
            failed += u32::from(run.code() != Some(0));
            let whose = format!("{arguments:?} under {changes:?}");
            assert_clean(&run.stdout, &whose);
            assert_clean(&run.stderr, &whose);
        }
        // It prints SQL for an account that there need not be yet.
        let reads_nothing = arguments == &["target", "grants"];
        assert_eq!(failed == 0, reads_nothing, "{arguments:?}");
    }
    // And there is no command that is neither here nor named above.
    let help = run(&mut command(["help"])).stdout;
    let (_, listed) = help.split_once("Commands:\n").expect(&help);
    for line in listed.lines().take_while(|line| !line.is_empty()) {
        let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let name = name.split_whitespace().next().unwrap();
        let is_here = commands.iter().any(|arguments| arguments[0] == name);
        assert!(is_here || OTHERS.contains(&name), "`{name}` is not looked at");
    }
}

/// A worker under each, until it says why it cannot work.
#[tokio::test]
async fn a_worker_gives_nothing_away_while_it_waits() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DELETE FROM t WHERE c = 'canary-literal'", None);
    let submitted =
        tollgate_tests::process::submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let closed = format!("jdbc:mysql://127.0.0.1:1/{TARGET}");
    for changes in [
        [("SQL_TARGET_USERNAME", "canary_user"), ("SQL_TARGET_PASSWORD", "canary-wrong")],
        [("SQL_TARGET_JDBC_URL", closed.as_str()), ("SQL_TARGET_PASSWORD", "canary-wrong")],
    ] {
        let releases = plugin.root().display().to_string();
        let mut command = tollgate(&chain, &changes, &["work", "--releases", &releases]);
        command.env("TOLLGATE_LOG", "trace").env("RUST_BACKTRACE", "full");
        let log = plugin.root().join("log");
        let worker = tollgate_tests::process::Process::spawn(&mut command, &log);
        worker.wait_until_it_says("the step waits");
        // Else its claim would keep the step from the next worker.
        worker.wait_until_it_says("step recorded");
        assert_clean(&worker.log(), &format!("a worker under {changes:?}"));
    }
}
