//! The commands that need a target, as an operator runs them against a real server.

use std::time::{Duration, Instant};

use tollgate_tests::cli::{command, run};
use tollgate_tests::installation::{Installation, TARGET, TARGET_USER, json};

#[tokio::test]
async fn a_step_is_applied_once_and_a_duplicate_gets_the_same_receipt() {
    let installation = Installation::ready().await;
    let first = installation.execute("good", "up");
    assert_eq!(first.code(), Some(0), "{}{}", first.stdout, first.stderr);
    let first = json(&first);
    assert_eq!(first["outcome"], "applied");
    assert_eq!(first["externalReceipt"], "sql:preview:up");
    assert_eq!((&first["statementsDone"], &first["statementCount"]), (&2.into(), &2.into()));
    // Whoever ran the payload again would bring the row back.
    installation.admin("DELETE FROM entry").await;
    let second = json(&installation.execute("good", "up"));
    assert_eq!(first, second);
    let mut admin = installation.server.admin().await;
    let count: Option<u64> = mysql_async::prelude::Queryable::query_first(
        &mut admin,
        format!("SELECT COUNT(*) FROM {TARGET}.entry"),
    )
    .await
    .unwrap();
    assert_eq!(count, Some(0));
}

#[tokio::test]
async fn a_step_is_taken_back_by_its_compensation() {
    let installation = Installation::ready().await;
    assert_eq!(installation.execute("good", "up").code(), Some(0));
    let back = ["execute", "good", "schema", "--step-key", "up:back", "--direction", "compensate"];
    let without = installation.tollgate(&back);
    assert_eq!(without.code(), Some(2), "a compensation names what it reverses");
    let back = [&back[..], &["--reverses", "up"]].concat();
    let run = installation.tollgate(&back);
    assert_eq!(run.code(), Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("sql:preview:up:back"), "{}", run.stdout);
    let late = installation.execute("good", "up");
    assert_eq!(late.code(), Some(1));
    assert_eq!(json(&late)["error"]["code"], "superseded");
}

#[tokio::test]
async fn a_dry_run_shows_what_would_run_and_needs_no_target() {
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation::new().await;
    let release = installation.release("plain", "DROP TABLE IF EXISTS old_entry;", None);
    let release = release.display().to_string();
    let arguments = ["execute", &release, "schema", "--step-key", "try"];
    let run = run(command(arguments).current_dir(folder.path()));
    assert_eq!(run.code(), Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("dry-run:try"), "{}", run.stdout);
    assert!(run.stdout.contains("DROP TABLE IF EXISTS `plugin_preview`.`old_entry`"));
}

#[tokio::test]
async fn an_auditor_who_decides_again_gets_the_receipts_digests() {
    let installation = Installation::ready().await;
    assert_eq!(installation.execute("good", "up").code(), Some(0));
    let receipt = json(&installation.tollgate(&["receipts", "--key", "up", "--format", "json"]));
    // Offline: without the configuration, without a server. The statements are the payload's own
    // text, so this output is not searched for its literals.
    let mut check = command(["check", "--format", "json", "good/forward.sql"]);
    let audited = json(&run(check.current_dir(installation.folder())));
    assert_eq!(audited["decision"], "allow");
    assert_eq!(receipt["decisionDigest"], audited["decisionDigest"]);
    assert_eq!(receipt["contentHash"], audited["payloadDigest"]);
    assert_eq!(receipt["policyDigest"], audited["policy"]["digest"]);
}

#[tokio::test]
async fn a_denied_payload_is_underlined_and_claims_nothing() {
    let installation = Installation::ready().await;
    installation.release("bad", "CREATE TABLE t (id INT);\nDELETE FROM t WHERE 1 = 1;\n", None);
    let run = installation.tollgate(&["execute", "bad", "schema", "--step-key", "bad"]);
    assert_eq!(run.code(), Some(1));
    assert!(run.stdout.contains("policy-denied"), "{}", run.stdout);
    assert!(run.stdout.contains("bad:schema:2:"), "the place is named:\n{}", run.stdout);
    let object = json(&installation.execute("bad", "bad"));
    assert_eq!(object["outcome"], "not-applied");
    assert_eq!(object["error"]["refusals"][0]["code"], "policy-denied");
    assert!(object["error"]["diagnostics"].as_array().unwrap().len() >= 2, "{object}");
    assert_eq!(installation.tollgate(&["receipts", "--key", "bad"]).code(), Some(1));
}

#[tokio::test]
async fn what_the_server_refuses_is_told_without_the_payloads_literals() {
    let installation = Installation::ready().await;
    installation.release(
        "broken",
        "INSERT IGNORE INTO nowhere (id, word) VALUES (1, 'canary-literal');",
        None,
    );
    let run = installation.tollgate(&["execute", "broken", "schema", "--step-key", "broken"]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("1146"), "{}", run.stdout);
    let failed = installation.tollgate(&["receipts", "--state", "failed"]);
    assert!(failed.stdout.contains("last error server-1146"), "{}", failed.stdout);
}

#[tokio::test]
async fn a_step_another_holder_runs_is_indeterminate() {
    let installation = Installation::ready().await;
    assert_eq!(installation.execute("good", "up").code(), Some(0));
    installation
        .admin(
            "UPDATE factory_plugin_target_receipt SET status = 'RUNNING', completed_at = NULL, \
             external_receipt = NULL, lease_deadline = UTC_TIMESTAMP(6) + INTERVAL 60 SECOND",
        )
        .await;
    let run = installation.execute("good", "up");
    assert_eq!(run.code(), Some(3), "{}", run.stdout);
    let object = json(&run);
    assert_eq!(object["outcome"], "indeterminate");
    assert!(object["uncertainty"]["retryAfterMs"].as_u64().unwrap() > 0, "{object}");
}

#[tokio::test]
async fn status_tells_disabled_incomplete_and_ready() {
    let installation = Installation::new().await;
    let status = |changes: &[(&str, &str)]| {
        let run = installation.tollgate_with(changes, &["status", "--json"]);
        (run.code().unwrap(), json(&run))
    };
    let disabled = ("SQL_TARGET_ENABLED", "false");
    let (code, missing) = status(&[disabled]);
    assert_eq!((code, &missing["sqlTarget"]["state"]), (1, &"disabled".into()));
    assert_eq!(missing["executorMissing"]["key"], "executor-target-disabled");
    let (code, disabled) = status(&[disabled, ("EXECUTOR_CODE", "dry-run:v1")]);
    assert_eq!((code, &disabled["sqlTarget"]["state"]), (0, &"disabled".into()));
    let (code, incomplete) = status(&[]);
    assert_eq!((code, &incomplete["sqlTarget"]["state"]), (1, &"incomplete".into()));
    let help = incomplete["sqlTarget"]["missing"][0]["help"].as_str().unwrap();
    assert!(help.contains("tollgate init target"), "{incomplete}");
    assert_eq!(installation.tollgate(&["init", "target"]).code(), Some(0));
    let (code, ready) = status(&[]);
    assert_eq!((code, &ready["sqlTarget"]["state"]), (0, &"ready".into()));
    assert_eq!(ready["environment"], "preview");
    assert_eq!(ready["catalog"], TARGET);
    assert_eq!(ready["executor"], "sql-jdbc:v1");
    let (code, broken) = status(&[("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5")]);
    assert_eq!((code, &broken["sqlTarget"]["state"]), (2, &"incomplete".into()));
    let key = &broken["sqlTarget"]["missing"][0]["key"];
    assert_eq!(key, "FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS");
}

#[tokio::test]
async fn status_of_a_server_that_does_not_answer_is_bounded() {
    let mut installation = Installation::ready().await;
    installation.server.signal("STOP");
    let begin = Instant::now();
    let run = installation.tollgate(&["status", "--json"]);
    let took = begin.elapsed();
    installation.server.signal("CONT");
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert_eq!(json(&run)["sqlTarget"]["missing"][0]["key"], "target-timed-out");
    // 5 seconds for the target, the rest for loading the policy on a busy machine.
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test]
async fn what_is_only_warned_of_is_told_with_its_help() {
    let installation = Installation::ready().await;
    assert_eq!(installation.tollgate(&["init", "control"]).code(), Some(0));
    installation.server.execute(&[&format!("GRANT FILE ON *.* TO '{TARGET_USER}'@'%'")]).await;
    for command in ["doctor", "status"] {
        let run = installation.tollgate_with(&[("SQL_TARGET_GRANT_CHECK", "warn")], &[command]);
        assert_eq!(run.code(), Some(0), "{command}: {}", run.stdout);
        let help = "help: `tollgate target grants --catalog plugin_preview`";
        assert!(run.stdout.contains("grants-beyond-catalog"), "{command}: {}", run.stdout);
        assert!(run.stdout.contains(help), "{command}: {}", run.stdout);
        assert!(!run.stdout.contains("run `tollgate doctor`"), "{command}: {}", run.stdout);
    }
}

#[tokio::test]
async fn doctor_names_the_next_command_until_there_is_none() {
    let installation = Installation::new().await;
    let next = |changes: &[(&str, &str)]| {
        let run = installation.tollgate_with(changes, &["doctor"]);
        let next = run.stdout.lines().find_map(|line| line.strip_prefix("next: "));
        (run.code().unwrap(), next.unwrap_or_default().to_owned())
    };
    let (code, command) = next(&[("SQL_TARGET_ENABLED", "false")]);
    assert_eq!(code, 2);
    assert!(command.contains("FACTORY_PLUGIN_SQL_TARGET_ENABLED=true"), "{command}");
    let (code, command) = next(&[]);
    assert_eq!(code, 1);
    assert!(
        command.contains("used before") && command.contains("`tollgate init target`"),
        "{command}"
    );

    installation.server.execute(&[&format!("GRANT FILE ON *.* TO '{TARGET_USER}'@'%'")]).await;
    let (code, command) = next(&[]);
    assert_eq!(code, 1);
    assert!(command.starts_with("`tollgate target grants --catalog plugin_preview`"), "{command}");
    installation.server.execute(&[&format!("REVOKE FILE ON *.* FROM '{TARGET_USER}'@'%'")]).await;

    for expected in ["created", "was there already"] {
        let run = installation.tollgate(&["init", "control"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr);
        assert!(run.stdout.contains(expected), "{}", run.stdout);
    }
    let control_only = [("SQL_TARGET_ENABLED", "false"), ("EXECUTOR_CODE", "dry-run:v1")];
    let run = installation.tollgate_with(&control_only, &["init", "control"]);
    assert!(run.stdout.contains("next: `tollgate submit PLAN.json"), "{}", run.stdout);
    let created = installation.tollgate(&["init", "target"]);
    assert!(created.stdout.contains("created"), "{}", created.stdout);
    let repeated = installation.tollgate(&["init", "target"]);
    assert!(repeated.stdout.contains("was there already"), "{}", repeated.stdout);
    let (code, command) = next(&[("EXECUTOR_CODE", "dry-run:v1")]);
    assert_eq!(code, 0);
    assert!(command.contains("FACTORY_PLUGIN_EXECUTOR_CODE=sql-jdbc:v1"), "{command}");
    let (code, command) = next(&[]);
    assert_eq!(code, 0);
    assert!(command.contains("everything is in place"), "{command}");

    let outbox = "control_plane.factory_plugin_control_outbox";
    let lost = format!(
        "ALTER TABLE {outbox} ENGINE = MyISAM, DROP KEY uk_factory_plugin_control_outbox_key"
    );
    installation.server.execute(&[&lost]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    for told in ["outbox-engine", "outbox-key", "keeping every row"] {
        assert!(run.stdout.contains(told), "{told}: {}", run.stdout);
    }
    installation.server.execute(&[&format!("DROP TABLE {outbox}")]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(0), "the control side may be another's: {}", run.stdout);
    assert!(run.stdout.contains("next: `tollgate init control`"), "{}", run.stdout);
    assert!(!run.stdout.contains("everything is in place"), "{}", run.stdout);

    for command in ["doctor", "status"] {
        let run = installation.tollgate_with(&[("EXECUTOR_CODE", "sql-jdbc:v9")], &[command]);
        assert_eq!(run.code(), Some(1), "{command}: {}", run.stdout);
        let said = "no executor `sql-jdbc:v9` is installed";
        assert!(run.stdout.contains(said), "{command}: {}", run.stdout);
    }
    let nope = installation.server.jdbc_url("nope");
    let run = installation.tollgate_with(&[("CONTROL_JDBC_URL", &nope)], &["doctor"]);
    assert_eq!(run.code(), Some(1));
    assert!(run.stdout.contains("missing  control: the control catalog"), "{}", run.stdout);
    assert!(run.stdout.contains("CREATE ON `nope`.* TO"), "{}", run.stdout);
    assert!(!run.stdout.contains("target grants"), "{}", run.stdout);

    let same = installation.server.jdbc_url(TARGET);
    let run = installation.tollgate_with(&[("CONTROL_JDBC_URL", &same)], &["doctor"]);
    assert_eq!(run.code(), Some(2));
    assert!(run.stdout.contains("FACTORY_PLUGIN_CONTROL_JDBC_URL"), "{}", run.stdout);
}

#[tokio::test]
async fn doctor_names_the_rights_that_are_missing_on_each_side() {
    let installation = Installation::ready().await;
    assert_eq!(installation.tollgate(&["init", "control"]).code(), Some(0));
    let catalog = r"`plugin\_preview`.*";
    let revoke = format!("REVOKE CREATE, DELETE ON {catalog} FROM '{TARGET_USER}'@'%'");
    installation.server.execute(&[&revoke]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("lacks rights in the catalog: DELETE, CREATE"), "{}", run.stdout);
    let next = "`tollgate target grants --catalog plugin_preview`";
    assert!(run.stdout.contains(next), "{}", run.stdout);
    let grant = format!("GRANT CREATE, DELETE ON {catalog} TO '{TARGET_USER}'@'%'");
    installation.server.execute(&[&grant]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(0), "{}", run.stdout);
    assert!(run.stdout.contains("session pinned"), "{}", run.stdout);

    let catalog = r"`control\_plane`.*";
    let account = "'canary_control_user'@'%'";
    installation
        .server
        .execute(&[
            &format!("REVOKE ALL PRIVILEGES ON {catalog} FROM {account}"),
            &format!("GRANT SELECT, UPDATE ON {catalog} TO {account}"),
        ])
        .await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    let lacks = "missing  control: the control account lacks rights in its catalog: INSERT";
    assert!(run.stdout.contains(lacks), "{}", run.stdout);
    assert!(run.stdout.contains("CREATE ON `control_plane`.* TO"), "{}", run.stdout);
    let lost = "DROP TABLE control_plane.factory_plugin_control_outbox";
    installation.server.execute(&[lost]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(0), "nothing of ours is done there: {}", run.stdout);
}

#[test]
fn a_misspelt_variable_is_told_with_the_one_that_was_meant() {
    let mut doctor = command(["doctor"]);
    let run = run(doctor.env("FACTORY_PLUGIN_SQL_TARGET_ENABLD", "true"));
    assert_eq!(run.code(), Some(2));
    assert!(run.stdout.contains("did you mean `FACTORY_PLUGIN_SQL_TARGET_ENABLED`"));
    assert!(run.stdout.lines().count() < 10, "nothing pushes it off a screen: {}", run.stdout);
    assert!(run.stdout.contains("`tollgate doctor --variables`"), "{}", run.stdout);
}

#[test]
fn the_grants_are_printed_for_a_catalog() {
    let grants = run(&mut command(["target", "grants", "--catalog", "shop_plugins"]));
    assert_eq!(grants.code(), Some(0));
    assert!(grants.stdout.contains(r"ON `shop\_plugins`.*"), "{}", grants.stdout);
    assert_eq!(run(&mut command(["target", "grants"])).code(), Some(2));
}

#[tokio::test]
async fn receipts_are_paged_without_gaps_or_repeats() {
    let installation = Installation::ready().await;
    assert_eq!(installation.execute("good", "step-0").code(), Some(0));
    let mut admin = installation.server.admin().await;
    let columns: Option<String> = mysql_async::prelude::Queryable::query_first(
        &mut admin,
        "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_name = \
         'factory_plugin_target_receipt' AND column_name NOT IN ('id', 'step_idempotency_key', 'external_receipt')",
    )
    .await
    .unwrap();
    let columns = columns.unwrap();
    let copy = |key: String| {
        format!(
            "INSERT INTO factory_plugin_target_receipt \
             (step_idempotency_key, external_receipt, {columns}) \
             SELECT '{key}', 'sql:preview:{key}', {columns} FROM factory_plugin_target_receipt \
             WHERE step_idempotency_key = 'step-0'"
        )
    };
    for number in 1..7 {
        installation.admin(&copy(format!("step-{number}"))).await;
    }

    let page = |before: Option<&str>| {
        let mut arguments = vec!["receipts", "--limit", "3", "--format", "json"];
        arguments.extend(before.iter().flat_map(|id| ["--before", id]));
        let run = installation.tollgate(&arguments);
        assert_eq!(run.code(), Some(0), "{}", run.stderr);
        let next = run
            .stderr
            .split("--before ")
            .nth(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let keys: Vec<String> = run
            .json_lines()
            .iter()
            .map(|receipt| receipt["key"].as_str().unwrap().to_owned())
            .collect();
        (keys, next)
    };
    let (first, next) = page(None);
    assert_eq!(first, ["step-6", "step-5", "step-4"]);
    // A receipt that comes while someone pages shifts nothing.
    installation.admin(&copy("step-7".to_owned())).await;
    let (second, next) = page(next.as_deref());
    assert_eq!(second, ["step-3", "step-2", "step-1"]);
    let (third, next) = page(next.as_deref());
    assert_eq!((third, next), (vec!["step-0".to_owned()], None));

    let all = installation.tollgate(&["receipts", "--limit", "2", "--all", "--format", "json"]);
    assert_eq!(all.json_lines().len(), 8);
    let one = json(&installation.tollgate(&["receipts", "--key", "step-4", "--format", "json"]));
    assert_eq!(one["standing"], "succeeded");
    let table = installation.tollgate(&["receipts", "--state", "succeeded", "--plugin", "orders"]);
    assert!(table.stdout.starts_with("ID ") && table.stdout.lines().count() == 9);
    let none = installation.tollgate(&["receipts", "--state", "needs-attention"]);
    assert_eq!((none.code(), none.stdout.as_str()), (Some(0), "no receipts\n"));
    let expired = "UPDATE factory_plugin_target_receipt SET status = 'RUNNING', \
                   external_receipt = NULL, completed_at = NULL, lease_deadline = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND \
                   WHERE step_idempotency_key = 'step-2'";
    installation.admin(expired).await;
    let table = installation.tollgate(&["receipts", "--state", "lease-expired"]);
    assert!(table.stdout.contains("lease expired, owner unknown"), "{}", table.stdout);
}

#[tokio::test]
async fn no_secret_is_in_any_failure() {
    // `tollgate` looks for canaries in everything it prints; here is what has failures to tell.
    let mut installation = Installation::ready().await;
    let wrong: &[&[(&str, &str)]] = &[
        &[("SQL_TARGET_PASSWORD", "canary-target-password-wrong")],
        &[("CONTROL_PASSWORD", "canary-control-password-wrong")],
        &[("SQL_TARGET_JDBC_URL", "jdbc:mysql://canary_target_user:canary-target-password@h/x")],
        &[(
            "SQL_TARGET_JDBC_URL",
            "jdbc:mysql://127.0.0.1:1/plugin_preview?sslMode=canary-literal",
        )],
        &[("SQL_TARGET_ALLOWED_CATALOG", "elsewhere")],
    ];
    let commands: &[&[&str]] = &[
        &["status"],
        &["status", "--json"],
        &["doctor"],
        &["init", "target"],
        &["receipts"],
        &["execute", "good", "schema", "--step-key", "up"],
        &["execute", "good", "schema", "--step-key", "up", "--format", "json"],
    ];
    for changes in wrong {
        for arguments in commands {
            let run = installation.tollgate_with(changes, arguments);
            assert!(matches!(run.code(), Some(1 | 2)), "{arguments:?}: {}", run.stdout);
        }
    }
    installation.server.stop();
    for arguments in commands {
        let run = installation.tollgate(arguments);
        assert_eq!(run.code(), Some(1), "{arguments:?}: {}{}", run.stdout, run.stderr);
    }
}

#[tokio::test]
async fn what_everyone_may_do_is_said_to_be_publics() {
    let installation = Installation::ready().await;
    installation.server.execute(&["GRANT ALL PRIVILEGES ON `test`.* TO PUBLIC"]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("on the catalog `test`, through PUBLIC"), "{}", run.stdout);
    let revoke = "REVOKE ALL PRIVILEGES, GRANT OPTION FROM PUBLIC";
    assert!(run.stdout.contains(&format!("`{revoke}`")), "{}", run.stdout);
    installation.server.execute(&[revoke]).await;
    let run = installation.tollgate(&["doctor"]);
    assert_eq!(run.code(), Some(0), "the printed statement mends it: {}", run.stdout);
}

#[test]
fn a_configured_executor_that_is_not_installed_is_missing() {
    let status =
        |code: &str| run(command(["status", "--json"]).env("FACTORY_PLUGIN_EXECUTOR_CODE", code));
    let disabled = status("sql-jdbc:v1");
    assert_eq!(disabled.code(), Some(1), "{}", disabled.stdout);
    assert_eq!(json(&disabled)["executorMissing"]["key"], "executor-target-disabled");
    let unknown = status("sql-jdbc:v9");
    assert_eq!(unknown.code(), Some(1), "{}", unknown.stdout);
    let missing = &json(&unknown)["executorMissing"];
    assert_eq!(missing["key"], "executor-unknown");
    assert!(missing["message"].as_str().unwrap().ends_with("installed are dry-run:v1"));
    assert_eq!(status("dry-run:v1").code(), Some(0));
}
