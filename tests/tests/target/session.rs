//! The session is what the contract says, whatever the server's defaults are.

use tollgate::target::{Flavour as ServerFlavour, SessionContract, Target};
use tollgate_tests::server::Flavour;

use crate::fixture::{Place, open};

#[tokio::test]
async fn the_contracts_own_words_are_pinned() {
    let place = Place::on(Flavour::MariaDb).await;
    let contract = SessionContract {
        sql_mode: vec!["STRICT_ALL_TABLES".to_owned(), "NO_ZERO_DATE".to_owned()],
        time_zone: "+02:00".to_owned(),
        ..SessionContract::default()
    };
    let connection = Target::new(&place.config()).open(&contract).await.unwrap();
    assert_eq!(connection.settings()["sql_mode"], "STRICT_ALL_TABLES,NO_ZERO_DATE");
    assert_eq!(connection.settings()["time_zone"], "+02:00");
    connection.close().await;
}

#[tokio::test]
async fn a_mode_the_server_does_not_keep_is_refused() {
    let place = Place::on(Flavour::MariaDb).await;
    // A combined mode is kept as the modes it stands for.
    let contract =
        SessionContract { sql_mode: vec!["ANSI".to_owned()], ..SessionContract::default() };
    let error = Target::new(&place.config()).open(&contract).await.unwrap_err();
    assert_eq!(error.code(), "session-not-pinned");
    place.server.assert_session_count(crate::fixture::USER, 0).await;
}

#[tokio::test]
async fn a_run_of_a_server_is_told_from_its_next_run() {
    for flavour in Flavour::available() {
        let mut place = Place::on(flavour).await;
        let one = open(&place.config()).await.unwrap();
        let two = open(&place.config()).await.unwrap();
        assert_eq!(one.server(), two.server(), "{flavour}");
        assert_ne!(one.session_id(), two.session_id(), "{flavour}");
        let wanted = match flavour {
            Flavour::MariaDb => ServerFlavour::MariaDb,
            _ => ServerFlavour::MySql,
        };
        assert_eq!(one.server().flavour(), wanted);
        let first = one.server().clone();
        drop((one, two));
        // Start times are seconds.
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        place.server.restart();
        let next = open(&place.config()).await.unwrap();
        assert_eq!(next.server().id(), first.id(), "{flavour}");
        assert_ne!(next.server().incarnation(), first.incarnation(), "{flavour}");
        next.close().await;
    }
}
