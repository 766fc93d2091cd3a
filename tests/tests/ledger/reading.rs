//! What people see of the ledger, and the one thing an operator may do to a lease.

use std::collections::BTreeSet;

use tollgate::ids::Direction;
use tollgate::ledger::{Filter, Standing};
use tollgate_tests::server::Flavour;

use tollgate_tests::place::{Place, compensation, forward, key};

#[tokio::test]
async fn pages_neither_repeat_nor_skip_while_receipts_are_added() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        for number in 0..25 {
            place.granted(&mut connection, &forward(&format!("old-{number}"))).await;
        }
        let (mut seen, mut before, mut pages) = (Vec::new(), None, 0);
        loop {
            let page =
                place.ledger.list(&mut connection, &Filter::default(), before, 10).await.unwrap();
            seen.extend(page.receipts.iter().map(|receipt| receipt.key.to_string()));
            pages += 1;
            let Some(next) = page.next else { break };
            before = Some(next);
            for number in 0..7 {
                place.granted(&mut connection, &forward(&format!("new-{pages}-{number}"))).await;
            }
        }
        let expected: Vec<String> = (0..25).rev().map(|number| format!("old-{number}")).collect();
        assert_eq!(seen, expected, "{flavour}");
        assert_eq!(pages, 3);
    }
}

#[tokio::test]
async fn every_receipt_has_the_words_that_are_true_of_it_and_is_found_by_them() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let mut connection = place.open().await;
        let up = forward("a-succeeded");
        place.succeed(&up).await;
        place.fail(&forward("a-failed")).await;
        place.fail(&forward("a-stuck")).await;
        place.set(&forward("a-stuck"), "execution_count = 10").await;
        let down = compensation("a-not-applicable", &forward("never-ran"));
        place.claim(&mut connection, &down).await;
        let (mut dead, mut alive) = (place.open().await, place.open().await);
        place.granted(&mut dead, &forward("a-expired")).await;
        dead.close().await;
        place.expire(&forward("a-expired")).await;
        place.granted(&mut alive, &forward("a-zombie")).await;
        place.expire(&forward("a-zombie")).await;
        place.granted(&mut alive, &forward("a-running")).await;
        let mut found = BTreeSet::new();
        for (standing, keys) in [
            (Standing::Running, vec!["a-running"]),
            (Standing::PossiblyStillRunning, vec!["a-zombie"]),
            (Standing::LeaseExpired, vec!["a-expired"]),
            (Standing::Succeeded, vec!["a-succeeded"]),
            (Standing::NotApplicable, vec!["a-not-applicable"]),
            (Standing::Failed, vec!["never-ran", "a-failed"]),
            (Standing::NeedsAttention, vec!["a-stuck"]),
        ] {
            let filter = Filter { standing: Some(standing), ..Filter::default() };
            let page = place.ledger.list(&mut connection, &filter, None, 10).await.unwrap();
            let listed: Vec<&str> =
                page.receipts.iter().map(|receipt| receipt.key.as_str()).collect();
            assert_eq!(listed, keys, "{flavour} {standing}");
            for receipt in page.receipts {
                assert_eq!(receipt.standing, standing);
                found.insert(receipt.id);
            }
        }
        let all = place.ledger.list(&mut connection, &Filter::default(), None, 500).await.unwrap();
        assert_eq!(all.receipts.len(), found.len(), "{flavour}");
    }
}

#[tokio::test]
async fn receipts_are_found_by_environment_plugin_and_direction() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let up = forward("up");
        place.succeed(&up).await;
        place.succeed(&compensation("down", &up)).await;
        let mut blog = forward("blog");
        blog.identity.release.code = "blog".parse().unwrap();
        place.succeed(&blog).await;
        let mut connection = place.open().await;
        for (filter, keys) in [
            (Filter { plugin: Some("blog".parse().unwrap()), ..Filter::default() }, vec!["blog"]),
            (Filter { direction: Some(Direction::Compensate), ..Filter::default() }, vec!["down"]),
            (
                Filter { environment: Some("preview".parse().unwrap()), ..Filter::default() },
                vec!["blog", "down", "up"],
            ),
            (Filter { environment: Some("live".parse().unwrap()), ..Filter::default() }, vec![]),
        ] {
            let page = place.ledger.list(&mut connection, &filter, None, 10).await.unwrap();
            let listed: Vec<&str> =
                page.receipts.iter().map(|receipt| receipt.key.as_str()).collect();
            assert_eq!(listed, keys, "{flavour}");
        }
    }
}

#[tokio::test]
async fn a_receipt_shows_no_token() {
    let place = Place::on(Flavour::MariaDb).await;
    let mut connection = place.open().await;
    let request = forward("step-1");
    let lease = place.granted(&mut connection, &request).await;
    let token = place.column(&request, "lease_token").await;
    let receipt = place.ledger.read(&mut connection, &request.key).await.unwrap().unwrap();
    let shown = format!("{receipt:?} {lease:?} {}", serde_json::to_string(&receipt).unwrap());
    assert_eq!(token.len(), 32);
    assert!(!shown.contains(&token));
    assert!(place.ledger.read(&mut connection, &key("unknown")).await.unwrap().is_none());
}
