//! 68 to 73: the ledger's integrity.

use std::process::Stdio;

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate::ledger::{Claim, ClaimError, Filter, Ledger, bootstrap};
use tollgate::target::{SessionContract, Target};
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli;
use tollgate_tests::over_servers;
use tollgate_tests::place::{CATALOG, LEDGER, PASSWORD, Place, USER, forward};
use tollgate_tests::server::Flavour;

use crate::scene::{
    self, ROWS, applied, delivery, hold_row_2, ids, refused, row, session_running, stage,
    status_keys, tollgate, until,
};

async fn fault_68_a_catalog_without_a_ledger_claims_nothing_and_creates_nothing(flavour: Flavour) {
    let place = Place::without_ledger(flavour).await;
    let mut connection = place.open().await;
    let error = place.ledger.claim(&mut connection, &forward("step-1")).await.unwrap_err();
    let ClaimError::Shape(shape) = &error else { panic!("{error:?}") };
    assert!(shape.is_missing());
    assert_eq!(error.code(), "ledger-missing");
    assert!(error.help().contains("tollgate init target"));
    let tables: u64 = place
        .one(
            "SELECT COUNT(*) FROM information_schema.tables \
             WHERE table_schema = 'plugin_preview'",
        )
        .await;
    assert_eq!(tables, 0);
}
over_servers!(fault_68_a_catalog_without_a_ledger_claims_nothing_and_creates_nothing);

/// TRUNCATE and DROP wait until the payload's transaction, which has looked at its receipt, gives up
/// on the row that the test holds.
const IMPATIENT: &[(&str, &str)] = &[("SQL_TARGET_LOCK_WAIT_TIMEOUT_SECONDS", "3")];

/// A dropped table, whatever became of it, and a row that is gone from it.
const LOSSES: &[&str] = &["DELETE FROM", "TRUNCATE", "DROP TABLE"];

async fn fault_69_a_receipt_that_is_gone_takes_the_rows_with_it(flavour: Flavour) {
    let place = Place::on(flavour).await;
    for loss in LOSSES {
        let (mut connection, wire) = place.open_wired().await;
        let lease = place.granted(&mut connection, &forward("step-1")).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        // TRUNCATE and DROP wait for whoever has touched the table in a transaction: nobody has.
        place.execute(&format!("{loss} {LEDGER}")).await;
        let error = place.ledger.complete(&mut connection, &lease).await.unwrap_err();
        assert_eq!(error.code(), "receipt-lost", "{loss}");
        assert_eq!(place.witnesses().await, 0, "{loss}");
        let mut second = place.open().await;
        let error = place.ledger.renew(&mut second, &lease, 1).await.unwrap_err();
        assert_eq!(error.code(), "receipt-lost", "{loss}");
    }
}
over_servers!(fault_69_a_receipt_that_is_gone_takes_the_rows_with_it);

/// The worker that sees it leaves the step to a person: another delivery would only run it again.
async fn fault_69_a_lost_ledger_stops_redelivery_until_a_person_acts(flavour: Flavour) {
    for loss in LOSSES {
        let chain = stage(flavour).await;
        chain.control().await;
        let plugin = Plugin::install(ROWS, None);
        let document = chain.server.folder().join("plan.json");
        std::fs::write(&document, plugin.document_of("up", &["orders"])).unwrap();
        let releases = plugin.root().to_str().unwrap().to_owned();
        let submit = ["submit", document.to_str().unwrap(), "--releases", &releases];
        assert_eq!(tollgate(&chain, &submit).code(), Some(0));
        let work = ["work", "--releases", &releases, "--until-idle"];

        let mut holder = hold_row_2(&chain).await;
        let mut command = cli::command(work);
        for (name, value) in IMPATIENT {
            command.env(format!("FACTORY_PLUGIN_{name}"), value);
        }
        command.envs(chain.variables()).env("TOLLGATE_CACHE", tollgate_tests::desk::compiled());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut worker = command.spawn().unwrap();
        session_running(&chain, "DELETE").await;
        chain.admin_run(&format!("{loss} {}", scene::LEDGER)).await;
        holder.query_drop("ROLLBACK").await.unwrap();
        let standing = async || {
            let query = "SELECT status, last_error_code FROM factory_plugin_control_outbox";
            chain.control_rows::<(String, Option<String>)>(query).await.remove(0)
        };
        until("the worker reports", async || {
            (standing().await.0 == "NEEDS_ATTENTION").then_some(())
        })
        .await;
        assert_eq!(standing().await.1.as_deref(), Some("receipt-lost"), "{loss}");
        worker.wait().unwrap();
        assert_eq!(ids(&chain).await, [2], "{loss}: the rows went with the receipt");
        // Another worker does not touch it either.
        let counted = chain.changes().await;
        assert_eq!(tollgate(&chain, &work).code(), Some(0));
        if *loss == "DROP TABLE" {
            assert_eq!(status_keys(&chain), ["ledger-missing"]);
            assert_eq!(tollgate(&chain, &["init", "target"]).code(), Some(0));
        } else {
            let receipts = format!("SELECT id FROM {}", scene::LEDGER);
            assert!(chain.rows::<u64>(&receipts).await.is_empty(), "{loss}");
            let writes = |counted: &[(String, u64)]| {
                counted.iter().filter(|(name, _)| name == "Com_delete").cloned().collect::<Vec<_>>()
            };
            assert_eq!(writes(&chain.changes().await), writes(&counted), "{loss}");
        }
        // At a person's word it runs.
        assert_eq!(tollgate(&chain, &["outbox", "retry", "up:1"]).code(), Some(0));
        assert_eq!(tollgate(&chain, &work).code(), Some(0));
        assert_eq!(standing().await.0, "APPLIED", "{loss}");
        assert_eq!(ids(&chain).await, [1]);
    }
}
over_servers!(fault_69_a_lost_ledger_stops_redelivery_until_a_person_acts);

async fn fault_69_a_delivery_without_a_worker_is_told_too(flavour: Flavour) {
    for loss in LOSSES {
        let chain = stage(flavour).await;
        let plugin = Plugin::install(ROWS, None);
        let step = plugin.step("up", Direction::Forward);
        let mut holder = hold_row_2(&chain).await;
        let first = delivery(chain.executor_with(IMPATIENT), &plugin, &step);
        session_running(&chain, "DELETE").await;
        chain.admin_run(&format!("{loss} {}", scene::LEDGER)).await;
        holder.query_drop("ROLLBACK").await.unwrap();
        match first.await.unwrap() {
            Outcome::Indeterminate { reason: Uncertainty::ReceiptLost, .. } => {}
            other => panic!("{loss}: expected a lost receipt, got {other:?}"),
        }
        assert_eq!(ids(&chain).await, [2], "{loss}");
    }
}
over_servers!(fault_69_a_delivery_without_a_worker_is_told_too);

/// What an ALTER does to the ledger, and the code of the refusal.
const CHANGES: &[(&str, &str)] = &[
    ("ENGINE=MyISAM", "ledger-engine"),
    ("DROP KEY uk_factory_plugin_target_receipt_key", "ledger-unique-key-lost"),
    (
        "DROP KEY uk_factory_plugin_target_receipt_key, \
         ADD KEY uk_factory_plugin_target_receipt_key (step_idempotency_key)",
        "ledger-unique-key-lost",
    ),
    (
        "DROP KEY uk_factory_plugin_target_receipt_key, \
         ADD UNIQUE KEY uk_factory_plugin_target_receipt_key (step_idempotency_key(64))",
        "ledger-unique-key-lost",
    ),
    ("ADD UNIQUE KEY extra (content_hash)", "ledger-foreign-unique-key"),
    (
        "MODIFY step_idempotency_key VARCHAR(128) CHARACTER SET ascii \
         COLLATE ascii_general_ci NOT NULL",
        "ledger-column-collation",
    ),
    ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "ledger-column-collation"),
    (
        "MODIFY step_idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin \
         NOT NULL",
        "ledger-column-narrow",
    ),
    ("MODIFY lease_deadline DATETIME NOT NULL", "ledger-column-narrow"),
    (
        "MODIFY last_error VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL",
        "ledger-column-narrow",
    ),
    ("MODIFY generation INT NOT NULL", "ledger-column-type"),
    ("MODIFY completed_at TIMESTAMP(6) NULL", "ledger-column-type"),
    ("MODIFY completed_at DATETIME(6) NOT NULL", "ledger-column-nullability"),
    ("DROP COLUMN counterpart_key", "ledger-column-missing"),
    ("ADD COLUMN note VARCHAR(10) NOT NULL", "ledger-column-foreign"),
    ("COMMENT='a table'", "ledger-version-missing"),
    ("COMMENT='tollgate receipt ledger, schema version 2'", "ledger-newer"),
    ("COMMENT='tollgate receipt ledger, schema version 0'", "ledger-older"),
];

async fn fault_70_each_loss_of_shape_is_refused_by_name(flavour: Flavour) {
    let place = Place::without_ledger(flavour).await;
    for (change, code) in CHANGES {
        let mut connection = place.open().await;
        bootstrap(&mut connection).await.unwrap();
        place.execute(&format!("ALTER TABLE {LEDGER} {change}")).await;
        let claim = place.ledger.claim(&mut connection, &forward("step-1")).await;
        let error = claim.expect_err(change);
        assert_eq!(error.code(), *code, "{change}");
        let error = bootstrap(&mut connection).await.expect_err(change);
        assert_eq!(error.code(), *code, "{change}");
        place.execute(&format!("DROP TABLE {LEDGER}")).await;
        connection.close().await;
    }
}
over_servers!(fault_70_each_loss_of_shape_is_refused_by_name);

async fn fault_70_a_key_lost_under_a_connection_in_use_is_noticed(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let mut connection = place.open().await;
    place.granted(&mut connection, &forward("step-1")).await;
    place
        .execute(&format!("ALTER TABLE {LEDGER} DROP KEY uk_factory_plugin_target_receipt_key"))
        .await;
    let error = place.ledger.claim(&mut connection, &forward("step-2")).await.unwrap_err();
    assert_eq!(error.code(), "ledger-unique-key-lost");
    let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
    assert_eq!(rows, 1);
}
over_servers!(fault_70_a_key_lost_under_a_connection_in_use_is_noticed);

/// The executor's answer to a row that was edited: refused, the row as it was left.
async fn assert_contradictory(chain: &Chain, plugin: &Plugin, edit: &str, column: &str) {
    let step = plugin.step("up", Direction::Forward);
    let before = row(chain, "up:1").await;
    let counted = chain.changes().await;
    let (error, retryable) = refused(chain.deliver(plugin, &step).await);
    let ExecutionError::Claim(claim) = &error else { panic!("{edit}: {error:?}") };
    assert_eq!((claim.code(), retryable), ("receipt-contradictory", false), "{edit}");
    let cause = std::error::Error::source(claim).unwrap().to_string();
    assert!(cause.contains(&format!("`{column}`")), "{edit}: {cause}");
    // Said once: the step's error is the claim's.
    assert_eq!(error.to_string(), claim.to_string(), "{edit}");
    assert_eq!(row(chain, "up:1").await, before, "{edit}");
    assert_eq!(chain.changes().await, counted, "{edit}");
    let flagged = tollgate(chain, &["receipts", "--key", "up:1", "--format", "json"]);
    assert_eq!(flagged.json_lines()[0]["contradiction"], *column, "{edit}");
    let table = tollgate(chain, &["receipts"]).stdout;
    assert!(table.contains("edited by hand"), "{edit}: {table}");
}

/// How many receipts are counted as edited; each of them comes first among those for a person.
async fn edited_first(chain: &Chain) -> u64 {
    let config = chain.config(&[]);
    let target = Target::new(config.sql_target.as_ref().unwrap()).read_only();
    let mut connection = target.open(&SessionContract::default()).await.unwrap();
    let ledger = Ledger::default();
    let edited = ledger.counts(&mut connection).await.unwrap().edited;
    let first = ledger.unsettled(&mut connection, 1).await.unwrap().receipts;
    connection.close().await;
    assert_eq!(first.iter().any(|receipt| receipt.contradiction.is_some()), edited > 0);
    edited
}

async fn fault_71_a_row_edited_by_hand_is_refused_and_flagged(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    applied(&chain.deliver(&plugin, &step).await);
    chain
        .admin_run(
            "CREATE TABLE as_it_was ENGINE=InnoDB AS SELECT * FROM factory_plugin_target_receipt",
        )
        .await;
    for (edit, column) in [
        ("status = 'FAILED'", "external_receipt"),
        ("status = 'RUNNING', external_receipt = NULL", "completed_at"),
        ("completed_at = NULL", "completed_at"),
        ("execution_count = 0", "status"),
        ("execution_count = 99", "execution_count"),
        ("lease_token = 'none'", "lease_token"),
        ("statements_done = 9", "statements_done"),
        ("server_id = NULL", "session_id"),
    ] {
        chain.admin_run(&format!("UPDATE {} SET {edit}", scene::LEDGER)).await;
        assert_contradictory(&chain, &plugin, edit, column).await;
        assert_eq!(edited_first(&chain).await, 1, "{edit}");
        chain.admin_run(&format!("DELETE FROM {}", scene::LEDGER)).await;
        let restore = format!("INSERT INTO {} SELECT * FROM as_it_was", scene::LEDGER);
        chain.admin_run(&restore).await;
    }
    // What no writer ever wrote is not read at all.
    for edit in ["status = 'DONE'", "direction = 'SIDEWAYS'", "content_hash = 'sha256:12'"] {
        chain.admin_run(&format!("UPDATE {} SET {edit}", scene::LEDGER)).await;
        let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
        assert_eq!((error.code(), retryable), ("ledger-unreadable", false), "{edit}");
        chain.admin_run(&format!("DELETE FROM {}", scene::LEDGER)).await;
        let restore = format!("INSERT INTO {} SELECT * FROM as_it_was", scene::LEDGER);
        chain.admin_run(&restore).await;
    }
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(ids(&chain).await, [1]);
    assert_eq!(edited_first(&chain).await, 0);
}
over_servers!(fault_71_a_row_edited_by_hand_is_refused_and_flagged);

async fn fault_72_a_restored_row_of_another_server_is_taken_over(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let request = forward("step-1");
    let mut connection = place.open().await;
    place.granted(&mut connection, &request).await;
    // The number of a session that is alive here and has nothing to do with it.
    let mut bystander = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
    let session: u64 = bystander.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
    for marker in ["tollgate-elsewhere", "unlocked-elsewhere"] {
        place
            .set(
                &request,
                &format!(
                    "status = 'RUNNING', session_id = {session}, session_marker = '{marker}', \
                     server_id = 'another-server@1'"
                ),
            )
            .await;
        place.expire(&request).await;
        let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
        assert_eq!(receipt.standing.words(), "lease expired, owner unknown");
        place.granted(&mut connection, &request).await;
    }
    bystander.query_drop("SELECT 1").await.unwrap();
    let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
    assert_eq!(rows, 1);
}
over_servers!(fault_72_a_restored_row_of_another_server_is_taken_over);

async fn fault_73_a_newer_ledger_is_read_and_not_written(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let request = forward("step-1");
    place.succeed(&request).await;
    place
        .execute(&format!(
            "ALTER TABLE {LEDGER} COMMENT='tollgate receipt ledger, schema version 2'"
        ))
        .await;
    let before = place.row(&request).await;
    let mut connection = place.open().await;
    for request in [&request, &forward("step-2")] {
        let error = place.ledger.claim(&mut connection, request).await.unwrap_err();
        assert_eq!(error.code(), "ledger-newer");
        assert!(!matches!(error, ClaimError::Fault(_)));
    }
    let page = place.ledger.list(&mut connection, &Filter::default(), None, 10).await.unwrap();
    assert_eq!(page.receipts.len(), 1);
    assert_eq!(place.row(&request).await, before);
    // Only the version stands in the way.
    place
        .execute(&format!(
            "ALTER TABLE {LEDGER} COMMENT='tollgate receipt ledger, schema version 1'"
        ))
        .await;
    let claim = place.claim(&mut connection, &request).await;
    assert!(matches!(claim, Claim::AlreadySucceeded(..)), "{claim:?}");
}
over_servers!(fault_73_a_newer_ledger_is_read_and_not_written);
