//! Every variable there is: the one list that reading, "did you mean" and the documentation share.

use super::problem::{ConfigProblem, ProblemCode};

/// What every variable starts with.
pub const PREFIX: &str = "FACTORY_PLUGIN_";

/// One documented variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its rule and unit, and its default when it has one.
    pub rule: &'static str,
    /// Whether its value is a secret.
    pub secret: bool,
}

macro_rules! keys {
    ($($(#[$secret:ident])? $constant:ident = $name:literal, $rule:literal;)*) => {
        $(pub(super) const $constant: &str = concat!("FACTORY_PLUGIN_", $name);)*

        /// Every variable, in the order problems are reported.
        pub const KEYS: &[Key] = &[
            $(Key { name: $constant, rule: $rule, secret: keys!(@ $($secret)?) },)*
        ];
    };
    (@ secret) => { true };
    (@) => { false };
}

keys! {
    EXECUTOR_CODE = "EXECUTOR_CODE", "an executor code, `name:vN`; default `dry-run:v1`";
    ENABLED = "SQL_TARGET_ENABLED", "`true` or `false`; default `false`, and then nothing else of the target is read";
    ENVIRONMENT_CODE = "SQL_TARGET_ENVIRONMENT_CODE", "required: a lowercase letter or digit, then at most 31 of `a-z 0-9 -`";
    #[secret]
    JDBC_URL = "SQL_TARGET_JDBC_URL", "required: `jdbc:mysql://host[:port]/catalog[?property=value&…]`, no user or password in it";
    #[secret]
    USERNAME = "SQL_TARGET_USERNAME", "required";
    #[secret]
    PASSWORD = "SQL_TARGET_PASSWORD", "required, unless the password is in a file";
    PASSWORD_FILE = "SQL_TARGET_PASSWORD_FILE", "a file that holds the password; one line end at its end is not part of it";
    DRIVER_CLASS_NAME = "SQL_TARGET_DRIVER_CLASS_NAME", "`com.mysql.cj.jdbc.Driver`, for compatibility; any other value is refused";
    ALLOWED_CATALOG = "SQL_TARGET_ALLOWED_CATALOG", "required: 1 to 64 of `A-Z a-z 0-9 _`, the URL's catalog, none of the server's own";
    RECEIPT_LEASE_SECONDS = "SQL_TARGET_RECEIPT_LEASE_SECONDS", "seconds, 30 to 3600; default 300";
    GRANT_CHECK = "SQL_TARGET_GRANT_CHECK", "`enforce` or `warn`; default `enforce`: an account that reaches beyond the catalog, or lacks a right in it, is refused";
    ALLOWED_SERVERS = "SQL_TARGET_ALLOWED_SERVERS", "server identities the target may have, separated by commas; default any";
    CONNECT_TIMEOUT_SECONDS = "SQL_TARGET_CONNECT_TIMEOUT_SECONDS", "seconds, 1 to 60; default 10; the URL's `connectTimeout` wins";
    OPEN_BUDGET_SECONDS = "SQL_TARGET_OPEN_BUDGET_SECONDS", "seconds, 1 to 300; default 30: connecting and every isolation check together";
    STATEMENT_BUDGET_SECONDS = "SQL_TARGET_STATEMENT_BUDGET_SECONDS", "seconds, 1 to 86400; default 900: what runs longer is killed; a shorter `socketTimeout` in the URL wins";
    LOCK_WAIT_TIMEOUT_SECONDS = "SQL_TARGET_LOCK_WAIT_TIMEOUT_SECONDS", "seconds, 1 to 3600; default 30: for metadata locks and row locks";
    IDLE_SESSION_SECONDS = "SQL_TARGET_IDLE_SESSION_SECONDS", "seconds, 30 to 86400; default 600: how long the server keeps an idle session and its locks";
    POOL_SESSIONS_MAX = "SQL_TARGET_POOL_SESSIONS_MAX", "sessions, 1 to 64; default 4: kept open between steps";
    SESSION_REUSE_SECONDS = "SQL_TARGET_SESSION_REUSE_SECONDS", "seconds, 0 to 600; default 60: how long after its isolation was proven a session is used for further steps; 0: for one";
    EXECUTION_COUNT_MAX = "SQL_TARGET_EXECUTION_COUNT_MAX", "executions, 1 to 1000; default 20: after them a step needs a person";
    #[secret]
    CONTROL_JDBC_URL = "CONTROL_JDBC_URL", "required when the target is enabled: the control catalog's `jdbc:mysql:` URL";
    #[secret]
    CONTROL_USERNAME = "CONTROL_USERNAME", "required with the control URL";
    #[secret]
    CONTROL_PASSWORD = "CONTROL_PASSWORD", "required with the control URL, unless the password is in a file";
    CONTROL_PASSWORD_FILE = "CONTROL_PASSWORD_FILE", "a file that holds the control password";
    CONTROL_CONNECT_TIMEOUT_SECONDS = "CONTROL_CONNECT_TIMEOUT_SECONDS", "seconds, 1 to 60; default 10; the URL's `connectTimeout` wins";
    WORKER_CONCURRENCY = "WORKER_CONCURRENCY", "steps, 1 to 64; default 4: carried out at once by one worker";
    WORKER_LEASE_SECONDS = "WORKER_LEASE_SECONDS", "seconds, 5 to 3600; default 60: a claim in the outbox, renewed each third";
    WORKER_GRACE_SECONDS = "WORKER_GRACE_SECONDS", "seconds, 0 to 3600; default 30: how long running steps may go on after SIGTERM";
    WORKER_ATTEMPTS_MAX = "WORKER_ATTEMPTS_MAX", "deliveries, 1 to 1000; default 10: after so many that failed, or so many in a row that took their worker down, a step needs a person";
}

/// The problem of a name no variable has.
pub(super) fn unknown(name: &str) -> ConfigProblem {
    let nearest = KEYS
        .iter()
        .map(|key| (strsim::damerau_levenshtein(key.name, name), key.name))
        .min()
        // Further away than a third of the name it would be a guess, not a correction.
        .filter(|(distance, _)| distance * 3 <= name.len());
    let help = match nearest {
        Some((_, key)) => format!("did you mean `{key}`?"),
        None => "remove it; `tollgate doctor --variables` lists every one".to_owned(),
    };
    ConfigProblem::new(name, ProblemCode::UnknownVariable, "no variable has this name", help)
}

/// The documented entry of a variable.
pub(super) fn rule_of(name: &str) -> &'static str {
    KEYS.iter().find(|key| key.name == name).map_or("", |key| key.rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_corrected() {
        let problem = unknown("FACTORY_PLUGIN_SQL_TARGET_JDBC_ULR");
        assert_eq!(problem.help, "did you mean `FACTORY_PLUGIN_SQL_TARGET_JDBC_URL`?");
        assert!(!unknown("FACTORY_PLUGIN_Q").help.contains("did you mean"));
    }

    #[test]
    fn every_name_is_listed_once() {
        let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
