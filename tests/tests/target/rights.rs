//! An account that lacks a right steps need is said to, by name, before a step is claimed.

use tollgate::target::{SessionContract, Target, TargetError, TargetWarning};
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::fixture::{CONTROL_USER, PASSWORD, Place, USER, open};

const RIGHTS: &[&str] = &["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES"];
const CATALOG: &str = r"`plugin\_preview`.*";

async fn run(place: &Place, statements: &[&str]) {
    for statement in statements {
        place.server.execute(&[&statement.replace("ACCOUNT", &format!("'{USER}'@'%'"))]).await;
    }
}

/// An account with these rights in the catalog and no others.
async fn only(place: &Place, rights: &str) {
    let grant = format!("GRANT {rights} ON {CATALOG} TO ACCOUNT");
    let anew = format!("CREATE USER ACCOUNT IDENTIFIED BY '{PASSWORD}'");
    run(place, &["DROP USER ACCOUNT", &anew, &grant]).await;
}

/// What opening a session for steps says to be missing; nothing when it is opened.
async fn missing(place: &Place) -> Vec<&'static str> {
    match open(&place.config()).await {
        Ok(connection) => {
            connection.close().await;
            Vec::new()
        }
        Err(TargetError::GrantsMissing { missing, .. }) => missing,
        Err(error) => panic!("{error:?} on {}", place.server.flavour()),
    }
}

async fn each_right_that_steps_need_is_missed_by_name(flavour: Flavour) {
    let place = Place::on(flavour).await;
    for right in RIGHTS {
        run(&place, &[&format!("REVOKE {right} ON {CATALOG} FROM ACCOUNT")]).await;
        let error = place.refused(&place.config()).await;
        assert_eq!(error.code(), "grants-missing");
        assert!(error.to_string().ends_with(&format!(": {right}")), "{error}");
        let command = "`tollgate target grants --catalog plugin_preview`";
        assert!(error.help().contains(command), "{}", error.help());
        // The printed statement, run again, mends it.
        run(&place, &[&format!("GRANT {} ON {CATALOG} TO ACCOUNT", RIGHTS.join(", "))]).await;
        assert_eq!(missing(&place).await, [""; 0], "{right} on {flavour}");
    }
    only(&place, "DELETE").await;
    let rest: Vec<&str> = RIGHTS.iter().copied().filter(|right| *right != "DELETE").collect();
    assert_eq!(missing(&place).await, rest, "{flavour}");
}
over_servers!(each_right_that_steps_need_is_missed_by_name);

async fn what_gives_a_right_in_another_way_is_seen(flavour: Flavour) {
    let place = Place::on(flavour).await;
    let all = RIGHTS.join(", ");
    for grants in [
        &[format!("GRANT ALL PRIVILEGES ON {CATALOG} TO ACCOUNT")][..],
        &[format!("GRANT {all} ON `plugin_preview`.* TO ACCOUNT")],
        &[format!("GRANT {all} ON `plugin_previe_`.* TO ACCOUNT")],
    ] {
        only(&place, "SELECT").await;
        run(&place, &[&format!("REVOKE SELECT ON {CATALOG} FROM ACCOUNT")]).await;
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        run(&place, &grants).await;
        assert_eq!(missing(&place).await, [""; 0], "{grants:?} on {flavour}");
    }
    // What reaches further is another's trouble: with the switch, it gives the rights.
    only(&place, "SELECT").await;
    run(&place, &[&format!("GRANT {all} ON *.* TO ACCOUNT")]).await;
    let config = place.config_with(&[("SQL_TARGET_GRANT_CHECK", "warn")]);
    let connection = open(&config).await.unwrap();
    let is_missing = |it: &TargetWarning| matches!(it, TargetWarning::GrantsMissing { .. });
    assert!(!connection.warnings().iter().any(is_missing), "{:?}", connection.warnings());
    connection.close().await;
}
over_servers!(what_gives_a_right_in_another_way_is_seen);

async fn a_role_gives_its_rights_once_it_is_taken_on(flavour: Flavour) {
    let place = Place::on(flavour).await;
    only(&place, "SELECT").await;
    let granted = format!("GRANT {} ON {CATALOG} TO inner_role", RIGHTS.join(", "));
    let setting = [
        "CREATE ROLE inner_role",
        "CREATE ROLE outer_role",
        &granted,
        "GRANT inner_role TO outer_role",
        "GRANT outer_role TO ACCOUNT",
    ];
    run(&place, &setting).await;
    assert_eq!(missing(&place).await, RIGHTS.get(1..).unwrap(), "{flavour}");
    let preposition = if flavour == Flavour::MariaDb { "FOR" } else { "TO" };
    run(&place, &[&format!("SET DEFAULT ROLE outer_role {preposition} ACCOUNT")]).await;
    assert_eq!(missing(&place).await, [""; 0], "{flavour}");
}
over_servers!(a_role_gives_its_rights_once_it_is_taken_on on mariadb, mysql9);

async fn what_everyone_has_counts(flavour: Flavour) {
    let place = Place::on(flavour).await;
    only(&place, "SELECT").await;
    run(&place, &[&format!("GRANT {} ON {CATALOG} TO PUBLIC", RIGHTS.join(", "))]).await;
    assert_eq!(missing(&place).await, [""; 0], "{flavour}");
}
over_servers!(what_everyone_has_counts on mariadb);

async fn a_partial_revoke_is_a_lack(flavour: Flavour) {
    let server = flavour.builder().arg("--partial-revokes=ON").start();
    let place = Place::of(server).await;
    // There a grant writes its catalog without backslashes.
    place.server.execute(&[&format!("GRANT ALL ON host_core.* TO '{CONTROL_USER}'@'%'")]).await;
    let all = RIGHTS.join(", ");
    run(&place, &[&format!("GRANT {all} ON *.* TO ACCOUNT")]).await;
    run(&place, &["REVOKE INSERT, DROP ON plugin_preview.* FROM ACCOUNT"]).await;
    let config = place.config_with(&[("SQL_TARGET_GRANT_CHECK", "warn")]);
    let connection = open(&config).await.unwrap();
    let missing = TargetWarning::GrantsMissing { missing: vec!["INSERT", "DROP"] };
    assert!(connection.warnings().contains(&missing), "{:?}", connection.warnings());
    connection.close().await;
}
over_servers!(a_partial_revoke_is_a_lack on mysql9);

async fn rights_at_single_tables_are_no_lack_and_a_warning(flavour: Flavour) {
    let place = Place::on(flavour).await;
    place.server.execute(&["CREATE TABLE plugin_preview.t (id INT)"]).await;
    run(
        &place,
        &[
            &format!("REVOKE INSERT, DELETE ON {CATALOG} FROM ACCOUNT"),
            "GRANT INSERT (id), DELETE ON plugin_preview.t TO ACCOUNT",
        ],
    )
    .await;
    let connection = open(&place.config()).await.unwrap();
    let by_table = TargetWarning::GrantsByTable { rights: vec!["INSERT", "DELETE"] };
    assert!(connection.warnings().contains(&by_table), "{:?}", connection.warnings());
    connection.close().await;
}
over_servers!(rights_at_single_tables_are_no_lack_and_a_warning);

/// Who only reads needs no more, and who looks at what steps find says what these lack.
async fn an_account_that_can_only_read_is_enough_for_reading(flavour: Flavour) {
    let place = Place::on(flavour).await;
    only(&place, "SELECT").await;
    let (target, contract) = (Target::new(&place.config()), SessionContract::default());
    let connection = target.clone().read_only().open(&contract).await.unwrap();
    assert!(!connection.warnings().contains(&TargetWarning::ReadsOnly), "{flavour}");
    connection.close().await;
    let connection = target.clone().watched().open(&contract).await.unwrap();
    assert!(connection.warnings().contains(&TargetWarning::ReadsOnly), "{flavour}");
    connection.close().await;
    let error = target.clone().looked_at().open(&contract).await.unwrap_err();
    assert_eq!(error.code(), "grants-missing", "{flavour}");
    // One right that only steps need, and it is no account for reading.
    only(&place, "SELECT, INSERT").await;
    let error = target.clone().watched().open(&contract).await.unwrap_err();
    assert_eq!(error.code(), "grants-missing", "{flavour}");
    only(&place, "INSERT").await;
    let error = target.read_only().open(&contract).await.unwrap_err();
    let TargetError::GrantsMissing { missing, .. } = &error else { panic!("{error:?}") };
    assert_eq!(missing, &["SELECT"], "{flavour}");
}
over_servers!(an_account_that_can_only_read_is_enough_for_reading);

async fn the_switch_makes_a_lack_a_warning(flavour: Flavour) {
    let place = Place::on(flavour).await;
    run(&place, &[&format!("REVOKE CREATE ON {CATALOG} FROM ACCOUNT")]).await;
    let config = place.config_with(&[("SQL_TARGET_GRANT_CHECK", "warn")]);
    let connection = open(&config).await.unwrap();
    let missing = TargetWarning::GrantsMissing { missing: vec!["CREATE"] };
    assert!(connection.warnings().contains(&missing), "{:?}", connection.warnings());
    connection.close().await;
}
over_servers!(the_switch_makes_a_lack_a_warning);
