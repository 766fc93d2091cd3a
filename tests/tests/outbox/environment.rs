//! A plan belongs to the environment it was submitted under.

use tollgate::ids::StepKey;
use tollgate::outbox::{Belonging, ExecutorChoice, Outbox, OutboxOptions, Status};
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, applied, plan, sql};

fn environment(code: &str) -> Belonging {
    Belonging(Some(code.parse().unwrap()))
}

async fn claimed(fixture: &Fixture, outbox: &Outbox) -> Option<String> {
    let claim = outbox.claim(&mut fixture.open().await).await.unwrap();
    claim.map(|claim| claim.step().key.to_string())
}

#[tokio::test]
async fn a_step_is_claimed_by_workers_of_its_environment_only() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        let (preview, staging) = (fixture.elsewhere("preview"), fixture.elsewhere("staging"));
        let mut connection = fixture.open().await;
        preview.submit(&mut connection, &plan("up", 2), &sql()).await.unwrap();
        assert_eq!(claimed(&fixture, &staging).await, None, "{flavour}");
        assert_eq!(claimed(&fixture, &fixture.outbox).await, None, "{flavour}: no environment");
        assert!(staging.is_idle(&mut connection).await.unwrap(), "{flavour}");
        assert!(!preview.is_idle(&mut connection).await.unwrap(), "{flavour}");
        let hasty = OutboxOptions {
            lease: std::time::Duration::from_millis(1),
            ..preview.options().clone()
        };
        assert_eq!(claimed(&fixture, &Outbox::new(hasty)).await.as_deref(), Some("up:1"));
        // Nor is an abandoned one.
        fixture.let_leases_end().await;
        assert_eq!(claimed(&fixture, &staging).await, None, "{flavour}");
        assert_eq!(claimed(&fixture, &preview).await.as_deref(), Some("up:1"), "{flavour}");
    }
}

#[tokio::test]
async fn steps_without_a_target_belong_to_no_environment() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 1)).await;
    assert_eq!(claimed(&fixture, &fixture.elsewhere("preview")).await, None);
    let mut connection = fixture.open().await;
    let steps = fixture.outbox.plan_steps(&mut connection, &"up".parse().unwrap()).await.unwrap();
    assert_eq!(steps[0].environment, None);
    let kept: Vec<String> =
        fixture.rows("SELECT environment_code FROM factory_plugin_control_outbox").await;
    assert_eq!(kept, ["-"]);
    assert_eq!(claimed(&fixture, &fixture.outbox).await.as_deref(), Some("up:1"));
}

#[tokio::test]
async fn a_plan_of_another_environment_is_neither_submitted_again_nor_taken_back() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    let (preview, staging) = (fixture.elsewhere("preview"), fixture.elsewhere("staging"));
    let (plan, mut connection) = (plan("up", 2), fixture.open().await);
    preview.submit(&mut connection, &plan, &sql()).await.unwrap();
    let claim = preview.claim(&mut connection).await.unwrap().unwrap();
    preview.record(&mut connection, &claim, &applied(&claim)).await.unwrap().unwrap();
    let before = fixture.statuses().await;

    let error = staging.submit(&mut connection, &plan, &sql()).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "plan-of-other-environment",
            "plan `up` was submitted before and belongs to the environment `preview`; this is the \
             environment `staging`"
        )
    );
    for (outbox, this) in
        [(&staging, "the environment `staging`"), (&fixture.outbox, "no environment")]
    {
        let error = outbox.compensate(&mut connection, plan.code(), None).await.unwrap_err();
        assert_eq!(error.code(), "plan-of-other-environment");
        for named in ["`up:1`", "`up`", "the environment `preview`", this] {
            assert!(error.to_string().contains(named), "{named}: {error}");
        }
    }
    assert_eq!(fixture.statuses().await, before, "nothing was written");

    let back = preview.compensate(&mut connection, plan.code(), None).await.unwrap();
    assert_eq!(back.enqueued.iter().map(StepKey::as_str).collect::<Vec<_>>(), ["up:1:compensate"]);
    let steps = preview.plan_steps(&mut connection, plan.code()).await.unwrap();
    assert_eq!(steps[2].status, Status::Pending);
    assert!(steps.iter().all(|step| step.environment == environment("preview").0), "{steps:?}");
    assert_eq!(claimed(&fixture, &staging).await, None, "the compensation inherits it");
    assert_eq!(claimed(&fixture, &preview).await.as_deref(), Some("up:1:compensate"));
}

#[tokio::test]
async fn what_is_due_elsewhere_is_known_and_what_is_not_due_is_not() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        let mut connection = fixture.open().await;
        for code in ["one", "staging", "two"] {
            let outbox = fixture.elsewhere(code);
            outbox.submit(&mut connection, &plan(code, 2), &sql()).await.unwrap();
        }
        fixture.submit(&plan("none", 1)).await;
        fixture
            .run(
                "UPDATE factory_plugin_control_outbox SET not_before = UTC_TIMESTAMP(6) \
                 + INTERVAL 1 HOUR WHERE environment_code = 'two'",
            )
            .await;
        let due = fixture.elsewhere("staging").due_elsewhere(&mut connection).await.unwrap();
        assert_eq!(due, [Belonging(None), environment("one")], "{flavour}");
        fixture.apply(1).await;
        let one = fixture.elsewhere("one");
        assert!(one.claim(&mut connection).await.unwrap().is_some());
        let due = fixture.elsewhere("staging").due_elsewhere(&mut connection).await.unwrap();
        assert_eq!(due, [], "{flavour}");
    }
}

#[tokio::test]
async fn applied_steps_are_held_against_the_ledger_of_their_own_environment() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    let (preview, staging) = (fixture.elsewhere("preview"), fixture.elsewhere("staging"));
    let mut connection = fixture.open().await;
    let executors: ExecutorChoice = sql();
    preview.submit(&mut connection, &plan("up", 1), &executors).await.unwrap();
    let claim = preview.claim(&mut connection).await.unwrap().unwrap();
    preview.record(&mut connection, &claim, &applied(&claim)).await.unwrap().unwrap();
    assert_eq!(staging.applied_sql(&mut connection, 0, 10).await.unwrap(), []);
    assert_eq!(preview.applied_sql(&mut connection, 0, 10).await.unwrap().len(), 1);
}
