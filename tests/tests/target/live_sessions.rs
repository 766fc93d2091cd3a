//! What a takeover asks: is the old session there, whose is it, end it.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::target::KillOutcome;
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONTROL_USER, PASSWORD, Place, USER, open};

#[tokio::test]
async fn a_holders_session_is_found_and_ended_by_the_same_account() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let holder = open(&place.config()).await.unwrap();
        let mut taker = open(&place.config()).await.unwrap();
        let found =
            taker.live_sessions().await.unwrap().find(holder.session_id()).cloned().unwrap();
        assert!(found.is_own_user && !found.is_killed(), "{found:?}");
        assert_eq!(found.catalog.as_deref(), Some(CATALOG), "{flavour}");
        let outcome = taker.kill_session(holder.session_id()).await.unwrap();
        assert_eq!(outcome, KillOutcome::Told, "{flavour}");
        let begin = Instant::now();
        while taker.live_sessions().await.unwrap().find(holder.session_id()).is_some() {
            assert!(begin.elapsed() < Duration::from_secs(5), "{flavour}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let outcome = taker.kill_session(holder.session_id()).await.unwrap();
        assert_eq!(outcome, KillOutcome::Gone, "{flavour}");
        place.server.assert_session_count(USER, 1).await;
    }
}

#[tokio::test]
async fn a_running_statement_is_seen_and_ends_with_its_session() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut holder = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
        let id: u64 = holder.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
        let sleeping =
            tokio::spawn(async move { holder.query_drop("SELECT /* marker */ SLEEP(60)").await });
        let mut taker = open(&place.config()).await.unwrap();
        let begin = Instant::now();
        loop {
            let found = taker.live_sessions().await.unwrap().find(id).cloned().unwrap();
            if found.statement.is_some_and(|statement| statement.contains("marker")) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(5), "{flavour}");
        }
        assert_eq!(taker.kill_session(id).await.unwrap(), KillOutcome::Told);
        assert!(sleeping.await.unwrap().is_err(), "{flavour}");
        taker.close().await;
    }
}

#[tokio::test]
async fn another_accounts_session_is_neither_seen_nor_ended() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut other = place.server.connect(CONTROL_USER, PASSWORD, None).await;
        let id: u64 = other.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
        let mut taker = open(&place.config()).await.unwrap();
        assert_eq!(taker.live_sessions().await.unwrap().find(id), None, "{flavour}");
        assert_eq!(taker.kill_session(id).await.unwrap(), KillOutcome::Denied, "{flavour}");
        other.query_drop("SELECT 1").await.unwrap();
        taker.close().await;
    }
}
