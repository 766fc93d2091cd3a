//! 20 to 28: identity, direction and plan versions.

use std::fmt::Write as _;

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{
    DryRunV1, ExecutionError, Executor as _, Outcome, SqlJdbcV1, Uncertainty,
};
use tollgate::ids::{Direction, ExecutorCode, StepKey};
use tollgate::ledger::{BusyReason, Claim};
use tollgate::plan::{FolderCatalog, Plan, Step};
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate_tests::chain::{Chain, Plugin, TARGET, policy};
use tollgate_tests::over_servers;
use tollgate_tests::place::{LEDGER as QUALIFIED, Place, compensation, forward, key};
use tollgate_tests::server::Flavour;

use crate::scene::{
    LEDGER, ROWS, applied, delivery, has_session, hold_metadata, hold_row_2, ids, refused, row,
    session_running, stage, tables, tollgate_with,
};

async fn fault_20_every_field_of_the_identity_is_compared(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, Some("DELETE FROM entry WHERE id = 1"));
    let step = plugin.step("up", Direction::Forward);
    applied(&chain.deliver(&plugin, &step).await);
    let (counted, before) = (chain.changes().await, row(&chain, "up:1").await);

    plugin.reinstall("2.0.0", ROWS, None);
    plugin.install_as("invoices", "1.0.0", ROWS, None);
    let keyed = |step: Step| Step { key: "up:1".parse().unwrap(), ..step };
    let forward = |plan: Plan| keyed(plan.steps()[0].step(Direction::Forward).unwrap());
    let mut back = keyed(plugin.step("up", Direction::Compensate));
    // What it reverses is told by its key, which is the step's own here.
    back.reverses = None;
    for (field, step) in [
        ("plugin_version", forward(plugin.plan("up", "2.0.0"))),
        ("plugin_code", forward(plugin.plan_of("invoices", "up", "1.0.0"))),
        ("direction", back),
    ] {
        let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
        let ExecutionError::IdentityMismatch(fields) = &error else { panic!("{field}: {error}") };
        assert!(fields.iter().any(|found| found.as_str() == field), "{field}: {fields:?}");
        assert!(!retryable);
    }
    let elsewhere = chain.executor_with(&[("SQL_TARGET_ENVIRONMENT_CODE", "live")]);
    let (error, _) = refused(elsewhere.execute(&step, &plugin.catalog()).await);
    assert!(error.to_string().contains("`environment_code`"), "{error}");

    plugin.reinstall("1.0.0", "INSERT IGNORE INTO entry (id, word) VALUES (9, 'nine')", None);
    let other = plugin.step("up", Direction::Forward);
    let (error, _) = refused(chain.deliver(&plugin, &other).await);
    assert!(error.to_string().contains("`content_hash`"), "{error}");

    assert_eq!(chain.changes().await, counted, "a mismatch must change nothing");
    assert_eq!(row(&chain, "up:1").await, before);
    // It is an event for whoever watches, with its stable code.
    let release = plugin.release_folder("1.0.0");
    let run = tollgate_with(
        &chain,
        &[("TOLLGATE_LOG", "warn")],
        &["execute", release.to_str().unwrap(), "schema", "--step-key", "up:1"],
    );
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("identity-mismatch"), "{}", run.stderr);
    assert_eq!(row(&chain, "up:1").await, before);
}
over_servers!(fault_20_every_field_of_the_identity_is_compared);

fn opposite(claim: &Claim) -> Option<&str> {
    match claim {
        Claim::Busy(busy) => match &busy.reason {
            BusyReason::OppositeRunning { key } => Some(key.as_str()),
            _ => None,
        },
        _ => None,
    }
}

async fn fault_21_a_step_is_not_reversed_while_it_runs(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let (mut one, mut two) = (place.open().await, place.open().await);
    let up = forward("up");
    let down = compensation("down", &up);
    place.granted(&mut one, &up).await;
    let claim = place.claim(&mut two, &down).await;
    assert_eq!(opposite(&claim), Some("up"), "{claim:?}");
    // Nor by a caller that does not know which step it reverses.
    let mut unlinked = down.clone();
    unlinked.counterpart = None;
    let claim = place.claim(&mut two, &unlinked).await;
    assert_eq!(opposite(&claim), Some("up"), "{claim:?}");
    let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {QUALIFIED}")).await;
    assert_eq!(rows, 1);
}
over_servers!(fault_21_a_step_is_not_reversed_while_it_runs);

async fn fault_21_a_step_does_not_run_while_it_is_reversed_nor_afterwards(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let (mut one, mut two) = (place.open().await, place.open().await);
    let up = forward("up");
    let down = compensation("down", &up);
    place.succeed(&up).await;
    let lease = place.granted(&mut one, &down).await;
    let claim = place.claim(&mut two, &up).await;
    assert_eq!(opposite(&claim), Some("down"), "{claim:?}");
    // Another forward step of the same plugin waits too.
    let claim = place.claim(&mut two, &forward("up-2")).await;
    assert_eq!(opposite(&claim), Some("down"), "{claim:?}");
    place.ledger.complete(&mut one, &lease).await.unwrap();
    let claim = place.claim(&mut two, &up).await;
    let Claim::Superseded { by, recorded } = claim else { panic!("{claim:?}") };
    assert_eq!(by, Some(key("down")));
    assert_eq!(recorded.status.as_str(), "SUCCEEDED");
    let claim = place.claim(&mut two, &down).await;
    assert!(matches!(claim, Claim::AlreadySucceeded(..)), "{claim:?}");
    place.granted(&mut two, &forward("up-2")).await;
}
over_servers!(fault_21_a_step_does_not_run_while_it_is_reversed_nor_afterwards);

/// Repeatability does not save this one: a DROP that waits for a metadata lock would take away what
/// the compensation brought back.
async fn fault_21_a_zombie_in_a_lock_queue_is_gone_before_the_reverse_starts(flavour: Flavour) {
    let chain = stage(flavour).await;
    let back = "CREATE TABLE IF NOT EXISTS entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20))
                    ENGINE=InnoDB;
                INSERT IGNORE INTO entry (id, word) VALUES (3, 'three');";
    let plugin = Plugin::install("DROP TABLE IF EXISTS entry", Some(back));
    let mut holder = hold_metadata(&chain).await;
    let first = delivery(chain.executor(), &plugin, &plugin.step("up", Direction::Forward));
    let session = session_running(&chain, "DROP TABLE").await;
    first.abort();
    assert!(first.await.is_err());
    let down = plugin.step("up", Direction::Compensate);
    match chain.deliver(&plugin, &down).await {
        Outcome::Indeterminate { reason: Uncertainty::Busy(busy), .. } => {
            assert_eq!(busy.code(), "opposite-direction-running");
        }
        other => panic!("its lease is open: {other:?}"),
    }
    chain.expire_leases().await;
    assert!(has_session(&chain, session).await, "its statement is still queued");

    assert_eq!(applied(&chain.deliver(&plugin, &down).await), "sql:preview:up:1:compensate");
    assert!(!has_session(&chain, session).await);
    holder.query_drop("ROLLBACK").await.unwrap();
    // Nobody waits for the lock any more, so nothing comes after this.
    chain.admin_run("ALTER TABLE entry COMMENT = 'still there'").await;
    assert_eq!(ids(&chain).await, [2, 3]);
}
over_servers!(fault_21_a_zombie_in_a_lock_queue_is_gone_before_the_reverse_starts);

async fn fault_22_a_compensation_of_what_never_ran_drops_nothing(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, Some("DROP TABLE IF EXISTS entry"));
    let down = plugin.step("up", Direction::Compensate);
    assert_eq!(applied(&chain.deliver(&plugin, &down).await), "sql:preview:up:1:compensate");
    assert_eq!(ids(&chain).await, [2], "another's table of that name is left alone");
    let runs = chain.receipt("up:1:compensate").await.unwrap();
    assert_eq!(runs, ("SUCCEEDED".to_owned(), 0, None));
    // The forward step, delivered late, finds itself barred.
    let (error, retryable) =
        refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert!(matches!(error, ExecutionError::Superseded { .. }) && !retryable, "{error}");
    assert_eq!(ids(&chain).await, [2]);
}
over_servers!(fault_22_a_compensation_of_what_never_ran_drops_nothing);

async fn fault_23_a_half_applied_step_is_taken_back(flavour: Flavour) {
    let chain = stage(flavour).await;
    let half = "CREATE TABLE IF NOT EXISTS half (id INT PRIMARY KEY) ENGINE=InnoDB;
                DELETE FROM missing WHERE id = 1;";
    let plugin = Plugin::install(half, Some("DROP TABLE IF EXISTS half"));
    let (error, _) = refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert_eq!(error.statement(), Some(1));
    assert_eq!(tables(&chain).await, ["entry", "half"], "half of it is there");
    let down = plugin.step("up", Direction::Compensate);
    applied(&chain.deliver(&plugin, &down).await);
    assert_eq!(tables(&chain).await, ["entry"]);
    let linked: Vec<(String, String)> = chain
        .rows(&format!("SELECT step_idempotency_key, counterpart_key FROM {LEDGER} ORDER BY id"))
        .await;
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(linked, [pair("up:1", "up:1:compensate"), pair("up:1:compensate", "up:1")]);
}
over_servers!(fault_23_a_half_applied_step_is_taken_back);

async fn fault_24_a_step_taken_back_never_runs_again(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, Some("DELETE FROM entry WHERE id = 1"));
    let (up, down) =
        (plugin.step("up", Direction::Forward), plugin.step("up", Direction::Compensate));
    applied(&chain.deliver(&plugin, &up).await);
    applied(&chain.deliver(&plugin, &down).await);
    let counted = chain.changes().await;
    let (error, retryable) = refused(chain.deliver(&plugin, &up).await);
    let ExecutionError::Superseded { by } = &error else { panic!("{error}") };
    assert_eq!(by.as_ref().map(StepKey::as_str), Some("up:1:compensate"));
    assert!(!retryable);
    assert_eq!(chain.changes().await, counted);
    assert_eq!(ids(&chain).await, [] as [u32; 0]);
}
over_servers!(fault_24_a_step_taken_back_never_runs_again);

fn golden(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

async fn fault_25_an_unknown_plan_is_refused_before_anything_is_enqueued(flavour: Flavour) {
    let chain = stage(flavour).await;
    drop(chain.control().await);
    let document = std::fs::read_to_string(golden("plans/1.2.json")).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&document).unwrap();
    let (version, _) = value
        .as_object()
        .unwrap()
        .iter()
        .find(|(_, value)| value.as_str() == Some("1.2"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .expect("a plan says its version");
    value[&version] = "1.3".into();
    let newer = value.to_string();
    value[&version] = "1.2".into();
    value["hurry"] = true.into();
    let extended = value.to_string();
    for (name, plan, said) in [("newer", newer, "1.3"), ("extended", extended, "hurry")] {
        let file = chain.server.folder().join(format!("{name}.json"));
        std::fs::write(&file, &plan).unwrap();
        assert!(Plan::parse(plan.as_bytes()).is_err());
        let releases = golden("releases");
        let run = tollgate_with(
            &chain,
            &[],
            &["submit", file.to_str().unwrap(), "--releases", releases.to_str().unwrap()],
        );
        assert!(!run.status.success(), "{name}: {}", run.stdout);
        assert!(run.stderr.contains(said), "{name}: {}", run.stderr);
    }
    let enqueued: Vec<u64> =
        chain.control_rows("SELECT COUNT(*) FROM factory_plugin_control_outbox").await;
    assert_eq!(enqueued, [0]);
    assert!(chain.rows::<u64>(&format!("SELECT id FROM {LEDGER}")).await.is_empty());
}
over_servers!(fault_25_an_unknown_plan_is_refused_before_anything_is_enqueued);

async fn fault_25_plans_of_every_version_can_be_rehearsed_and_only_1_2_can_run(flavour: Flavour) {
    let chain = stage(flavour).await;
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
            let (error, _) = refused(outcome);
            let refusal = &error.refusals()[0];
            assert_eq!(refusal.code.as_str(), "idempotence-not-recorded", "{version}");
            assert!(refusal.message.contains("never run as SQL"), "{}", refusal.message);
            // Refused before the claim: there is no row of it.
            assert_eq!(chain.receipt(step.key.as_str()).await, None);
        }
        let menu = plan.steps()[2].step(Direction::Forward).unwrap();
        let outcome = chain.executor().execute(&menu, &releases).await;
        assert_eq!(outcome.code(), Some("refused"));
    }
}
over_servers!(fault_25_plans_of_every_version_can_be_rehearsed_and_only_1_2_can_run);

async fn fault_26_a_downgraded_executor_leaves_a_running_step_alone(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    session_running(&chain, "DELETE").await;
    // A version that knows plans up to 1.1 hands the step over without its declaration.
    let older = Step { declaration: None, ..step.clone() };
    for is_over in [false, true] {
        if is_over {
            chain.expire_leases().await;
        }
        let before = row(&chain, "up:1").await;
        assert_eq!(chain.receipt("up:1").await.unwrap(), ("RUNNING".to_owned(), 1, None));
        let (error, retryable) = refused(chain.deliver(&plugin, &older).await);
        assert_eq!(error.refusals()[0].code.as_str(), "idempotence-not-recorded");
        assert!(!retryable);
        assert_eq!(row(&chain, "up:1").await, before, "it is not taken over either");
    }
    holder.query_drop("ROLLBACK").await.unwrap();
    applied(&first.await.unwrap());
}
over_servers!(fault_26_a_downgraded_executor_leaves_a_running_step_alone);

async fn fault_27_a_changed_policy_needs_approval(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    // An attempt under another policy, which failed.
    let other = "sha256:00000000000000000000000000000000000000000000000000000000000000aa";
    applied(&chain.deliver(&plugin, &step).await);
    chain
        .admin_run(&format!(
            "UPDATE {LEDGER} SET status = 'FAILED', policy_digest = '{other}', \
             completed_at = NULL, external_receipt = NULL"
        ))
        .await;
    let before = row(&chain, "up:1").await;
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    assert!(matches!(error, ExecutionError::PinRefused) && !retryable, "{error}");
    assert_eq!(row(&chain, "up:1").await, before);

    // The approval: the pin names the policy it takes the place of.
    let store = PolicyStore::embedded().unwrap();
    let mut pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap().clone();
    pin.supersedes.push(other.parse().unwrap());
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    let approved = runtime.load(&pin, &store.component(&pin).unwrap()).unwrap();
    let config = chain.config(&[]);
    let executor = SqlJdbcV1::new(config.sql_target.as_ref().unwrap(), approved);
    applied(&executor.execute(&step, &plugin.catalog()).await);
    let digests: (String, String) =
        chain.value(&format!("SELECT policy_digest, decision_digest FROM {LEDGER}")).await;
    assert_eq!(digests.0, pin.sha256.to_string());
    assert!(digests.1.starts_with("sha256:") && digests.1 != digests.0);
}
over_servers!(fault_27_a_changed_policy_needs_approval);

/// What a target holds: its tables' definitions, their rows, and what the server was asked for.
async fn fingerprint(chain: &Chain) -> String {
    let mut said = String::new();
    for query in [
        "SELECT CONCAT_WS(' ', table_name, engine, create_time) FROM information_schema.tables \
         WHERE table_schema = 'plugin_preview'",
        "SELECT CONCAT_WS(' ', table_name, column_name, column_type) FROM \
         information_schema.columns WHERE table_schema = 'plugin_preview' ORDER BY 1",
        "SELECT CONCAT_WS(' ', id, word) FROM entry",
    ] {
        writeln!(said, "{:?}", chain.rows::<String>(query).await).unwrap();
    }
    write!(said, "{:?}", chain.changes().await).unwrap();
    said
}

async fn fault_28_a_dry_run_writes_nothing_and_connects_to_nothing(flavour: Flavour) {
    let mut chain = stage(flavour).await;
    let plugin = Plugin::install(
        "CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY) ENGINE=InnoDB;\
         INSERT IGNORE INTO a (id) VALUES (1);\
         DELETE FROM entry WHERE id = 2",
        None,
    );
    let step = plugin.step("up", Direction::Forward);
    let dry_run = DryRunV1::new(policy(), TARGET.parse().unwrap());
    let before = fingerprint(&chain).await;
    let connections = "SHOW GLOBAL STATUS LIKE 'Connections'";
    let counted: (String, u64) = chain.value(connections).await;
    let report = dry_run.rehearse(&step, &plugin.catalog()).await.unwrap();
    assert_eq!(report.statements().len(), 3);
    assert!(report.statements()[0].text.contains("`plugin_preview`.`a`"));
    let outcome = dry_run.execute(&step, &plugin.catalog()).await;
    assert_eq!(applied(&outcome), "dry-run:up:1");
    let after: (String, u64) = chain.value(connections).await;
    // The one more is this look itself.
    assert_eq!(after.1, counted.1 + 1);
    assert_eq!(fingerprint(&chain).await, before);
    assert_eq!(chain.receipt("up:1").await, None);

    // Without a server it decides the same, and leaves nothing to find afterwards.
    chain.server.stop();
    assert_eq!(applied(&dry_run.execute(&step, &plugin.catalog()).await), "dry-run:up:1");
    chain.server.start_again();
    assert_eq!(chain.receipt("up:1").await, None);
    assert_eq!(tables(&chain).await, ["entry"]);
}
over_servers!(fault_28_a_dry_run_writes_nothing_and_connects_to_nothing);
