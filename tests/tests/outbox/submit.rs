//! Enqueueing: whole, once, and under keys of its own.

use tollgate::ids::ExecutorCode;
use tollgate::outbox::{Counts, ExecutorChoice, Status, SubmitError, Submitted};
use tollgate::plan::Plan;
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, plan, plan_with, sql};

#[tokio::test]
async fn a_plan_is_enqueued_once_and_only_its_first_step_is_due() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        // More than one INSERT takes.
        let plan = plan("up", 120);
        fixture.submit(&plan).await;
        let again = fixture.outbox.submit(&mut fixture.open().await, &plan, &sql()).await.unwrap();
        let counts = Counts::from([(Status::Pending, 1), (Status::Waiting, 119)]);
        assert_eq!(again, Submitted::Already { counts }, "{flavour}");
        let statuses = fixture.statuses().await;
        assert_eq!(statuses.len(), 120);
        assert_eq!(statuses[0], ("up:1".to_owned(), "PENDING".to_owned()));
        assert!(statuses[1..].iter().all(|(_, status)| status == "WAITING"), "{flavour}");
    }
}

#[tokio::test]
async fn submitted_at_the_same_moment_it_is_enqueued_once() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    for round in 0..5 {
        let plan = plan(&format!("up{round}"), 20);
        let mut connections = Vec::new();
        for _ in 0..4 {
            connections.push(fixture.open().await);
        }
        let mut submissions = tokio::task::JoinSet::new();
        for mut connection in connections {
            let (outbox, plan) = (fixture.outbox.clone(), plan.clone());
            submissions.spawn(async move { outbox.submit(&mut connection, &plan, &sql()).await });
        }
        let submitted = submissions.join_all().await;
        let enqueued = |submitted: &&Result<_, _>| {
            matches!(submitted, Ok(Submitted::Enqueued { step_count: 20 }))
        };
        assert_eq!(submitted.iter().filter(enqueued).count(), 1, "{submitted:?}");
        assert!(submitted.iter().all(Result::is_ok), "{submitted:?}");
        assert_eq!(fixture.statuses().await.len(), 20 * (round + 1));
    }
}

#[tokio::test]
async fn another_plan_under_the_same_code_is_refused() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 2)).await;
    let other = plan("up", 3);
    let refused = fixture.outbox.submit(&mut fixture.open().await, &other, &sql()).await;
    let error = refused.unwrap_err();
    assert_eq!(error.code(), "plan-submitted-otherwise");
    assert!(error.to_string().contains(&other.fingerprint().to_string()), "{error}");
    assert_eq!(fixture.statuses().await.len(), 2);
}

#[tokio::test]
async fn the_same_plan_for_another_executor_is_refused_by_name() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    let (plan, dry_run) = (plan("up", 2), ExecutorChoice { sql: ExecutorCode::dry_run_v1() });
    let mut connection = fixture.open().await;
    fixture.outbox.submit(&mut connection, &plan, &dry_run).await.unwrap();
    let error = fixture.outbox.submit(&mut connection, &plan, &sql()).await.unwrap_err();
    assert_eq!(error.code(), "plan-of-other-executor");
    assert!(
        error.to_string().contains("`dry-run:v1`") && error.to_string().contains("`sql-jdbc:v1`"),
        "{error}"
    );
    let again = fixture.outbox.submit(&mut connection, &plan, &dry_run).await.unwrap();
    assert!(matches!(again, Submitted::Already { .. }), "{again:?}");
}

#[tokio::test]
async fn a_key_of_another_plan_is_refused_with_that_plans_name() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 2)).await;
    // Another plan's code, the same step keys: a plan of schema 1.0 may name them as it likes.
    let document = std::fs::read_to_string("golden/plans/1.0.json").unwrap();
    let golden = Plan::parse(document.as_bytes()).unwrap();
    fixture
        .run(&format!(
            "UPDATE factory_plugin_control_outbox SET step_idempotency_key = '{}' WHERE \
             step_idempotency_key = 'up:2'",
            golden.steps()[0].key
        ))
        .await;
    let refused = fixture.outbox.submit(&mut fixture.open().await, &golden, &sql()).await;
    let Err(SubmitError::KeysTaken(taken)) = refused else { panic!("{refused:?}") };
    assert_eq!(taken.len(), 1);
    assert_eq!((&taken[0].0, taken[0].1.as_str()), (&golden.steps()[0].key, "up"));
    assert_eq!(fixture.statuses().await.len(), 2);
}

#[tokio::test]
async fn a_step_keeps_what_takes_it_back() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan_with("up", 2, |number| number == 2)).await;
    let steps: Vec<String> =
        fixture.rows("SELECT step FROM factory_plugin_control_outbox ORDER BY id").await;
    assert!(steps[0].ends_with(r#""undo":"none"}"#), "{}", steps[0]);
    assert!(steps[1].contains(r#""key":"up:2:compensate""#), "{}", steps[1]);
    assert!(!steps.concat().contains("DROP TABLE"), "no payload is kept");
}
