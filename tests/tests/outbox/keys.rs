//! Each key belongs to one plan, those of compensations from the beginning.

use tollgate::ids::StepKey;
use tollgate::outbox::{CompensateError, SubmitError, Submitted};
use tollgate::plan::{Plan, PlanCode};
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, document, plan, sql, with_key};

/// A plan `pb` whose first step has the key that takes step 4 of the plan `pa` back.
fn intruder() -> Plan {
    with_key(&document("pb", 2, |_| true), "pb:1", "pa:4:compensate")
}

fn key(text: &str) -> StepKey {
    text.parse().unwrap()
}

fn code(text: &str) -> PlanCode {
    text.parse().unwrap()
}

#[tokio::test]
async fn no_plan_takes_the_key_of_anothers_compensation() {
    for flavour in Flavour::available() {
        for (first, second, owner) in
            [(plan("pa", 4), intruder(), "pa"), (intruder(), plan("pa", 4), "pb")]
        {
            let fixture = Fixture::start(flavour).await;
            fixture.submit(&first).await;
            let before = fixture.statuses().await;
            let refused = fixture.outbox.submit(&mut fixture.open().await, &second, &sql()).await;
            let taken = vec![(key("pa:4:compensate"), code(owner))];
            assert_eq!(refused, Err(SubmitError::KeysTaken(taken)), "{flavour}");
            assert_eq!(fixture.statuses().await, before, "{flavour}: nothing was written");
        }
    }
}

/// No unique key covers both columns: the later one to look finds the other.
#[tokio::test]
async fn nor_when_both_are_submitted_at_the_same_moment() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        for round in 0..10 {
            let pa = format!("pa{round}");
            let pb = document(&format!("pb{round}"), 2, |_| true);
            let plans = [
                plan(&pa, 4),
                with_key(&pb, &format!("pb{round}:1"), &format!("{pa}:4:compensate")),
            ];
            let mut submissions = tokio::task::JoinSet::new();
            for plan in plans {
                let (outbox, mut connection) = (fixture.outbox.clone(), fixture.open().await);
                submissions
                    .spawn(async move { outbox.submit(&mut connection, &plan, &sql()).await });
            }
            let submitted = submissions.join_all().await;
            let enqueued =
                submitted.iter().filter(|it| matches!(it, Ok(Submitted::Enqueued { .. }))).count();
            let taken =
                submitted.iter().filter(|it| matches!(it, Err(SubmitError::KeysTaken(_)))).count();
            assert_eq!((enqueued, taken), (1, 1), "{flavour} {round}: {submitted:?}");
        }
    }
}

#[tokio::test]
async fn a_compensation_whose_key_another_plan_has_all_the_same_is_refused_by_name() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("pa", 2)).await;
    fixture.submit(&plan("pb", 1)).await;
    fixture.apply(9).await;
    fixture
        .run(
            "UPDATE factory_plugin_control_outbox SET step_idempotency_key = 'pa:2:compensate' \
             WHERE step_idempotency_key = 'pb:1'",
        )
        .await;
    let before = fixture.statuses().await;
    let refused = fixture.outbox.compensate(&mut fixture.open().await, &code("pa"), None).await;
    let taken = vec![(key("pa:2:compensate"), code("pb"))];
    assert_eq!(refused, Err(CompensateError::KeysTaken(taken)));
    assert_eq!(fixture.statuses().await, before, "nothing was written");
}
