//! Claims of one step through two nodes at the same moment.

use tollgate::ledger::{Busy, BusyReason, Claim, ClaimError, Ledger};
use tollgate_tests::claims::forward;

use crate::nodes::Nodes;

/// Rounds in which both nodes claim; the first ones nearly always meet.
const ROUNDS_MAX: usize = 300;
/// Conflicts between nodes after which it is enough.
const CONFLICTS_WANTED: u64 = 3;

/// One of two has the step, and the other one was told so.
fn assert_one_holder(claims: &[Result<Claim, ClaimError>; 2], round: usize) {
    let is_busy = |claim: &Result<Claim, ClaimError>| {
        matches!(claim, Ok(Claim::Busy(Busy { reason: BusyReason::LeaseHeld, .. })))
    };
    let holders = claims.iter().filter(|claim| matches!(claim, Ok(Claim::Granted(_)))).count();
    let busy = claims.iter().filter(|claim| is_busy(claim)).count();
    assert_eq!((holders, busy), (1, 1), "round {round}: {claims:?}");
}

#[tokio::test]
async fn fault_56_a_step_claimed_through_two_nodes_at_once_has_one_holder() {
    let Some(nodes) = Nodes::start().await else { return };
    let ledgers = [Ledger::default(), Ledger::default()];
    let (mut one, mut two) = (nodes.target(0).await, nodes.target(1).await);
    let before = nodes.conflicts().await;
    let mut met = 0;
    let mut rounds = 0;
    while met < CONFLICTS_WANTED && rounds < ROUNDS_MAX {
        let request = forward(&format!("new-{rounds}"));
        let (first, second) = tokio::join!(
            ledgers[0].claim(&mut one, &request),
            ledgers[1].claim(&mut two, &request)
        );
        assert_one_holder(&[first, second], rounds);
        rounds += 1;
        met = nodes.conflicts().await - before;
    }
    println!("galera: {met} conflicts between new claims in {rounds} rounds");
    assert!(met > 0, "the fault did not fire: no two claims met in {rounds} rounds");
}

#[tokio::test]
async fn fault_56_a_dead_holders_step_is_taken_over_by_one_node() {
    let Some(nodes) = Nodes::start().await else { return };
    let ledgers = [Ledger::default(), Ledger::default()];
    let (mut one, mut two) = (nodes.target(0).await, nodes.target(1).await);
    let request = forward("taken");
    let mut met = 0;
    let mut rounds = 0;
    while met < CONFLICTS_WANTED && rounds < ROUNDS_MAX {
        // Failed, so that neither has to look for the other's session.
        nodes.chains[0].admin_run("DELETE FROM factory_plugin_target_receipt").await;
        let mut third = nodes.target(0).await;
        let failed = ledgers[0].claim(&mut third, &request).await.unwrap();
        let lease = tollgate_tests::claims::granted(failed);
        let failure = tollgate_tests::claims::failure();
        ledgers[0].fail(&mut third, &lease, &failure).await.unwrap();
        third.close().await;
        nodes.settle().await;
        let before = nodes.conflicts().await;
        let (first, second) = tokio::join!(
            ledgers[0].claim(&mut one, &request),
            ledgers[1].claim(&mut two, &request)
        );
        assert_one_holder(&[first, second], rounds);
        rounds += 1;
        met += nodes.conflicts().await - before;
    }
    println!("galera: {met} conflicts between takeovers in {rounds} rounds");
    assert!(met > 0, "the fault did not fire: no two takeovers met in {rounds} rounds");
}
