//! 46 to 53: which server it is, and sessions that an earlier holder left on it.

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::executor::{Executor as _, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate::ledger::{BusyReason, Claim, ClaimRequest, LedgerOptions, Remains};
use tollgate::target::{TargetError, TargetWarning};
use tollgate_tests::chain::{Chain, Plugin, TARGET, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::place::{CATALOG, CONTROL_USER, PASSWORD, Place, USER, forward};
use tollgate_tests::server::{Flavour, PrivateServer};

use crate::relay::{Changes, Relay};
use crate::scene::{
    LEDGER, Pause, ROWS, applied, faulty_delivery, ids, refused, stage, stage_on, status_keys,
    tollgate, tollgate_with, until,
};

async fn fault_46_a_writer_that_became_a_replica_is_left_and_found_again(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let pause = Pause::at(&chain, "statement", 1);
    let first = faulty_delivery(&pause.faults, chain.executor(), &plugin, &step);
    pause.reached().await;
    chain.server.execute(&["SET GLOBAL read_only = 1"]).await;
    pause.go_on();
    // The server refuses the statement (1290), and the record of it; no other session gets in.
    match first.await.unwrap() {
        Outcome::Indeterminate { reason: Uncertainty::FailureUnrecorded(error), .. } => {
            assert_eq!(error.code(), "statement-failed");
            assert!(error.is_retryable());
            let source = std::error::Error::source(&*error).unwrap().to_string();
            assert!(source.contains("1290"), "{source}");
        }
        other => panic!("expected an unrecorded failure, got {other:?}"),
    }
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("RUNNING".to_owned(), 1, None));
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    assert_eq!((error.code(), retryable), ("server-read-only", true));
    chain.server.execute(&["SET GLOBAL read_only = 0"]).await;
    chain.expire_leases().await;
    assert_eq!(applied(&chain.deliver(&plugin, &step).await), "sql:preview:up:1");
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 2, None));
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_46_a_writer_that_became_a_replica_is_left_and_found_again);

/// A chain on a primary, and its replica, which holds what the primary did so far.
async fn with_replica(flavour: Flavour) -> (Chain, PrivateServer) {
    let primary = flavour.builder().arg("--server-id=1").arg("--log-bin=primary");
    let chain = stage_on(primary.arg("--binlog-format=ROW")).await;
    chain.server.create_account("repl", "repl", &["REPLICATION SLAVE ON *.*"]).await;
    let replica = flavour.builder().arg("--server-id=2").arg("--read-only=1").start();
    let port = chain.server.port();
    replica
        .execute(&[
            &format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
                 MASTER_USER = 'repl', MASTER_PASSWORD = 'repl', MASTER_CONNECT_RETRY = 1, \
                 MASTER_USE_GTID = slave_pos"
            ),
            "START SLAVE",
        ])
        .await;
    until("the replica has caught up", async || {
        let mut admin = replica.admin().await;
        let rows: Result<Vec<u32>, _> = admin.query("SELECT id FROM plugin_preview.entry").await;
        let account: Option<String> =
            admin.query_first("SELECT user FROM mysql.user WHERE user = 'repl'").await.unwrap();
        (rows.ok()? == [2] && account.is_some()).then_some(())
    })
    .await;
    (chain, replica)
}

/// Receipts of a server.
async fn receipts(server: &PrivateServer) -> u64 {
    let mut admin = server.admin().await;
    let count = admin.query_first(format!("SELECT COUNT(*) FROM {TARGET}.{LEDGER}")).await;
    admin.disconnect().await.unwrap();
    count.unwrap().unwrap()
}

async fn fault_47_a_promoted_replica_without_the_receipt_is_not_taken_for_its_primary(
    flavour: Flavour,
) {
    let (chain, replica) = with_replica(flavour).await;
    let mut connection =
        tollgate::target::Target::new(chain.config(&[]).sql_target.as_ref().unwrap())
            .open(&tollgate::target::SessionContract::default())
            .await
            .unwrap();
    let primary = connection.server().id().to_owned();
    let seen = tollgate::ledger::Ledger::default()
        .read(&mut connection, &"up:1".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(seen, None);
    connection.close().await;
    replica.execute(&["STOP SLAVE"]).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    applied(&chain.deliver(&plugin, &step).await);
    // The promotion: what the primary did last is lost, and its name leads here now.
    replica.execute(&["SET GLOBAL read_only = 0"]).await;
    assert_eq!((receipts(&chain.server).await, receipts(&replica).await), (1, 0));
    let promoted = replica.jdbc_url(TARGET);
    let executor = chain.executor_with(&[
        ("SQL_TARGET_JDBC_URL", &promoted),
        ("SQL_TARGET_ALLOWED_SERVERS", &primary),
    ]);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    assert_eq!((error.code(), retryable), ("server-not-allowed", false));
    assert_eq!(receipts(&replica).await, 0);
    let run = tollgate_with(
        &chain,
        &[
            ("FACTORY_PLUGIN_SQL_TARGET_JDBC_URL", &promoted),
            ("FACTORY_PLUGIN_SQL_TARGET_ALLOWED_SERVERS", &primary),
        ],
        &["status", "--json"],
    );
    assert_eq!(run.code(), Some(1));
    assert!(run.stdout.contains("server-not-allowed"), "{}", run.stdout);
}
// The statements that set a replica up are MariaDB's.
over_servers!(fault_47_a_promoted_replica_without_the_receipt_is_not_taken_for_its_primary on mariadb);

/// Where nothing but the receipts tells: the acknowledgement is in the outbox, the effect is not there.
async fn fault_47_an_acknowledged_step_without_a_receipt_raises_an_alarm(flavour: Flavour) {
    let (chain, replica) = with_replica(flavour).await;
    chain.control().await;
    let plugin = Plugin::install(ROWS, None);
    let document = chain.server.folder().join("plan.json");
    std::fs::write(&document, plugin.document_of("up", &["orders"])).unwrap();
    let releases = plugin.root().to_str().unwrap().to_owned();
    let submit = ["submit", document.to_str().unwrap(), "--releases", &releases];
    assert_eq!(tollgate(&chain, &submit).code(), Some(0));
    replica.execute(&["STOP SLAVE"]).await;
    let work = ["work", "--releases", &releases, "--until-idle"];
    assert_eq!(tollgate(&chain, &work).code(), Some(0));
    let applied: Vec<String> =
        chain.control_rows("SELECT status FROM factory_plugin_control_outbox").await;
    assert_eq!(applied, ["APPLIED"]);
    let reconcile = ["outbox", "reconcile"];
    let run = tollgate(&chain, &reconcile);
    assert_eq!(run.code(), Some(0), "{} {}", run.stdout, run.stderr);

    replica.execute(&["SET GLOBAL read_only = 0"]).await;
    let promoted = replica.jdbc_url(TARGET);
    let elsewhere = [("FACTORY_PLUGIN_SQL_TARGET_JDBC_URL", promoted.as_str())];
    let run = tollgate_with(&chain, &elsewhere, &reconcile);
    assert_eq!(run.code(), Some(1), "{} {}", run.stdout, run.stderr);
    assert!(run.stdout.contains("1 applied step(s) without a receipt"), "{}", run.stdout);
    let run = tollgate_with(&chain, &elsewhere, &["outbox", "reconcile", "--json"]);
    assert_eq!(run.json_lines()[0]["stepKey"], "up:1");
    // A worker does nothing about it, and neither does the comparison.
    assert_eq!(tollgate_with(&chain, &elsewhere, &work).code(), Some(0));
    assert_eq!(receipts(&replica).await, 0);
}
over_servers!(fault_47_an_acknowledged_step_without_a_receipt_raises_an_alarm on mariadb);

async fn fault_48_a_read_only_server_is_incomplete_and_claims_nothing(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    chain.server.execute(&["SET GLOBAL read_only = 1"]).await;
    let (error, retryable) =
        refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert_eq!((error.code(), retryable), ("server-read-only", true));
    assert_eq!(chain.receipt("up:1").await, None);
    assert_eq!(status_keys(&chain), ["server-read-only"]);
    chain.server.assert_session_count(TARGET_USER, 0).await;
}
over_servers!(fault_48_a_read_only_server_is_incomplete_and_claims_nothing);

async fn fault_48_a_real_replica_is_incomplete_and_claims_nothing(flavour: Flavour) {
    let (chain, replica) = with_replica(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let executor = chain.executor_with(&[("SQL_TARGET_JDBC_URL", &replica.jdbc_url(TARGET))]);
    let (error, _) = refused(executor.execute(&step, &plugin.catalog()).await);
    assert_eq!(error.code(), "server-read-only");
    assert_eq!((receipts(&chain.server).await, receipts(&replica).await), (0, 0));
}
over_servers!(fault_48_a_real_replica_is_incomplete_and_claims_nothing on mariadb);

/// A name that leads to a replica which is behind: it would say that the step never ran.
async fn fault_49_a_stale_replica_answers_for_no_receipt(flavour: Flavour) {
    let (chain, replica) = with_replica(flavour).await;
    let relay = Relay::to(chain.server.port(), Changes::default()).await;
    let url = format!("jdbc:mysql://127.0.0.1:{}/{TARGET}", relay.port);
    let executor = chain.executor_with(&[("SQL_TARGET_JDBC_URL", &url)]);
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    replica.execute(&["STOP SLAVE"]).await;
    applied(&executor.execute(&step, &plugin.catalog()).await);
    assert_eq!((receipts(&chain.server).await, receipts(&replica).await), (1, 0));

    relay.lead_to(replica.port());
    // A session that is kept still leads to the writer, and says so.
    assert_eq!(applied(&executor.execute(&step, &plugin.catalog()).await), "sql:preview:up:1");
    executor.rest().await;
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    assert_eq!((error.code(), retryable), ("server-read-only", true));
    let run = tollgate_with(
        &chain,
        &[("FACTORY_PLUGIN_SQL_TARGET_JDBC_URL", &url)],
        &["receipts", "--key", "up:1"],
    );
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("takes no writes"), "{}", run.stderr);
    relay.lead_to(chain.server.port());
    assert_eq!(applied(&executor.execute(&step, &plugin.catalog()).await), "sql:preview:up:1");
    assert_eq!(chain.receipt("up:1").await.unwrap().1, 1, "and nothing ran again");
}
over_servers!(fault_49_a_stale_replica_answers_for_no_receipt on mariadb);

async fn fault_50_a_proxy_is_noticed_by_the_number_it_gives_out(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let relay =
        Relay::to(place.server.port(), Changes { session: Some(7), ..Changes::default() }).await;
    let proxied = place.open_at(relay.port).await;
    assert_ne!(proxied.session_id(), 7);
    assert!(proxied.is_proxied());
    assert!(proxied.warnings().contains(&TargetWarning::BehindProxy));
    proxied.close().await;
    assert!(!place.open().await.is_proxied());
}
over_servers!(fault_50_a_proxy_is_noticed_by_the_number_it_gives_out);

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

async fn fault_50_a_session_in_another_catalog_is_not_killed(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let request = forward("step-1");
    let mut holder = place.server.connect(USER, PASSWORD, None).await;
    let session = impersonate(&place, &request, &mut holder, "tollgate-elsewhere").await;
    let remains = remains(&place, &request).await;
    assert_eq!(remains, Remains::OtherCatalog { session });
    holder.query_drop("SELECT 1").await.unwrap();
}
over_servers!(fault_50_a_session_in_another_catalog_is_not_killed);

/// Where the server refuses user-level locks, or a proxy made the number up, the number alone does
/// not make a session the holder's.
async fn fault_50_a_session_that_only_has_the_recorded_number_is_not_killed(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let request = forward("step-1");
    let mut holder = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
    let session = impersonate(&place, &request, &mut holder, "unlocked-abc").await;
    let remains = remains(&place, &request).await;
    assert_eq!(remains, Remains::Unconfirmed { session });
    holder.query_drop("SELECT 1").await.unwrap();
    // Its name in the statement it runs does.
    let running =
        tokio::spawn(async move { holder.query_drop("SELECT /* unlocked-abc */ SLEEP(60)").await });
    until("it runs its statement", async || {
        let query = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {session} AND \
             info LIKE '%SLEEP%'"
        );
        (place.one::<u64>(&query).await == 1).then_some(())
    })
    .await;
    let mut connection = place.open().await;
    place.granted(&mut connection, &request).await;
    // MariaDB ends the statement with a row, the others with an error; the session is gone.
    let _ = running.await.unwrap();
    assert!(!place.has_session(session).await);
}
over_servers!(fault_50_a_session_that_only_has_the_recorded_number_is_not_killed);

async fn fault_51_a_number_given_out_again_after_a_restart_is_not_killed(flavour: Flavour) {
    for marker in [None, Some("unlocked-of-the-first-run")] {
        let mut place = Place::on(flavour).await;
        // Numbers start low again after a restart: the holder's has to be reachable.
        for _ in 0..40 {
            place.server.connect(USER, PASSWORD, None).await.disconnect().await.unwrap();
        }
        let request = forward("step-1");
        let mut holder = place.open().await;
        let lease = place.granted(&mut holder, &request).await;
        let run = holder.server().incarnation().to_owned();
        if let Some(marker) = marker {
            place.set(&request, &format!("session_marker = '{marker}'")).await;
        }
        place.server.kill9();
        drop(holder);
        // Runs are told apart by the second they start in.
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        place.server.start_again();
        place.expire(&request).await;
        let mut bystanders = Vec::new();
        loop {
            let mut conn = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
            let id: u64 = conn.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
            bystanders.push(conn);
            if id >= lease.session_id() {
                assert_eq!(id, lease.session_id(), "the number came again");
                break;
            }
        }
        let mut connection = place.open().await;
        assert_ne!(connection.server().incarnation(), run);
        let next = place.granted(&mut connection, &request).await;
        assert_eq!(next.execution_count(), 2);
        bystanders.last_mut().unwrap().query_drop("SELECT 1").await.unwrap();
    }
}
over_servers!(fault_51_a_number_given_out_again_after_a_restart_is_not_killed);

async fn fault_52_a_session_that_cannot_be_ended_is_waited_for_and_said(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let request = forward("step-1");
    let mut holder = place.server.connect(CONTROL_USER, PASSWORD, None).await;
    let session = impersonate(&place, &request, &mut holder, "tollgate-other").await;
    for _ in 0..2 {
        let remains = remains(&place, &request).await;
        assert_eq!(remains, Remains::NotVisible { session });
        // It gave the lease back and counted nothing, so waiting costs the step nothing.
        assert_eq!(place.column(&request, "execution_count").await, "1");
        assert_eq!(place.column(&request, "session_id").await, session.to_string());
    }
    let mut connection = place.open().await;
    let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
    assert_eq!(receipt.standing.words(), "possibly still running on the server");
    connection.close().await;
    holder.query_drop("SELECT 1").await.unwrap();
    holder.disconnect().await.unwrap();
    place.server.assert_session_count(CONTROL_USER, 0).await;
    let mut connection = place.open().await;
    let lease = place.granted(&mut connection, &request).await;
    assert_eq!(lease.execution_count(), 2);
}
over_servers!(fault_52_a_session_that_cannot_be_ended_is_waited_for_and_said);

async fn fault_53_a_killed_session_that_still_rolls_back_keeps_the_step_busy(flavour: Flavour) {
    let options = LedgerOptions {
        // It looks once, and does not wait.
        previous_session_wait: std::time::Duration::ZERO,
        ..LedgerOptions::default()
    };
    let place = Place::on(flavour).await.with(options);
    place.execute("CREATE TABLE plugin_preview.digit (n INT PRIMARY KEY) ENGINE=InnoDB").await;
    place
        .execute("INSERT INTO plugin_preview.digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
        .await;
    let request = forward("step-1");
    let (mut holder, wire) = place.open_wired().await;
    let lease = place.granted(&mut holder, &request).await;
    wire.say("SET autocommit = 0").await;
    wire.say(
        "INSERT INTO witness SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + \
         100000 * f.n FROM digit a, digit b, digit c, digit d, digit e, digit f \
         WHERE f.n < 3",
    )
    .await;
    place.expire(&request).await;
    let mut connection = place.open().await;
    let mut waited = 0_u32;
    loop {
        match place.claim(&mut connection, &request).await {
            Claim::Busy(busy) => {
                // Once it was killed MySQL lists it no more, while its lock shows that it is there.
                let known = ["previous-session-leaving", "previous-session-not-visible"];
                assert!(known[..=usize::from(waited > 0)].contains(&busy.code()), "{busy:?}");
                assert_eq!(place.column(&request, "execution_count").await, "1", "nothing ran");
                waited += 1;
            }
            Claim::Granted(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(waited > 0, "the session was gone at once: nothing was rolled back");
    assert!(!place.has_session(lease.session_id()).await);
    assert_eq!(place.witnesses().await, 0);
}
over_servers!(fault_53_a_killed_session_that_still_rolls_back_keeps_the_step_busy);

/// The words of a server that only speaks the protocol; what they are replaced in is a real one.
async fn fault_67_a_server_whose_rules_are_not_known_is_refused_with_its_reason(flavour: Flavour) {
    let place = Place::on(flavour).await;
    for (name, reason) in
        [(b"TiDB-v7", "KILL may not stop DDL"), (b"Vitess-", "DDL is not run directly")]
    {
        let words = vec![(&b"MariaDB"[..], &name[..])];
        let relay = Relay::to(place.server.port(), Changes { words, ..Changes::default() }).await;
        let error = place.try_open_at(relay.port).await.unwrap_err();
        assert!(matches!(error, TargetError::ServerUnsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.is_transient());
        place.server.assert_session_count(USER, 0).await;
    }
    // The same relay without its words is no obstacle.
    let relay = Relay::to(place.server.port(), Changes::default()).await;
    place.open_at(relay.port).await.close().await;
}
over_servers!(fault_67_a_server_whose_rules_are_not_known_is_refused_with_its_reason on mariadb);
