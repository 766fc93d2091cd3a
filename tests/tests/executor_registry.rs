//! The registry, its status, dry runs, and what none of them may ever show.

use std::time::Duration;

use tollgate::executor::{ExecutorRegistry, ExecutorUnavailable, SqlTargetState};
use tollgate::ids::ExecutorCode;
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate_tests::chain::{Chain, TARGET, TARGET_USER, policy};

async fn registry(chain: &Chain, changes: &[(&str, &str)]) -> ExecutorRegistry {
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    let store = PolicyStore::embedded().unwrap();
    ExecutorRegistry::open(&chain.config(changes), &store, &runtime).await.unwrap()
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
