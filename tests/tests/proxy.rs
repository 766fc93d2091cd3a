//! The proxy does to a connection what its rules say, and nothing else.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};
use tollgate_tests::proxy::{Act, Kind, Proxy, Rule};
use tollgate_tests::server::{MariaDb, PrivateServer};

async fn place() -> (PrivateServer, Proxy) {
    let server = MariaDb::start();
    server.create_catalog("c").await;
    server.create_account("someone", "secret", &["ALL PRIVILEGES ON c.*"]).await;
    server.execute(&["CREATE TABLE c.t (id INT PRIMARY KEY) ENGINE=InnoDB"]).await;
    let proxy = Proxy::to(server.port()).await;
    (server, proxy)
}

async fn connect(proxy: &Proxy) -> Result<Conn, mysql_async::Error> {
    let opts = OptsBuilder::default()
        .user(Some("someone"))
        .pass(Some("secret"))
        .db_name(Some("c"))
        .ip_or_hostname("127.0.0.1")
        .tcp_port(proxy.port())
        .prefer_socket(false);
    Conn::new(Opts::from(opts)).await
}

async fn rows(server: &PrivateServer) -> Vec<u32> {
    let mut admin = server.admin().await;
    let rows = admin.query("SELECT id FROM c.t ORDER BY id").await.unwrap();
    admin.disconnect().await.unwrap();
    rows
}

/// Waits until the server has no session of the client any more: what it was sent is carried out.
async fn settled(server: &PrivateServer) -> Vec<u32> {
    server.assert_session_count("someone", 0).await;
    rows(server).await
}

#[tokio::test]
async fn a_cut_before_keeps_the_command_from_the_server_and_one_after_does_not() {
    let (server, proxy) = place().await;
    for (id, act, arrives) in [
        (1, Act::CutBefore, false),
        (2, Act::HalfCommand, false),
        (3, Act::LoseAnswer, true),
        (4, Act::HalfAnswer, true),
    ] {
        let statement = format!("INSERT INTO t VALUES ({id})");
        let mut conn = connect(&proxy).await.unwrap();
        proxy.add(Rule::at(&statement, act));
        let fired = proxy.fired();
        conn.query_drop(&statement).await.unwrap_err();
        assert_eq!(proxy.fired(), fired + 1, "{act:?}");
        drop(conn);
        assert_eq!(settled(&server).await.contains(&id), arrives, "{act:?}");
    }
    assert_eq!(proxy.count("INSERT INTO t VALUES (1)"), 1);
}

#[tokio::test]
async fn an_execution_is_known_by_the_text_it_was_prepared_from() {
    let (server, proxy) = place().await;
    let statement = "INSERT INTO t VALUES (?)";
    let mut conn = connect(&proxy).await.unwrap();
    proxy.add(Rule::at(statement, Act::CutBefore).nth(2));
    conn.exec_drop(statement, (1,)).await.unwrap();
    assert_eq!(proxy.fired(), 0, "a preparation was taken for an execution");
    conn.exec_drop(statement, (2,)).await.unwrap_err();
    assert_eq!((proxy.fired(), proxy.count(statement)), (1, 2));
    drop(conn);
    assert_eq!(settled(&server).await, [1]);
    let mut conn = connect(&proxy).await.unwrap();
    proxy.add(Rule::at(statement, Act::CutBefore).of(Kind::Prepare));
    conn.exec_drop(statement, (3,)).await.unwrap_err();
    assert_eq!(proxy.fired(), 2);
    drop(conn);
    assert_eq!(settled(&server).await, [1]);
}

#[tokio::test]
async fn commands_are_delayed_and_connections_refused_and_cut() {
    let (server, proxy) = place().await;
    let mut conn = connect(&proxy).await.unwrap();
    let delay = Duration::from_millis(300);
    proxy.add(Rule::at("SELECT 7", Act::Delay(delay)));
    let begun = Instant::now();
    assert_eq!(conn.query_first::<u32, _>("SELECT 7").await.unwrap(), Some(7));
    assert!(begun.elapsed() >= delay);
    proxy.refuse_connections(true);
    connect(&proxy).await.unwrap_err();
    assert_eq!((proxy.refused_count(), proxy.connection_count()), (1, 1));
    assert_eq!(conn.query_first::<u32, _>("SELECT 8").await.unwrap(), Some(8));
    proxy.cut_all();
    server.assert_session_count("someone", 0).await;
    conn.query_drop("SELECT 9").await.unwrap_err();
    proxy.refuse_connections(false);
    connect(&proxy).await.unwrap().disconnect().await.unwrap();
}

/// More than one packet, in both directions.
#[tokio::test]
async fn what_is_larger_than_a_packet_goes_through() {
    let (server, proxy) = place().await;
    server.execute(&["SET GLOBAL max_allowed_packet = 67108864"]).await;
    let mut conn = connect(&proxy).await.unwrap();
    let long = "x".repeat((1 << 24) + 10);
    let answer: Option<String> =
        conn.exec_first("SELECT CONCAT(?, '-end')", (&long,)).await.unwrap();
    assert!(answer.unwrap().ends_with("x-end"));
    conn.disconnect().await.unwrap();
}
