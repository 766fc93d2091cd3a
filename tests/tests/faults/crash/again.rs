//! 17 and 18: delivered again, at once and much later.

use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::stage::{RECEIPT, ROWS, Stage, applied, faults, until_fired};

async fn fault_17_two_deliveries_at_one_moment_are_one_run(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let go = stage.file("go");
    let points = format!("claim-insert=pause:{}", go.display());
    let both = [faults(&points), faults(&points)];
    let deliveries: Vec<_> = both.iter().map(|each| stage.delivery_under(each)).collect();
    for each in &both {
        // Both have read that there is no receipt.
        until_fired(each, 1).await;
    }
    assert_eq!(stage.receipt_count().await, 0);
    std::fs::write(&go, "").unwrap();
    let mut applied_count = 0;
    for delivery in deliveries {
        let outcome = delivery.await.unwrap();
        match outcome.code() {
            None => applied_count += usize::from(applied(&outcome) == RECEIPT),
            code => assert_eq!(code, Some("lease-held"), "{outcome:?}"),
        }
    }
    assert!(applied_count >= 1);
    assert_eq!(stage.attempts().await, 1, "both ran");
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
}
over_servers!(fault_17_two_deliveries_at_one_moment_are_one_run);

async fn fault_18_a_delivery_days_later_gives_the_stored_result(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    // The worker never learns of it.
    stage.crash("ack=crash");
    stage
        .chain
        .admin_run(
            "UPDATE factory_plugin_target_receipt SET created_at = created_at - INTERVAL 40 DAY, \
             updated_at = updated_at - INTERVAL 40 DAY, completed_at = completed_at - INTERVAL 40 \
             DAY, lease_deadline = lease_deadline - INTERVAL 40 DAY",
        )
        .await;
    stage.chain.server.execute(&["FLUSH TABLES"]).await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
    // Its release is not installed any more.
    std::fs::remove_dir_all(stage.plugin.release_folder("1.0.0")).unwrap();
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
    assert_eq!(stage.attempts().await, 1, "it ran again");
}
over_servers!(fault_18_a_delivery_days_later_gives_the_stored_result);
