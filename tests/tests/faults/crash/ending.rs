//! 7 to 12: completion, its commit, and the record of a failure.

use tollgate_tests::chain::TARGET;
use tollgate_tests::over_servers;
use tollgate_tests::proxy::{Act, Proxy, Rule};
use tollgate_tests::server::Flavour;

use super::stage::{MIXED, RECEIPT, ROWS, Stage, applied, busy, faults, until_fired};

async fn fault_07_a_completion_without_an_answer_is_told_by_the_receipt(flavour: Flavour) {
    let stage = Stage::of(flavour, MIXED).await;
    let lost = faults("commit=error-after;fail-record=crash");
    let outcome = stage.deliver_under(&lost).await;
    assert_eq!(lost.fired().len(), 1, "no failure was written over it: {lost:?}");
    stage.assert_applied_once(&outcome, 1).await;
}
over_servers!(fault_07_a_completion_without_an_answer_is_told_by_the_receipt);

async fn fault_08_a_crash_before_the_acknowledgement_repeats_nothing(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    stage.crash("ack=crash");
    let receipt = Some(("SUCCEEDED".to_owned(), 1, None));
    assert_eq!(stage.receipt().await, receipt);
    let generation = stage.generation().await;
    let untouched = faults("claim-insert=crash;statement=crash;complete=crash");
    let outcome = stage.deliver_under(&untouched).await;
    stage.assert_applied_once(&outcome, 1).await;
    assert_eq!(stage.attempts().await, 1, "the second delivery ran something");
    assert_eq!(stage.generation().await, generation, "the second delivery wrote something");
}
over_servers!(fault_08_a_crash_before_the_acknowledgement_repeats_nothing);

async fn fault_09_a_crash_before_the_commit_undoes_receipt_and_rows(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    stage.crash("commit=crash");
    stage.chain.server.assert_session_count(tollgate_tests::chain::TARGET_USER, 0).await;
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    assert_eq!((stage.attempts().await, stage.effects().await), (1, 0));
    assert_eq!(stage.entries().await, [2]);
    stage.expire_leases().await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 2).await;
}
over_servers!(fault_09_a_crash_before_the_commit_undoes_receipt_and_rows);

async fn fault_10_a_commit_that_took_place_unseen_is_not_sent_again(flavour: Flavour) {
    for act in [Act::LoseAnswer, Act::HalfAnswer] {
        let stage = Stage::of(flavour, ROWS).await;
        let proxy = Proxy::to(stage.chain.server.port()).await;
        proxy.add(Rule::at_whole("COMMIT", act));
        let executor =
            stage.chain.executor_with(&[("SQL_TARGET_JDBC_URL", &proxy.jdbc_url(TARGET))]);
        let outcome = stage.delivery_by(executor, &faults("")).await.unwrap();
        assert_eq!(proxy.fired(), 1, "{act:?}");
        assert_eq!(proxy.count("COMMIT"), 1, "{act:?}");
        assert!(proxy.connection_count() >= 2, "the receipt was read in the lost session");
        stage.assert_applied_once(&outcome, 1).await;
    }
}
over_servers!(fault_10_a_commit_that_took_place_unseen_is_not_sent_again);

async fn fault_10_a_commit_that_never_arrived_is_no_success(flavour: Flavour) {
    for act in [Act::CutBefore, Act::HalfCommand] {
        let stage = Stage::of(flavour, ROWS).await;
        let proxy = Proxy::to(stage.chain.server.port()).await;
        proxy.add(Rule::at_whole("COMMIT", act));
        let executor =
            stage.chain.executor_with(&[("SQL_TARGET_JDBC_URL", &proxy.jdbc_url(TARGET))]);
        let outcome = stage.delivery_by(executor, &faults("")).await.unwrap();
        assert_eq!(proxy.fired(), 1, "{act:?}");
        assert_eq!(outcome.code(), Some("not-committed"), "{act:?}: {outcome:?}");
        assert_eq!((stage.attempts().await, stage.effects().await), (1, 0), "{act:?}");
        let failed = ("FAILED".to_owned(), 1, Some("not-committed".to_owned()));
        assert_eq!(stage.receipt().await, Some(failed), "{act:?}");
        let outcome = stage.deliver().await;
        stage.assert_applied_once(&outcome, 2).await;
    }
}
over_servers!(fault_10_a_commit_that_never_arrived_is_no_success);

async fn fault_11_a_lease_lost_in_the_transaction_undoes_all_of_it(flavour: Flavour) {
    let stage = Stage::of(flavour, ROWS).await;
    let go = stage.file("go");
    let waits = faults(&format!("complete=pause:{}", go.display()));
    let holder = stage.delivery_under(&waits);
    until_fired(&waits, 1).await;
    assert_eq!(stage.attempts().await, 1, "every statement ran");
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
    assert_eq!(stage.effects().await, 0);
    assert_eq!(stage.entries().await, [2]);
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    stage.expire_leases().await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 2).await;
}
over_servers!(fault_11_a_lease_lost_in_the_transaction_undoes_all_of_it);

async fn fault_12_a_crash_while_a_failure_is_recorded_invents_no_result(flavour: Flavour) {
    let payload = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
                   DELETE FROM absent WHERE id = 1;";
    let stage = Stage::of(flavour, payload).await;
    stage.crash("fail-record=crash");
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    busy(&stage.deliver().await, "lease-held");
    stage.expire_leases().await;
    let outcome = stage.deliver().await;
    assert_eq!(outcome.code(), Some("statement-failed"), "{outcome:?}");
    let (status, count, code) = stage.receipt().await.unwrap();
    assert_eq!((status.as_str(), count), ("FAILED", 2));
    assert!(code.is_some());
    assert_eq!((stage.attempts().await, stage.effects().await), (2, 0));
    stage.chain.admin_run("CREATE TABLE absent (id INT PRIMARY KEY) ENGINE=InnoDB").await;
    assert_eq!(applied(&stage.deliver().await), RECEIPT);
}
over_servers!(fault_12_a_crash_while_a_failure_is_recorded_invents_no_result);
