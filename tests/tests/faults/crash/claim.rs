//! 1 to 3: around the claim.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use super::stage::{ROWS, Stage, busy, faults, until_fired};

async fn fault_01_a_crash_before_the_claim_leaves_no_row(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    stage.crash("claim-insert=crash");
    assert_eq!(stage.receipt_count().await, 0);
    assert_eq!(stage.attempts().await, 0);
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
}
over_servers!(fault_01_a_crash_before_the_claim_leaves_no_row);

async fn fault_02_a_claim_without_an_answer_is_ours_by_its_token(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let lost = faults("claim-insert=error-after");
    let outcome = stage.deliver_under(&lost).await;
    assert_eq!(lost.fired().len(), 1);
    // Both claims of the one token allowed the payload to start; one did.
    stage.assert_applied_once(&outcome, 2).await;
    assert_eq!(stage.attempts().await, 1);
}
over_servers!(fault_02_a_claim_without_an_answer_is_ours_by_its_token);

async fn fault_02_a_claim_without_an_answer_is_busy_when_another_has_the_row(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let mut holder = stage.hold_row_2().await;
    let go = stage.file("go");
    let lost =
        faults(&format!("claim-insert=error-before@1;claim-insert=pause:{}@2", go.display()));
    let loser = stage.delivery_under(&lost);
    // Its claim never arrived, and it is about to send it again by the same token.
    until_fired(&lost, 2).await;
    let winner = stage.delivery();
    stage.deleting_session(0).await;
    std::fs::write(&go, "").unwrap();
    assert!(busy(&loser.await.unwrap(), "lease-held") > Duration::ZERO);
    assert_eq!(stage.receipt_count().await, 1);
    holder.query_drop("ROLLBACK").await.unwrap();
    stage.assert_applied_once(&winner.await.unwrap(), 1).await;
}
over_servers!(fault_02_a_claim_without_an_answer_is_busy_when_another_has_the_row);

async fn fault_03_a_crash_after_the_claim_is_waited_out_and_taken_over(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    stage.crash("statement=crash");
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    assert_eq!(stage.attempts().await, 0);
    assert!(busy(&stage.deliver().await, "lease-held") > Duration::ZERO);
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    stage.expire_leases().await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 2).await;
}
over_servers!(fault_03_a_crash_after_the_claim_is_waited_out_and_taken_over);
