//! Allow-list, control catalog, writer: each rule refuses, and leaves no session behind.

use std::time::{Duration, Instant};

use tollgate::target::{ServerFailure, Side, TargetError};
use tollgate_tests::server::{Flavour, MariaDb};

use crate::fixture::{CATALOG, CONTROL_USER, Place, USER, open, url};

#[tokio::test]
async fn a_confined_target_is_opened_and_the_control_session_is_closed_again() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let connection = open(&place.config()).await.unwrap();
        assert_eq!(connection.catalog().as_str(), CATALOG, "{flavour}");
        assert!(connection.session_id() > 0, "{flavour}");
        assert!(!connection.is_proxied(), "{flavour}");
        place.server.assert_session_count(USER, 1).await;
        place.server.assert_session_count(CONTROL_USER, 0).await;
        connection.close().await;
        place.server.assert_session_count(USER, 0).await;
    }
}

#[tokio::test]
async fn a_dropped_connection_does_not_stay_open() {
    let place = Place::on(Flavour::MariaDb).await;
    drop(open(&place.config()).await.unwrap());
    place.server.assert_session_count(USER, 0).await;
}

#[tokio::test]
async fn another_catalog_than_the_allowed_one_is_refused() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut config = place.config();
        config.catalog = "plugin_other".parse().unwrap();
        let error = place.refused(&config).await;
        let TargetError::CatalogMismatch { found, .. } = &error else { panic!("{error:?}") };
        assert_eq!(found.as_deref(), Some(CATALOG), "{flavour}");
    }
}

#[tokio::test]
async fn a_catalog_that_differs_in_case_only_is_not_the_allowed_one() {
    let place = Place::on(Flavour::MariaDb).await;
    place.server.create_catalog("Plugin_Preview").await;
    place.server.execute(&["GRANT ALL ON `Plugin\\_Preview`.* TO 'tollgate_target'@'%'"]).await;
    let mut config = place.config();
    config.endpoint = url(&place.server.jdbc_url("Plugin_Preview"));
    assert_eq!(place.refused(&config).await.code(), "catalog-mismatch");
}

#[tokio::test]
async fn the_control_catalogs_url_is_refused_however_it_is_written_and_nothing_is_opened() {
    let place = Place::on(Flavour::MariaDb).await;
    let port = place.server.port();
    for text in [
        format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}"),
        format!("JDBC:mysql://LOCALHOST:{port}/{CATALOG}?useSSL=false"),
        format!("jdbc:mysql://[::1]:{port}/Plugin_Preview"),
    ] {
        let mut config = place.config();
        config.control.endpoint = url(&text);
        // Nobody listens as this user: the refusal cannot come from a server.
        config.control.credentials.username = "nobody".to_owned().into();
        assert_eq!(place.refused(&config).await, TargetError::ControlUrl, "{text}");
    }
}

#[tokio::test]
async fn the_control_catalogs_name_is_refused_on_another_server_too() {
    let place = Place::on(Flavour::MariaDb).await;
    let other = Place::on(Flavour::MariaDb).await;
    other
        .server
        .execute(&[
            "CREATE DATABASE `PLUGIN_preview`",
            "GRANT ALL ON `PLUGIN\\_preview`.* TO 'host_control'@'%'",
        ])
        .await;
    let mut config = place.config();
    config.control.endpoint = url(&other.server.jdbc_url("PLUGIN_preview"));
    assert_eq!(place.refused(&config).await, TargetError::ControlCatalog);
    other.server.assert_session_count(CONTROL_USER, 0).await;
}

#[tokio::test]
async fn a_target_that_holds_the_control_sides_tables_is_refused() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        place
            .server
            .execute(&["CREATE TABLE plugin_preview.factory_plugin_control_outbox (id INT)"])
            .await;
        let error = place.refused(&place.config()).await;
        let table = "factory_plugin_control_outbox".to_owned();
        assert_eq!(error, TargetError::ControlTables { table }, "{flavour}");
    }
}

#[tokio::test]
async fn a_server_that_logs_statements_is_refused_before_it_refuses_the_ledger() {
    let server = MariaDb::builder().arg("--log-bin").arg("--binlog-format=STATEMENT").start();
    let place = Place::of(server).await;
    assert_eq!(place.refused(&place.config()).await, TargetError::BinlogStatements);
}

#[tokio::test]
async fn an_unusable_control_catalog_closes_the_target() {
    let place = Place::on(Flavour::MariaDb).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut config = place.config();
    config.control.endpoint = url(&format!("jdbc:mysql://127.0.0.1:{port}/host_core"));
    assert_eq!(place.refused(&config).await.code(), "control-unreachable");
    let mut config = place.config();
    config.control.credentials.password = "wrong".to_owned().into();
    assert_eq!(place.refused(&config).await.code(), "control-access-denied");
    let mut config = place.config();
    config.control.endpoint = url(&place.server.jdbc_url("host_missing"));
    let code = place.refused(&config).await.code();
    assert!(["control-catalog-denied", "control-catalog-unknown"].contains(&code), "{code}");
}

#[tokio::test]
async fn a_refused_login_of_the_target_is_said_as_such() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut config = place.config();
        config.credentials.password = "wrong".to_owned().into();
        let error = place.refused(&config).await;
        let failure = ServerFailure::AccessDenied { code: 1045 };
        assert_eq!(error, TargetError::Server { side: Side::Target, failure }, "{flavour}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_the_bound_and_no_more() {
    let place = Place::on(Flavour::MariaDb).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut config = place.config();
    config.endpoint = url(&format!("jdbc:mysql://127.0.0.1:{port}/{CATALOG}"));
    config.bounds.connect_timeout = Duration::from_millis(300);
    let begin = Instant::now();
    assert_eq!(place.refused(&config).await.code(), "target-timed-out");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_server_that_stops_answering_in_the_middle_costs_the_open_budget() {
    let place = Place::on(Flavour::MariaDb).await;
    // The catalog's tables are listed under a lock another session holds.
    let mut config = place.config();
    config.bounds.open_budget = Duration::ZERO;
    assert_eq!(place.refused(&config).await.code(), "target-timed-out");
}
