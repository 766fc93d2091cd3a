//! Configurations, what is made of them, and errors with all their causes, each as `Debug` has it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{Debug, Write as _};

use tollgate::config::{Config, KEYS, Layered, TomlFile};
use tollgate::control::Control;
use tollgate::executor::{ExecutorRegistry, Outcome, SqlJdbcV1};
use tollgate::ids::Direction;
use tollgate::ledger::Ledger;
use tollgate::outbox::Outbox;
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate::target::{SessionContract, Target};
use tollgate::web::Observer;
use tollgate::worker::{Worker, WorkerOptions, check_control};
use tollgate_tests::chain::{Chain, Plugin, policy};

use crate::assert_clean;

/// Everything that a value prints of itself.
fn debug(value: &dyn Debug) -> String {
    format!("{value:?}\n{value:#?}")
}

/// Everything that an error prints, with its causes.
fn all_of(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error}\n{}", debug(&error));
    let mut source = error.source();
    while let Some(cause) = source {
        write!(text, "\n{cause}\n{}", debug(&cause)).unwrap();
        source = cause.source();
    }
    text
}

/// The variables of a configuration that is never connected, each value with a canary where the
/// rules allow one.
fn planted() -> BTreeMap<String, String> {
    [
        ("EXECUTOR_CODE", "sql-jdbc:v1"),
        ("SQL_TARGET_ENABLED", "true"),
        ("SQL_TARGET_ENVIRONMENT_CODE", "preview"),
        ("SQL_TARGET_JDBC_URL", "jdbc:mysql://canary-host.invalid:13306/plugin_preview"),
        ("SQL_TARGET_USERNAME", "canary_user"),
        ("SQL_TARGET_PASSWORD", "canary-password"),
        ("SQL_TARGET_ALLOWED_CATALOG", "plugin_preview"),
        ("CONTROL_JDBC_URL", "jdbc:mysql://canary-control.invalid/control_plane"),
        ("CONTROL_USERNAME", "canary_control"),
        ("CONTROL_PASSWORD", "canary-control-password"),
    ]
    .map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), value.to_owned()))
    .into()
}

#[test]
fn a_configuration_and_its_sources_show_no_value_that_is_secret() {
    let mut text = String::new();
    for (name, value) in planted() {
        writeln!(text, "{name} = {value:?}").unwrap();
    }
    let file = TomlFile::parse("tollgate.toml", &text).unwrap();
    assert_clean(&debug(&file), "a file");
    let layered = Layered::new(planted(), file);
    assert!(debug(&layered).contains("FACTORY_PLUGIN_CONTROL_USERNAME"));
    assert_clean(&debug(&layered), "two sources");
    let config = Config::from_source(layered).unwrap();
    assert_clean(&debug(&config), "a configuration");
    let broken = TomlFile::parse("tollgate.toml", "FACTORY_PLUGIN_CONTROL_PASSWORD = canary");
    assert_clean(&debug(&broken.unwrap_err()), "a file that is no TOML");
}

#[test]
fn no_problem_of_any_variable_repeats_a_secret() {
    let odd = [
        "canary",
        "jdbc:mysql://canary-user:canary-pass@canary-host/plugin_preview",
        "jdbc:mysql://canary-host/plugin_preview?user=canary&password=canary",
        "jdbc:mysql://canary-host:canary/plugin_preview",
        "mysql://canary@canary/canary",
        "jdbc:mysql://[canary]/plugin_preview?canary=canary",
        "",
    ];
    let mut refused = 0;
    for key in KEYS.iter().filter(|key| key.secret) {
        for value in odd {
            let mut variables = planted();
            variables.insert(key.name.to_owned(), value.to_owned());
            let Err(errors) = Config::from_source(variables) else { continue };
            refused += 1;
            // The form of a URL is no URL, and a property that is not known is refused by its name.
            let form = "jdbc:mysql://host[:port]/catalog";
            let text = all_of(&errors).replace(form, "").replace("`canary`", "");
            assert_clean(&text, &format!("{} = {value}", key.name));
        }
    }
    assert!(refused > 15, "{refused}");
}

#[tokio::test]
async fn what_is_made_of_a_configuration_shows_none_of_it() {
    let config = Config::from_source(planted()).unwrap();
    let (sql, control) = (config.sql_target.as_ref().unwrap(), config.control.as_ref().unwrap());
    let (store, runtime) =
        (PolicyStore::embedded().unwrap(), PolicyRuntime::new(RuntimeOptions::default()).unwrap());
    let registry = ExecutorRegistry::open(&config, &store, &runtime).await.unwrap();
    let plugin = Plugin::install("DELETE FROM t WHERE c = 'canary-literal'", None);
    let worker = Worker::new(
        Control::new(control),
        std::sync::Arc::new(ExecutorRegistry::open(&config, &store, &runtime).await.unwrap()),
        std::sync::Arc::new(plugin.catalog()),
        WorkerOptions::from(&config),
    );
    let step = plugin.step("up", Direction::Forward);
    let all: [(&str, &dyn Debug); 9] = [
        ("a target", &Target::new(sql)),
        ("a control catalog", &Control::new(control)),
        ("an outbox", &Outbox::of(&config)),
        ("an executor", &SqlJdbcV1::new(sql, policy())),
        ("a registry", &registry),
        ("a worker", &worker),
        ("an observer", &Observer::new(&config, &policy(), None)),
        ("a step", &step),
        ("a release", &tollgate::plan::read_release(&plugin.release_folder("1.0.0")).unwrap()),
    ];
    for (whose, value) in all {
        assert_clean(&debug(value), whose);
    }
    // Neither host answers: what that is called names no host.
    let opened = Target::new(sql).open(&SessionContract::default()).await.unwrap_err();
    assert_clean(&all_of(&opened), "a target's error");
    let status = registry.status().await;
    assert_clean(&debug(&status), "a status");
}

#[tokio::test]
async fn what_fails_on_a_server_shows_none_of_it_either() {
    let chain = Chain::start().await;
    let wrong = [("CONTROL_PASSWORD", "canary-wrong")];
    let control =
        |changes: &[(&str, &str)]| Control::new(chain.config(changes).control.as_ref().unwrap());
    assert_clean(&all_of(&control(&wrong).open().await.unwrap_err()), "a login");
    assert_clean(&all_of(&check_control(&control(&wrong)).await.unwrap_err()), "a start");
    assert_clean(&all_of(&check_control(&control(&[])).await.unwrap_err()), "no outbox");

    // The server quotes the payload; no error does.
    let plugin = Plugin::install(
        "CREATE TABLE IF NOT EXISTS entry (id INT NOT NULL PRIMARY KEY);\n\
         INSERT INTO entry (id) VALUES ('canary-literal') ON DUPLICATE KEY UPDATE id = VALUES(id);",
        None,
    );
    let outcome = chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await;
    assert_clean(&debug(&outcome), "an outcome");
    let Outcome::NotApplied { error, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.code(), "statement-failed");
    assert_clean(&all_of(&error), "a refused statement");
    assert_clean(&error.help(), "its help");

    let target = Target::new(chain.config(&[]).sql_target.as_ref().unwrap());
    let mut connection = target.open(&SessionContract::default()).await.unwrap();
    let key = "up:1".parse().unwrap();
    let receipt = Ledger::default().read(&mut connection, &key).await.unwrap();
    assert_clean(&debug(&receipt), "a receipt");
    chain.admin_run("ALTER TABLE factory_plugin_target_receipt DROP COLUMN last_error").await;
    let error = Ledger::default().read(&mut connection, &key).await.unwrap_err();
    assert_clean(&all_of(&error), "a ledger that is broken");
    connection.close().await;
}
