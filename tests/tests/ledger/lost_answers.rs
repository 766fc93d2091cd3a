//! Answers that never came: what is done is found out, nothing is sent twice.

use tollgate::ledger::{Claim, ClaimError, CompleteError, Inspection, PendingClaim};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEDGER, Place, failure, forward, granted};
use tollgate_tests::wire::Cut;

async fn lost_claim(place: &Place, cut: Cut, text: &str) -> PendingClaim {
    let (mut connection, wire) = place.open_wired().await;
    wire.cut(cut, text);
    let error = place.ledger.claim(&mut connection, &forward("step-1")).await.unwrap_err();
    assert!(wire.was_cut());
    match error {
        ClaimError::AnswerLost { pending, .. } => pending,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_ours_by_its_token() {
    for flavour in Flavour::available() {
        for cut in [Cut::Before, Cut::After] {
            let place = Place::on(flavour).await;
            let pending = lost_claim(&place, cut, "INSERT INTO factory_plugin").await;
            let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
            assert_eq!(rows, u64::from(cut == Cut::After), "{flavour}");
            let mut connection = place.open().await;
            let claim = place.ledger.resume(&mut connection, &forward("step-1"), pending).await;
            let lease = granted(claim.unwrap());
            assert_eq!(lease.session_id(), connection.session_id());
            place.ledger.check_held(&mut connection, &lease).await.unwrap();
            let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
            assert_eq!(rows, 1, "{flavour} {cut:?}");
        }
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_not_ours_when_another_took_the_step() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let pending = lost_claim(&place, Cut::Before, "INSERT INTO factory_plugin").await;
        let (mut other, mut connection) = (place.open().await, place.open().await);
        place.granted(&mut other, &forward("step-1")).await;
        let claim = place.ledger.resume(&mut connection, &forward("step-1"), pending).await;
        assert!(matches!(claim, Ok(Claim::Busy(_))), "{flavour} {claim:?}");
    }
}

/// A write of the claim that arrives after its connection was given up must not change the row any
/// more: with the same token it would name a session that is gone, and hide the one that works.
#[tokio::test]
async fn a_claim_that_is_resumed_ends_the_session_where_its_write_may_still_arrive() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.open().await;
        place.granted(&mut holder, &request).await;
        place.expire(&request).await;

        let (mut connection, wire) = place.open_wired().await;
        let lost = connection.session_id();
        wire.cut(Cut::Underway, "execution_count = execution_count + 1");
        let error = place.ledger.claim(&mut connection, &request).await.unwrap_err();
        let ClaimError::AnswerLost { pending, .. } = error else { panic!("{error:?}") };
        assert!(wire.was_cut());
        assert_eq!(place.column(&request, "execution_count").await, "1", "it has arrived");

        let mut fresh = place.open().await;
        let claim = place.ledger.resume(&mut fresh, &request, pending).await;
        let lease = granted(claim.unwrap());
        assert!(!place.has_session(lost).await, "{flavour}: the lost session is still there");
        assert!(!wire.arrive().await, "{flavour}: the server carried out what arrived late");
        assert_eq!(place.column(&request, "session_id").await, lease.session_id().to_string());
        assert_eq!(place.column(&request, "execution_count").await, "2", "{flavour}");
        place.ledger.check_held(&mut fresh, &lease).await.unwrap();
    }
}

#[tokio::test]
async fn a_commit_without_an_answer_is_told_by_the_receipt() {
    for flavour in Flavour::available() {
        for cut in [Cut::Before, Cut::After] {
            let place = Place::on(flavour).await;
            let (mut connection, wire) = place.open_wired().await;
            let request = forward("step-1");
            let lease = place.granted(&mut connection, &request).await;
            wire.say("SET autocommit = 0").await;
            wire.say("INSERT INTO witness VALUES (1)").await;
            wire.cut(cut, "COMMIT");
            let error = place.ledger.complete(&mut connection, &lease).await.unwrap_err();
            assert!(matches!(error, CompleteError::Unknown(_)), "{error:?}");
            assert!(wire.was_cut());
            drop(connection);
            let mut fresh = place.open().await;
            let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
            if cut == Cut::After {
                let receipt = lease.external_receipt().clone();
                assert_eq!(inspection, Inspection::Completed(receipt), "{flavour}");
                assert_eq!(place.witnesses().await, 1, "{flavour}");
            } else {
                assert_eq!(inspection, Inspection::NotCommitted, "{flavour}");
                assert_eq!(place.witnesses().await, 0, "{flavour}");
                place.ledger.fail(&mut fresh, &lease, &failure()).await.unwrap();
                let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
                assert_eq!(inspection, Inspection::FailureRecorded, "{flavour}");
            }
        }
    }
}

/// The old session still has its transaction open when the new one looks: it must not be able to
/// commit afterwards.
#[tokio::test]
async fn an_inspection_ends_the_session_whose_commit_may_still_come() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        let mut fresh = place.open().await;
        let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
        assert_eq!(inspection, Inspection::NotCommitted, "{flavour}");
        assert!(!place.has_session(lease.session_id()).await, "{flavour}");
        place.ledger.complete(&mut connection, &lease).await.unwrap_err();
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        assert_eq!(place.column(&request, "status").await, "RUNNING");
    }
}

#[tokio::test]
async fn an_inspection_finds_that_another_has_the_step() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &request).await;
        place.expire(&request).await;
        let mut other = place.open().await;
        let taken = place.granted(&mut other, &request).await;
        let mut fresh = place.open().await;
        let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
        assert_eq!(inspection, Inspection::LeaseLost, "{flavour}");
        let receipt = place.ledger.complete(&mut other, &taken).await.unwrap();
        let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
        assert_eq!(inspection, Inspection::CompletedByOther(receipt), "{flavour}");
        place.execute(&format!("DELETE FROM {LEDGER}")).await;
        let inspection = place.ledger.inspect(&mut fresh, &lease).await.unwrap();
        assert_eq!(inspection, Inspection::RowLost, "{flavour}");
    }
}
