//! 17 to 19: delivered again, at once, much later, and after the receipt was pruned.

use tollgate::ids::Direction;
use tollgate_tests::cli::{Run, run};
use tollgate_tests::over_servers;
use tollgate_tests::process::tollgate;
use tollgate_tests::server::Flavour;

use super::stage::{RECEIPT, ROWS, Stage, applied, faults, until_fired};

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

/// To the ledger it is as if: nothing but its times tells.
async fn forty_days_pass(stage: &Stage) {
    stage
        .chain
        .admin_run(
            "UPDATE factory_plugin_target_receipt SET created_at = created_at - INTERVAL 40 DAY, \
             updated_at = updated_at - INTERVAL 40 DAY, completed_at = completed_at - INTERVAL 40 \
             DAY, lease_deadline = lease_deadline - INTERVAL 40 DAY",
        )
        .await;
}

async fn fault_18_a_delivery_days_later_gives_the_stored_result(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    // The worker never learns of it.
    stage.crash("ack=crash");
    forty_days_pass(&stage).await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
    // Its release is not installed any more.
    std::fs::remove_dir_all(stage.plugin.release_folder("1.0.0")).unwrap();
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
    assert_eq!(stage.attempts().await, 1, "it ran again");
}
over_servers!(fault_18_a_delivery_days_later_gives_the_stored_result);

fn receipts(stage: &Stage, arguments: &[&str]) -> Run {
    run(&mut tollgate(&stage.chain, &[], &[&["receipts"], arguments].concat()))
}

async fn fault_19_a_delivery_after_its_receipt_was_pruned_is_refused(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    assert_eq!(applied(&stage.deliver().await), RECEIPT);
    forty_days_pass(&stage).await;
    let kept = receipts(&stage, &["prune", "--older-than", "60"]);
    assert_eq!((kept.code(), kept.stdout.as_str()), (Some(0), "0 receipt(s) pruned\n"));
    let pruned = receipts(&stage, &["prune", "--older-than", "30"]);
    assert_eq!((pruned.code(), pruned.stdout.as_str()), (Some(0), "1 receipt(s) pruned\n"));
    let (bulk, marker): (String, Option<String>) = stage
        .chain
        .value(
            "SELECT CONCAT(policy_digest, decision_digest), session_marker FROM \
             factory_plugin_target_receipt",
        )
        .await;
    assert_eq!((bulk.as_str(), marker), ("", None), "nothing was pruned");
    assert_eq!(stage.receipt().await, Some(("PRUNED".to_owned(), 1, None)));
    let generation = stage.generation().await;

    let untouched = faults("claim-insert=error-before@1..;statement=error-before@1..");
    for _ in 0..2 {
        let outcome = stage.deliver_under(&untouched).await;
        assert_eq!(outcome.code(), Some("receipt-pruned"), "{outcome:?}");
    }
    assert_eq!(untouched.fired(), [], "it was claimed again");
    assert_eq!((stage.attempts().await, stage.generation().await), (1, generation));
    let shown = receipts(&stage, &["--key", "up:1"]);
    assert!(shown.stdout.contains("succeeded, pruned"), "{}", shown.stdout);
    assert!(shown.stdout.contains(RECEIPT), "{}", shown.stdout);
    let listed = receipts(&stage, &["--state", "pruned", "--format", "json"]).json_lines();
    assert_eq!(listed[0]["standing"], "pruned");

    // It can still be taken back.
    let back = stage.plugin.step("up", Direction::Compensate);
    let outcome = stage.chain.deliver(&stage.plugin, &back).await;
    assert_eq!(applied(&outcome), "sql:preview:up:1:compensate");
    assert!(stage.entries().await.is_empty());
    let outcome = stage.deliver().await;
    assert_eq!(outcome.code(), Some("superseded"), "{outcome:?}");
}
over_servers!(fault_19_a_delivery_after_its_receipt_was_pruned_is_refused);
