//! Who may run a step.

use std::time::Duration;

use tollgate::digest::Digest;
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::ledger::{BusyReason, Claim, ClaimError, IdentityField, LedgerOptions};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{LEASE, LEDGER, Place, forward};

#[tokio::test]
async fn a_new_step_is_granted_and_recorded() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let request = forward("step-1");
        let lease = place.granted(&mut connection, &request).await;
        assert_eq!(lease.execution_count(), 1);
        assert_eq!(lease.session_id(), connection.session_id());
        assert_eq!(lease.external_receipt().as_str(), "sql:preview:step-1");
        let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
        assert_eq!(receipt.identity, request.identity, "{flavour}");
        assert_eq!(receipt.policy_digest, Some(request.policy_digest));
        assert_eq!(receipt.decision_digest, Some(request.decision_digest));
        assert_eq!(receipt.standing.words(), "running");
        assert_eq!((receipt.execution_count, receipt.statement_count), (1, 3));
        assert_eq!(receipt.external_receipt, None);
    }
}

#[tokio::test]
async fn a_step_that_succeeded_costs_one_round_trip_and_runs_nothing() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        place.succeed(&request).await;
        let (mut connection, wire) = place.open_wired().await;
        // The first claim on a connection also looks at the ledger's shape.
        place.claim(&mut connection, &forward("other")).await;
        let before = place.row(&request).await;
        let asked = wire.asked();
        let claim = place.claim(&mut connection, &request).await;
        assert_eq!(wire.asked() - asked, 1, "{flavour}");
        let Claim::AlreadySucceeded(receipt, _) = claim else { panic!("{claim:?}") };
        assert_eq!(receipt.as_str(), "sql:preview:step-1");
        assert_eq!(place.row(&request).await, before);
    }
}

#[tokio::test]
async fn an_open_lease_is_not_stolen() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut holder, mut other) = (place.open().await, place.open().await);
        let request = forward("step-1");
        place.granted(&mut holder, &request).await;
        let before = place.row(&request).await;
        let claim = place.claim(&mut other, &request).await;
        let Claim::Busy(busy) = claim else { panic!("{claim:?}") };
        assert_eq!(busy.reason, BusyReason::LeaseHeld, "{flavour}");
        assert!(busy.lease_deadline.is_some());
        assert!(busy.retry_after > Duration::ZERO && busy.retry_after <= LEASE);
        assert_eq!(place.row(&request).await, before);
        // Nor by the holder's own connection under another token.
        let claim = place.claim(&mut holder, &request).await;
        assert!(matches!(claim, Claim::Busy(_)), "{claim:?}");
    }
}

#[tokio::test]
async fn each_field_of_the_identity_is_compared_and_the_row_is_left_alone() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let recorded = forward("step-1");
        place.fail(&recorded).await;
        let before = place.row(&recorded).await;
        let changed = |change: fn(&mut tollgate::ledger::StepIdentity)| {
            let mut request = forward("step-1");
            change(&mut request.identity);
            request
        };
        for (request, field) in [
            (
                changed(|identity| identity.environment = "live".parse().unwrap()),
                IdentityField::Environment,
            ),
            (
                changed(|identity| identity.release.code = "Shop".parse().unwrap()),
                IdentityField::PluginCode,
            ),
            (
                changed(|identity| {
                    identity.release.version = "1.2.3-rc.1+build.6".parse().unwrap();
                }),
                IdentityField::PluginVersion,
            ),
            (
                changed(|identity| identity.direction = Direction::Compensate),
                IdentityField::Direction,
            ),
            (
                changed(|identity| identity.content_hash = Digest::of("other")),
                IdentityField::ContentHash,
            ),
        ] {
            let claim = place.claim(&mut connection, &request).await;
            let Claim::Mismatch { fields, .. } = claim else { panic!("{field}: {claim:?}") };
            assert_eq!(fields, [field], "{flavour}");
            assert_eq!(place.row(&recorded).await, before, "{flavour} {field}");
        }
    }
}

#[tokio::test]
async fn keys_are_compared_byte_for_byte() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        place.granted(&mut connection, &forward("step-a")).await;
        place.granted(&mut connection, &forward("STEP-A")).await;
        let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
        assert_eq!(rows, 2, "{flavour}");
    }
}

#[tokio::test]
async fn a_failed_step_runs_again_and_is_counted() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let request = forward("step-1");
        place.fail(&request).await;
        let mut connection = place.open().await;
        let lease = place.granted(&mut connection, &request).await;
        assert_eq!(lease.execution_count(), 2, "{flavour}");
        assert_eq!(place.column(&request, "status").await, "RUNNING");
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        assert_eq!(place.column(&request, "execution_count").await, "2");
        assert_eq!(place.column(&request, "last_error").await, "NULL");
    }
}

#[tokio::test]
async fn another_policy_needs_to_supersede_the_recorded_one() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let mut request = forward("step-1");
        place.fail(&request).await;
        let before = place.row(&request).await;
        request.policy_digest = Digest::of("policy 2");
        let claim = place.claim(&mut connection, &request).await;
        assert!(matches!(claim, Claim::PinRefused { .. }), "{flavour} {claim:?}");
        let mut other_executor = forward("step-1");
        other_executor.executor = ExecutorCode::dry_run_v1();
        let claim = place.claim(&mut connection, &other_executor).await;
        assert!(matches!(claim, Claim::PinRefused { .. }), "{flavour} {claim:?}");
        assert_eq!(place.row(&request).await, before);
        request.superseded_policies = vec![Digest::of("policy 0"), Digest::of("policy")];
        place.granted(&mut connection, &request).await;
        let recorded = place.column(&request, "policy_digest").await;
        assert_eq!(recorded, Digest::of("policy 2").to_string());
    }
}

#[tokio::test]
async fn a_payload_that_fails_again_and_again_needs_attention() {
    for flavour in Flavour::available() {
        let options = LedgerOptions { executions_max: 2, ..LedgerOptions::default() };
        let place = Place::on(flavour).await.with(options);
        let request = forward("step-1");
        place.fail(&request).await;
        place.fail(&request).await;
        let mut connection = place.open().await;
        let claim = place.claim(&mut connection, &request).await;
        let Claim::NeedsAttention { recorded } = claim else { panic!("{flavour} {claim:?}") };
        assert_eq!(recorded.standing.words(), "needs attention");
        assert_eq!(recorded.last_error_code.as_deref(), Some("server-1062"));
        // An executor that died each time counts the same.
        place.set(&request, "status = 'RUNNING'").await;
        place.expire(&request).await;
        let claim = place.claim(&mut connection, &request).await;
        assert!(matches!(claim, Claim::NeedsAttention { .. }), "{flavour} {claim:?}");
    }
}

#[tokio::test]
async fn of_two_that_claim_at_once_exactly_one_wins() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut one, mut two) = (place.open().await, place.open().await);
        for round in 0..60 {
            let request = forward(&format!("step-{round}"));
            // New, failed and expired rows in turn.
            match round % 3 {
                1 => place.fail(&request).await,
                2 => {
                    let mut dead = place.open().await;
                    place.granted(&mut dead, &request).await;
                    dead.close().await;
                    place.expire(&request).await;
                }
                _ => {}
            }
            let (first, second) =
                tokio::join!(place.claim(&mut one, &request), place.claim(&mut two, &request));
            let granted = [&first, &second]
                .into_iter()
                .filter(|claim| matches!(claim, Claim::Granted(_)))
                .count();
            assert_eq!(granted, 1, "{flavour} round {round}: {first:?} {second:?}");
            let count = place.column(&request, "execution_count").await;
            assert_eq!(count, if round % 3 == 0 { "1" } else { "2" }, "{flavour} {round}");
        }
    }
}

#[tokio::test]
async fn a_request_that_no_row_can_hold_is_refused_before_anything_is_asked() {
    let place = Place::on(Flavour::MariaDb).await;
    let mut connection = place.open().await;
    let mut request = forward("step-1");
    request.lease = Duration::from_secs(3601);
    let error = place.ledger.claim(&mut connection, &request).await.unwrap_err();
    assert_eq!(error.code(), "lease-out-of-bounds");
    let mut request = forward("step-1");
    let version = format!("1.0.0+{}", "b".repeat(250));
    request.identity.release.version = version.parse().unwrap();
    let error = place.ledger.claim(&mut connection, &request).await.unwrap_err();
    assert!(matches!(error, ClaimError::PluginVersionTooLong { length: 256 }));
    let rows: u64 = place.one(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn what_an_earlier_user_of_the_connection_left_open_is_undone() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let (mut connection, wire) = place.open_wired().await;
        wire.say("SET autocommit = 0").await;
        wire.say("INSERT INTO witness VALUES (1)").await;
        let lease = place.granted(&mut connection, &forward("step-1")).await;
        assert_eq!(place.column(&forward("step-1"), "status").await, "RUNNING");
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        assert_eq!(place.witnesses().await, 0, "{flavour}");
    }
}

/// Host time never decides who owns a lease: the ledger knows no wall clock at all.
#[test]
fn the_ledger_reads_no_wall_clock() {
    let mut folders = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/../host/src/ledger").into()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for word in ["SystemTime", "UNIX_EPOCH", "NOW()", "CURRENT_TIMESTAMP", "SYSDATE"] {
                assert!(!text.contains(word), "{word} in {}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 10);
}
