//! Reports: only the worker that has the step writes, and what follows from each.

use std::time::Duration;

use tollgate::outbox::{ClaimLost, Outbox, OutboxOptions, Reason, Report, RetryError, Status};
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, applied, failed, plan};

#[tokio::test]
async fn a_stale_worker_cannot_overwrite() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 2)).await;
        let mut connection = fixture.open().await;
        let hasty = fixture.hasty();
        let stale = hasty.claim(&mut connection).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let fresh = fixture.claim().await.expect("the lease is over");
        assert_eq!(fresh.step().key, stale.step().key, "{flavour}");
        assert_eq!(fresh.attempt(), 2);
        // The first worker comes back, whatever it has to say.
        assert!(!hasty.renew(&mut connection, &stale).await.unwrap(), "{flavour}");
        for report in [applied(&stale), failed(), Report::Released] {
            let recorded = hasty.record(&mut connection, &stale, &report).await.unwrap();
            assert_eq!(recorded, Err(ClaimLost), "{flavour}");
        }
        assert_eq!(fixture.statuses().await[0].1, "CLAIMED", "{flavour}");
        assert!(fixture.outbox.renew(&mut connection, &fresh).await.unwrap(), "{flavour}");
        fixture.record(&fresh, &applied(&fresh)).await;
        let recorded = hasty.record(&mut connection, &stale, &failed()).await.unwrap();
        assert_eq!(recorded, Err(ClaimLost), "{flavour}");
        assert_eq!(fixture.statuses().await[0].1, "APPLIED", "{flavour}");
        assert_eq!(fixture.statuses().await[1].1, "PENDING", "{flavour}");
    }
}

#[tokio::test]
async fn a_renewed_claim_is_not_taken() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 1)).await;
    let mut connection = fixture.open().await;
    let claim = fixture.hasty().claim(&mut connection).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    // Nobody was faster: a claim whose lease is over may still be renewed.
    let options = OutboxOptions { lease: Duration::from_mins(1), ..OutboxOptions::default() };
    fixture
        .run(
            "UPDATE factory_plugin_control_outbox SET lease_deadline = UTC_TIMESTAMP(6) + INTERVAL \
             1 MINUTE, not_before = UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE",
        )
        .await;
    assert_eq!(Outbox::new(options).claim(&mut connection).await.unwrap().map(|_| ()), None);
    fixture.record(&claim, &applied(&claim)).await;
}

#[tokio::test]
async fn a_report_whose_answer_was_lost_is_recognised_when_it_is_repeated() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("up", 1)).await;
    let claim = fixture.claim().await.unwrap();
    for report in [applied(&claim), applied(&claim)] {
        let mut connection = fixture.open().await;
        let recorded = fixture.outbox.record(&mut connection, &claim, &report).await.unwrap();
        assert_eq!(recorded.unwrap().status, Status::Applied);
    }
}

#[tokio::test]
async fn failures_back_off_and_then_need_a_person() {
    for flavour in Flavour::available() {
        let mut fixture = Fixture::start(flavour).await;
        let options = OutboxOptions { attempts_max: 3, ..OutboxOptions::default() };
        fixture.outbox = Outbox::new(options);
        fixture.submit(&plan("up", 2)).await;
        for failures in 1..=3 {
            fixture.let_time_pass().await;
            let claim = fixture.claim().await.expect("it is due");
            assert_eq!(claim.attempt(), failures);
            fixture.record(&claim, &failed()).await;
            assert_eq!(fixture.claimed().await, None, "{flavour}: it has to wait");
        }
        fixture.let_time_pass().await;
        assert_eq!(fixture.claimed().await, None, "{flavour}: a person has to look");
        let mut connection = fixture.open().await;
        let listed = fixture.outbox.needing_attention(&mut connection, 10).await.unwrap().steps;
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].last_error_code.as_deref(), Some("statement-failed"));
        assert_eq!(listed[0].last_error.as_deref(), Some("a lock"));
        assert_eq!((listed[0].attempt_count, listed[0].failure_count), (3, 3));

        let key = listed[0].step_key.clone();
        fixture.outbox.retry(&mut connection, &key).await.unwrap();
        let claim = fixture.claim().await.expect("it is due at once");
        fixture.record(&claim, &failed()).await;
        let error = fixture.outbox.retry(&mut connection, &key).await.unwrap_err();
        assert!(matches!(error, RetryError::OtherStatus { status: Status::Pending, .. }));
        let unknown = "nobody:1".parse().unwrap();
        let error = fixture.outbox.retry(&mut connection, &unknown).await.unwrap_err();
        assert_eq!(error.code(), "step-unknown");
    }
}

#[tokio::test]
async fn what_is_not_known_waits_and_never_becomes_a_failure() {
    let mut fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.outbox = Outbox::new(OutboxOptions { attempts_max: 1, ..OutboxOptions::default() });
    fixture.submit(&plan("up", 1)).await;
    let reason = Reason::new("lease-held", "another delivery has it");
    let retry_after = Duration::from_secs(9);
    for _ in 0..5 {
        let claim = fixture.claim().await.unwrap();
        let report = Report::Unknown { reason: reason.clone(), retry_after };
        fixture.record(&claim, &report).await;
        assert_eq!(fixture.claimed().await, None);
        fixture.let_time_pass().await;
    }
    let claim = fixture.claim().await.unwrap();
    assert_eq!(claim.attempt(), 6);
    // Nothing was delivered: that is no attempt.
    fixture.record(&claim, &Report::Unavailable { reason, retry_after: Duration::ZERO }).await;
    let claim = fixture.claim().await.unwrap();
    assert_eq!(claim.attempt(), 6);
    fixture.record(&claim, &Report::Released).await;
    assert_eq!(fixture.claim().await.unwrap().attempt(), 7);
}

#[tokio::test]
async fn ends_are_written_with_their_reason() {
    let fixture = Fixture::start(Flavour::MariaDb).await;
    fixture.submit(&plan("a", 2)).await;
    fixture.submit(&plan("b", 2)).await;
    let a = fixture.claim().await.unwrap();
    fixture.record(&a, &Report::Refused(Reason::new("refused", "no such release"))).await;
    let b = fixture.claim().await.unwrap();
    fixture.record(&b, &Report::Superseded(Reason::new("superseded", "taken back"))).await;
    fixture.let_time_pass().await;
    assert_eq!(fixture.claimed().await, None, "both plans stand still");
    let mut connection = fixture.open().await;
    let steps = fixture.outbox.plan_steps(&mut connection, b.plan()).await.unwrap();
    assert_eq!((steps[0].status, steps[1].status), (Status::Superseded, Status::Waiting));
    assert!(steps[0].completed_at.is_some() && steps[1].completed_at.is_none());
    assert!(fixture.outbox.is_idle(&mut connection).await.unwrap());
}

async fn a_step_is_held_up_while_it_waits_for_what_it_met(flavour: Flavour) {
    let fixture = Fixture::start(flavour).await;
    fixture.submit(&plan("up", 1)).await;
    let mut connection = fixture.open().await;
    let mut is_held_up = async |outbox: &Outbox, codes: &[&str]| {
        let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
        outbox.is_held_up(&mut connection, &codes).await.unwrap()
    };
    let own = &fixture.outbox;
    assert!(!is_held_up(own, &["met"]).await, "{flavour}");
    let claim = fixture.claim().await.unwrap();
    let reason = Reason::new("met", "something");
    let retry_after = Duration::from_mins(1);
    fixture.record(&claim, &Report::Unavailable { reason, retry_after }).await;
    assert!(is_held_up(own, &["another", "met"]).await, "{flavour}");
    assert!(!is_held_up(own, &["another"]).await && !is_held_up(own, &[]).await, "{flavour}");
    let environment = Some("elsewhere".parse().unwrap());
    let other = Outbox::new(OutboxOptions { environment, ..own.options().clone() });
    assert!(!is_held_up(&other, &["met"]).await, "{flavour}");
    // While it is tried again it is not known to be over.
    fixture.let_time_pass().await;
    let claim = fixture.claim().await.unwrap();
    assert!(is_held_up(own, &["met"]).await, "{flavour}");
    fixture.record(&claim, &applied(&claim)).await;
    assert!(!is_held_up(own, &["met"]).await, "{flavour}");
}
over_servers!(a_step_is_held_up_while_it_waits_for_what_it_met);
