//! The registry, its status, dry runs, and what none of them may ever show.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tollgate::executor::{
    DryRunV1, Executor as _, ExecutorRegistry, ExecutorUnavailable, Outcome, STATUS_BUDGET,
    SqlTargetState,
};
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::plan::{FolderCatalog, Plan};
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate_tests::chain::{
    CONTROL_PASSWORD, Chain, Plugin, TARGET, TARGET_PASSWORD, TARGET_USER, policy,
};

async fn registry(chain: &Chain, changes: &[(&str, &str)]) -> ExecutorRegistry {
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    let store = PolicyStore::embedded().unwrap();
    ExecutorRegistry::open(&chain.config(changes), &store, &runtime).await.unwrap()
}

fn golden(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

#[tokio::test]
async fn a_disabled_target_has_no_sql_executor() {
    let chain = Chain::start().await;
    let registry = registry(&chain, &[("SQL_TARGET_ENABLED", "false")]).await;
    let status = registry.status().await;
    assert_eq!(status.sql_target, SqlTargetState::Disabled);
    assert_eq!((status.environment, status.catalog), (None, None));
    assert_eq!(status.executors, [ExecutorCode::dry_run_v1()]);
    assert!(matches!(registry.configured(), Err(ExecutorUnavailable::TargetDisabled(_))));
    let unknown = "other:v1".parse().unwrap();
    assert!(matches!(registry.executor(&unknown), Err(ExecutorUnavailable::Unknown(_))));
}

#[tokio::test]
async fn a_ready_target_installs_the_sql_executor() {
    let chain = Chain::start().await;
    let registry = registry(&chain, &[]).await;
    assert_eq!(registry.configured().unwrap().code(), &ExecutorCode::sql_jdbc_v1());
    let status = registry.status().await;
    assert!(matches!(status.sql_target, SqlTargetState::Ready { .. }), "{status:?}");
    assert_eq!(status.environment.unwrap().as_str(), "preview");
    assert_eq!(status.catalog.unwrap().as_str(), TARGET);
    assert_eq!(status.policy.unwrap().digest, policy().pin().sha256);
    chain.server.assert_session_count(TARGET_USER, 0).await;
}

#[tokio::test]
async fn a_target_without_its_ledger_is_incomplete_until_it_is_there() {
    let chain = Chain::start().await;
    let script: Vec<(String, String)> =
        chain.rows("SHOW CREATE TABLE factory_plugin_target_receipt").await;
    chain.admin_run("DROP TABLE factory_plugin_target_receipt").await;
    let registry = registry(&chain, &[]).await;
    assert!(matches!(registry.configured(), Err(ExecutorUnavailable::TargetIncomplete(_))));
    let SqlTargetState::Incomplete { missing } = registry.status().await.sql_target else {
        panic!("the ledger is not there");
    };
    assert_eq!(missing[0].key, "ledger-missing");
    chain.admin_run(&script[0].1).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(matches!(registry.status().await.sql_target, SqlTargetState::Ready { .. }));
    assert!(registry.configured().is_ok());
}

#[tokio::test]
async fn a_status_of_a_silent_target_takes_bounded_time() {
    let chain = Chain::start().await;
    let registry = registry(&chain, &[]).await;
    let mut server = chain.server;
    server.signal("STOP");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let begun = Instant::now();
    let statuses = tokio::join!(registry.status(), registry.status(), registry.status());
    let took = begun.elapsed();
    server.signal("CONT");
    assert!(matches!(statuses.0.sql_target, SqlTargetState::Incomplete { .. }));
    assert!(took < STATUS_BUDGET + Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_dry_run_connects_to_nothing_and_says_what_would_run() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(
        "CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY) ENGINE=InnoDB;\
         INSERT IGNORE INTO a (id) VALUES (1)",
        None,
    );
    let step = plugin.step("up", Direction::Forward);
    let dry_run = DryRunV1::new(policy(), TARGET.parse().unwrap());
    let connections = "SHOW GLOBAL STATUS LIKE 'Connections'";
    let before: (String, u64) = chain.value(connections).await;
    let report = dry_run.rehearse(&step, &plugin.catalog()).await.unwrap();
    match dry_run.execute(&step, &plugin.catalog()).await {
        Outcome::Applied(receipt) => assert_eq!(receipt.as_str(), "dry-run:up:1"),
        other => panic!("expected a dry run, got {other:?}"),
    }
    let after: (String, u64) = chain.value(connections).await;
    // The one more is this look itself.
    assert_eq!(after.1, before.1 + 1);
    assert_eq!(report.statements().len(), 2);
    assert!(report.statements()[0].text.contains("`plugin_preview`.`a`"));
    assert_eq!(chain.receipt("up:1").await, None);
    let tables: Vec<String> = chain.rows("SHOW TABLES").await;
    assert_eq!(tables, ["factory_plugin_target_receipt"]);
}

#[tokio::test]
async fn plans_of_every_version_can_be_rehearsed_and_only_1_2_can_run() {
    let chain = Chain::start().await;
    let releases = FolderCatalog::tree(golden("releases"));
    let dry_run = DryRunV1::new(policy(), TARGET.parse().unwrap());
    for version in ["1.0", "1.1", "1.2"] {
        let document = std::fs::read(golden(&format!("plans/{version}.json"))).unwrap();
        let plan = Plan::parse(&document).unwrap();
        for planned in plan.steps() {
            // Migrations and the menu alike.
            let step = planned.step(Direction::Forward).unwrap();
            let outcome = dry_run.execute(&step, &releases).await;
            assert_eq!(outcome.as_str(), "applied", "{version} {}: {outcome:?}", step.key);
        }
        let back = plan.steps()[0].step(Direction::Compensate);
        assert_eq!(back.is_ok(), version != "1.0");
        if let Ok(back) = back {
            assert_eq!(dry_run.execute(&back, &releases).await.as_str(), "applied");
        }

        let step = plan.steps()[0].step(Direction::Forward).unwrap();
        let outcome = chain.executor().execute(&step, &releases).await;
        if version == "1.2" {
            assert_eq!(outcome.as_str(), "applied", "{outcome:?}");
        } else {
            assert_eq!(outcome.code(), Some("refused"), "{version}");
            let Outcome::NotApplied { error, .. } = outcome else { panic!("{version}") };
            let refusal = &error.refusals()[0];
            assert_eq!(refusal.code.as_str(), "idempotence-not-recorded");
            assert!(refusal.message.contains("never run as SQL"), "{}", refusal.message);
        }
        let menu = plan.steps()[2].step(Direction::Forward).unwrap();
        let outcome = chain.executor().execute(&menu, &releases).await;
        assert_eq!(outcome.code(), Some("refused"));
    }
}

/// Everything an outcome says: its message, its sources, its help, and its debug form.
fn said(outcome: &Outcome) -> String {
    let mut said = format!("{outcome:?} {outcome:#?}");
    if let Outcome::NotApplied { error, .. } = outcome {
        write!(said, "{error} {}", error.help()).unwrap();
        let mut source = error.source();
        while let Some(cause) = source {
            write!(said, " {cause} {cause:?}").unwrap();
            source = cause.source();
        }
    }
    said
}

#[tokio::test]
async fn secrets_are_in_no_output() {
    let chain = Chain::start().await;
    let word = "canary-literal";
    chain.admin_run("CREATE TABLE entry (id INT PRIMARY KEY, word VARCHAR(4)) ENGINE=InnoDB").await;
    let mut seen = String::new();
    for (plan, payload) in [
        // Too long for its column, which the server's message quotes.
        (
            "a",
            format!(
                "INSERT INTO entry (id, word) VALUES (1, '{word}') ON DUPLICATE KEY UPDATE id = VALUES(id)"
            ),
        ),
        // A table that is not there.
        ("b", format!("DELETE FROM missing WHERE word = '{word}'")),
        // Denied, with the literal in the offending place.
        ("c", format!("UPDATE entry SET word = '{word}'")),
        // Applied.
        ("d", format!("DELETE FROM entry WHERE word = '{word}'")),
    ] {
        let plugin = Plugin::install(&payload, None);
        let step = plugin.step(plan, Direction::Forward);
        let outcome = chain.deliver(&plugin, &step).await;
        assert_eq!(outcome.as_str() == "applied", plan == "d", "{plan}: {outcome:?}");
        seen.push_str(&said(&outcome));
        let dry_run = DryRunV1::new(policy(), TARGET.parse().unwrap());
        write!(seen, "{:?}", dry_run.rehearse(&step, &plugin.catalog()).await).unwrap();
    }
    let receipts: Vec<(String, Option<String>, Option<String>)> = chain
        .rows("SELECT status, last_error_code, last_error FROM factory_plugin_target_receipt")
        .await;
    assert_eq!(receipts.len(), 3);
    write!(seen, "{receipts:?}").unwrap();

    let wrong = [("SQL_TARGET_PASSWORD", "canary-wrong-password")];
    for changes in [&[][..], &wrong[..]] {
        let registry = registry(&chain, changes).await;
        let status = registry.status().await;
        assert_eq!(status.sql_target.as_str() == "ready", changes.is_empty());
        seen.push_str(&serde_json::to_string(&status).unwrap());
        write!(seen, "{status:?} {registry:?} {:?}", chain.executor_with(changes)).unwrap();
    }
    let port = chain.server.port().to_string();
    for secret in [TARGET_PASSWORD, CONTROL_PASSWORD, "canary", TARGET_USER, &port, "jdbc:mysql"] {
        assert!(!seen.contains(secret), "{secret} is in {seen}");
    }
}
