//! Taking a plan back.

use tollgate::ids::StepKey;
use tollgate::outbox::{
    CompensateError, Compensated, ExecutorChoice, Outbox, OutboxOptions, Reason, Report, Status,
};
use tollgate::plan::Plan;
use tollgate_tests::server::Flavour;

use crate::cost::fill;
use crate::fixture::{Fixture, failed, plan, plan_with};

async fn compensate(
    fixture: &Fixture,
    plan: &str,
    from: Option<&str>,
) -> Result<Compensated, CompensateError> {
    let (plan, from) = (plan.parse().unwrap(), from.map(|key| key.parse::<StepKey>().unwrap()));
    fixture.outbox.compensate(&mut fixture.open().await, &plan, from.as_ref()).await
}

fn keys(compensated: &Compensated) -> Vec<&str> {
    compensated.enqueued.iter().map(StepKey::as_str).collect()
}

#[tokio::test]
async fn a_plan_is_taken_back_in_reverse_order_and_once() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 4)).await;
        fixture.apply(3).await;
        let back = compensate(&fixture, "up", None).await.unwrap();
        let expected = ["up:3:compensate", "up:2:compensate", "up:1:compensate"];
        assert_eq!(keys(&back), expected, "{flavour}");
        assert_eq!((back.already, back.superseded), (0, 1), "{flavour}");
        assert_eq!(fixture.apply(9).await, expected, "{flavour}");
        let again = compensate(&fixture, "up", None).await.unwrap();
        assert_eq!((keys(&again).len(), again.already, again.superseded), (0, 3, 0), "{flavour}");
        assert_eq!(fixture.statuses().await[3].1, "SUPERSEDED", "{flavour}");
    }
}

#[tokio::test]
async fn from_a_step_on_and_then_the_rest() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 3)).await;
    fixture.apply(3).await;
    let back = compensate(&fixture, "up", Some("up:2")).await.unwrap();
    assert_eq!(keys(&back), ["up:3:compensate", "up:2:compensate"]);
    // The rest is asked for before the first part is done: it goes behind it.
    let rest = compensate(&fixture, "up", None).await.unwrap();
    assert_eq!((keys(&rest), rest.already), (vec!["up:1:compensate"], 2));
    let order = ["up:3:compensate", "up:2:compensate", "up:1:compensate"];
    assert_eq!(fixture.apply(9).await, order);
}

#[tokio::test]
async fn not_while_a_forward_step_is_carried_out() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 2)).await;
    fixture.apply(1).await;
    let claim = fixture.claim().await.unwrap();
    let error = compensate(&fixture, "up", None).await.unwrap_err();
    assert_eq!(error.code(), "forward-step-running");
    assert!(error.to_string().contains("`up:2`") && error.help().contains("wait"), "{error}");
    // It is not known whether it was applied: its compensation finds out.
    let reason = Reason::new("commit-unanswered", "the answer was lost");
    let report = Report::Unknown { reason, retry_after: std::time::Duration::ZERO };
    fixture.record(&claim, &report).await;
    let back = compensate(&fixture, "up", None).await.unwrap();
    assert_eq!(keys(&back), ["up:2:compensate", "up:1:compensate"]);
    assert_eq!(back.superseded, 1);
    assert_eq!(fixture.apply(9).await, ["up:2:compensate", "up:1:compensate"]);
}

#[tokio::test]
async fn a_step_that_failed_half_way_is_taken_back_too() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 3)).await;
    let claim = fixture.claim().await.unwrap();
    fixture.record(&claim, &failed()).await;
    let back = compensate(&fixture, "up", None).await.unwrap();
    assert_eq!((keys(&back), back.superseded), (vec!["up:1:compensate"], 3));
    fixture.let_time_pass().await;
    assert_eq!(fixture.apply(9).await, ["up:1:compensate"], "the forward step never comes again");
}

#[tokio::test]
async fn steps_without_compensation_refuse_all_of_it_by_name() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan_with("up", 4, |number| number % 2 == 0)).await;
    fixture.apply(3).await;
    let before = fixture.statuses().await;
    let error = compensate(&fixture, "up", None).await.unwrap_err();
    assert_eq!(error.code(), "compensation-refused");
    assert!(
        error.to_string().contains("`up:1`") && error.to_string().contains("`up:3`"),
        "{error}"
    );
    // What would be left to take back is in front of a step that cannot be, so no `--from` helps.
    assert!(!error.help().contains("--from"), "{}", error.help());
    assert_eq!(fixture.statuses().await, before, "nothing was written");
    // What was never delivered needs none.
    let back = compensate(&fixture, "up", Some("up:4")).await.unwrap();
    assert_eq!((keys(&back).len(), back.superseded), (0, 1));
}

#[tokio::test]
async fn what_can_be_taken_back_behind_steps_that_cannot_is_named() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan_with("up", 4, |number| number > 2)).await;
    fixture.apply(4).await;
    let error = compensate(&fixture, "up", None).await.unwrap_err();
    assert!(error.help().contains("`--from up:3`"), "{}", error.help());
    let back = compensate(&fixture, "up", Some("up:3")).await.unwrap();
    assert_eq!(keys(&back), ["up:4:compensate", "up:3:compensate"]);
}

/// What is advised for a step that needs a person is what taking its plan back does.
#[tokio::test]
async fn a_step_that_needs_a_person_is_advised_what_its_plan_can_do() {
    for flavour in Flavour::available() {
        let mut fixture = Fixture::start(flavour).await;
        let options = OutboxOptions { attempts_max: 1, ..fixture.outbox.options().clone() };
        fixture.outbox = Outbox::new(options);
        let whole = "if the payload is wrong, `tollgate compensate whole`, then publish";
        let end = "if the payload is wrong, `tollgate compensate end --from end:2`, then publish";
        let none = "this step records no compensation: mend the target";
        for (code, with_undo, advice) in [
            ("whole", [true; 4], whole),
            ("end", [false, true, true, true], end),
            ("none", [true, true, false, true], none),
        ] {
            fixture.submit(&plan_with(code, 4, |number| with_undo[number - 1])).await;
            fixture.apply(2).await;
            let claim = fixture.claim().await.unwrap();
            fixture.record(&claim, &failed()).await;
            let mut connection = fixture.open().await;
            let listed = fixture.outbox.plan_steps(&mut connection, &code.parse().unwrap()).await;
            let listed = listed.unwrap();
            let step = listed.iter().find(|step| step.status == Status::NeedsAttention).unwrap();
            let said = step.advice().unwrap();
            assert!(said.starts_with(advice), "{flavour}: {said}");
            assert!(said.ends_with(&format!("`tollgate outbox retry {code}:3`")), "{said}");
            assert_eq!(listed.iter().filter(|step| step.advice().is_some()).count(), 1);
        }
        assert!(compensate(&fixture, "end", None).await.is_err());
        let back = compensate(&fixture, "end", Some("end:2")).await.unwrap();
        assert_eq!(keys(&back), ["end:3:compensate", "end:2:compensate"], "{flavour}");
        assert!(compensate(&fixture, "none", None).await.is_err());
        assert!(compensate(&fixture, "none", Some("none:3")).await.is_err());
        // What waits behind it can be ended, and it stays.
        let back = compensate(&fixture, "none", Some("none:4")).await.unwrap();
        assert_eq!((keys(&back).len(), back.superseded), (0, 1), "{flavour}");
    }
}

#[tokio::test]
async fn a_plan_that_records_no_compensations_is_never_taken_back() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    let document = std::fs::read("golden/plans/1.0.json").unwrap();
    let golden = Plan::parse(&document).unwrap();
    let dry_run = ExecutorChoice { sql: tollgate::ids::ExecutorCode::dry_run_v1() };
    fixture.outbox.submit(&mut fixture.open().await, &golden, &dry_run).await.unwrap();
    let applied = fixture.apply(99).await;
    assert_eq!(applied.len(), golden.steps().len());
    let error = compensate(&fixture, golden.code().as_str(), None).await.unwrap_err();
    for key in &applied {
        assert!(error.to_string().contains(&format!("`{key}`")), "{key}: {error}");
    }
    assert!(error.to_string().contains("does not record compensations"), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 1)).await;
    let error = compensate(&fixture, "down", None).await.unwrap_err();
    assert_eq!(error.to_string(), "plan `down` is not in the outbox");
    let error = compensate(&fixture, "up", Some("up:9")).await.unwrap_err();
    assert_eq!(error.to_string(), "plan `up` has no step `up:9`");
    let error = compensate(&fixture, "up", Some("up:1:compensate")).await.unwrap_err();
    assert_eq!(error.code(), "step-unknown");
}

#[tokio::test]
async fn a_part_of_a_plan_is_never_taken_for_all_of_it() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        for (code, position) in [("first", 0), ("middle", 1), ("last", 2)] {
            fixture.submit(&plan(code, 3)).await;
            fixture.apply(3).await;
            fixture
                .run(&format!(
                    "DELETE FROM factory_plugin_control_outbox WHERE plan_code = '{code}' \
                     AND position = {position}"
                ))
                .await;
            let before = fixture.statuses().await;
            let error = compensate(&fixture, code, None).await.unwrap_err();
            assert_eq!(error.code(), "plan-rows-missing", "{flavour} {code}: {error}");
            assert!(error.to_string().contains("has 2 forward step(s)"), "{error}");
            assert_eq!(fixture.statuses().await, before, "{flavour}: nothing was written");
        }
    }
}

#[tokio::test]
async fn no_step_is_taken_back_after_one_that_came_before_it() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 3)).await;
    fixture.apply(3).await;
    compensate(&fixture, "up", None).await.unwrap();
    fixture
        .run(
            "DELETE FROM factory_plugin_control_outbox \
             WHERE step_idempotency_key = 'up:3:compensate'",
        )
        .await;
    let before = fixture.statuses().await;
    let error = compensate(&fixture, "up", None).await.unwrap_err();
    assert_eq!(error.code(), "compensation-out-of-order", "{error}");
    let text = error.to_string();
    assert!(text.contains("`up:3`") && text.contains("`up:1`"), "{text}");
    assert_eq!(fixture.statuses().await, before, "nothing was written");
}

#[tokio::test]
async fn taken_back_at_the_same_moment_it_is_enqueued_once() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 5)).await;
        fixture.apply(5).await;
        // Rows enough that the server finds the plan by its key.
        fill(&fixture, 2_000).await;
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (outbox, mut connection) = (fixture.outbox.clone(), fixture.open().await);
            requests.spawn(async move {
                let plan = "up".parse().unwrap();
                outbox.compensate(&mut connection, &plan, None).await.unwrap().enqueued.len()
            });
        }
        let counts = requests.join_all().await;
        assert_eq!(counts.iter().sum::<usize>(), 5, "{flavour}: {counts:?}");
        let plan = "up".parse().unwrap();
        let mut connection = fixture.open().await;
        let steps = fixture.outbox.plan_steps(&mut connection, &plan).await.unwrap();
        let pending = steps.iter().filter(|step| step.status == Status::Pending).count();
        assert_eq!((steps.len(), pending), (10, 1), "{flavour}");
    }
}
