//! `submit`, `outbox` and `compensate` as an operator runs them.

use tollgate::outbox::{ExecutorChoice, Outbox};
use tollgate::plan::Plan;
use tollgate_tests::chain::{CONTROL, Chain, Plugin};
use tollgate_tests::cli::{Run, binary, run};
use tollgate_tests::page::Served;
use tollgate_tests::process::{Process, submit, tollgate};
use tollgate_tests::schema::Schema;

const FORWARD: &str = "CREATE TABLE IF NOT EXISTS entry (id INT PRIMARY KEY)";
const BACK: &str = "DROP TABLE IF EXISTS entry";

fn plugins() -> Plugin {
    let plugin = Plugin::install(FORWARD, Some(BACK));
    plugin.install_as("rows", "1.0.0", "INSERT IGNORE INTO entry (id) VALUES (1)", {
        Some("DELETE FROM entry WHERE id = 1")
    });
    plugin
}

fn work(chain: &Chain, plugin: &Plugin) {
    work_to(0, chain, plugin);
}

fn work_to(code: i32, chain: &Chain, plugin: &Plugin) -> String {
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, plugin, &[], &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(code), "{}", worker.log());
    worker.log()
}

fn command(chain: &Chain, arguments: &[&str]) -> Run {
    run(&mut tollgate(chain, &[], arguments))
}

/// A worker sets such a row aside. It must not take the others' place, nor the figures away.
#[tokio::test]
async fn a_row_that_does_not_read_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    let plugin = plugins();
    assert_eq!(command(&chain, &["init", "control"]).code(), Some(0));
    for plan in ["bad", "up"] {
        assert_eq!(submit(&chain, &plugin, &plugin.document_of(plan, &["orders"])).code(), Some(0));
    }
    let outbox = format!("{CONTROL}.factory_plugin_control_outbox");
    let damage = format!("UPDATE {outbox} SET step = '{{}}' WHERE plan_code = 'bad'");
    let attention =
        format!("UPDATE {outbox} SET status = 'NEEDS_ATTENTION' WHERE plan_code = 'up'");
    chain.control_server().execute(&[&damage]).await;
    work(&chain, &plugin);
    chain.control_server().execute(&[&attention]).await;

    let shown = command(&chain, &["outbox"]);
    assert_eq!(shown.code(), Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("up:1"), "{}", shown.stdout);
    assert!(shown.stdout.contains("row 1 (`bad:1`): its `step` does not read"), "{}", shown.stdout);
    let lines = command(&chain, &["outbox", "--json"]).json_lines();
    let schema = Schema::of("outbox");
    for line in &lines {
        schema.assert_accepts(line);
    }
    assert_eq!(lines[0]["counts"]["NEEDS_ATTENTION"], 2);
    assert_eq!(lines[0]["unreadable"][0]["stepKey"], "bad:1");

    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let page = served.get("/").body;
    assert!(page.contains("up:1") && page.contains("bad:1"), "{page}");
    let metrics = served.get("/metrics").body;
    assert!(metrics.contains(r#"tollgate_source_up{source="control"} 1"#), "{metrics}");
    let needing = r#"tollgate_outbox_steps{status="NEEDS_ATTENTION"} 2"#;
    assert!(metrics.contains(needing), "{metrics}");
}

#[tokio::test]
async fn a_plan_goes_all_the_way_there_and_back() {
    let chain = Chain::start().await;
    let plugin = plugins();
    assert_eq!(command(&chain, &["init", "control"]).code(), Some(0));
    let document = plugin.document_of("up", &["orders", "rows"]);
    let submitted = submit(&chain, &plugin, &document);
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    assert!(submitted.stdout.contains("2 step(s)"), "{}", submitted.stdout);
    let again = submit(&chain, &plugin, &document);
    assert_eq!(again.code(), Some(0));
    assert!(again.stdout.contains("submitted before: 1 WAITING, 1 PENDING"), "{}", again.stdout);
    work(&chain, &plugin);
    assert_eq!(chain.value::<u32>("SELECT COUNT(*) FROM entry").await, 1);
    let listed = command(&chain, &["outbox", "up", "--json"]);
    let lines = listed.json_lines();
    assert_eq!(lines[0]["counts"]["APPLIED"], 2);
    assert_eq!(lines[2]["externalReceipt"], "sql:preview:up:2");

    let back = command(&chain, &["compensate", "up", "--from", "up:2"]);
    assert_eq!(back.code(), Some(0), "{}", back.stderr);
    work(&chain, &plugin);
    assert_eq!(chain.value::<u32>("SELECT COUNT(*) FROM entry").await, 0);
    let back = command(&chain, &["compensate", "up"]);
    assert!(back.stdout.contains("1 compensation(s) enqueued, 1 were before"), "{}", back.stdout);
    work(&chain, &plugin);
    assert_eq!(chain.rows::<String>("SHOW TABLES LIKE 'entry'").await.len(), 0);
    let listed = command(&chain, &["outbox", "up"]);
    assert!(listed.stdout.contains("sql:preview:up:1:compensate"), "{}", listed.stdout);
}

/// Two environments on one control catalog: each worker keeps to its own.
#[tokio::test]
async fn a_worker_of_another_environment_leaves_the_plan_alone_and_says_so() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = plugins();
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders", "rows"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);

    let staging = &[("SQL_TARGET_ENVIRONMENT_CODE", "staging")];
    let log = plugin.root().join("staging");
    let mut worker = Process::start(&chain, &plugin, staging, &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert!(worker.log().contains("only workers of other environments take"), "{}", worker.log());
    assert!(worker.log().contains("preview"), "{}", worker.log());
    let receipts: u32 = chain.value("SELECT COUNT(*) FROM factory_plugin_target_receipt").await;
    assert_eq!(receipts, 0);

    let listed = run(&mut tollgate(&chain, staging, &["outbox"]));
    assert!(listed.stdout.contains("belong to the environment `preview`"), "{}", listed.stdout);
    let refused = run(&mut tollgate(&chain, staging, &["compensate", "up"]));
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("belongs to the environment `preview`"), "{}", refused.stderr);

    work(&chain, &plugin);
    let steps = command(&chain, &["outbox", "up", "--json"]).json_lines();
    assert_eq!(
        (&steps[1]["environment"], &steps[1]["status"]),
        (&"preview".into(), &"APPLIED".into())
    );
}

#[tokio::test]
async fn every_problem_of_a_plan_is_told_and_nothing_is_enqueued() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = plugins();
    let document = plugin.document_of("up", &["orders", "rows"]);
    plugin.install_as("rows", "1.0.0", "DROP DATABASE plugin_preview", None);
    std::fs::remove_dir_all(plugin.root().join("orders")).unwrap();
    let refused = submit(&chain, &plugin, &document);
    assert_eq!(refused.code(), Some(1));
    for code in [
        "release-not-installed",
        "publication-fingerprint-changed",
        "content-hash-changed",
        "compensation-not-installed",
        "policy-denied",
    ] {
        assert!(refused.stderr.contains(code), "{code}: {}", refused.stderr);
    }
    assert!(refused.stderr.contains("step `up:2:compensate`"), "{}", refused.stderr);
    let file = plugin.root().join("rows/1.0.0/forward.sql").display().to_string();
    let check = format!("run `tollgate check --catalog plugin_preview {file}`");
    assert!(refused.stderr.contains(&check), "{}", refused.stderr);
    let denied = command(&chain, &["check", "--catalog", "plugin_preview", &file]);
    assert_eq!(denied.code(), Some(1), "the command that is named: {}", denied.stderr);
    let unknown = command(&chain, &["outbox", "up"]);
    assert_eq!(unknown.code(), Some(1));
    assert!(unknown.stderr.contains("plan `up` is not in the outbox"), "{}", unknown.stderr);
}

#[tokio::test]
async fn an_old_plan_is_never_promoted_to_sql() {
    let chain = Chain::start().await;
    chain.control().await;
    let file = "golden/plans/1.1.json";
    let arguments = ["submit", file, "--releases", "golden/releases"];
    let refused = command(&chain, &arguments);
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("idempotence-not-recorded"), "{}", refused.stderr);
    assert!(refused.stderr.contains("never run as SQL"), "{}", refused.stderr);
    let dry_run = [&arguments[..], &["--executor", "dry-run:v1"]].concat();
    let submitted = command(&chain, &dry_run);
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
}

#[tokio::test]
async fn what_needs_a_person_is_shown_with_its_reason_and_retried() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("INSERT IGNORE INTO entry (id) VALUES (1)", None);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let log = work_to(6, &chain, &plugin);
    assert!(log.contains("the worker ended applied=0 needs_attention=1"), "{log}");
    assert!(log.contains("reason=\"idle\""), "{log}");
    assert!(log.contains("server_error=1146"), "{log}");
    let shown = command(&chain, &["outbox"]);
    assert!(shown.stdout.contains("NEEDS_ATTENTION"), "{}", shown.stdout);
    assert!(shown.stdout.contains("statement-failed"), "{}", shown.stdout);
    let next = "next: this step records no compensation: mend the target";
    assert!(shown.stdout.contains(next), "{}", shown.stdout);
    let back = command(&chain, &["compensate", "up"]);
    assert_eq!(back.code(), Some(1), "as it is advised: {}", back.stdout);
    let receipts = command(&chain, &["receipts", "--state", "failed"]);
    let next = "next: mend the cause; while its step is PENDING, the next delivery tries again";
    assert!(receipts.stdout.contains(next), "{}", receipts.stdout);
    chain.admin_run("CREATE TABLE entry (id INT PRIMARY KEY) ENGINE=InnoDB").await;
    assert_eq!(command(&chain, &["outbox", "retry", "up:1"]).code(), Some(0));
    work(&chain, &plugin);
    assert_eq!(chain.value::<u32>("SELECT COUNT(*) FROM entry").await, 1);
    let again = command(&chain, &["outbox", "retry", "up:1"]);
    assert_eq!(again.code(), Some(1));
    assert!(again.stderr.contains("it is APPLIED"), "{}", again.stderr);
}

#[tokio::test]
async fn a_payload_that_was_started_too_often_has_two_ways_out_and_both_are_named() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("INSERT IGNORE INTO entry (id) VALUES (1)", Some(BACK));
    submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    work_to(6, &chain, &plugin);
    assert_eq!(command(&chain, &["outbox", "retry", "up:1"]).code(), Some(0));
    let once = [("SQL_TARGET_EXECUTION_COUNT_MAX", "1")];
    let log = plugin.root().join("log");
    let mut worker = Process::start(&chain, &plugin, &once, &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(6), "{}", worker.log());
    let shown = command(&chain, &["outbox", "up"]).stdout;
    for part in [
        "needs-attention: the payload was started once, as often as \
         FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX allows; its last error was: ",
        "see `tollgate receipts --key up:1`; then raise `FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX`",
        "`tollgate outbox retry up:1`; or `tollgate compensate up`, then publish a new version",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn several_steps_are_retried_by_key_by_plan_and_by_code() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DELETE FROM missing WHERE id = 1", None);
    for code in ["a", "b", "c"] {
        let submitted = submit(&chain, &plugin, &plugin.document_of(code, &["orders"]));
        assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    }
    work_to(6, &chain, &plugin);
    let due = |arguments: &[&str], code| {
        let retried = command(&chain, &[&["outbox", "retry"], arguments].concat());
        assert_eq!(retried.code(), Some(code), "{}", retried.stderr);
        retried
    };
    let retried = due(&["a:1", "nope:1", "b:1"], 1);
    assert_eq!(retried.stdout, "step `a:1` is due again\nstep `b:1` is due again\n");
    assert!(retried.stderr.contains("`nope:1`"), "{}", retried.stderr);
    assert!(due(&["--plan", "a"], 1).stderr.contains("no step of plan `a` needs attention"));
    assert!(due(&["--code", "drift"], 1).stderr.contains("with the code `drift`"));
    assert_eq!(due(&["--plan", "c"], 0).stdout, "step `c:1` is due again\n");
    work_to(6, &chain, &plugin);
    let retried = due(&["--code", "statement-failed"], 0);
    assert_eq!(retried.stdout.lines().count(), 3, "{}", retried.stdout);
    due(&[], 2);
    due(&["a:1", "--plan", "a"], 2);
}

#[tokio::test]
async fn a_step_whose_compensation_was_begun_elsewhere_is_superseded() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = plugins();
    submit(&chain, &plugin, &plugin.document_of("up", &["orders", "rows"]));
    let folder = plugin.release_folder("1.0.0").display().to_string();
    let back = ["execute", &folder, "schema", "--step-key", "up:1:compensate"];
    let back = [&back[..], &["--direction", "compensate", "--reverses", "up:1"]].concat();
    assert_eq!(command(&chain, &back).code(), Some(0));
    work(&chain, &plugin);
    let lines = command(&chain, &["outbox", "up", "--json"]).json_lines();
    assert_eq!(lines[1]["status"], "SUPERSEDED");
    assert_eq!(lines[1]["lastErrorCode"], "superseded");
    assert_eq!(lines[2]["status"], "WAITING", "nothing runs behind it");
    assert_eq!(chain.rows::<String>("SHOW TABLES LIKE 'entry'").await.len(), 0);
}

/// The examples for embedders do what they say: their own catalog, our outbox and worker.
#[tokio::test]
async fn an_embedder_brings_a_catalog_of_its_own() {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = plugins();
    let file = plugin.root().join("plan.json");
    std::fs::write(&file, plugin.document_of("up", &["orders", "rows"])).unwrap();
    let mut embedder = example("embed_outbox");
    let done = run(embedder.arg(&file).arg(plugin.root()).envs(chain.variables()));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(chain.value::<u32>("SELECT COUNT(*) FROM entry").await, 1);
}

/// Our outbox and worker, and an executor that is not ours.
#[tokio::test]
async fn an_embedder_brings_an_executor_of_its_own() {
    let chain = Chain::start().await;
    let control = chain.control().await;
    let plugin = plugins();
    let plan = Plan::parse(plugin.document_of("up", &["orders", "rows"]).as_bytes()).unwrap();
    let executors = ExecutorChoice { sql: "announce:v1".parse().unwrap() };
    let mut connection = control.open().await.unwrap();
    Outbox::of(&chain.config(&[])).submit(&mut connection, &plan, &executors).await.unwrap();
    let done = run(example("embed_executor").arg(plugin.root()).envs(chain.variables()));
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert_eq!(done.stdout, "up:1 of orders@1.0.0\nup:2 of rows@1.0.0\n");
    let query = "SELECT external_receipt FROM factory_plugin_control_outbox ORDER BY id";
    let receipts: Vec<String> = chain.control_rows(query).await;
    assert_eq!(receipts, ["announce:up:1", "announce:up:2"]);
    assert_eq!(chain.rows::<String>("SHOW TABLES LIKE 'entry'").await.len(), 0);
}

fn example(name: &str) -> std::process::Command {
    let example = binary().parent().unwrap().join("examples").join(name);
    assert!(example.exists(), "run `cargo build --workspace --all-targets`");
    std::process::Command::new(example)
}
