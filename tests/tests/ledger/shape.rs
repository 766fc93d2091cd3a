//! A ledger that lost what receipts rest on is refused by name; the script is safe to repeat.

use tollgate::ledger::{TARGET_SCRIPT, bootstrap};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEDGER, Place, forward};

#[tokio::test]
async fn the_script_is_safe_to_repeat() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        place.succeed(&request).await;
        let before = place.row(&request).await;
        let mut connection = place.open().await;
        bootstrap(&mut connection).await.unwrap();
        assert_eq!(place.row(&request).await, before, "{flavour}");
    }
}

/// As an operator runs it: by an administrator, whatever the server's defaults are.
#[tokio::test]
async fn the_script_does_not_depend_on_the_servers_defaults() {
    for flavour in Flavour::available() {
        for option in [
            "--character-set-server=latin1",
            "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT",
            "--lower-case-table-names=1",
        ] {
            let mut place = Place::without_ledger(flavour).await;
            if option.contains("lower-case") && flavour == Flavour::Mysql9 {
                // MySQL 8 and later fix it when the data directory is made.
                continue;
            }
            place.server.restart_with(option);
            let mut connection = place.open().await;
            bootstrap(&mut connection).await.unwrap();
            place.granted(&mut connection, &forward("step-1")).await;
        }
    }
}

#[tokio::test]
async fn what_does_not_touch_the_receipts_is_not_refused() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        for change in [
            "ADD COLUMN note VARCHAR(10) NULL",
            "ADD KEY by_time (created_at)",
            "MODIFY plugin_version VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL",
        ] {
            place.execute(&format!("ALTER TABLE {LEDGER} {change}")).await;
        }
        let mut connection = place.open().await;
        place.granted(&mut connection, &forward("step-1")).await;
    }
}

#[test]
fn the_library_carries_the_script_that_operators_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/factory_plugin_sql_target.sql");
    assert_eq!(std::fs::read_to_string(path).unwrap(), TARGET_SCRIPT);
}
