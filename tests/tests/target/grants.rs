//! An account that reaches beyond its catalog is no target account.

use mysql_async::prelude::Queryable as _;
use tollgate::target::{GrantReach, TargetError, TargetWarning, grants_sql};
use tollgate_tests::server::Flavour;

use crate::fixture::{CATALOG, CONFINED, PASSWORD, Place, USER, open};

async fn reaches(place: &Place) -> Vec<GrantReach> {
    match place.refused(&place.config()).await {
        TargetError::GrantsBeyond { findings } => {
            let mut reaches: Vec<_> = findings.into_iter().map(|finding| finding.reach).collect();
            // MySQL lists everything in two lines: static and dynamic privileges.
            reaches.dedup();
            reaches
        }
        error => panic!("{error:?} on {}", place.server.flavour()),
    }
}

#[tokio::test]
async fn whatever_reaches_beyond_the_catalog_is_refused() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        place.server.execute(&["CREATE DATABASE other", "CREATE TABLE other.t (id INT)"]).await;
        for (grant, reach) in [
            ("FILE ON *.*", GrantReach::Server),
            ("PROCESS ON *.*", GrantReach::Server),
            ("SUPER ON *.*", GrantReach::Server),
            ("ALL PRIVILEGES ON *.*", GrantReach::Server),
            ("SELECT ON `other`.*", GrantReach::Catalog("other".to_owned())),
            ("SELECT (id) ON `other`.`t`", GrantReach::Catalog("other".to_owned())),
            ("SELECT ON `mysql`.`user`", GrantReach::Catalog("mysql".to_owned())),
            ("SELECT ON `not_there`.*", GrantReach::Catalog("not_there".to_owned())),
            (r"SELECT ON `plugin%`.*", GrantReach::Pattern("plugin%".to_owned())),
            ("SELECT ON `host\\_core`.*", GrantReach::ControlCatalog),
        ] {
            let account = format!("'{USER}'@'%'");
            place.server.execute(&[&format!("GRANT {grant} TO {account}")]).await;
            assert_eq!(reaches(&place).await, [reach], "{grant} on {flavour}");
            place
                .server
                .execute(&[
                    &format!("REVOKE {grant} FROM {account}"),
                    // Revoking everything on `*.*` takes the catalog's own grant along on MySQL 9.
                    &format!("GRANT {CONFINED} TO {account}"),
                ])
                .await;
        }
        open(&place.config()).await.unwrap().close().await;
        let pass_on =
            format!(r"GRANT SELECT ON `plugin\_preview`.* TO '{USER}'@'%' WITH GRANT OPTION");
        place.server.execute(&[&pass_on]).await;
        assert_eq!(reaches(&place).await, [GrantReach::Others], "{flavour}");
    }
}

#[tokio::test]
async fn the_switch_makes_it_a_warning() {
    let place = Place::on(Flavour::MariaDb).await;
    place.server.execute(&[&format!("GRANT FILE ON *.* TO '{USER}'@'%'")]).await;
    assert_eq!(reaches(&place).await, [GrantReach::Server]);
    let config = place.config_with(&[("SQL_TARGET_GRANT_CHECK", "warn")]);
    let connection = open(&config).await.unwrap();
    let warned = connection.warnings().iter().any(
        |warning| matches!(warning, TargetWarning::GrantsBeyond(it) if it.privileges == ["FILE"]),
    );
    assert!(warned, "{:?}", connection.warnings());
    connection.close().await;
}

#[tokio::test]
async fn an_underscore_that_stands_for_any_character_warns_until_another_catalog_matches() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        place
            .server
            .execute(&[
                &format!(r"REVOKE ALL ON `plugin\_preview`.* FROM '{USER}'@'%'"),
                &format!("GRANT ALL ON `plugin_preview`.* TO '{USER}'@'%'"),
            ])
            .await;
        let connection = open(&place.config()).await.unwrap();
        assert!(connection.warnings().contains(&TargetWarning::GrantWildcard), "{flavour}");
        connection.close().await;
        place.server.execute(&["CREATE DATABASE pluginXpreview"]).await;
        assert_eq!(reaches(&place).await, [GrantReach::Catalog("pluginXpreview".to_owned())]);
    }
}

#[tokio::test]
async fn a_role_is_looked_into() {
    for flavour in Flavour::available().into_iter().filter(|it| *it != Flavour::Mysql56) {
        let place = Place::on(flavour).await;
        let account = format!("'{USER}'@'%'");
        place
            .server
            .execute(&[
                "CREATE ROLE narrow",
                "CREATE ROLE wide",
                r"GRANT SELECT ON `plugin\_preview`.* TO narrow",
                &format!("GRANT narrow TO {account}"),
            ])
            .await;
        open(&place.config()).await.unwrap().close().await;
        place
            .server
            .execute(&["GRANT SELECT ON `host\\_core`.* TO wide", "GRANT wide TO narrow"])
            .await;
        assert_eq!(reaches(&place).await, [GrantReach::ControlCatalog], "{flavour}");
    }
}

#[tokio::test]
async fn a_catalog_that_is_open_to_everyone_is_found() {
    let place = Place::on(Flavour::MariaDb).await;
    place.server.execute(&["CREATE DATABASE test", "GRANT SELECT ON test.* TO PUBLIC"]).await;
    assert_eq!(reaches(&place).await, [GrantReach::Catalog("test".to_owned())]);
}

/// As MySQL 5.6 is installed: `mysql_system_tables_data.sql` writes these rows. `SHOW GRANTS` is silent on
/// them, and no such catalog is there to be seen.
#[tokio::test]
async fn what_an_old_installation_gives_everyone_is_found() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        open(&place.config()).await.unwrap().close().await;
        let row = "INSERT INTO mysql.db (Host, Db, User, Select_priv, Create_priv) \
                   VALUES ('%', 'test\\\\_%', '', 'Y', 'Y')";
        place.server.execute(&[row, "FLUSH PRIVILEGES"]).await;
        // The server itself tells whether it reads such rows so.
        let mut account = place.server.connect(USER, PASSWORD, None).await;
        let is_open = account.query_drop("CREATE DATABASE test_evil").await.is_ok();
        account.disconnect().await.unwrap();
        assert!(is_open || flavour != Flavour::Mysql56);
        if is_open {
            place.server.execute(&["DROP DATABASE test_evil"]).await;
            assert_eq!(reaches(&place).await, [GrantReach::TestCatalogs], "{flavour}");
        } else {
            open(&place.config()).await.unwrap().close().await;
        }
    }
}

#[tokio::test]
async fn the_printed_grants_make_an_account_that_is_confined_and_can_do_its_work() {
    for flavour in Flavour::available() {
        let place = Place::on(flavour).await;
        let sql = grants_sql(&CATALOG.parse().unwrap())
            .replace("<password>", PASSWORD)
            .replace("tollgate_target", "printed");
        let code: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
        let code = code.join("\n");
        let statements: Vec<&str> =
            code.split(';').map(str::trim).filter(|statement| !statement.is_empty()).collect();
        assert_eq!(statements.len(), 2, "{code}");
        place.server.execute(&statements).await;

        let config = place.config_with(&[("SQL_TARGET_USERNAME", "printed")]);
        let connection = open(&config).await.unwrap();
        assert!(!connection.warnings().contains(&TargetWarning::GrantWildcard), "{flavour}");
        connection.close().await;

        let mut conn = place.server.connect("printed", PASSWORD, Some(CATALOG)).await;
        for statement in [
            "CREATE TABLE a (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=InnoDB",
            "CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id)) ENGINE=InnoDB",
            "INSERT IGNORE INTO a VALUES (1, 1)",
            "INSERT INTO a VALUES (1, 1) ON DUPLICATE KEY UPDATE n = VALUES(n)",
            "INSERT IGNORE INTO b SELECT id, n FROM a",
            "SELECT * FROM a FOR UPDATE",
            "DELETE FROM b WHERE id = 1",
            "DROP TABLE IF EXISTS b",
            "DROP TABLE IF EXISTS a",
        ] {
            let outcome = mysql_async::prelude::Queryable::query_drop(&mut conn, statement).await;
            assert!(outcome.is_ok(), "{flavour}: {statement}: {outcome:?}");
        }
        let outcome =
            mysql_async::prelude::Queryable::query_drop(&mut conn, "SELECT 1 FROM host_core.t")
                .await;
        assert!(outcome.is_err(), "{flavour}");
    }
}
