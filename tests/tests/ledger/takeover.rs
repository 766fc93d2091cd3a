//! Taking a step over from a holder that died: nothing of it may still run.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::ledger::{BusyReason, Claim, ClaimError, ClaimRequest, Remains, Standing};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{CATALOG, CONTROL_USER, LEDGER, PASSWORD, Place, USER, forward};
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

/// Makes the step's row name a session of the test's as its dead holder.
async fn impersonate(
    place: &Place,
    request: &ClaimRequest,
    holder: &mut Conn,
    marker: &str,
) -> u64 {
    let mut connection = place.open().await;
    place.granted(&mut connection, request).await;
    connection.close().await;
    let session: u64 = holder.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
    if marker.starts_with("tollgate-") {
        let taken: Option<u8> =
            holder.query_first(format!("SELECT GET_LOCK('{marker}', 0)")).await.unwrap();
        assert_eq!(taken, Some(1));
    }
    place.set(request, &format!("session_id = {session}, session_marker = '{marker}'")).await;
    place.expire(request).await;
    session
}

async fn remains(place: &Place, request: &ClaimRequest) -> Remains {
    let mut connection = place.open().await;
    let claim = place.claim(&mut connection, request).await;
    connection.close().await;
    match claim {
        Claim::Busy(busy) => match busy.reason {
            BusyReason::PreviousSession(remains) => remains,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_of_another_account_is_waited_for_and_said_to_be_in_the_way() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.server.connect(CONTROL_USER, PASSWORD, None).await;
        let session = impersonate(&place, &request, &mut holder, "tollgate-other").await;
        for _ in 0..2 {
            let remains = remains(&place, &request).await;
            assert_eq!(remains, Remains::NotVisible { session }, "{flavour}");
            // It gave the lease back and counted nothing, so waiting costs the step nothing.
            assert_eq!(place.column(&request, "execution_count").await, "1");
            assert_eq!(place.column(&request, "session_id").await, session.to_string());
        }
        holder.query_drop("SELECT 1").await.unwrap();
        holder.disconnect().await.unwrap();
        place.server.assert_session_count(CONTROL_USER, 0).await;
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &request).await;
        assert_eq!(lease.execution_count(), 2, "{flavour}");
    }
}

#[tokio::test]
async fn a_session_in_another_catalog_is_not_killed() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.server.connect(USER, PASSWORD, None).await;
        let session = impersonate(&place, &request, &mut holder, "tollgate-elsewhere").await;
        let remains = remains(&place, &request).await;
        assert_eq!(remains, Remains::OtherCatalog { session }, "{flavour}");
        holder.query_drop("SELECT 1").await.unwrap();
    }
}

/// Where the server refuses user-level locks, or a proxy made the number up, the number alone does
/// not make a session the holder's.
#[tokio::test]
async fn a_session_that_only_has_the_recorded_number_is_not_killed() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
        let session = impersonate(&place, &request, &mut holder, "unlocked-abc").await;
        let remains = remains(&place, &request).await;
        assert_eq!(remains, Remains::Unconfirmed { session }, "{flavour}");
        holder.query_drop("SELECT 1").await.unwrap();
        // Its name in the statement it runs does.
        let running =
            tokio::spawn(
                async move { holder.query_drop("SELECT /* unlocked-abc */ SLEEP(60)").await },
            );
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut connection = place.open().await;
        place.granted(&mut connection, &request).await;
        assert!(running.await.unwrap().is_err(), "{flavour}");
        assert!(!place.has_session(session).await);
    }
}

#[tokio::test]
async fn a_restored_row_of_another_server_is_taken_over() {
    for flavour in Flavour::available() {
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
            place.granted(&mut connection, &request).await;
        }
        bystander.query_drop("SELECT 1").await.unwrap();
        let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
        assert_eq!(rows, 1, "{flavour}");
    }
}

#[tokio::test]
async fn a_takeover_costs_three_round_trips_when_the_holder_is_gone() {
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
        // Reading, writing, and the look at the other direction after the commit.
        assert_eq!(wire.asked() - asked, 3, "{flavour}");
    }
}

#[tokio::test]
async fn a_restart_of_the_server_leaves_no_session_behind() {
    for flavour in Flavour::available() {
        let mut place = Place::on(flavour).await;
        let request = forward("step-1");
        let mut holder = place.open().await;
        place.granted(&mut holder, &request).await;
        place.server.kill9();
        place.server.start_again();
        place.expire(&request).await;
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &request).await;
        assert_eq!(lease.execution_count(), 2, "{flavour}");
    }
}
