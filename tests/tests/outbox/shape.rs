//! An outbox that lost what order, fencing and keys rest on is not written.

use tollgate::outbox::{CompensateError, OutboxFault, RetryError, SubmitError, bootstrap};
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, plan, sql};

const TABLE: &str = "factory_plugin_control_outbox";

/// What is done to the table, and the codes of what is found.
const LOSSES: &[(&str, &[&str])] = &[
    ("ENGINE = MyISAM", &["outbox-engine"]),
    ("DROP KEY uk_factory_plugin_control_outbox_key", &["outbox-key"]),
    ("DROP KEY uk_factory_plugin_control_outbox_compensation", &["outbox-key"]),
    (
        "DROP KEY uk_factory_plugin_control_outbox_place, \
         ADD KEY uk_factory_plugin_control_outbox_place (plan_code, direction, position)",
        &["outbox-key"],
    ),
    (
        "DROP KEY ix_factory_plugin_control_outbox_due, \
         ADD KEY ix_factory_plugin_control_outbox_due (status, not_before, id)",
        &["outbox-key"],
    ),
    ("ADD UNIQUE KEY own (created_at)", &["outbox-key"]),
    (
        "MODIFY step_idempotency_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci \
         NOT NULL",
        &["outbox-column"],
    ),
    ("MODIFY not_before DATETIME NOT NULL", &["outbox-column"]),
    (
        "MODIFY last_error VARCHAR(999) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        &["outbox-column"],
    ),
    (
        "MODIFY lease_token VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL",
        &["outbox-column"],
    ),
    ("DROP COLUMN lost_count", &["outbox-column"]),
    ("ADD COLUMN own INT NOT NULL", &["outbox-column"]),
    ("COMMENT = 'tollgate control outbox, schema version 1'", &["outbox-version"]),
    ("COMMENT = 'tollgate control outbox, schema version 99'", &["outbox-version"]),
    ("COMMENT = 'mine'", &["outbox-version"]),
    (
        "ENGINE = MyISAM, DROP KEY uk_factory_plugin_control_outbox_key, DROP COLUMN completed_at",
        &["outbox-engine", "outbox-column", "outbox-key"],
    ),
];

fn codes(fault: &OutboxFault) -> Vec<&'static str> {
    let OutboxFault::Unfit(problems) = fault else { panic!("{fault}") };
    for problem in problems {
        assert!(fault.to_string().contains(&problem.to_string()), "{problem}: {fault}");
    }
    problems.iter().map(tollgate::outbox::OutboxProblem::code).collect()
}

#[tokio::test]
async fn every_difference_is_found_and_told_before_anything_is_written() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.run(&format!("CREATE TABLE whole LIKE {TABLE}")).await;
        for (change, expected) in LOSSES {
            fixture.run(&format!("ALTER TABLE {TABLE} {change}")).await;
            let mut connection = fixture.open().await;
            let fault = fixture.outbox.claim(&mut connection).await.unwrap_err();
            assert_eq!(codes(&fault), *expected, "{flavour}: {change}: {fault}");
            assert!(!fault.help().is_empty() && fault.code() == "outbox-unfit");
            let kept = bootstrap(&mut connection).await.unwrap_err();
            assert_eq!(kept.code(), "control-shape", "{flavour}: {change}");
            fixture.run(&format!("DROP TABLE {TABLE}")).await;
            fixture.run(&format!("CREATE TABLE {TABLE} LIKE whole")).await;
            fixture.outbox.check_shape(&mut connection).await.unwrap();
        }
    }
}

#[tokio::test]
async fn nothing_writes_an_outbox_that_is_not_as_it_must_be() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.run(&format!("ALTER TABLE {TABLE} ENGINE = MyISAM")).await;
    let mut connection = fixture.open().await;
    let submitted = fixture.outbox.submit(&mut connection, &plan("up", 1), &sql()).await;
    let Err(SubmitError::Fault(fault)) = submitted else { panic!("{submitted:?}") };
    assert_eq!(codes(&fault), ["outbox-engine"]);
    let back = fixture.outbox.compensate(&mut connection, &"up".parse().unwrap(), None).await;
    let Err(CompensateError::Fault(fault)) = back else { panic!("{back:?}") };
    assert_eq!(codes(&fault), ["outbox-engine"]);
    let retried = fixture.outbox.retry(&mut connection, &"up:1".parse().unwrap()).await;
    let Err(RetryError::Fault(fault)) = retried else { panic!("{retried:?}") };
    assert_eq!(codes(&fault), ["outbox-engine"]);
    assert_eq!(fixture.statuses().await, []);
}

#[tokio::test]
async fn an_outbox_that_is_not_there_names_the_command() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.run(&format!("DROP TABLE {TABLE}")).await;
    let mut connection = fixture.open().await;
    let fault = fixture.outbox.claim(&mut connection).await.unwrap_err();
    assert_eq!(
        (codes(&fault), fault.help()),
        (vec!["outbox-missing"], "run `tollgate init control`")
    );
    assert!(bootstrap(&mut connection).await.unwrap(), "it is made");
    assert_eq!(fixture.outbox.claim(&mut connection).await.unwrap().map(drop), None);
}
