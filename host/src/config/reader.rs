//! Reads single values: text, numbers, switches, secrets.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{ErrorKind, Read as _};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;

use super::environment::Environment;
use super::keys::{self, KEYS};
use super::model::Credentials;
use super::problem::{ConfigProblem, PartialConfig, ProblemCode};

/// A password is a line; a larger file is some other file.
const PASSWORD_FILE_BYTES_MAX: u64 = 4_096;

/// Asks a source for values and gathers what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) source: &'a dyn Environment,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) partial: PartialConfig,
}

impl Reader<'_> {
    pub(super) fn credentials(
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
            Err(error) if error.kind() == ErrorKind::NotFound => {
                "the password file does not exist".to_owned()
            }
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

    pub(super) fn refuse_unknown_names(&mut self) {
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
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.raw(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn required<T>(&mut self, name: &'static str) -> Option<T>
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
    pub(super) fn optional<T>(&mut self, name: &'static str) -> Option<Option<T>>
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

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
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

    pub(super) fn seconds(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        default: u64,
    ) -> Option<Duration> {
        self.number(name, bounds, default).map(Duration::from_secs)
    }

    pub(super) fn seconds_or(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<u64>,
        default: Duration,
    ) -> Option<Duration> {
        self.seconds(name, bounds, default.as_secs())
    }

    pub(super) fn number(
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

    pub(super) fn missing(&mut self, name: &'static str) {
        let rule = keys::rule_of(name);
        // Not set, or refused before as not Unicode.
        if !self.problems.iter().any(|problem| problem.variable == name) {
            let help = format!("set `{name}` ({rule})");
            self.refuse(name, ProblemCode::Missing, "is required and not set", help);
        }
    }

    pub(super) fn refuse(
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
pub(super) fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
