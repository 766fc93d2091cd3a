//! The outbox through two nodes at the same moment.

use std::time::Duration;

use tollgate::ids::{ExecutorCode, ExternalReceipt};
use tollgate::outbox::{Claim, ExecutorChoice, Outbox, OutboxOptions, Report, Status};
use tollgate_tests::chain::Plugin;

use crate::nodes::Nodes;

const ROUNDS_MAX: usize = 300;
const CONFLICTS_WANTED: u64 = 3;

fn applied(claim: &Claim) -> Report {
    let environment = "preview".parse().unwrap();
    Report::Applied(ExternalReceipt::sql(&environment, &claim.step().key))
}

/// Conflicts between claims of one step, and between its record and its takeover.
#[derive(Debug, Default)]
struct Met {
    claims: u64,
    records: u64,
}

#[tokio::test]
async fn fault_56_a_step_is_claimed_and_recorded_through_one_node_only() {
    let Some(nodes) = Nodes::start().await else { return };
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
    // Over at once: what is claimed can be taken over.
    let options = OutboxOptions { lease: Duration::from_millis(1), ..OutboxOptions::default() };
    let outbox = Outbox::new(options);
    let mut one = nodes.control(0).open().await.unwrap();
    let mut two = nodes.control(1).open().await.unwrap();
    let patient = Outbox::default();
    let mut met = Met::default();
    let mut rounds = 0;
    while met.claims.min(met.records) < CONFLICTS_WANTED && rounds < ROUNDS_MAX {
        let plan = plugin.plan(&format!("claim{rounds}"), "1.0.0");
        patient.submit(&mut one, &plan, &sql).await.unwrap();
        let before = nodes.conflicts().await;
        let (first, second) = tokio::join!(patient.claim(&mut one), patient.claim(&mut two));
        met.claims += nodes.conflicts().await - before;
        let claims: Vec<Claim> = [first, second].into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(claims.len(), 1, "round {rounds}: {claims:?}");
        patient.record(&mut one, &claims[0], &applied(&claims[0])).await.unwrap().unwrap();

        let plan = plugin.plan(&format!("record{rounds}"), "1.0.0");
        patient.submit(&mut one, &plan, &sql).await.unwrap();
        let claim = outbox.claim(&mut one).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let before = nodes.conflicts().await;
        let report = applied(&claim);
        let (recorded, taken) =
            tokio::join!(outbox.record(&mut one, &claim, &report), patient.claim(&mut two));
        met.records += nodes.conflicts().await - before;
        match (recorded.unwrap(), taken.unwrap()) {
            (Ok(recorded), None) => assert_eq!(recorded.status, Status::Applied),
            (Err(_), Some(taken)) => {
                patient.record(&mut two, &taken, &applied(&taken)).await.unwrap().unwrap();
            }
            both => panic!("round {rounds}: recorded and taken over, or neither: {both:?}"),
        }
        rounds += 1;
    }
    println!("galera: conflicts in {rounds} rounds: {met:?}");
    assert!(met.claims > 0 && met.records > 0, "the fault did not fire: {met:?}");
    let statuses: Vec<(String, usize)> = nodes.chains[2]
        .control_rows("SELECT status, COUNT(*) FROM factory_plugin_control_outbox GROUP BY status")
        .await;
    assert_eq!(statuses, [("APPLIED".to_owned(), 2 * rounds)]);
}
