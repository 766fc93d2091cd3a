//! Taking back a step that was applied and whose receipt is gone from the ledger.

use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::{Run, run};
use tollgate_tests::process::{Process, submit, tollgate};

const LEDGER: &str = "factory_plugin_target_receipt";

fn work(chain: &Chain, plugin: &Plugin) {
    works_until(0, chain, plugin);
}

/// Works until idle and ends with this exit code.
fn works_until(code: i32, chain: &Chain, plugin: &Plugin) {
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, plugin, &[], &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(code), "{}", worker.log());
}

fn command(chain: &Chain, arguments: &[&str]) -> Run {
    run(&mut tollgate(chain, &[], arguments))
}

fn retry(chain: &Chain) {
    let retried = command(chain, &["outbox", "retry", "up:1:compensate"]);
    assert_eq!(retried.code(), Some(0), "{}", retried.stderr);
}

/// Status and code of the compensation.
async fn compensation(chain: &Chain) -> (String, Option<String>) {
    let query = "SELECT status, last_error_code FROM factory_plugin_control_outbox \
                 WHERE direction = 'COMPENSATE'";
    chain.control_rows(query).await.remove(0)
}

async fn is_there(chain: &Chain) -> bool {
    !chain.rows::<String>("SHOW TABLES LIKE 'entry'").await.is_empty()
}

/// A plan that was applied, its receipt copied and deleted, and its compensation delivered.
async fn lost() -> (Chain, Plugin) {
    let chain = Chain::start().await;
    chain.control().await;
    let forward = "CREATE TABLE IF NOT EXISTS entry (id INT PRIMARY KEY)";
    let plugin = Plugin::install(forward, Some("DROP TABLE IF EXISTS entry"));
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    work(&chain, &plugin);
    assert!(is_there(&chain).await);
    chain.admin_run(&format!("CREATE TABLE kept LIKE {LEDGER}")).await;
    chain.admin_run(&format!("INSERT INTO kept SELECT * FROM {LEDGER}")).await;
    chain.admin_run(&format!("DELETE FROM {LEDGER}")).await;

    assert_eq!(command(&chain, &["compensate", "up"]).code(), Some(0));
    works_until(6, &chain, &plugin);
    let (status, code) = compensation(&chain).await;
    assert_eq!(
        (status.as_str(), code.as_deref()),
        ("NEEDS_ATTENTION", Some("forward-receipt-lost"))
    );
    assert!(is_there(&chain).await, "it was not taken back");
    let receipts: u32 = chain.value(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
    assert_eq!(receipts, 0, "the ledger was not told that there was nothing to do");
    let listed = command(&chain, &["outbox"]);
    for part in [
        "step `up:1` was applied",
        "restore the receipt",
        "next: restore that receipt",
        "outbox retry up:1:compensate",
    ] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    (chain, plugin)
}

#[tokio::test]
async fn it_waits_for_a_person_and_runs_once_the_receipt_is_restored() {
    let (chain, plugin) = lost().await;
    chain.admin_run(&format!("INSERT INTO {LEDGER} SELECT * FROM kept")).await;
    retry(&chain);
    work(&chain, &plugin);
    assert_eq!(compensation(&chain).await.0, "APPLIED");
    assert!(!is_there(&chain).await, "it was taken back");
}

#[tokio::test]
async fn a_person_who_undid_it_by_hand_has_the_last_word() {
    let (chain, plugin) = lost().await;
    chain.admin_run("DROP TABLE entry").await;
    retry(&chain);
    work(&chain, &plugin);
    assert_eq!(compensation(&chain).await.0, "APPLIED");
}
