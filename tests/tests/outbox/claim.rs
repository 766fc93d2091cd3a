//! Claims: in order within a plan, side by side across plans, never two at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::outbox::{Outbox, OutboxOptions, Reason, Report};
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, applied, plan};

#[tokio::test]
async fn steps_of_a_plan_come_in_order_and_plans_side_by_side() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("a", 3)).await;
        fixture.submit(&plan("b", 2)).await;
        let first = fixture.claim().await.unwrap();
        let second = fixture.claim().await.unwrap();
        let mut heads = [first.step().key.to_string(), second.step().key.to_string()];
        heads.sort();
        assert_eq!(heads, ["a:1", "b:1"], "{flavour}");
        assert_eq!((first.attempt(), second.attempt()), (1, 1));
        // Both plans' heads are taken: nothing behind them is due.
        assert_eq!(fixture.claimed().await, None, "{flavour}");
        let (a, b) = if first.plan().as_str() == "a" { (first, second) } else { (second, first) };
        fixture.record(&a, &applied(&a)).await;
        assert_eq!(fixture.claimed().await.as_deref(), Some("a:2"), "{flavour}");
        assert_eq!(fixture.claimed().await, None, "{flavour}");
        fixture.record(&b, &applied(&b)).await;
        assert_eq!(fixture.apply(9).await, ["b:2"], "{flavour}");
    }
}

#[tokio::test]
async fn many_workers_at_once_never_have_the_same_step() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        for number in 0..24 {
            fixture.submit(&plan(&format!("p{number}"), 1)).await;
        }
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (outbox, mut connection) = (fixture.outbox.clone(), fixture.open().await);
            workers.spawn(async move {
                let mut keys = Vec::new();
                // Without SKIP LOCKED a claim may lose to another and find nothing this once.
                let mut misses = 0;
                while misses < 3 {
                    match outbox.claim(&mut connection).await.unwrap() {
                        Some(claim) => keys.push(claim.step().key.to_string()),
                        None => misses += 1,
                    }
                }
                keys
            });
        }
        let keys: Vec<String> = workers.join_all().await.concat();
        let distinct: BTreeSet<&String> = keys.iter().collect();
        assert_eq!((keys.len(), distinct.len()), (24, 24), "{flavour}: {keys:?}");
    }
}

#[tokio::test]
async fn a_locked_row_is_skipped_and_not_waited_for() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("a", 1)).await;
    fixture.submit(&plan("b", 1)).await;
    let mut holder = fixture.server.admin().await;
    holder.query_drop("USE control_plane").await.unwrap();
    holder.query_drop("START TRANSACTION").await.unwrap();
    let locked = "SELECT id FROM factory_plugin_control_outbox WHERE step_idempotency_key = 'a:1' \
                  FOR UPDATE";
    holder.query_drop(locked).await.unwrap();
    let begun = Instant::now();
    assert_eq!(fixture.claimed().await.as_deref(), Some("b:1"));
    assert_eq!(fixture.claimed().await, None);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(fixture.claimed().await.as_deref(), Some("a:1"));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_set_aside_and_blocks_nothing() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("a", 2)).await;
        fixture.submit(&plan("b", 1)).await;
        fixture
            .run(
                "UPDATE factory_plugin_control_outbox SET step = '{\"of a newer version\": 1}' \
                 WHERE step_idempotency_key = 'a:1'",
            )
            .await;
        assert_eq!(fixture.apply(9).await, ["b:1"], "{flavour}");
        let statuses = fixture.statuses().await;
        assert_eq!(statuses[0], ("a:1".to_owned(), "NEEDS_ATTENTION".to_owned()), "{flavour}");
        assert_eq!(statuses[1], ("a:2".to_owned(), "WAITING".to_owned()), "{flavour}");
    }
}

#[tokio::test]
async fn a_step_that_takes_its_worker_down_each_time_needs_a_person_and_blocks_nothing() {
    for flavour in Flavour::available() {
        let mut fixture = Fixture::start(flavour).await;
        let options = OutboxOptions { attempts_max: 3, ..OutboxOptions::default() };
        fixture.outbox = Outbox::new(options);
        fixture.submit(&plan("poison", 2)).await;
        for delivery in 1..=3 {
            let claim = fixture.claim().await.unwrap();
            assert_eq!(claim.attempt(), delivery, "{flavour}");
            // Its worker dies: the lease runs out without a report.
            fixture.let_leases_end().await;
        }
        fixture.submit(&plan("other", 1)).await;
        assert_eq!(fixture.claimed().await.as_deref(), Some("other:1"), "{flavour}");
        let mut connection = fixture.open().await;
        let listed = fixture.outbox.needing_attention(&mut connection, 10).await.unwrap().steps;
        assert_eq!(listed[0].step_key.as_str(), "poison:1", "{flavour}");
        assert_eq!(listed[0].last_error_code.as_deref(), Some("deliveries-lost"));
        assert_eq!((listed[0].lost_count, listed[0].failure_count), (3, 0));

        fixture.outbox.retry(&mut connection, &listed[0].step_key).await.unwrap();
        assert_eq!(fixture.apply(9).await, ["poison:1", "poison:2"], "{flavour}");
    }
}

#[tokio::test]
async fn only_deliveries_lost_in_a_row_count() {
    let mut fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.outbox = Outbox::new(OutboxOptions { attempts_max: 2, ..OutboxOptions::default() });
    fixture.submit(&plan("up", 1)).await;
    for _ in 0..4 {
        fixture.claim().await.unwrap();
        fixture.let_leases_end().await;
        let claim = fixture.claim().await.unwrap();
        let reason = Reason::new("lease-held", "another delivery has it");
        fixture.record(&claim, &Report::Unknown { reason, retry_after: Duration::ZERO }).await;
    }
    assert_eq!(fixture.claimed().await.as_deref(), Some("up:1"));
}
