//! 14: told to stop.

use tollgate_tests::chain::TARGET_USER;
use tollgate_tests::over_servers;
use tollgate_tests::process::{Process, submit, tollgate};
use tollgate_tests::server::Flavour;
use tollgate_tests::staged::Staged;

use super::stage::{ROWS, Stage};

/// The step in the outbox, and `tollgate work` for it.
async fn enqueued(flavour: Flavour) -> Stage {
    let stage = Stage::of(flavour, ROWS).await;
    stage.chain.control().await;
    let document = stage.plugin.document_of("up", &["orders"]);
    let submitted = submit(&stage.chain, &stage.plugin, &document);
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    stage
}

fn work(stage: &Stage, staged: &Staged, arguments: &[&str]) -> Process {
    let releases = stage.plugin.root().display().to_string();
    let all = [&["work", "--releases", &releases][..], arguments].concat();
    Process::spawn(staged.on(&mut tollgate(&stage.chain, &[], &all)), &stage.file("log"))
}

async fn outbox_status(stage: &Stage) -> String {
    stage.chain.control_rows("SELECT status FROM factory_plugin_control_outbox").await.remove(0)
}

async fn fault_14_sigterm_lets_a_running_step_end(flavour: Flavour) {
    let stage = enqueued(flavour).await;
    let staged = Staged::new("statement=pause:{go}@2");
    let mut worker = work(&stage, &staged, &[]);
    staged.wait_until_fired();
    worker.signal("TERM");
    worker.wait_until_it_says("draining");
    staged.go_on();
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert_eq!(outbox_status(&stage).await, "APPLIED");
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 1).await;
}
over_servers!(fault_14_sigterm_lets_a_running_step_end);

/// The grace period is over while a statement is in flight: no failure is invented for it, its
/// session is ended, and its lease with it, so that the next worker need not wait.
async fn fault_14_sigterm_drops_a_statement_in_flight_and_gives_its_lease_back(flavour: Flavour) {
    let stage = enqueued(flavour).await;
    let holder = stage.hold_row_2().await;
    let unharmed = Staged::new("");
    let mut worker = work(&stage, &unharmed, &["--grace", "0"]);
    let session = stage.deleting_session(0).await;
    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(5), "{}", worker.log());
    assert_eq!(outbox_status(&stage).await, "PENDING");
    assert!(!stage.has_session(session).await, "the statement goes on without its worker");
    assert_eq!(stage.receipt().await, Some(("RUNNING".to_owned(), 1, None)));
    assert_eq!(stage.effects().await, 0);
    let is_over: u8 = stage
        .chain
        .value("SELECT lease_deadline <= UTC_TIMESTAMP(6) FROM factory_plugin_target_receipt")
        .await;
    assert_eq!(is_over, 1, "the lease runs on");
    drop(holder);
    let mut next = work(&stage, &unharmed, &["--until-idle"]);
    assert_eq!(next.wait().code(), Some(0), "{}", next.log());
    assert_eq!(outbox_status(&stage).await, "APPLIED");
    stage.chain.server.assert_session_count(TARGET_USER, 0).await;
    let outcome = stage.deliver().await;
    stage.assert_applied_once(&outcome, 2).await;
}
over_servers!(fault_14_sigterm_drops_a_statement_in_flight_and_gives_its_lease_back);
