//! Reads a source into checked types and gathers every problem on the way.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;

use super::environment::Environment;
use super::keys::{self, KEYS};
use super::model::{Config, ControlConfig, Credentials, GrantCheck, SqlTargetConfig, TargetBounds};
use super::problem::{ConfigErrors, ConfigProblem, PartialConfig, ProblemCode};
use crate::ids::{Catalog, EnvironmentCode, ExecutorCode};
use crate::jdbc::JdbcUrl;

/// The driver of the original deployment; the only one its configuration may still name.
const DRIVER_CLASS_NAME: &str = "com.mysql.cj.jdbc.Driver";

/// A password is a line; a larger file is some other file.
const PASSWORD_FILE_BYTES_MAX: u64 = 4_096;

pub(super) fn config(source: &dyn Environment) -> Result<Config, ConfigErrors> {
    let mut reader = Reader { source, problems: Vec::new(), partial: PartialConfig::default() };
    reader.refuse_unknown_names();
    let config = reader.config();
    let Reader { mut problems, partial, .. } = reader;
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => {
            let place = |name: &str| KEYS.iter().position(|key| key.name == name);
            problems.sort_by_key(|problem| place(&problem.variable).unwrap_or(usize::MAX));
            Err(ConfigErrors { problems, partial })
        }
    }
}

struct Reader<'a> {
    source: &'a dyn Environment,
    problems: Vec<ConfigProblem>,
    partial: PartialConfig,
}

impl Reader<'_> {
    fn config(&mut self) -> Option<Config> {
        let executor = self
            .optional::<ExecutorCode>(keys::EXECUTOR_CODE)
            .map(|given| given.unwrap_or_else(ExecutorCode::dry_run_v1));
        self.partial.executor.clone_from(&executor);
        let enabled = self.flag(keys::ENABLED);
        self.partial.sql_target_enabled = enabled;
        if enabled? {
            let control = self.control();
            let target = self.sql_target(control);
            let target = target?;
            let control = Some(target.control.clone());
            Some(Config { executor: executor?, control, sql_target: Some(target) })
        } else {
            let control = if self.control_is_given() { Some(self.control()?) } else { None };
            Some(Config { executor: executor?, control, sql_target: None })
        }
    }

    fn sql_target(&mut self, control: Option<ControlConfig>) -> Option<SqlTargetConfig> {
        let environment = self.required::<EnvironmentCode>(keys::ENVIRONMENT_CODE);
        let endpoint = self.url(keys::JDBC_URL);
        let credentials = self.credentials(keys::USERNAME, keys::PASSWORD, keys::PASSWORD_FILE);
        let catalog = self.required::<Catalog>(keys::ALLOWED_CATALOG);
        let receipt_lease = self.seconds(keys::RECEIPT_LEASE_SECONDS, 30..=3600, 300);
        let grant_check = self.grant_check();
        let allowed_servers = self.allowed_servers();
        let bounds = self.bounds(endpoint.as_ref());
        self.driver_class_name();
        self.partial.environment.clone_from(&environment);
        self.partial.catalog.clone_from(&catalog);
        if let (Some(endpoint), Some(catalog)) = (&endpoint, &catalog) {
            self.catalog_is_the_urls(endpoint, catalog);
            if let Some(control) = &control {
                self.control_is_not_the_target(endpoint, catalog, &control.endpoint);
            }
        }
        Some(SqlTargetConfig {
            environment: environment?,
            endpoint: endpoint?,
            credentials: credentials?,
            catalog: catalog?,
            receipt_lease: receipt_lease?,
            control: control?,
            grant_check: grant_check?,
            allowed_servers,
            bounds: bounds?,
        })
    }

    fn control(&mut self) -> Option<ControlConfig> {
        let endpoint = self.url(keys::CONTROL_JDBC_URL);
        let credentials = self.credentials(
            keys::CONTROL_USERNAME,
            keys::CONTROL_PASSWORD,
            keys::CONTROL_PASSWORD_FILE,
        );
        let connect_timeout = self.seconds(keys::CONTROL_CONNECT_TIMEOUT_SECONDS, 1..=60, 10)?;
        let endpoint = endpoint?;
        let connect_timeout = endpoint.connect_timeout().unwrap_or(connect_timeout);
        Some(ControlConfig { endpoint, credentials: credentials?, connect_timeout })
    }

    fn control_is_given(&self) -> bool {
        [
            keys::CONTROL_JDBC_URL,
            keys::CONTROL_USERNAME,
            keys::CONTROL_PASSWORD,
            keys::CONTROL_PASSWORD_FILE,
        ]
        .iter()
        .any(|name| self.source.value(name).is_some())
    }

    fn bounds(&mut self, endpoint: Option<&JdbcUrl>) -> Option<TargetBounds> {
        let default = TargetBounds::default();
        let connect =
            self.seconds_or(keys::CONNECT_TIMEOUT_SECONDS, 1..=60, default.connect_timeout);
        let open = self.seconds_or(keys::OPEN_BUDGET_SECONDS, 1..=300, default.open_budget);
        let statement =
            self.seconds_or(keys::STATEMENT_BUDGET_SECONDS, 1..=86_400, default.statement_budget);
        let lock =
            self.seconds_or(keys::LOCK_WAIT_TIMEOUT_SECONDS, 1..=3_600, default.lock_wait_timeout);
        let idle = self.seconds_or(keys::IDLE_SESSION_SECONDS, 30..=86_400, default.idle_session);
        let pool_default = u64::try_from(default.pool_sessions_max).unwrap_or(1);
        let pool = self.number(keys::POOL_SESSIONS_MAX, 1..=64, pool_default);
        let executions = self.number(
            keys::EXECUTION_COUNT_MAX,
            1..=1_000,
            u64::from(default.execution_count_max),
        );
        let statement = statement?;
        Some(TargetBounds {
            connect_timeout: endpoint.and_then(JdbcUrl::connect_timeout).or(connect)?,
            open_budget: open?,
            statement_budget: endpoint
                .and_then(JdbcUrl::socket_timeout)
                .map_or(statement, |timeout| timeout.min(statement)),
            lock_wait_timeout: lock?,
            idle_session: idle?,
            pool_sessions_max: usize::try_from(pool?).ok()?,
            execution_count_max: u32::try_from(executions?).ok()?,
        })
    }

    fn catalog_is_the_urls(&mut self, endpoint: &JdbcUrl, catalog: &Catalog) {
        if endpoint.catalog() != catalog.as_str() {
            self.refuse(
                keys::ALLOWED_CATALOG,
                ProblemCode::Conflict,
                format!("`{catalog}` is not the catalog of the target's URL"),
                format!("set both to the same catalog, in the same case: {}", keys::JDBC_URL),
            );
        }
    }

    fn control_is_not_the_target(
        &mut self,
        target: &JdbcUrl,
        catalog: &Catalog,
        control: &JdbcUrl,
    ) {
        let message = if target.normalised() == control.normalised() {
            "names the same place as the target's URL"
        } else if control.catalog().eq_ignore_ascii_case(catalog.as_str()) {
            "names a catalog that is called as the target's is"
        } else {
            return;
        };
        let help = "give the target a catalog of its own, with a name of its own";
        self.refuse(keys::CONTROL_JDBC_URL, ProblemCode::Conflict, message, help);
    }

    fn driver_class_name(&mut self) {
        if self.text(keys::DRIVER_CLASS_NAME).is_some_and(|given| given != DRIVER_CLASS_NAME) {
            let message = "only the MySQL driver of the original deployment may be named here";
            let help = format!("remove it, or set it to `{DRIVER_CLASS_NAME}`");
            self.refuse(keys::DRIVER_CLASS_NAME, ProblemCode::Invalid, message, help);
        }
    }

    fn grant_check(&mut self) -> Option<GrantCheck> {
        match self.text(keys::GRANT_CHECK).as_deref() {
            None | Some("enforce") => Some(GrantCheck::Enforce),
            Some("warn") => Some(GrantCheck::Warn),
            Some(other) => {
                let message = format!("`{}` is neither `enforce` nor `warn`", cut(other));
                self.refuse(keys::GRANT_CHECK, ProblemCode::Invalid, message, "write `enforce`");
                None
            }
        }
    }

    fn allowed_servers(&mut self) -> Vec<String> {
        let text = self.text(keys::ALLOWED_SERVERS).unwrap_or_default();
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }

    fn url(&mut self, name: &'static str) -> Option<JdbcUrl> {
        let Some(text) = self.text(name) else {
            self.missing(name);
            return None;
        };
        match JdbcUrl::parse(&text) {
            Ok(url) => Some(url),
            Err(problems) => {
                for problem in problems {
                    self.refuse(name, ProblemCode::Invalid, problem.to_string(), problem.help());
                }
                None
            }
        }
    }

    fn credentials(
        &mut self,
        username: &'static str,
        password: &'static str,
        password_file: &'static str,
    ) -> Option<Credentials> {
        let given = self.text(username);
        if given.is_none() {
            self.missing(username);
        }
        let secret = match (self.raw(password), self.text(password_file)) {
            (Some(_), Some(_)) => {
                let message = "a password and a password file are both given";
                let help = format!("remove `{password}`");
                self.refuse(password_file, ProblemCode::Conflict, message, help);
                None
            }
            (Some(secret), None) => Some(SecretString::from(secret)),
            (None, Some(path)) => self.password_from(password_file, &path),
            (None, None) => {
                self.missing(password);
                None
            }
        };
        Some(Credentials { username: SecretString::from(given?), password: secret? })
    }

    fn password_from(&mut self, name: &'static str, path: &str) -> Option<SecretString> {
        let mut text = String::new();
        let read = std::fs::File::open(path)
            .and_then(|file| file.take(PASSWORD_FILE_BYTES_MAX + 1).read_to_string(&mut text));
        let message = match read {
            Err(error) => format!("the password file cannot be read: {}", error.kind()),
            Ok(bytes) if bytes as u64 > PASSWORD_FILE_BYTES_MAX => {
                format!("the password file is larger than {PASSWORD_FILE_BYTES_MAX} bytes")
            }
            Ok(_) => {
                let line = text.strip_suffix('\n').unwrap_or(&text);
                let line = line.strip_suffix('\r').unwrap_or(line);
                if !line.is_empty() {
                    return Some(SecretString::from(line));
                }
                "the password file is empty".to_owned()
            }
        };
        let help = "name a readable file that holds the password and nothing else";
        self.refuse(name, ProblemCode::UnreadableFile, message, help);
        None
    }

    fn refuse_unknown_names(&mut self) {
        let known: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
        let mut names = self.source.names();
        names.sort_unstable();
        let unknown = names.iter().filter(|name| !known.contains(name.as_str()));
        self.problems.extend(unknown.map(|name| keys::unknown(name)));
    }

    /// The value as it was given. Empty counts as not set: that is how a deployment that passes
    /// every variable through says "none".
    fn raw(&mut self, name: &str) -> Option<String> {
        match self.source.value(name)? {
            Ok(text) if text.is_empty() => None,
            Ok(text) => Some(text),
            Err(_) => {
                let help = "write it in UTF-8";
                self.refuse(name, ProblemCode::Invalid, "the value is not Unicode", help);
                None
            }
        }
    }

    /// The value without the space around it.
    fn text(&mut self, name: &str) -> Option<String> {
        self.raw(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn required<T>(&mut self, name: &'static str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let value = self.optional(name)?;
        if value.is_none() && !self.problems.iter().any(|problem| problem.variable == name) {
            self.missing(name);
        }
        value
    }

    /// None: refused; `Some(None)`: not set.
    #[expect(clippy::option_option, reason = "refused and not set are different answers")]
    fn optional<T>(&mut self, name: &'static str) -> Option<Option<T>>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.text(name) else {
            return Some(None);
        };
        match text.parse() {
            Ok(value) => Some(Some(value)),
            Err(error) => {
                let help =
                    format!("set it to a value that follows its rule: {}", keys::rule_of(name));
                self.refuse(name, ProblemCode::Invalid, T::Err::to_string(&error), help);
                None
            }
        }
    }

    fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.text(name).as_deref() {
            None | Some("false") => Some(false),
            Some("true") => Some(true),
            Some(other) => {
                let message = format!("`{}` is neither `true` nor `false`", cut(other));
                self.refuse(name, ProblemCode::Invalid, message, "write `true` or `false`");
                None
            }
        }
    }

    fn seconds(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        default: u64,
    ) -> Option<Duration> {
        self.number(name, bounds, default).map(Duration::from_secs)
    }

    fn seconds_or(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        default: Duration,
    ) -> Option<Duration> {
        self.seconds(name, bounds, default.as_secs())
    }

    fn number(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        default: u64,
    ) -> Option<u64> {
        let Some(text) = self.text(name) else {
            return Some(default);
        };
        let (low, high) = (bounds.start(), bounds.end());
        let help = format!("write a whole number from {low} to {high}, or remove it for {default}");
        let (code, message) = match text.parse::<u64>() {
            Ok(number) if bounds.contains(&number) => return Some(number),
            Ok(number) => {
                (ProblemCode::OutOfRange, format!("{number} is not within {low} to {high}"))
            }
            Err(_) => (ProblemCode::Invalid, format!("`{}` is not a whole number", cut(&text))),
        };
        self.refuse(name, code, message, help);
        None
    }

    fn missing(&mut self, name: &'static str) {
        let rule = keys::rule_of(name);
        // Not set, or refused before as not Unicode.
        if !self.problems.iter().any(|problem| problem.variable == name) {
            let help = format!("set `{name}` ({rule})");
            self.refuse(name, ProblemCode::Missing, "is required and not set", help);
        }
    }

    fn refuse(
        &mut self,
        name: &str,
        code: ProblemCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(ConfigProblem::new(name, code, message, help));
    }
}

/// A value short enough to be quoted. Only values that are no secrets are quoted at all.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
