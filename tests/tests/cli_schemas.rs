//! What `status`, `execute` and `receipts` print as JSON follows docs/schema, on a real server.

use serde_json::{Value, json};
use tollgate_tests::installation::{Installation, TARGET};
use tollgate_tests::schema::Schema;

#[tokio::test]
async fn status_follows_its_schema_in_every_state() {
    let schema = Schema::of("status");
    let installation = Installation::new().await;
    let status = |changes: &[(&str, &str)], state: &str| {
        let run = installation.tollgate_with(changes, &["status", "--json"]);
        let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
        assert_eq!(line["sqlTarget"]["state"], state);
        schema.assert_accepts(line);
        line.clone()
    };
    status(&[("SQL_TARGET_ENABLED", "false")], "disabled");
    status(&[("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5")], "incomplete");
    status(&[("SQL_TARGET_ENABLD", "true"), ("EXECUTOR_CODE", "?")], "incomplete");
    let incomplete = status(&[], "incomplete");
    assert_eq!(installation.tollgate(&["init", "target"]).code(), Some(0));
    let ready = status(&[], "ready");
    installation.admin("GRANT FILE ON *.* TO 'canary_target_user'@'%'").await;
    let warned = status(&[("SQL_TARGET_GRANT_CHECK", "warn")], "ready");
    assert_ne!(warned["sqlTarget"]["warnings"], json!([]));

    schema.assert_notices(&incomplete, |it| it["sqlTarget"]["missing"] = json!([]));
    schema.assert_notices(&incomplete, |it| it["sqlTarget"]["state"] = json!("ready"));
    schema.assert_notices(&ready, |it| it["policy"]["digest"] = json!("sha256:"));
    schema.assert_notices(&ready, |it| it["url"] = json!("jdbc:mysql://db.example/x"));
}

#[tokio::test]
async fn execute_follows_its_schema_whatever_came_of_the_step() {
    let schema = Schema::of("execute");
    let installation = Installation::ready().await;
    let accepted = |run: tollgate_tests::cli::Run, outcome: &str, code: &str| -> Value {
        let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
        schema.assert_accepts(line);
        assert_eq!(line["outcome"], outcome, "{line}");
        let told = line.get("error").or(line.get("uncertainty")).map(|it| &it["code"]);
        assert_eq!(told.map_or("", |it| it.as_str().unwrap()), code, "{line}");
        line.clone()
    };
    let execute = |release: &str, key: &str| installation.execute(release, key);

    let applied = accepted(execute("good", "up"), "applied", "");
    assert_eq!(accepted(execute("good", "up"), "applied", ""), applied);
    let dry = ["execute", "good", "schema", "--step-key", "try", "--executor", "dry-run:v1"];
    let mut dry = installation.command(&[&dry[..], &["--format", "json"]].concat());
    // What would run has the payload's literals in it, so this output is not searched for them.
    let dry = accepted(tollgate_tests::cli::run(&mut dry), "applied", "");
    assert_eq!(dry["wouldRun"].as_array().unwrap().len(), 2);

    installation.release("denied", "CREATE TABLE é (id INT);\nDELETE FROM t WHERE 1 = 1;", None);
    let denied = accepted(execute("denied", "denied"), "not-applied", "refused");
    assert!(denied["error"]["diagnostics"].as_array().unwrap().len() >= 2);
    installation.release("broken", "INSERT IGNORE INTO nowhere (id) VALUES (1);", None);
    let broken = accepted(execute("broken", "broken"), "not-applied", "statement-failed");
    assert_eq!(broken["error"]["statement"], 0);
    installation.release("good2", "DROP TABLE IF EXISTS other;", None);
    accepted(execute("good2", "up"), "not-applied", "identity-mismatch");
    let back = ["execute", "good", "schema", "--step-key", "back", "--direction", "compensate"];
    let back = [&back[..], &["--reverses", "up", "--format", "json"]].concat();
    accepted(installation.tollgate(&back), "applied", "");
    accepted(execute("good", "up"), "not-applied", "superseded");
    run_elsewhere(&installation, "back").await;
    let running = accepted(installation.tollgate(&back), "indeterminate", "lease-held");

    schema.assert_notices(&applied, |it| it["outcome"] = json!("indeterminate"));
    schema.assert_notices(&applied, |it| it["externalReceipt"] = json!(null));
    schema.assert_notices(&denied, |it| it["error"]["blame"] = json!("nobody"));
    schema.assert_notices(&denied, |it| drop(it.as_object_mut().unwrap().remove("error")));
    schema.assert_notices(&running, |it| it["uncertainty"]["retryAfterMs"] = json!("soon"));
}

/// Lets a receipt look as if another holder were at work on it.
async fn run_elsewhere(installation: &Installation, key: &str) {
    let statement = format!(
        "UPDATE factory_plugin_target_receipt SET status = 'RUNNING', completed_at = NULL, \
         external_receipt = NULL, lease_deadline = UTC_TIMESTAMP(6) + INTERVAL 60 SECOND \
         WHERE step_idempotency_key = '{key}'"
    );
    installation.admin(&statement).await;
}

#[tokio::test]
async fn receipts_follow_their_schema_in_every_state() {
    let schema = Schema::of("receipts");
    let installation = Installation::ready().await;
    installation.release("broken", "INSERT IGNORE INTO nowhere (id) VALUES (1);", None);
    for (release, key) in [("good", "up"), ("good", "running"), ("good", "old"), ("broken", "bad")]
    {
        installation.execute(release, key);
    }
    let back = ["execute", "good", "schema", "--step-key", "back", "--direction", "compensate"];
    installation.tollgate(&[&back[..], &["--reverses", "up"]].concat());
    run_elsewhere(&installation, "running").await;
    run_elsewhere(&installation, "old").await;
    installation
        .admin(
            "UPDATE factory_plugin_target_receipt SET lease_deadline = UTC_TIMESTAMP(6) - \
             INTERVAL 1 SECOND WHERE step_idempotency_key = 'old'",
        )
        .await;

    let run = installation.tollgate(&["receipts", "--all", "--format", "json"]);
    let lines = run.json_lines();
    for line in &lines {
        schema.assert_accepts(line);
    }
    let standings: Vec<&str> = lines.iter().map(|it| it["standing"].as_str().unwrap()).collect();
    assert_eq!(standings, ["succeeded", "failed", "lease-expired", "running", "succeeded"]);
    let one = installation.tollgate(&["receipts", "--key", "bad", "--format", "json"]);
    assert_eq!(one.json_lines(), lines[1..2]);

    let notices = |change: fn(&mut Value)| schema.assert_notices(&lines[0], change);
    notices(|it| it["standing"] = json!("fine"));
    notices(|it| it["leaseDeadline"] = json!("2026-01-31 09:30:00"));
    notices(|it| it["release"]["version"] = json!(1));
    notices(|it| it["leaseToken"] = json!("0123456789abcdef0123456789abcdef"));
    assert!(!run.stdout.contains(&format!("`{TARGET}`")), "no statement is in a receipt");
}
