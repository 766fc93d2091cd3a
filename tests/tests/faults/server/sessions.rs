//! 40 to 43: sessions and servers that end in the middle.

use std::fmt::Write as _;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate::ledger::HoldError;
use tollgate_tests::chain::{Plugin, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::place::{Place, forward};
use tollgate_tests::server::Flavour;

use crate::scene::{
    Pause, ROWS, applied, delivery, faulty_delivery, has_session, hold_row_2, ids, refused,
    session_running, stage, stage_on, tables, until,
};

async fn fault_40_a_query_killed_by_a_person_is_never_taken_for_done(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    chain.server.execute(&[&format!("KILL QUERY {session}")]).await;
    let (error, retryable) = refused(first.await.unwrap());
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1317, true));
    assert_eq!(ids(&chain).await, [2]);
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
}
over_servers!(fault_40_a_query_killed_by_a_person_is_never_taken_for_done);

async fn fault_41_a_killed_session_leaves_nothing_and_the_step_is_claimed_anew(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    chain.server.execute(&[&format!("KILL CONNECTION {session}")]).await;
    let (error, retryable) = refused(first.await.unwrap());
    assert!(matches!(error, ExecutionError::ConnectionLost { statement: 1 }), "{error}");
    assert!(retryable);
    assert_eq!(ids(&chain).await, [2], "what was not committed is gone");
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "FAILED");

    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 2, None));
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_41_a_killed_session_leaves_nothing_and_the_step_is_claimed_anew);

/// The connection that looks after the receipt passes every check that the first one passed.
async fn fault_41_a_new_session_is_verified_before_it_is_believed(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    // From now on the account reaches another catalog, which no new session may.
    chain.server.create_catalog("elsewhere").await;
    let reach = format!("SELECT ON `elsewhere`.* TO '{TARGET_USER}'@'%'");
    chain.server.execute(&[&format!("GRANT {reach}"), &format!("KILL CONNECTION {session}")]).await;
    match first.await.unwrap() {
        Outcome::Indeterminate { reason: Uncertainty::StillRunning { statement: 1 }, .. } => {}
        other => panic!("nothing may be concluded from an unverified session: {other:?}"),
    }
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "RUNNING", "no result is made up");
    chain
        .server
        .execute(&[&format!("REVOKE SELECT ON `elsewhere`.* FROM '{TARGET_USER}'@'%'")])
        .await;
    holder.query_drop("ROLLBACK").await.unwrap();
    chain.expire_leases().await;
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_41_a_new_session_is_verified_before_it_is_believed);

async fn fault_42_a_session_cut_between_statements_is_not_resumed(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let pause = Pause::at(&chain, "hold-check", 2);
    let first = faulty_delivery(&pause.faults, chain.executor(), &plugin, &step);
    pause.reached().await;
    let idle = format!(
        "SELECT id FROM information_schema.processlist WHERE user = '{TARGET_USER}' AND \
         command = 'Sleep'"
    );
    let session: u64 = chain.value(&idle).await;
    chain.server.execute(&[&format!("KILL CONNECTION {session}")]).await;
    until("the session is gone", async || (!has_session(&chain, session).await).then_some(()))
        .await;
    pause.go_on();
    let (error, retryable) = refused(first.await.unwrap());
    assert!(retryable, "{error}");
    assert_eq!(ids(&chain).await, [2], "the first statement went with its session");
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "FAILED");
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_42_a_session_cut_between_statements_is_not_resumed);

/// MySQL 8 and later says 4031 before it closes; the others just close.
async fn fault_42_a_session_idle_for_too_long_is_told_as_lost(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let (mut connection, wire) = place.open_wired().await;
    let request = forward("step-1");
    let lease = place.granted(&mut connection, &request).await;
    wire.say("SET autocommit = 0").await;
    wire.say("INSERT INTO witness VALUES (1)").await;
    wire.say("SET SESSION wait_timeout = 1").await;
    until("the server cuts the session", async || {
        (!place.has_session(lease.session_id()).await).then_some(())
    })
    .await;
    let error = place.ledger.check_held(&mut connection, &lease).await.unwrap_err();
    let HoldError::Fault(fault) = &error else { panic!("{error:?}") };
    assert!(fault.is_transient(), "{error:?}");
    drop(connection);
    assert_eq!(place.witnesses().await, 0);
    // Its successor finds the step as the claim left it.
    let mut other = place.open().await;
    let inspection = place.ledger.inspect(&mut other, &lease).await.unwrap();
    assert_eq!(inspection, tollgate::ledger::Inspection::NotCommitted);
}
over_servers!(fault_42_a_session_idle_for_too_long_is_told_as_lost);

async fn fault_42_a_dropped_delivery_leaves_its_connection_to_nobody(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    // One executor for both deliveries: a pool would be its.
    let executor = std::sync::Arc::new(chain.executor());
    let (catalog, owned) = (plugin.catalog(), step.clone());
    let shared = std::sync::Arc::clone(&executor);
    let first = tokio::spawn(async move {
        tollgate::executor::Executor::execute(&*shared, &owned, &catalog).await
    });
    let session = session_running(&chain, "DELETE").await;
    first.abort();
    assert!(first.await.is_err());
    chain.expire_leases().await;
    let catalog = plugin.catalog();
    let again = tollgate::executor::Executor::execute(&*executor, &step, &catalog);
    let (outcome, ()) = tokio::join!(again, async {
        until("the old session is gone", async || {
            (!has_session(&chain, session).await).then_some(())
        })
        .await;
        holder.query_drop("ROLLBACK").await.unwrap();
    });
    assert_eq!(applied(&outcome), "sql:preview:up:1");
    let holders: u64 = chain.value("SELECT session_id FROM factory_plugin_target_receipt").await;
    assert_ne!(holders, session);
    // The one session that is kept for the next step.
    chain.server.assert_session_count(TARGET_USER, 1).await;
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_42_a_dropped_delivery_leaves_its_connection_to_nobody);

/// Tables enough that a kill comes while they are being made.
const MANY: u32 = 40;

async fn fault_43_a_server_killed_during_ddl_leaves_what_can_be_run_again(flavour: Flavour) {
    let mut chain = stage_on(flavour.builder().durable()).await;
    let slowly = tollgate::fault_points::Faults::parse("statement=pause:15@1..", 0).unwrap();
    let mut payload = String::new();
    for number in 0..MANY {
        writeln!(
            payload,
            "CREATE TABLE IF NOT EXISTS t{number} (id INT PRIMARY KEY, w VARCHAR(20)) \
             ENGINE=InnoDB; INSERT IGNORE INTO t{number} (id, w) VALUES (1, 'one');"
        )
        .unwrap();
    }
    let plugin = Plugin::install(&payload, None);
    let step = plugin.step("up", Direction::Forward);
    for kill in 1..=2_u32 {
        let first = faulty_delivery(&slowly, chain.executor(), &plugin, &step);
        let enough = usize::try_from(kill * MANY / 4).unwrap();
        until("some tables are made", async || (tables(&chain).await.len() > enough).then_some(()))
            .await;
        chain.server.kill9();
        match first.await.unwrap() {
            Outcome::Indeterminate { .. } | Outcome::NotApplied { retryable: true, .. } => {}
            other => panic!("{other:?}"),
        }
        chain.server.start_again();
        let made = tables(&chain).await.len();
        // The last one may have been half made: it is whole or absent.
        assert!(made >= enough && made <= usize::try_from(MANY).unwrap(), "{made} of {MANY}");
        chain.expire_leases().await;
    }
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    for number in 0..MANY {
        let rows: Vec<(u32, String)> = chain.rows(&format!("SELECT id, w FROM t{number}")).await;
        assert_eq!(rows, [(1, "one".to_owned())], "t{number}");
    }
    let (status, runs, _) = chain.receipt("up:1").await.unwrap();
    assert_eq!((status.as_str(), runs), ("SUCCEEDED", 3));
    tokio::time::timeout(Duration::from_secs(30), async {
        chain.server.assert_session_count(TARGET_USER, 0).await;
    })
    .await
    .unwrap();
}
// MySQL 5.6 has no atomic DDL: what a kill leaves there is its own to mend.
over_servers!(fault_43_a_server_killed_during_ddl_leaves_what_can_be_run_again on mariadb, mysql9);
