//! Forward steps and their compensations never run together, and never in the wrong order.

use std::time::Duration;

use tollgate::digest::Digest;
use tollgate::ledger::{Claim, IdentityField};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEDGER, Place, compensation, forward};

#[tokio::test]
async fn a_failed_compensation_still_bars_its_step() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let up = forward("up");
        let down = compensation("down", &up);
        place.fail(&up).await;
        place.fail(&down).await;
        let mut connection = place.open().await;
        let claim = place.claim(&mut connection, &up).await;
        assert!(matches!(claim, Claim::Superseded { .. }), "{flavour} {claim:?}");
        let lease = place.granted(&mut connection, &down).await;
        assert_eq!(lease.execution_count(), 2);
    }
}

#[tokio::test]
async fn a_half_applied_step_is_reversed_and_both_receipts_name_each_other() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let up = forward("up");
        let down = compensation("down", &up);
        place.fail(&up).await;
        let mut connection = place.open().await;
        place.granted(&mut connection, &down).await;
        assert_eq!(place.column(&up, "counterpart_key").await, "down", "{flavour}");
        assert_eq!(place.column(&down, "counterpart_key").await, "up", "{flavour}");
    }
}

#[tokio::test]
async fn what_never_ran_is_not_reversed_and_never_runs_later() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let up = forward("up");
        let down = compensation("down", &up);
        for _ in 0..2 {
            let claim = place.claim(&mut connection, &down).await;
            let Claim::NotApplicable(receipt, recorded) = claim else {
                panic!("{flavour} {claim:?}")
            };
            assert_eq!(receipt.as_str(), "sql:preview:down");
            assert_eq!(recorded.standing.words(), "not applicable");
        }
        let claim = place.claim(&mut connection, &up).await;
        assert!(matches!(claim, Claim::Superseded { .. }), "{flavour} {claim:?}");
        assert_eq!(place.column(&up, "execution_count").await, "0");
    }
}

#[tokio::test]
async fn a_crashed_step_is_fenced_and_its_session_ended_before_it_is_reversed() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut holder, wire) = place.open_wired().await;
        let up = forward("up");
        let down = compensation("down", &up);
        let stale = place.granted(&mut holder, &up).await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        place.expire(&up).await;
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &down).await;
        assert!(!place.has_session(stale.session_id()).await, "{flavour}");
        assert_eq!(place.witnesses().await, 0, "{flavour}");
        assert_eq!(place.column(&up, "status").await, "FAILED");
        let mut second = place.open().await;
        let error = place.ledger.renew(&mut second, &stale, 1).await.unwrap_err();
        assert_eq!(error.code(), "lease-lost", "{flavour}");
        place.ledger.complete(&mut connection, &lease).await.unwrap();
    }
}

#[tokio::test]
async fn a_compensation_names_the_step_it_reverses_by_its_content() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let up = forward("up");
        place.succeed(&up).await;
        let before = place.row(&up).await;
        let mut connection = place.open().await;
        let mut down = compensation("down", &up);
        down.counterpart.as_mut().unwrap().content_hash = Digest::of("another payload");
        let claim = place.claim(&mut connection, &down).await;
        let Claim::Mismatch { fields, .. } = claim else { panic!("{flavour} {claim:?}") };
        assert_eq!(fields, [IdentityField::Counterpart]);
        assert_eq!(place.row(&up).await, before);
        // A second compensation under another key is not a compensation of this step any more.
        place.granted(&mut connection, &compensation("down", &up)).await;
        let claim = place.claim(&mut connection, &compensation("down-2", &up)).await;
        assert!(matches!(claim, Claim::Mismatch { .. }), "{flavour} {claim:?}");
    }
}

#[tokio::test]
async fn of_a_step_and_its_compensation_at_once_never_both_run() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut one, mut two) = (place.open().await, place.open().await);
        let mut ran = [0_u32; 2];
        for round in 0..40 {
            let up = forward(&format!("up-{round}"));
            // Linked pairs on a failed forward row, and unlinked ones that only share the plugin.
            let mut down = compensation(&format!("down-{round}"), &up);
            if round % 2 == 0 {
                place.fail(&up).await;
            } else {
                down.counterpart = None;
            }
            let (first, second) = tokio::join!(
                place.ledger.claim(&mut one, &up),
                place.ledger.claim(&mut two, &down)
            );
            let both = [first.unwrap(), second.unwrap()];
            let granted = both.each_ref().map(|claim| matches!(claim, Claim::Granted(_)));
            assert_ne!(granted, [true, true], "{flavour} round {round}");
            for (count, granted) in ran.iter_mut().zip(granted) {
                *count += u32::from(granted);
            }
            for (claim, connection) in both.into_iter().zip([&mut one, &mut two]) {
                if let Claim::Granted(lease) = claim {
                    place.ledger.complete(connection, &lease).await.unwrap();
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Stepping back from one another is not all they do.
        assert!(ran.iter().sum::<u32>() > 0, "{flavour} {ran:?}");
    }
}

/// Both writes are sent at once: what the second is refused for is told, and the first is undone.
#[tokio::test]
async fn a_compensation_that_is_refused_leaves_its_step_as_it_was() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let up = forward("up");
        place.succeed(&up).await;
        let before = place.row(&up).await;
        place
            .execute(&format!(
                "CREATE TRIGGER plugin_preview.refuse BEFORE INSERT ON {LEDGER} FOR EACH ROW \
                 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not now'"
            ))
            .await;
        let mut connection = place.open().await;
        let down = compensation("down", &up);
        let error = place.ledger.claim(&mut connection, &down).await.unwrap_err();
        assert_eq!(error.code(), "ledger-statement-refused", "{flavour}");
        assert_eq!(place.row(&up).await, before, "{flavour}");
    }
}
