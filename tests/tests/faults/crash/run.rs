//! 4 to 6: while the statements run.

use mysql_async::prelude::Queryable as _;
use tollgate_tests::over_servers;
use tollgate_tests::process::Process;
use tollgate_tests::server::Flavour;

use super::stage::{MIXED, ROWS, Stage, applied, busy, faults};

async fn fault_04_a_crash_between_statements_ends_as_a_single_run(flavour: Flavour) {
    let once = Stage::of(flavour, MIXED).await;
    assert_eq!(applied(&once.deliver().await), "sql:preview:up:1");
    let expected = once.schema_and_data().await;
    assert_eq!(expected.0.len(), 3, "{:?}", expected.0);
    for next in 2..=4 {
        let stage = Stage::of(flavour, MIXED).await;
        stage.crash(&format!("statement=crash@{next}"));
        assert_ne!(stage.schema_and_data().await, expected, "the crash before {next} left it done");
        assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
        stage.expire_leases().await;
        assert_eq!(applied(&stage.deliver().await), "sql:preview:up:1");
        assert_eq!(stage.receipt().await, Some(("SUCCEEDED".to_owned(), 2, None)));
        assert_eq!(stage.schema_and_data().await, expected, "after a crash before {next}");
    }
}
over_servers!(fault_04_a_crash_between_statements_ends_as_a_single_run);

async fn fault_05_a_dead_executors_statement_is_gone_before_the_next_begins(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let mut holder = stage.hold_row_2().await;
    let mut executor = Process::spawn(&mut stage.execute(), &stage.file("printed"));
    let session = stage.deleting_session(0).await;
    executor.kill9();
    assert!(stage.has_session(session).await, "the statement ended with its client");
    busy(&stage.deliver().await, "lease-held");
    assert!(stage.has_session(session).await);
    stage.expire_leases().await;
    let second = stage.delivery();
    // It waits for the same row now: the first one's session must be gone.
    let next = stage.deleting_session(session).await;
    assert!(!stage.has_session(session).await, "sessions {session} and {next} ran side by side");
    holder.query_drop("ROLLBACK").await.unwrap();
    stage.assert_applied_once(&second.await.unwrap(), 2).await;
    assert_eq!(stage.attempts().await, 2);
}
over_servers!(fault_05_a_dead_executors_statement_is_gone_before_the_next_begins);

async fn fault_05_a_statement_that_cannot_be_ended_keeps_the_step_busy(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let mut holder = stage.hold_row_2().await;
    let mut executor = Process::spawn(&mut stage.execute(), &stage.file("printed"));
    let session = stage.deleting_session(0).await;
    executor.kill9();
    stage.expire_leases().await;
    let refused = faults("takeover-kill=error-before@1..");
    let outcome = stage.deliver_under(&refused).await;
    assert!(!refused.fired().is_empty());
    assert!(outcome.receipt().is_none(), "{outcome:?}");
    assert!(stage.has_session(session).await);
    assert_eq!(stage.attempts().await, 1, "nothing ran beside it");
    stage.expire_leases().await;
    let second = stage.delivery();
    stage.deleting_session(session).await;
    holder.query_drop("ROLLBACK").await.unwrap();
    stage.assert_applied_once(&second.await.unwrap(), 2).await;
}
over_servers!(fault_05_a_statement_that_cannot_be_ended_keeps_the_step_busy);

async fn fault_06_a_crash_after_the_last_statement_reruns_to_nothing(flavour: Flavour) {
    let stage = Stage::of(flavour, MIXED).await;
    stage.crash("complete=crash");
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    let made = stage.schema_and_data().await.0;
    stage.expire_leases().await;
    assert_eq!(applied(&stage.deliver().await), "sql:preview:up:1");
    assert_eq!(stage.receipt().await, Some(("SUCCEEDED".to_owned(), 2, None)));
    assert_eq!(stage.schema_and_data().await, (made, vec![(1, "one".to_owned())]));
}
over_servers!(fault_06_a_crash_after_the_last_statement_reruns_to_nothing);
