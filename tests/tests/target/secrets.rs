//! No user, password or URL in anything that can be printed.

use std::error::Error;
use std::fmt::Write as _;

use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::target::{SessionContract, Target};
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONTROL_CATALOG, PASSWORD, Place, open, url};

const USER_CANARY: &str = "canary_user";
const PASSWORD_CANARY: &str = "canary-p4ss";
const CONTROL_CANARY: &str = "canary_control";

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, " {error} {error:?}").unwrap();
        source = error.source();
    }
    text
}

fn assert_clean(text: &str, port: u16) {
    for canary in
        [USER_CANARY, PASSWORD_CANARY, CONTROL_CANARY, PASSWORD, "127.0.0.1", "jdbc:mysql"]
    {
        assert!(!text.contains(canary), "`{canary}` in {text}");
    }
    assert!(!text.contains(&port.to_string()), "the port in {text}");
}

#[tokio::test]
async fn no_failure_to_open_names_a_user_a_password_or_a_place() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let port = place.server.port();
        let mut configs = Vec::new();
        let change = |changes: &[(&str, &str)]| place.config_with(changes);
        configs.push(change(&[
            ("SQL_TARGET_USERNAME", USER_CANARY),
            ("SQL_TARGET_PASSWORD", PASSWORD_CANARY),
        ]));
        configs.push(change(&[
            ("CONTROL_USERNAME", CONTROL_CANARY),
            ("CONTROL_PASSWORD", PASSWORD_CANARY),
        ]));
        configs.push(change(&[(
            "SQL_TARGET_JDBC_URL",
            "jdbc:mysql://canary-host.invalid/plugin_preview",
        )]));
        let mut denied = place.config();
        denied.endpoint = url(&place.server.jdbc_url(CONTROL_CATALOG));
        denied.control.endpoint = url(&place.server.jdbc_url("mysql"));
        configs.push(denied);
        for config in configs {
            let error = open(&config).await.unwrap_err();
            assert_clean(&chain(&error), port);
            assert_clean(&error.help(), port);
            assert_clean(&format!("{config:?} {:?}", Target::new(&config)), port);
        }
    }
}

#[tokio::test]
async fn nothing_of_a_connection_can_be_printed() {
    let place = Place::on(Flavour::MariaDb).await;
    let port = place.server.port();
    let config = place.config();
    let target = Target::new(&config);
    let connection = target.open(&SessionContract::default()).await.unwrap();
    assert_clean(&format!("{target:?} {connection:?} {:?}", connection.warnings()), port);
    assert!(format!("{connection:?}").contains(CATALOG));
    let control = Control::new(&config.control);
    let open = control.open().await.unwrap();
    assert_clean(&format!("{control:?} {open:?}"), port);
    open.close().await;
    connection.close().await;
}

#[tokio::test]
async fn a_whole_configuration_can_be_printed_without_harm() {
    let place = Place::on(Flavour::MariaDb).await;
    let config = Config::from_source(place.variables()).unwrap();
    assert_clean(&format!("{config:?} {config:#?}"), place.server.port());
}
