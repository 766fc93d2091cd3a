//! Completing, failing and keeping a lease: only by the token, and together with the payload.

use std::time::Duration;

use tollgate::ledger::{CompleteError, FailError, Failure, HoldError, RenewError};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEDGER, Place, failure, forward};

const FOREIGN_TOKEN: &str = "lease_token = 'someone-else', generation = generation + 1";

#[tokio::test]
async fn the_receipt_and_the_payload_commit_together() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        assert_eq!(place.witnesses().await, 0);
        let receipt = place.ledger.complete(&mut connection, &lease).await.unwrap();
        assert_eq!(receipt.as_str(), "sql:preview:step-1");
        assert_eq!(place.witnesses().await, 1, "{flavour}");
        let row = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
        assert_eq!(row.standing.words(), "succeeded");
        assert_eq!(row.statements_done, 3);
        assert_eq!(row.external_receipt, Some(receipt));
        assert!(row.completed_at.is_some());
    }
}

#[tokio::test]
async fn a_stale_holder_cannot_complete_and_its_dml_is_rolled_back() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        place.set(&request, FOREIGN_TOKEN).await;
        let before = place.row(&request).await;
        let error = place.ledger.complete(&mut connection, &lease).await.unwrap_err();
        assert_eq!(error, CompleteError::LeaseLost, "{flavour}");
        // Not merely invisible: the session commits, and there is nothing to commit.
        wire.say("COMMIT").await;
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        assert_eq!(place.row(&request).await, before);
        let error = place.ledger.fail(&mut connection, &lease, &failure()).await.unwrap_err();
        assert_eq!(error, FailError::LeaseLost);
        let error = place.ledger.check_held(&mut connection, &lease).await.unwrap_err();
        assert_eq!(error, HoldError::LeaseLost);
        assert_eq!(place.row(&request).await, before);
    }
}

#[tokio::test]
async fn a_failure_is_recorded_without_what_the_server_quoted() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        place.ledger.fail(&mut connection, &lease, &failure()).await.unwrap();
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        assert_eq!(place.column(&request, "status").await, "FAILED");
        assert_eq!(place.column(&request, "last_error_code").await, "server-1062");
        let text = place.column(&request, "last_error").await;
        assert_eq!(text, "statement 2: Duplicate entry …", "{flavour}");
        assert!(!place.row(&request).await.contains("canary"));
        // Recording it twice is recording it once.
        place.ledger.fail(&mut connection, &lease, &failure()).await.unwrap();
    }
}

#[tokio::test]
async fn an_endless_failure_fits_its_columns() {
    let place = Place::on(Flavour::MariaDb).await;
    let mut connection = place.open().await;
    let request = forward("step-1");
    let lease = place.granted(&mut connection, &request).await;
    let failure = Failure {
        code: "x".repeat(1000),
        statement: Some(u32::MAX),
        message: "wörd \\ ' ".repeat(100_000),
        remark: None,
        settled: false,
    };
    place.ledger.fail(&mut connection, &lease, &failure).await.unwrap();
    assert_eq!(place.column(&request, "status").await, "FAILED");
}

#[tokio::test]
async fn a_failure_is_never_written_over_success() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        let before = place.row(&request).await;
        let error = place.ledger.fail(&mut connection, &lease, &failure()).await.unwrap_err();
        assert_eq!(error, FailError::AlreadySucceeded, "{flavour}");
        // Completing twice is completing once.
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        assert_eq!(place.row(&request).await, before);
    }
}

#[tokio::test]
async fn a_lease_is_renewed_from_a_second_connection_while_the_payload_runs() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        let mut second = place.open().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        place.expire(&request).await;
        let over = place.ledger.check_held(&mut connection, &lease).await.unwrap_err();
        assert_eq!(over, HoldError::LeaseOver, "{flavour}");
        // Nobody took it over, so a late renewal is a renewal; a second one right after it too.
        place.ledger.renew(&mut second, &lease, 2).await.unwrap();
        place.ledger.renew(&mut second, &lease, 2).await.unwrap();
        place.ledger.check_held(&mut connection, &lease).await.unwrap();
        assert_eq!(place.column(&request, "statements_done").await, "2");
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        let error = place.ledger.renew(&mut second, &lease, 3).await.unwrap_err();
        assert_eq!(error, RenewError::Over, "{flavour}");
    }
}

#[tokio::test]
async fn a_lost_lease_is_not_renewed() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, mut second) = (place.open().await, place.open().await);
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        place.set(&request, FOREIGN_TOKEN).await;
        let error = place.ledger.renew(&mut second, &lease, 1).await.unwrap_err();
        assert_eq!(error, RenewError::LeaseLost, "{flavour}");
        place.execute(&format!("DELETE FROM {LEDGER}")).await;
        let error = place.ledger.renew(&mut second, &lease, 1).await.unwrap_err();
        assert_eq!(error, RenewError::RowLost, "{flavour}");
    }
}

#[tokio::test]
async fn a_lease_ends_by_the_databases_clock() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, mut other) = (place.open().await, place.open().await);
        let mut request = forward("step-1");
        request.lease = Duration::from_secs(1);
        let lease = place.granted(&mut connection, &request).await;
        place.ledger.check_held(&mut connection, &lease).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let error = place.ledger.check_held(&mut connection, &lease).await.unwrap_err();
        assert_eq!(error, HoldError::LeaseOver, "{flavour}");
        place.granted(&mut other, &request).await;
    }
}
