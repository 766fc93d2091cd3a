//! 44 and 45: servers that keep less than others.

use tollgate::ids::Direction;
use tollgate_tests::chain::Plugin;
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::scene::{LEDGER, applied, ids, refused, stage, stage_on, status_keys, tables, tollgate};

async fn fault_44_weak_durability_is_said_in_status_and_doctor(flavour: Flavour) {
    // The kit's servers write to the disk once a second.
    let weak = stage_on(
        flavour
            .builder()
            .arg("--server-id=7")
            .arg("--log-bin=weak")
            .arg("--binlog-format=ROW")
            .arg("--sync-binlog=0"),
    )
    .await;
    let keys = status_keys(&weak);
    let said = keys.iter().filter(|key| *key == "weak-durability").count();
    assert_eq!(said, 2, "the log of InnoDB and the binary log: {keys:?}");
    let doctor = tollgate(&weak, &["doctor"]);
    assert_eq!(doctor.code(), Some(0), "{}", doctor.stdout);
    for variable in ["innodb_flush_log_at_trx_commit", "sync_binlog"] {
        assert!(doctor.stdout.contains(variable), "{}", doctor.stdout);
    }
    let human = tollgate(&weak, &["status"]);
    assert!(human.stdout.contains("weak-durability"), "{}", human.stdout);

    let strong = stage_on(flavour.builder().durable()).await;
    let keys = status_keys(&strong);
    assert!(!keys.contains(&"weak-durability".to_owned()), "{keys:?}");
}
over_servers!(fault_44_weak_durability_is_said_in_status_and_doctor);

const STEPS: &str = "CREATE TABLE IF NOT EXISTS kept (id INT PRIMARY KEY) ENGINE=InnoDB;
                     INSERT IGNORE INTO kept (id) VALUES (1);
                     DELETE FROM entry WHERE id = 2;";

/// What such a crash leaves: the rows are taken away as the lost commit would have.
async fn fault_44_a_lost_receipt_costs_a_second_run_and_no_more(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(STEPS, None);
    let step = plugin.step("up", Direction::Forward);
    applied(&chain.deliver(&plugin, &step).await);
    chain.admin_run(&format!("DELETE FROM {LEDGER}")).await;
    chain.admin_run("INSERT INTO entry VALUES (2, 'two')").await;
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(tables(&chain).await, ["entry", "kept"]);
    assert_eq!(chain.rows::<u32>("SELECT id FROM kept").await, [1]);
    assert_eq!(ids(&chain).await, [] as [u32; 0]);
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 1, None));
}
over_servers!(fault_44_a_lost_receipt_costs_a_second_run_and_no_more);

/// Supported all the same, since the subset is repeatable: a warning, and not a refusal.
async fn fault_45_a_server_without_atomic_ddl_is_warned_of(flavour: Flavour) {
    let chain = stage(flavour).await;
    let said = status_keys(&chain).contains(&"ddl-not-atomic".to_owned());
    assert_eq!(said, flavour == Flavour::Mysql56);
    let doctor = tollgate(&chain, &["doctor"]);
    assert_eq!(doctor.code(), Some(0), "{}", doctor.stdout);
    assert_eq!(doctor.stdout.contains("ddl-not-atomic"), said, "{}", doctor.stdout);
    let plugin = Plugin::install(STEPS, None);
    applied(&chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
}
over_servers!(fault_45_a_server_without_atomic_ddl_is_warned_of);

async fn fault_45_tables_are_transactional_whatever_the_default_is(flavour: Flavour) {
    let chain = stage_on(flavour.builder().arg("--default-storage-engine=MyISAM")).await;
    chain.admin_run("CREATE TABLE by_default (id INT PRIMARY KEY)").await;
    let engine = |table: &str| {
        format!(
            "SELECT engine FROM information_schema.tables WHERE table_schema = 'plugin_preview' \
             AND table_name = '{table}'"
        )
    };
    assert_eq!(chain.value::<String>(&engine("by_default")).await, "MyISAM");
    let plugin = Plugin::install("CREATE TABLE IF NOT EXISTS made (id INT PRIMARY KEY)", None);
    applied(&chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert_eq!(chain.value::<String>(&engine("made")).await, "InnoDB");
}
over_servers!(fault_45_tables_are_transactional_whatever_the_default_is);

/// Its rows could not be undone, so none is written.
async fn fault_45_a_table_without_transactions_is_not_written_to(flavour: Flavour) {
    let chain = stage(flavour).await;
    chain.admin_run("CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM").await;
    let payload = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one'); \
                   INSERT IGNORE INTO old (id) VALUES (1);";
    let plugin = Plugin::install(payload, None);
    let step = plugin.step("up", Direction::Forward);
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    assert_eq!((error.code(), error.statement(), retryable), ("drift", Some(1), false));
    assert!(error.help().contains("ENGINE=InnoDB"), "{}", error.help());
    let rows: u32 = chain.value("SELECT COUNT(*) FROM old").await;
    assert_eq!(rows, 0, "it was written to");
    assert_eq!(ids(&chain).await, [2]);
    chain.admin_run("ALTER TABLE old ENGINE=InnoDB").await;
    applied(&chain.deliver(&plugin, &step).await);
    assert_eq!(ids(&chain).await, [1, 2]);
}
over_servers!(fault_45_a_table_without_transactions_is_not_written_to);
