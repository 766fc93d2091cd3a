//! `sql-jdbc:v1` on a real server: what it applies, and that it applies it once.

use tollgate::executor::{ExecutionError, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate_tests::chain::{Chain, Plugin};

const FORWARD: &str = "
    CREATE TABLE IF NOT EXISTS order_status (
        code VARCHAR(16) NOT NULL PRIMARY KEY,
        label VARCHAR(64) NOT NULL
    ) ENGINE=InnoDB;
    CREATE TABLE IF NOT EXISTS customer_order (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        status_code VARCHAR(16) NOT NULL,
        note VARCHAR(200),
        CONSTRAINT fk_status FOREIGN KEY (status_code) REFERENCES order_status (code)
    ) ENGINE=InnoDB;
    INSERT IGNORE INTO order_status (code, label) VALUES
        ('open', 'Open; not yet paid'), ('paid', 'It''s paid :done?'), ('gone', 'x');
    INSERT INTO order_status (code, label) VALUES ('paid', 'Paid')
        ON DUPLICATE KEY UPDATE label = VALUES(label);
    DELETE FROM order_status WHERE code = 'gone';
";
const BACK: &str = "DROP TABLE IF EXISTS customer_order; DROP TABLE IF EXISTS order_status;";

/// A payload of DML alone, on a table that is there.
const ROWS: &str = "
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
    INSERT IGNORE INTO entry (id, word) VALUES (2, 'two');
";
const ENTRY: &str =
    "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB";

fn applied(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Applied(receipt) => receipt.as_str(),
        other => panic!("expected the step to be applied, got {other:?}"),
    }
}

fn refused(outcome: Outcome) -> (ExecutionError, bool) {
    match outcome {
        Outcome::NotApplied { error, retryable } => (error, retryable),
        other => panic!("expected the step not to be applied, got {other:?}"),
    }
}

#[tokio::test]
async fn a_migration_runs_forward_and_back() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(FORWARD, Some(BACK));
    let forward = plugin.step("up", Direction::Forward);
    assert_eq!(applied(&chain.deliver(&plugin, &forward).await), "sql:preview:up:1");
    let labels: Vec<(String, String)> =
        chain.rows("SELECT code, label FROM order_status ORDER BY code").await;
    let expected = [("open", "Open; not yet paid"), ("paid", "Paid")];
    assert_eq!(labels, expected.map(|(code, label)| (code.to_owned(), label.to_owned())));
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "SUCCEEDED");

    let back = plugin.step("up", Direction::Compensate);
    assert_eq!(applied(&chain.deliver(&plugin, &back).await), "sql:preview:up:1:compensate");
    let tables: Vec<String> = chain.rows("SHOW TABLES").await;
    assert_eq!(tables, ["factory_plugin_target_receipt"]);

    // The forward step was taken back: a late delivery of it must not bring it back.
    let (error, retryable) = refused(chain.deliver(&plugin, &forward).await);
    assert!(matches!(error, ExecutionError::Superseded { .. }) && !retryable, "{error}");
    let tables: Vec<String> = chain.rows("SHOW TABLES").await;
    assert_eq!(tables, ["factory_plugin_target_receipt"]);
}

#[tokio::test]
async fn a_duplicate_delivery_runs_nothing() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(FORWARD, Some(BACK));
    let step = plugin.step("up", Direction::Forward);
    let first = chain.deliver(&plugin, &step).await;
    let row = "SELECT generation, execution_count, DATE_FORMAT(updated_at, '%T.%f') \
               FROM factory_plugin_target_receipt";
    let before: (u64, u32, String) = chain.value(row).await;
    let counted = chain.changes().await;
    let second = chain.deliver(&plugin, &step).await;
    assert_eq!(applied(&first), applied(&second));
    assert_eq!(chain.changes().await, counted);
    assert_eq!(chain.value::<(u64, u32, String)>(row).await, before);
    assert_eq!(before.1, 1);
}

#[tokio::test]
async fn a_succeeded_step_keeps_its_receipt_when_its_release_has_changed() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(FORWARD, Some(BACK));
    let changed = Plugin::install("DROP TABLE IF EXISTS order_status", Some(BACK));
    let step = plugin.step("up", Direction::Forward);

    // Not run yet: what is installed is not what the plan recorded.
    let (error, _) = refused(chain.deliver(&changed, &step).await);
    assert!(matches!(error, ExecutionError::Refused { .. }), "{error}");
    assert!(chain.receipt("up:1").await.is_none());

    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    let before = chain.changes().await;
    assert_eq!(applied(&chain.deliver(&changed, &step).await), "sql:preview:up:1");
    assert_eq!(chain.changes().await, before);

    // Taken back: the receipt no longer stands for an effect.
    let back = plugin.step("up", Direction::Compensate);
    assert_eq!(applied(&chain.deliver(&plugin, &back).await), "sql:preview:up:1:compensate");
    let (error, _) = refused(chain.deliver(&changed, &step).await);
    assert!(matches!(error, ExecutionError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn deliveries_at_the_same_moment_apply_once() {
    let chain = Chain::start().await;
    chain.admin_run(ENTRY).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let outcomes = tokio::join!(chain.deliver(&plugin, &step), chain.deliver(&plugin, &step));
    for outcome in [&outcomes.0, &outcomes.1] {
        let is_busy =
            matches!(outcome, Outcome::Indeterminate { reason: Uncertainty::Busy(_), .. });
        assert!(is_busy || applied(outcome) == "sql:preview:up:1", "{outcome:?}");
    }
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 1, None));
}

#[tokio::test]
async fn a_failed_step_runs_again_once_it_can_work() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    assert!(
        matches!(&error, ExecutionError::Statement { statement: 0, source } if source.code == 1146)
    );
    assert!(!retryable);
    let failed = ("FAILED".to_owned(), 1, Some("server-1146".to_owned()));
    assert_eq!(chain.receipt("up:1").await.unwrap(), failed);

    chain.admin_run(ENTRY).await;
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    let (status, count, _) = chain.receipt("up:1").await.unwrap();
    assert_eq!((status.as_str(), count), ("SUCCEEDED", 2));
    assert_eq!(chain.value::<u64>("SELECT COUNT(*) FROM entry").await, 2);
}

#[tokio::test]
async fn what_fails_half_way_leaves_no_rows() {
    let chain = Chain::start().await;
    chain.admin_run(ENTRY).await;
    let plugin = Plugin::install(&format!("{ROWS} DELETE FROM missing WHERE id = 1"), None);
    let (error, _) = refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert_eq!(error.statement(), Some(2));
    assert_eq!(chain.value::<u64>("SELECT COUNT(*) FROM entry").await, 0);
}

#[tokio::test]
async fn a_payload_without_repeatable_statements_is_refused_with_everything_else() {
    let chain = Chain::start().await;
    let plugin = Plugin::install("UPDATE entry SET word = 'x'", None);
    let mut step = plugin.step("up", Direction::Forward);
    step.declaration = None;
    plugin.reinstall("1.0.0", "DROP DATABASE plugin_preview", None);
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    let codes: Vec<_> = error.refusals().iter().map(|refusal| refusal.code.as_str()).collect();
    assert_eq!(codes, ["idempotence-not-recorded", "content-hash-changed", "policy-denied"]);
    assert!(!retryable && error.to_string().contains("`policy-denied`"), "{error}");
    // Nothing was claimed.
    assert_eq!(chain.receipt("up:1").await, None);
}

#[tokio::test]
async fn no_session_is_left_behind() {
    let chain = Chain::start().await;
    let plugin = Plugin::install(FORWARD, Some(BACK));
    for direction in [Direction::Forward, Direction::Forward, Direction::Compensate] {
        applied(&chain.deliver(&plugin, &plugin.step("up", direction)).await);
    }
    chain.server.assert_session_count(tollgate_tests::chain::TARGET_USER, 0).await;
}
