//! Taking a step over from a holder that died: nothing of it may still run.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use tollgate::ledger::{Claim, ClaimError, ClaimRequest, Standing};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEDGER, Place, forward};
use tollgate_tests::wire::Cut;

/// Ten billion combinations, then a row: it ends long after the test unless somebody ends it. A sum
/// of them all, since a server that only has to count them multiplies.
const LONG: &str = "INSERT INTO witness SELECT SUM(SQRT(a.n + b.n + c.n + d.n + e.n + f.n + g.n + \
                    h.n + i.n + j.n)) FROM digit a, digit b, digit c, digit d, digit e, digit f, \
                    digit g, digit h, digit i, digit j";

async fn with_digits(place: &Place) {
    place.execute("CREATE TABLE plugin_preview.digit (n INT PRIMARY KEY) ENGINE=InnoDB").await;
    place
        .execute("INSERT INTO plugin_preview.digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
        .await;
}

/// A holder that claimed the step, started a long statement and was killed.
async fn zombie(place: &Place, request: &ClaimRequest) -> u64 {
    let (mut holder, wire) = place.open_wired().await;
    let lease = place.granted(&mut holder, request).await;
    wire.leave(LONG).await;
    drop(holder);
    tokio::time::sleep(Duration::from_millis(300)).await;
    // The fault fired: the client is gone and its statement is not.
    let running: Option<String> = place
        .one(&format!(
            "SELECT info FROM information_schema.processlist WHERE id = {}",
            lease.session_id()
        ))
        .await;
    assert!(running.is_some_and(|text| text.contains("INSERT INTO witness")));
    lease.session_id()
}

#[tokio::test]
async fn a_zombies_statement_is_ended_before_its_step_is_taken_over() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        with_digits(&place).await;
        let request = forward("step-1");
        let session = zombie(&place, &request).await;
        let mut connection = place.open().await;
        let claim = place.claim(&mut connection, &request).await;
        assert!(matches!(claim, Claim::Busy(_)), "its lease is open: {claim:?}");
        place.expire(&request).await;
        let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
        assert_eq!(receipt.standing, Standing::PossiblyStillRunning, "{flavour}");
        let lease = place.granted(&mut connection, &request).await;
        assert!(!place.has_session(session).await, "{flavour}");
        assert_eq!(lease.execution_count(), 2);
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        let holder = place.column(&request, "session_id").await;
        assert_eq!(holder, connection.session_id().to_string());
        place.ledger.check_held(&mut connection, &lease).await.unwrap();
        place.ledger.complete(&mut connection, &lease).await.unwrap();
    }
}

#[tokio::test]
async fn an_idle_holder_is_ended_with_its_open_transaction() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut holder, wire) = place.open_wired().await;
        let request = forward("step-1");
        let lease = place.granted(&mut holder, &request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        place.expire(&request).await;
        let mut connection = place.open().await;
        place.granted(&mut connection, &request).await;
        assert!(!place.has_session(lease.session_id()).await, "{flavour}");
        // The holder was only paused, and comes back.
        let error = place.ledger.complete(&mut holder, &lease).await.unwrap_err();
        assert_eq!(error.code(), "completion-unknown", "{flavour}");
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        assert_eq!(place.column(&request, "status").await, "RUNNING");
    }
}

/// A holder that stopped between its completion and its COMMIT keeps the row locked.
#[tokio::test]
async fn a_holder_that_stopped_before_its_commit_is_ended_and_taken_over() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let (mut holder, wire) = place.open_wired().await;
        let lease = place.granted(&mut holder, &request).await;
        place.expire(&request).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        wire.say("UPDATE factory_plugin_target_receipt SET status = 'SUCCEEDED'").await;

        let mut connection = place.open().await;
        let taken = place.granted(&mut connection, &request).await;
        assert!(!place.has_session(lease.session_id()).await, "{flavour}");
        assert_eq!(taken.execution_count(), 2, "{flavour}");
        assert_eq!(place.column(&request, "status").await, "RUNNING", "{flavour}");
        place.ledger.complete(&mut holder, &lease).await.unwrap_err();
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        place.ledger.check_held(&mut connection, &taken).await.unwrap();
    }
}

/// Whoever locks the row without being its holder is no one to end; the claim leaves nothing behind.
#[tokio::test]
async fn a_row_that_another_keeps_locked_is_not_claimed() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.open().await;
        place.granted(&mut holder, &request).await;
        holder.close().await;
        place.expire(&request).await;
        let mut person = place.server.admin().await;
        person.query_drop("START TRANSACTION").await.unwrap();
        person.query_drop(format!("SELECT * FROM {LEDGER} FOR UPDATE")).await.unwrap();

        let mut connection = place.open().await;
        let error = place.ledger.claim(&mut connection, &request).await.unwrap_err();
        assert!(matches!(error, ClaimError::Fault(_)) && error.is_transient(), "{error:?}");
        person.query_drop("ROLLBACK").await.unwrap();
        assert_eq!(place.column(&request, "execution_count").await, "1", "{flavour}");
        place.granted(&mut connection, &request).await;
    }
}

#[tokio::test]
async fn a_takeover_that_died_half_way_is_finished_by_the_next() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        with_digits(&place).await;
        let request = forward("step-1");
        let session = zombie(&place, &request).await;
        place.expire(&request).await;
        let generation = place.column(&request, "generation").await;
        let (mut dying, wire) = place.open_wired().await;
        wire.cut(Cut::Before, "KILL");
        let error = place.ledger.claim(&mut dying, &request).await.unwrap_err();
        assert!(matches!(error, ClaimError::AnswerLost { .. }), "{error:?}");
        assert!(wire.was_cut());
        drop(dying);
        assert!(place.has_session(session).await);
        assert_ne!(place.column(&request, "generation").await, generation);
        // It took the lease and ran nothing, so nothing was counted and the zombie is still known.
        assert_eq!(place.column(&request, "execution_count").await, "1");
        assert_eq!(place.column(&request, "session_id").await, session.to_string());
        place.expire(&request).await;
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &request).await;
        assert_eq!(lease.execution_count(), 2, "{flavour}");
        assert!(!place.has_session(session).await, "{flavour}");
        assert_eq!(place.witnesses().await, 0, "{flavour}");
    }
}

#[tokio::test]
async fn a_takeover_costs_two_round_trips_when_the_holder_is_gone() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut dead = place.open().await;
        place.granted(&mut dead, &request).await;
        dead.close().await;
        place.expire(&request).await;
        let (mut connection, wire) = place.open_wired().await;
        place.granted(&mut connection, &forward("other")).await;
        let asked = wire.asked();
        place.granted(&mut connection, &request).await;
        // Reading, and writing with the look at the other direction behind it.
        assert_eq!(wire.asked() - asked, 2, "{flavour}");
    }
}
