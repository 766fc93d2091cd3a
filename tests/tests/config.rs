//! What the configuration promises.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use tollgate::config::{
    Config, ConfigErrors, Environment, GrantCheck, KEYS, Layered, NotUnicode, ProblemCode, TomlFile,
};
use tollgate::ids::{Catalog, EnvironmentCode};
use tollgate::jdbc::JdbcUrl;

type Variables = BTreeMap<String, String>;

const TARGET_URL: &str = "jdbc:mysql://db:3306/ruoyi_plugin_preview";

fn variables(entries: &[(&str, &str)]) -> Variables {
    entries
        .iter()
        .map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), (*value).into()))
        .collect()
}

fn complete() -> Variables {
    variables(&[
        ("EXECUTOR_CODE", "sql-jdbc:v1"),
        ("SQL_TARGET_ENABLED", "true"),
        ("SQL_TARGET_ENVIRONMENT_CODE", "preview"),
        ("SQL_TARGET_JDBC_URL", TARGET_URL),
        ("SQL_TARGET_USERNAME", "canary-user"),
        ("SQL_TARGET_PASSWORD", "canary-password"),
        ("SQL_TARGET_ALLOWED_CATALOG", "ruoyi_plugin_preview"),
        ("CONTROL_JDBC_URL", "jdbc:mysql://db:3306/ry-vue"),
        ("CONTROL_USERNAME", "canary-control"),
        ("CONTROL_PASSWORD", "canary-control-password"),
    ])
}

fn with(changes: &[(&str, &str)]) -> Variables {
    let mut all = complete();
    all.extend(variables(changes));
    all
}

fn errors(source: impl Environment) -> ConfigErrors {
    Config::from_source(source).expect_err("the configuration was accepted")
}

fn problems(source: impl Environment) -> Vec<(String, ProblemCode)> {
    let shorten = |name: &str| name.replace("FACTORY_PLUGIN_", "");
    errors(source).problems().iter().map(|it| (shorten(&it.variable), it.code)).collect()
}

fn one(name: &str, code: ProblemCode) -> Vec<(String, ProblemCode)> {
    vec![(name.to_owned(), code)]
}

#[test]
fn the_variables_of_the_original_request_are_enough_with_the_control_catalog() {
    let config = Config::from_source(complete()).unwrap();
    let target = config.sql_target.unwrap();
    assert_eq!(config.executor.as_str(), "sql-jdbc:v1");
    assert_eq!(target.environment.as_str(), "preview");
    assert_eq!(target.catalog.as_str(), "ruoyi_plugin_preview");
    assert_eq!(target.receipt_lease.as_secs(), 300);
    assert_eq!(target.grant_check, GrantCheck::Enforce);
    assert_eq!(target.credentials.password.expose_secret(), "canary-password");
    assert_eq!(target.control.endpoint.catalog(), "ry-vue");
}

#[test]
fn nothing_set_is_a_dry_run_without_a_target() {
    let config = Config::from_source(Variables::new()).unwrap();
    assert_eq!(config.executor.as_str(), "dry-run:v1");
    assert!(config.sql_target.is_none() && config.control.is_none());
}

/// Notes which values are asked for.
struct Watched {
    variables: Variables,
    read: RefCell<Vec<String>>,
}

impl Environment for &Watched {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        self.read.borrow_mut().push(name.to_owned());
        self.variables.value(name)
    }

    fn names(&self) -> Vec<String> {
        self.variables.names()
    }
}

#[test]
fn a_disabled_target_is_not_read_at_all() {
    let mut variables = with(&[("SQL_TARGET_ENABLED", "false"), ("SQL_TARGET_JDBC_URL", "broken")]);
    variables.retain(|name, _| !name.contains("CONTROL"));
    let watched = Watched { variables, read: RefCell::default() };
    assert!(Config::from_source(&watched).unwrap().sql_target.is_none());
    let target = |name: &&String| name.contains("SQL_TARGET");
    let read = watched.read.into_inner();
    let read: Vec<_> = read.iter().filter(target).collect();
    assert_eq!(read, ["FACTORY_PLUGIN_SQL_TARGET_ENABLED"]);
}

#[test]
fn everything_that_is_missing_is_reported_at_once() {
    let found = problems(variables(&[("SQL_TARGET_ENABLED", "true")]));
    let missing = |name: &str| (name.to_owned(), ProblemCode::Missing);
    let wanted = [
        "SQL_TARGET_ENVIRONMENT_CODE",
        "SQL_TARGET_JDBC_URL",
        "SQL_TARGET_USERNAME",
        "SQL_TARGET_PASSWORD",
        "SQL_TARGET_ALLOWED_CATALOG",
        "CONTROL_JDBC_URL",
        "CONTROL_USERNAME",
        "CONTROL_PASSWORD",
    ];
    assert_eq!(found, wanted.map(missing));
}

#[test]
fn every_rule_of_a_value_is_kept() {
    use ProblemCode::{Conflict, Invalid, OutOfRange};
    for (name, value, code) in [
        ("EXECUTOR_CODE", "sql-jdbc", Invalid),
        ("SQL_TARGET_ENVIRONMENT_CODE", "Preview", Invalid),
        ("SQL_TARGET_JDBC_URL", "jdbc:postgresql://db/p", Invalid),
        ("SQL_TARGET_DRIVER_CLASS_NAME", "org.h2.Driver", Invalid),
        ("SQL_TARGET_ALLOWED_CATALOG", "mysql", Invalid),
        ("SQL_TARGET_ALLOWED_CATALOG", "other", Conflict),
        ("SQL_TARGET_ALLOWED_CATALOG", "RUOYI_plugin_preview", Conflict),
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "29", OutOfRange),
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "3601", OutOfRange),
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5m", Invalid),
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "-1", Invalid),
        ("SQL_TARGET_GRANT_CHECK", "off", Invalid),
        ("SQL_TARGET_POOL_SESSIONS_MAX", "0", OutOfRange),
        ("SQL_TARGET_STATEMENT_BUDGET_SECONDS", "0", OutOfRange),
        ("SQL_TARGET_LOCK_WAIT_TIMEOUT_SECONDS", "31536000", OutOfRange),
        ("CONTROL_JDBC_URL", "jdbc:mysql://DB/ruoyi_plugin_preview?useSSL=true", Conflict),
        ("CONTROL_JDBC_URL", "jdbc:mysql://elsewhere/Ruoyi_Plugin_Preview", Conflict),
        ("CONTROL_JDBC_URL", "jdbc:mysql://db/", Invalid),
    ] {
        assert_eq!(problems(with(&[(name, value)])), one(name, code), "{name}={value}");
    }
    for (name, value) in [
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30"),
        ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "3600"),
        ("SQL_TARGET_DRIVER_CLASS_NAME", "com.mysql.cj.jdbc.Driver"),
        ("SQL_TARGET_GRANT_CHECK", "warn"),
        ("SQL_TARGET_ENABLED", " true "),
    ] {
        assert!(Config::from_source(with(&[(name, value)])).is_ok(), "{name}={value}");
    }
    assert_eq!(
        problems(with(&[("SQL_TARGET_ENABLED", "yes")])),
        one("SQL_TARGET_ENABLED", Invalid)
    );
}

#[test]
fn the_urls_own_timeouts_win() {
    let url = format!("{TARGET_URL}?connectTimeout=1500&socketTimeout=60000");
    let config = Config::from_source(with(&[("SQL_TARGET_JDBC_URL", &url)])).unwrap();
    let bounds = config.sql_target.unwrap().bounds;
    assert_eq!(bounds.connect_timeout.as_millis(), 1_500);
    assert_eq!(bounds.statement_budget.as_secs(), 60);
}

#[test]
fn an_unknown_variable_is_an_error_with_a_correction() {
    let errors = errors(with(&[("SQL_TARGET_PASWORD", "canary")]));
    let [problem] = errors.problems() else { panic!("{errors}") };
    assert_eq!(problem.code, ProblemCode::UnknownVariable);
    assert_eq!(problem.help, "did you mean `FACTORY_PLUGIN_SQL_TARGET_PASSWORD`?");
    assert!(!format!("{errors} {errors:?}").contains("canary"));
}

#[test]
fn a_password_comes_from_a_file_without_its_line_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    let mut variables = complete();
    variables.remove("FACTORY_PLUGIN_SQL_TARGET_PASSWORD");
    variables
        .insert("FACTORY_PLUGIN_SQL_TARGET_PASSWORD_FILE".to_owned(), path.display().to_string());
    let unreadable = one("SQL_TARGET_PASSWORD_FILE", ProblemCode::UnreadableFile);
    assert_eq!(problems(variables.clone()), unreadable);
    for (content, password) in [("s p \n", "s p "), ("s\r\n", "s"), ("s\n\n", "s\n")] {
        std::fs::write(&path, content).unwrap();
        let config = Config::from_source(variables.clone()).unwrap().sql_target.unwrap();
        assert_eq!(config.credentials.password.expose_secret(), password);
    }
    for content in [Vec::new(), b"\n".to_vec(), vec![b'a'; 5_000], vec![0xff]] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(problems(variables.clone()), unreadable);
    }
    variables.insert("FACTORY_PLUGIN_SQL_TARGET_PASSWORD".to_owned(), "x".to_owned());
    let conflict = one("SQL_TARGET_PASSWORD_FILE", ProblemCode::Conflict);
    assert_eq!(problems(variables), conflict);
}

#[test]
fn the_environment_wins_over_the_file() {
    let mut lines: Vec<String> =
        complete().into_iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
    lines.push("FACTORY_PLUGIN_SQL_TARGET_RECEIPT_LEASE_SECONDS = 60".to_owned());
    let text = lines.join("\n");
    let file = TomlFile::parse("tollgate.toml", &text).unwrap();
    let above = variables(&[("SQL_TARGET_ENVIRONMENT_CODE", "staging")]);
    let target = Config::from_source(Layered::new(above, file)).unwrap().sql_target.unwrap();
    assert_eq!(target.environment.as_str(), "staging");
    assert_eq!(target.receipt_lease.as_secs(), 60);
}

#[test]
fn what_could_be_read_is_there_for_a_status() {
    let mut variables = complete();
    variables.remove("FACTORY_PLUGIN_SQL_TARGET_PASSWORD");
    let errors = errors(variables);
    let partial = errors.partial();
    assert_eq!(partial.sql_target_enabled, Some(true));
    assert_eq!(partial.environment.as_ref().map(EnvironmentCode::as_str), Some("preview"));
    assert_eq!(partial.catalog.as_ref().map(Catalog::as_str), Some("ruoyi_plugin_preview"));
}

#[test]
fn a_value_that_is_not_unicode_is_reported() {
    struct Broken;
    impl Environment for Broken {
        fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
            (name == "FACTORY_PLUGIN_EXECUTOR_CODE").then_some(Err(NotUnicode))
        }
        fn names(&self) -> Vec<String> {
            Vec::new()
        }
    }
    assert_eq!(problems(Broken), one("EXECUTOR_CODE", ProblemCode::Invalid));
}

#[test]
fn no_secret_is_printed_whatever_is_wrong() {
    for key in KEYS.iter().filter(|key| key.secret) {
        let mut variables = complete();
        variables.insert(key.name.to_owned(), "jdbc:mysql://u:canary-x@h/c?canary=1".to_owned());
        variables.insert("FACTORY_PLUGIN_SQL_TARGET_GRANT_CHECK".to_owned(), "bad".to_owned());
        let errors = errors(variables);
        let json = serde_json::to_string(errors.problems()).unwrap();
        let text = format!("{errors} {errors:?} {json}");
        assert!(!text.contains("canary"), "{}: {text}", key.name);
    }
    let config = Config::from_source(complete()).unwrap();
    assert!(!format!("{config:?}").contains("canary"));
    assert!(!format!("{config:?}").contains("db:3306"));
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9-]{0,10}[a-z0-9](\\.[a-z]{2,6}){0,2}",
        any::<std::net::Ipv4Addr>().prop_map(|it| it.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|it| format!("[{it}]")),
    ]
}

fn any_case(text: &str, upper: &[bool]) -> String {
    text.chars()
        .zip(upper.iter().cycle())
        .map(|(char, upper)| if *upper { char.to_ascii_uppercase() } else { char })
        .collect()
}

proptest! {
    #[test]
    fn no_text_makes_the_url_parser_panic_or_print_it(text in "\\PC{0,120}") {
        if let Err(problems) = JdbcUrl::parse(&text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(!problem.help().is_empty());
            }
        }
    }

    #[test]
    fn pieces_of_urls_do_not_make_it_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "jdbc:", "mysql:", "//", "host", ":", "3306", "/", "cat", "?", "&", "=", "#", "@",
                "[", "]", "::1", "%", "%40", "sslMode", "REQUIRED", "localSocket", "é", ",", "(",
            ]),
            0..14,
        )
    ) {
        let _ = JdbcUrl::parse(&pieces.concat());
        let _ = JdbcUrl::parse(&format!("jdbc:mysql://{}", pieces.concat()));
    }

    #[test]
    fn a_password_in_a_url_is_never_printed(
        password in "[a-zA-Z0-9:/?&=#%._-]{0,6}canary[a-zA-Z0-9:/?&=#%._-]{0,6}",
        host in host(),
    ) {
        let text = format!("jdbc:mysql://user:{password}@{host}/cat?useSSL=false");
        let problems = JdbcUrl::parse(&text).unwrap_err();
        prop_assert!(!format!("{problems:?}").contains("canary"), "{problems:?}");
    }

    #[test]
    fn spellings_of_one_url_are_equal_once_normalised(
        host in host(),
        port in prop::option::of(1_u16..),
        catalog in "[a-z0-9_]{1,20}",
        upper in prop::collection::vec(any::<bool>(), 1..20),
        properties in prop::sample::select(vec!["", "?useSSL=false", "?serverTimezone=UTC&sslMode=REQUIRED"]),
    ) {
        let port_text = port.map(|port| format!(":{port}")).unwrap_or_default();
        let plain = JdbcUrl::parse(&format!("jdbc:mysql://{host}{port_text}/{catalog}")).unwrap();
        let default = if port.is_none() { ":3306" } else { &port_text };
        let other = format!("jdbc:mysql://{host}{default}/{catalog}");
        let other = format!("{}{properties}", any_case(&other, &upper));
        let other = JdbcUrl::parse(&other).unwrap();
        prop_assert!(plain.normalised() == other.normalised());
        let elsewhere = format!("jdbc:mysql://{host}{port_text}/{catalog}x");
        prop_assert!(plain.normalised() != JdbcUrl::parse(&elsewhere).unwrap().normalised());
    }
}
