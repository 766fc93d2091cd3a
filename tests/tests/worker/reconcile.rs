//! `tollgate outbox reconcile`: what it finds, and that its own advice ends it.

use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::{Run, run};
use tollgate_tests::process::{Process, submit, tollgate};

const FORWARD: &str = "CREATE TABLE IF NOT EXISTS entry (id INT PRIMARY KEY)";
const BACK: &str = "DROP TABLE IF EXISTS entry";

fn command(chain: &Chain, arguments: &[&str]) -> Run {
    run(&mut tollgate(chain, &[], arguments))
}

fn work(chain: &Chain, plugin: &Plugin) {
    works_until(0, chain, plugin);
}

/// Works until idle and ends with this exit code.
fn works_until(code: i32, chain: &Chain, plugin: &Plugin) {
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, plugin, &[], &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(code), "{}", worker.log());
}

async fn applied() -> (Chain, Plugin) {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, Some(BACK));
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    work(&chain, &plugin);
    (chain, plugin)
}

/// As a backup that was taken before the step leaves it.
async fn lose(chain: &Chain, key: &str) {
    let ledger = "DELETE FROM factory_plugin_target_receipt WHERE step_idempotency_key";
    chain.admin_run(&format!("{ledger} = '{key}'")).await;
}

/// What is missing, and the command that is printed for it.
fn missing(chain: &Chain, plugin: &Plugin, key: &str) -> Vec<String> {
    let found = command(chain, &["outbox", "reconcile"]);
    assert_eq!(found.code(), Some(1), "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.starts_with("1 applied step(s) without a receipt"), "{}", found.stdout);
    let line = found.stdout.lines().find(|line| line.starts_with(&format!("{key}  "))).unwrap();
    assert!(line.contains(", applied 20") && line.ends_with('Z'), "{line}");
    let again = found.stdout.lines().find_map(|line| line.split_once("again:    tollgate "));
    let releases = plugin.root().display().to_string();
    let again = again.unwrap().1.replace("<releases>", &releases);
    again.split(' ').map(str::to_owned).collect()
}

fn is_green(chain: &Chain) {
    let found = command(chain, &["outbox", "reconcile"]);
    assert_eq!(found.code(), Some(0), "{}{}", found.stdout, found.stderr);
}

fn follow(chain: &Chain, again: &[String]) {
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    let done = command(chain, &again);
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
}

#[tokio::test]
async fn a_lost_step_is_carried_out_again_by_the_printed_command() {
    let (chain, plugin) = applied().await;
    is_green(&chain);
    chain.admin_run("DROP TABLE entry").await;
    lose(&chain, "up:1").await;
    follow(&chain, &missing(&chain, &plugin, "up:1"));
    is_green(&chain);
    assert_eq!(chain.value::<u32>("SELECT COUNT(*) FROM entry").await, 0, "the table is there");
}

/// A new ledger knows nothing of what was applied: what is to be done about it is said with it.
#[tokio::test]
async fn a_new_ledger_on_a_target_that_was_used_is_followed_by_a_reconciliation() {
    let (chain, _plugin) = applied().await;
    let said = |code| {
        let made = command(&chain, &["init", "target"]);
        assert_eq!(made.code(), Some(code), "{}{}", made.stdout, made.stderr);
        made.stdout
    };
    assert!(said(0).contains("next: `tollgate status`"), "it is there");
    chain.admin_run("DROP TABLE factory_plugin_target_receipt").await;
    let status = command(&chain, &["status"]).stdout;
    assert!(
        status.contains("restore the table") && status.contains("`tollgate init target`"),
        "{status}"
    );
    let lost = said(0);
    assert!(lost.contains("`tollgate outbox reconcile`"), "{lost}");
    let unused = "DELETE FROM control_plane.factory_plugin_control_outbox";
    chain.server.execute(&[unused]).await;
    chain.admin_run("DROP TABLE factory_plugin_target_receipt").await;
    let new = said(0);
    assert!(new.contains("created") && new.contains("next: `tollgate status`"), "{new}");
}

#[tokio::test]
async fn a_lost_step_whose_plan_was_taken_back_is_not_missed() {
    let (chain, plugin) = applied().await;
    lose(&chain, "up:1").await;
    missing(&chain, &plugin, "up:1");
    assert_eq!(command(&chain, &["compensate", "up"]).code(), Some(0));
    missing(&chain, &plugin, "up:1");
    works_until(6, &chain, &plugin);
    missing(&chain, &plugin, "up:1");
    // As reconcile says: without the receipt, the compensation waits for a person's word.
    assert_eq!(command(&chain, &["outbox", "retry", "up:1:compensate"]).code(), Some(0));
    work(&chain, &plugin);
    is_green(&chain);
}

#[tokio::test]
async fn a_lost_compensation_is_carried_out_again_by_the_printed_command() {
    let (chain, plugin) = applied().await;
    assert_eq!(command(&chain, &["compensate", "up"]).code(), Some(0));
    work(&chain, &plugin);
    is_green(&chain);
    // As before the compensation: its effect and its receipt are gone, and the step's is as it was.
    chain.admin_run(FORWARD).await;
    lose(&chain, "up:1:compensate").await;
    chain.admin_run("UPDATE factory_plugin_target_receipt SET counterpart_key = NULL").await;
    follow(&chain, &missing(&chain, &plugin, "up:1:compensate"));
    is_green(&chain);
    assert_eq!(chain.rows::<String>("SHOW TABLES LIKE 'entry'").await.len(), 0);
}
