//! 29 to 39: leases, races and clocks.

use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate::ledger::{Claim, HoldError, ReleaseError};
use tollgate_tests::chain::{Plugin, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::place::{CATALOG, LEDGER as QUALIFIED, PASSWORD, Place, USER, forward};
use tollgate_tests::server::Flavour;

use crate::scene::{
    LEDGER, Pause, ROWS, applied, delivery, has_session, hold_row_2, ids, refused, session_running,
    stage, tollgate, tollgate_with, until,
};

/// Statements of a kind that the server was asked for.
async fn asked(place: &Place, statement: &str) -> u64 {
    let query = format!("SHOW GLOBAL STATUS LIKE 'Com_{statement}'");
    place.one::<(String, u64)>(&query).await.1
}

async fn fault_29_of_two_inserts_one_wins_and_the_other_reads_its_row(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let (mut slow, mut quick) = (place.open().await, place.open().await);
    let request = forward("step-1");
    let pause = Pause::beside(place.server.folder(), "claim-insert", 1);
    let before = asked(&place, "insert").await;
    let (late, first) = tokio::join!(
        // It has seen that there is no row, and is about to insert one.
        pause.faults.during(place.ledger.claim(&mut slow, &request)),
        async {
            pause.reached().await;
            let first = place.claim(&mut quick, &request).await;
            pause.go_on();
            first
        }
    );
    assert!(matches!(first, Claim::Granted(_)), "{first:?}");
    // No error of the server's comes through: it met the duplicate key, and read again.
    let late = late.unwrap();
    assert!(matches!(&late, Claim::Busy(busy) if busy.code() == "lease-held"), "{late:?}");
    assert_eq!(asked(&place, "insert").await, before + 2, "both tried");
    assert_eq!(place.one::<u64>(&format!("SELECT COUNT(*) FROM {QUALIFIED}")).await, 1);
    assert_eq!(place.column(&request, "execution_count").await, "1");
}
over_servers!(fault_29_of_two_inserts_one_wins_and_the_other_reads_its_row);

async fn fault_30_of_two_takeovers_exactly_one_changes_the_row(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let (mut dead, mut slow, mut quick) =
        (place.open().await, place.open().await, place.open().await);
    let request = forward("step-1");
    place.granted(&mut dead, &request).await;
    dead.close().await;
    place.expire(&request).await;
    let pause = Pause::beside(place.server.folder(), "claim-insert", 1);
    let before = asked(&place, "update").await;
    let (late, first) = tokio::join!(
        // It has seen the lease over, and is about to take the step.
        pause.faults.during(place.ledger.claim(&mut slow, &request)),
        async {
            pause.reached().await;
            let first = place.claim(&mut quick, &request).await;
            pause.go_on();
            first
        }
    );
    assert!(matches!(first, Claim::Granted(_)), "{first:?}");
    let late = late.unwrap();
    assert!(matches!(&late, Claim::Busy(busy) if busy.code() == "lease-held"), "{late:?}");
    assert_eq!(asked(&place, "update").await, before + 2, "both tried");
    assert_eq!(place.column(&request, "execution_count").await, "2");
    let holder = place.column(&request, "session_id").await;
    assert_eq!(holder, quick.session_id().to_string());
}
over_servers!(fault_30_of_two_takeovers_exactly_one_changes_the_row);

async fn fault_31_a_renewal_of_equal_values_is_not_a_lost_lease(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let mut holder = place.open().await;
    let (mut second, wire) = place.open_wired().await;
    let request = forward("step-1");
    let lease = place.granted(&mut holder, &request).await;
    // The clock of the renewing session stands still: both renewals write the same deadline.
    wire.say("SET timestamp = 1800000000").await;
    place.ledger.renew(&mut second, &lease, 1).await.unwrap();
    let deadline = place.column(&request, "lease_deadline").await;
    let generation = place.column(&request, "generation").await;
    place.ledger.renew(&mut second, &lease, 1).await.unwrap();
    assert_eq!(place.column(&request, "lease_deadline").await, deadline, "equal values");
    assert_ne!(place.column(&request, "generation").await, generation);
}
over_servers!(fault_31_a_renewal_of_equal_values_is_not_a_lost_lease);

/// Shifts the wall clock of a process by `SHIFT_SECONDS`.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    int result = (int)syscall(SYS_clock_gettime, id, at);
    const char *shift = getenv("SHIFT_SECONDS");
    if (id == CLOCK_REALTIME && shift) at->tv_sec += atol(shift);
    return result;
}
"#;

async fn fault_32_an_executor_whose_clock_is_wrong_by_hours_claims_as_any_other(flavour: Flavour) {
    let chain = stage(flavour).await;
    let folder = chain.server.folder();
    let (source, library) = (folder.join("shift.c"), folder.join("shift.so"));
    std::fs::write(&source, SHIFTED_CLOCK).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compile.status().unwrap().success());
    let told = Command::new("date")
        .arg("+%s")
        .env("LD_PRELOAD", &library)
        .env("SHIFT_SECONDS", "40000")
        .output()
        .unwrap();
    let told: i64 = String::from_utf8(told.stdout).unwrap().trim().parse().unwrap();
    let clock: i64 = chain.value("SELECT UNIX_TIMESTAMP()").await;
    assert!((told - clock - 40_000).abs() < 600, "a process with it is told another time");
    let plugin = Plugin::install(ROWS, None);
    let release = plugin.release_folder("1.0.0");
    for (key, shift) in [("behind", "-40000"), ("ahead", "40000")] {
        let run = tollgate_with(
            &chain,
            &[("LD_PRELOAD", library.to_str().unwrap()), ("SHIFT_SECONDS", shift)],
            &["execute", release.to_str().unwrap(), "schema", "--step-key", key],
        );
        assert_eq!(run.code(), Some(0), "{} {}", run.stdout, run.stderr);
        // Every time in the row is the server's.
        let near: bool = chain
            .value(&format!(
                "SELECT ABS(TIMESTAMPDIFF(SECOND, created_at, UTC_TIMESTAMP())) < 600 AND \
                 ABS(TIMESTAMPDIFF(SECOND, lease_deadline, UTC_TIMESTAMP())) < 600 \
                 FROM {LEDGER} WHERE step_idempotency_key = '{key}'"
            ))
            .await;
        assert!(near, "{key}");
    }
    // Nor does a wrong clock end another's lease.
    let blocked = plugin.step("up", Direction::Forward);
    chain.admin_run("INSERT IGNORE INTO entry VALUES (2, 'two')").await;
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &blocked);
    session_running(&chain, "DELETE").await;
    let run = tollgate_with(
        &chain,
        &[("LD_PRELOAD", library.to_str().unwrap()), ("SHIFT_SECONDS", "40000")],
        &["execute", release.to_str().unwrap(), "schema", "--step-key", "up:1"],
    );
    assert_eq!(run.code(), Some(3), "{}", run.stdout);
    holder.query_drop("ROLLBACK").await.unwrap();
    applied(&first.await.unwrap());
}
over_servers!(fault_32_an_executor_whose_clock_is_wrong_by_hours_claims_as_any_other);

/// The deadline is moved instead of the clock: the server only ever compares the two.
async fn fault_33_an_early_takeover_ends_the_holder_and_fences_it(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    chain.expire_leases().await;
    let second = delivery(chain.executor(), &plugin, &step);
    // The holder is alive and well, and its session is ended all the same.
    until("the old session is gone", async || (!has_session(&chain, session).await).then_some(()))
        .await;
    match first.await.unwrap() {
        Outcome::Indeterminate { reason: Uncertainty::LeaseLost, .. } => {}
        other => panic!("expected a lost lease, got {other:?}"),
    }
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&second.await.unwrap()), "sql:preview:up:1");
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 2, None));
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_33_an_early_takeover_ends_the_holder_and_fences_it);

/// The server's clock went back by hours, so the deadline is out of reach.
async fn fault_34_an_implausible_deadline_is_shown_and_an_operator_may_end_the_lease(
    flavour: Flavour,
) {
    let place = Place::on(flavour).await;
    let (mut dead, mut connection) = (place.open().await, place.open().await);
    let request = forward("step-1");
    place.granted(&mut dead, &request).await;
    dead.close().await;
    place.set(&request, "lease_deadline = UTC_TIMESTAMP(6) + INTERVAL 9 HOUR").await;
    let claim = place.claim(&mut connection, &request).await;
    let Claim::Busy(busy) = claim else { panic!("{claim:?}") };
    assert!(busy.retry_after.as_secs() <= 3600);
    let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
    assert!(receipt.lease_implausible);
    let generation = receipt.generation;
    let stale = place.ledger.release(&mut connection, &request.key, generation - 1).await;
    assert_eq!(stale, Err(ReleaseError::Changed(request.key.clone())));
    place.ledger.release(&mut connection, &request.key, generation).await.unwrap();
    let code = place.column(&request, "last_error_code").await;
    assert_eq!(code, "released-by-operator");
    let lease = place.granted(&mut connection, &request).await;
    place.ledger.complete(&mut connection, &lease).await.unwrap();
    let over = place.ledger.release(&mut connection, &request.key, generation).await;
    assert_eq!(over, Err(ReleaseError::NotRunning(request.key.clone())));
}
over_servers!(fault_34_an_implausible_deadline_is_shown_and_an_operator_may_end_the_lease);

/// What an administrator's `init_connect` does to every session of an ordinary account.
const STOPPED: &str = "--init-connect=SET timestamp = 1000000000, time_zone = '+05:00'";

async fn fault_35_a_stopped_clock_and_another_zone_move_no_lease(flavour: Flavour) {
    let place = Place::of(flavour.builder().arg(STOPPED).arg("--default-time-zone=-03:00")).await;
    let mut plain = place.server.connect(USER, PASSWORD, Some(CATALOG)).await;
    let stopped: Option<String> = plain.query_first("SELECT UTC_TIMESTAMP()").await.unwrap();
    assert_eq!(stopped.as_deref(), Some("2001-09-09 01:46:40"), "the account's clock stands");

    let mut connection = place.open().await;
    let mut request = forward("step-1");
    request.lease = Duration::from_secs(1);
    let lease = place.granted(&mut connection, &request).await;
    // Root is spared by `init_connect`: this is the server's own clock.
    let near: bool = place
        .one(&format!(
            "SELECT ABS(TIMESTAMPDIFF(SECOND, lease_deadline, UTC_TIMESTAMP())) < 600 \
             FROM {QUALIFIED}"
        ))
        .await;
    assert!(near);
    // An old transaction of the session does not hold its clock either.
    let begun = Instant::now();
    let error = loop {
        match place.ledger.check_held(&mut connection, &lease).await {
            Ok(()) => assert!(begun.elapsed() < Duration::from_mins(1), "its lease never ends"),
            Err(error) => break error,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(error, HoldError::LeaseOver);
}
over_servers!(fault_35_a_stopped_clock_and_another_zone_move_no_lease);

/// A lease of 30 s is renewed after 10 s; the lock is waited for longer.
const SHORT_LEASE: &[(&str, &str)] =
    &[("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30"), ("SQL_TARGET_LOCK_WAIT_TIMEOUT_SECONDS", "60")];

async fn deadline(chain: &tollgate_tests::chain::Chain) -> (String, u32) {
    let query =
        format!("SELECT DATE_FORMAT(lease_deadline, '%T.%f'), statements_done FROM {LEDGER}");
    chain.value(&query).await
}

async fn fault_36_a_long_step_renews_its_lease(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor_with(SHORT_LEASE), &plugin, &step);
    session_running(&chain, "DELETE").await;
    let claimed = deadline(&chain).await;
    let renewed = until("the lease is renewed", async || {
        let now = deadline(&chain).await;
        (now.0 != claimed.0).then_some(now)
    })
    .await;
    assert_eq!((claimed.1, renewed.1), (0, 1));
    assert_eq!(chain.server.session_count(TARGET_USER).await, 2, "on a second connection");
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&first.await.unwrap()), "sql:preview:up:1");
    chain.server.assert_session_count(TARGET_USER, 0).await;
}
over_servers!(fault_36_a_long_step_renews_its_lease);

async fn fault_36_a_renewal_that_fails_stops_no_statement(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor_with(SHORT_LEASE), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    let claimed = deadline(&chain).await;
    // Nobody gets in any more, the renewing connection neither; who is in stays in.
    let mut admin = chain.admin().await;
    let refusals = "SHOW GLOBAL STATUS LIKE 'Aborted_connects'";
    let before: (String, u64) = admin.query_first(refusals).await.unwrap().unwrap();
    admin.query_drop(format!("RENAME USER '{TARGET_USER}'@'%' TO 'away'@'%'")).await.unwrap();
    until("the renewal is refused", async || {
        let now: (String, u64) = admin.query_first(refusals).await.unwrap().unwrap();
        (now.1 > before.1).then_some(())
    })
    .await;
    admin.query_drop(format!("RENAME USER 'away'@'%' TO '{TARGET_USER}'@'%'")).await.unwrap();
    assert!(has_session(&chain, session).await, "the statement goes on");
    assert_eq!(deadline(&chain).await.0, claimed.0);
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&first.await.unwrap()), "sql:preview:up:1");
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_36_a_renewal_that_fails_stops_no_statement);

async fn fault_37_a_dead_execution_is_not_kept_alive_by_its_renewal(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor_with(SHORT_LEASE), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    let claimed = deadline(&chain).await;
    until("the lease is renewed", async || (deadline(&chain).await != claimed).then_some(())).await;
    chain.server.execute(&[&format!("KILL CONNECTION {session}")]).await;
    let (error, retryable) = refused(first.await.unwrap());
    assert!(matches!(error, ExecutionError::ConnectionLost { statement: 1 }), "{error}");
    assert!(retryable);
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "FAILED");
    // The renewing connection is gone with it.
    chain.server.assert_session_count(TARGET_USER, 0).await;
    assert_eq!(ids(&chain).await, [2]);
    holder.query_drop("ROLLBACK").await.unwrap();
}
over_servers!(fault_37_a_dead_execution_is_not_kept_alive_by_its_renewal);

async fn fault_38_a_statement_that_does_not_end_is_stopped(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let _holder = hold_row_2(&chain).await;
    let executor = chain.executor_with(&[("SQL_TARGET_STATEMENT_BUDGET_SECONDS", "1")]);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    // MariaDB's own bound for a statement may be quicker than ours.
    assert!(
        matches!(&error, ExecutionError::StatementBudget { statement: 1, .. })
            || matches!(&error, ExecutionError::Statement { source, .. } if source.code == 1969),
        "{error:?}"
    );
    assert!(retryable);
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "FAILED");
    executor.rest().await;
    chain.server.assert_session_count(TARGET_USER, 0).await;
    assert_eq!(ids(&chain).await, [2]);
}
over_servers!(fault_38_a_statement_that_does_not_end_is_stopped);

async fn fault_39_an_expired_lease_is_not_called_running(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let holder = hold_row_2(&chain).await;
    let first = delivery(chain.executor(), &plugin, &step);
    let session = session_running(&chain, "DELETE").await;
    let shown = || tollgate(&chain, &["receipts"]).stdout;
    let line = |text: &str| {
        text.lines()
            .find(|line| line.contains("up:1"))
            .unwrap_or_else(|| panic!("{text}"))
            .to_owned()
    };
    assert!(line(&shown()).contains("  running"), "{}", shown());
    first.abort();
    assert!(first.await.is_err());
    chain.expire_leases().await;
    let text = line(&shown());
    assert!(text.contains("possibly still running on the server"), "{text}");
    drop(holder);
    // It may have ended by itself, once its row was free.
    let _ = chain.admin().await.query_drop(format!("KILL CONNECTION {session}")).await;
    until("the session is gone", async || (!has_session(&chain, session).await).then_some(()))
        .await;
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "RUNNING", "the row says nothing else");
    let text = line(&shown());
    assert!(text.contains("lease expired, owner unknown"), "{text}");
}
over_servers!(fault_39_an_expired_lease_is_not_called_running);
