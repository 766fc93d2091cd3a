//! 64 to 66: what the same statement means there. 67 is in `writers`.

use tollgate::executor::{Drift, ExecutionError};
use tollgate::ids::Direction;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::over_servers;
use tollgate_tests::place::Place;
use tollgate_tests::server::Flavour;

use crate::scene::{applied, ids, refused, stage, stage_on, tollgate_with};

async fn fault_64_a_session_is_pinned_against_the_servers_defaults(flavour: Flavour) {
    let mut server = flavour.builder();
    for option in [
        "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
        "--character-set-server=latin1",
        "--transaction-isolation=SERIALIZABLE",
        "--default-time-zone=+05:00",
        "--lc-time-names=de_DE",
        "--completion-type=CHAIN",
        "--autocommit=0",
        "--div-precision-increment=9",
        "--init-connect=SET foreign_key_checks=0, unique_checks=0, sql_safe_updates=1, sql_notes=0",
    ] {
        server = server.arg(option);
    }
    let place = Place::of(server).await;
    let connection = place.open().await;
    let value = |names: &[&str]| {
        let value = names.iter().find_map(|name| connection.settings().get(*name));
        value.map(|value| value.to_ascii_uppercase())
    };
    for (names, wanted) in [
        (&["sql_mode"][..], "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
        (&["character_set_client"], "UTF8MB4"),
        (&["character_set_connection"], "UTF8MB4"),
        (&["character_set_results"], "UTF8MB4"),
        (&["collation_connection"], "UTF8MB4_GENERAL_CI"),
        (&["time_zone"], "+00:00"),
        (&["autocommit"], "ON"),
        (&["transaction_isolation", "tx_isolation"], "READ-COMMITTED"),
        (&["completion_type"], "NO_CHAIN"),
        (&["lock_wait_timeout"], "5"),
        (&["innodb_lock_wait_timeout"], "5"),
        (&["wait_timeout"], "600"),
        (&["foreign_key_checks"], "ON"),
        (&["unique_checks"], "ON"),
        (&["sql_safe_updates"], "OFF"),
        (&["sql_notes"], "ON"),
        (&["default_storage_engine"], "INNODB"),
        (&["lc_time_names"], "EN_US"),
        (&["div_precision_increment"], "4"),
    ] {
        assert_eq!(value(names).as_deref(), Some(wanted), "{names:?}");
    }
    assert!(connection.settings().contains_key("lower_case_table_names"));
    assert!(connection.max_allowed_packet().unwrap() > 0);
    connection.close().await;
}
over_servers!(fault_64_a_session_is_pinned_against_the_servers_defaults);

/// Delivers a `CREATE TABLE IF NOT EXISTS`, which must meet something else, and gives how it differs.
async fn drift(chain: &Chain, plan: &str, create: &str) -> Drift {
    let plugin = Plugin::install(create, None);
    let step = plugin.step(plan, Direction::Forward);
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    assert_eq!((error.code(), retryable), ("drift", false));
    let failed = chain.receipt(&format!("{plan}:1")).await.unwrap();
    assert_eq!(failed, ("FAILED".to_owned(), 1, Some("drift".to_owned())));
    match error {
        ExecutionError::Drift { statement: 0, drift } => drift,
        other => panic!("{other:?}"),
    }
}

async fn fault_65_an_object_of_another_shape_is_not_success(flavour: Flavour) {
    // A server that keeps no note of it, and would rather not make one.
    let quiet = flavour.builder().arg("--max-error-count=0").arg("--init-connect=SET sql_notes=0");
    let chain = stage_on(quiet).await;
    let create = "CREATE TABLE IF NOT EXISTS thing (id INT NOT NULL PRIMARY KEY, \
                  `Word` VARCHAR(20) DEFAULT '(, `z`', rank_no INT, KEY k (rank_no)) ENGINE=InnoDB";
    for (plan, there, drop, expected) in [
        ("a", "CREATE VIEW thing AS SELECT id FROM entry", "DROP VIEW thing", Drift::NotATable),
        (
            "b",
            "CREATE TABLE thing (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
            "DROP TABLE thing",
            Drift::ColumnsMissing { count: 2 },
        ),
    ] {
        chain.admin_run(there).await;
        assert_eq!(drift(&chain, plan, create).await, expected);
        // What is there was not touched, and with it away the same step is applied.
        chain.admin_run(drop).await;
        let plugin = Plugin::install(create, None);
        let step = plugin.step(plan, Direction::Forward);
        applied(&chain.deliver(&plugin, &step).await);
        chain.admin_run("DROP TABLE thing").await;
    }
    chain.admin_run("CREATE TABLE thing (number INT PRIMARY KEY) ENGINE=InnoDB").await;
    let like = "CREATE TABLE IF NOT EXISTS thing LIKE entry";
    assert_eq!(drift(&chain, "c", like).await, Drift::ColumnsMissing { count: 2 });
}
over_servers!(fault_65_an_object_of_another_shape_is_not_success);

async fn fault_65_the_same_table_is_met_without_complaint(flavour: Flavour) {
    let chain = stage(flavour).await;
    let create = "CREATE TABLE IF NOT EXISTS thing (ID INTEGER NOT NULL PRIMARY KEY, w CHAR(3)) \
                  ENGINE=InnoDB; INSERT IGNORE INTO thing (id, w) VALUES (1, 'abc')";
    // Spelt otherwise, and with a column of an administrator's besides.
    chain
        .admin_run(
            "CREATE TABLE thing (id INT NOT NULL, W CHAR(3), seen INT NULL, PRIMARY KEY (id)) \
             ENGINE=InnoDB",
        )
        .await;
    let plugin = Plugin::install(create, None);
    applied(&chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert_eq!(chain.rows::<u32>("SELECT id FROM thing").await, [1]);
}
over_servers!(fault_65_the_same_table_is_met_without_complaint);

async fn fault_66_data_that_does_not_fit_is_refused_or_recorded(flavour: Flavour) {
    let chain = stage(flavour).await;
    let long = "a word of more than twenty characters";
    let strict = format!(
        "INSERT INTO entry (id, word) VALUES (3, '{long}') ON DUPLICATE KEY UPDATE id = VALUES(id)"
    );
    let plugin = Plugin::install(&strict, None);
    let (error, retryable) =
        refused(chain.deliver(&plugin, &plugin.step("strict", Direction::Forward)).await);
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1406, false));
    assert_eq!(ids(&chain).await, [2]);

    // `IGNORE` makes warnings of errors in strict mode too: the server cuts, and it is recorded.
    let ignored = format!("INSERT IGNORE INTO entry (id, word) VALUES (3, '{long}')");
    let plugin = Plugin::install(&ignored, None);
    let release = plugin.release_folder("1.0.0");
    let run = tollgate_with(
        &chain,
        &[("TOLLGATE_LOG", "info")],
        &["execute", release.to_str().unwrap(), "schema", "--step-key", "cut"],
    );
    assert_eq!(run.code(), Some(0), "{} {}", run.stdout, run.stderr);
    assert_eq!(ids(&chain).await, [2, 3]);
    assert!(run.stderr.contains("warning_codes=[1265]"), "{}", run.stderr);
    assert!(!(run.stdout + &run.stderr).contains(long));
}
over_servers!(fault_66_data_that_does_not_fit_is_refused_or_recorded);
