//! 13, 15, 16: taking over, and being taken over.

use mysql_async::prelude::Queryable as _;
use tollgate_tests::over_servers;
use tollgate_tests::process::Process;
use tollgate_tests::server::Flavour;
use tollgate_tests::staged::Staged;

use super::stage::{ROWS, Stage, busy, faults, until_fired};

async fn fault_13_a_crash_during_a_takeover_is_taken_over_in_turn(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let mut holder = stage.hold_row_2().await;
    let mut executor = Process::spawn(&mut stage.execute(), &stage.file("printed"));
    let session = stage.deleting_session(0).await;
    executor.kill9();
    let first = stage.generation().await;
    stage.expire_leases().await;
    stage.crash("takeover-kill=crash");
    assert!(stage.has_session(session).await, "the old session was killed before the crash");
    let second = stage.generation().await;
    assert!(second > first, "{second} after {first}: the new token was not written");
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    busy(&stage.deliver().await, "lease-held");
    stage.expire_leases().await;
    let next = stage.delivery();
    stage.deleting_session(session).await;
    assert!(!stage.has_session(session).await);
    assert!(stage.generation().await > second);
    holder.query_drop("ROLLBACK").await.unwrap();
    stage.assert_applied_once(&next.await.unwrap(), 2).await;
}
over_servers!(fault_13_a_crash_during_a_takeover_is_taken_over_in_turn);

async fn fault_15_a_stopped_holder_wakes_up_to_a_lost_lease(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let sleeping = Staged::new("hold-check=pause:{go}@2");
    let mut sleeper = stage.spawn(&sleeping);
    sleeping.wait_until_fired();
    sleeper.stop();
    stage.expire_leases().await;
    let working = Staged::new("statement=pause:{go}@2");
    let mut taker = stage.spawn(&working);
    working.wait_until_fired();
    sleeping.go_on();
    sleeper.signal("CONT");
    assert_eq!(sleeper.wait().code(), Some(3), "{}", sleeper.log());
    assert!(sleeper.log().contains("\"lease-lost\""), "{}", sleeper.log());
    assert_eq!(stage.effects().await, 0, "the sleeper's row was committed");
    working.go_on();
    assert_eq!(taker.wait().code(), Some(0), "{}", taker.log());
    assert_eq!(stage.attempts().await, 2);
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 2).await;
}
over_servers!(fault_15_a_stopped_holder_wakes_up_to_a_lost_lease);

async fn fault_15_a_lease_lost_between_statements_sends_no_further_one(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let go = stage.file("go");
    let waits = faults(&format!("hold-check=pause:{}@2;statement=error-before@2..", go.display()));
    let holder = stage.delivery_under(&waits);
    until_fired(&waits, 1).await;
    // As another holder leaves the row whose KILL did not reach this session.
    stage
        .chain
        .admin_run(
            "UPDATE factory_plugin_target_receipt SET generation = generation + 1, lease_token = \
             '00000000000000000000000000000000'",
        )
        .await;
    std::fs::write(&go, "").unwrap();
    let outcome = holder.await.unwrap();
    assert_eq!(outcome.code(), Some("lease-lost"), "{outcome:?}");
    assert_eq!(waits.fired().len(), 1, "another statement was sent: {waits:?}");
    assert_eq!((stage.attempts().await, stage.effects().await), (1, 0));
}
over_servers!(fault_15_a_lease_lost_between_statements_sends_no_further_one);

async fn fault_16_a_payload_that_kills_its_executor_ends_with_a_person(flavour: Flavour) {
    let bound = [("SQL_TARGET_EXECUTION_COUNT_MAX", "3")];
    let stage = Stage::of(flavour, ROWS).await;
    for count in 1..=3 {
        stage.crash_with(&bound, "statement=crash@2");
        assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), count, None)));
        stage.expire_leases().await;
    }
    assert_eq!(stage.attempts().await, 3);
    let executor = stage.chain.executor_with(&bound);
    let outcome = stage.delivery_by(executor, &faults("")).await.unwrap();
    assert_eq!(outcome.code(), Some("needs-attention"), "{outcome:?}");
    assert_eq!(stage.attempts().await, 3, "it was started a fourth time");
    assert_eq!((stage.effects().await, stage.entries().await), (0, vec![2]));
}
over_servers!(fault_16_a_payload_that_kills_its_executor_ends_with_a_person);
