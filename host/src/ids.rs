//! Names that were checked once and cannot be mistaken for one another.
//!
//! Each type states its own rule and refuses anything else at construction; there is no `validate`
//! on a live value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that does not follow the rule of the name it is meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {rule}")]
pub struct InvalidName {
    what: &'static str,
    rule: &'static str,
    text: String,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, rule: &'static str, text: &str) -> Self {
        // A name is short; what is longer is cut so that an error stays readable.
        Self { what, rule, text: text.chars().take(160).collect() }
    }
}

/// A name with a rule of its own: checked where it is made, compared byte for byte.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidName::new($what, $rule, text))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}
pub(crate) use name;

/// Length within `1..=max` and every byte accepted.
fn bytes_within(text: &str, max: usize, accepts: fn(u8) -> bool) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(accepts)
}

name!(
    /// The step idempotency key: given by the control side, stable across redeliveries, distinct per
    /// direction, compared byte for byte.
    StepKey,
    "a step idempotency key",
    "use 1 to 128 of `A-Z a-z 0-9 . _ : -`",
    |text| bytes_within(text, 128, |b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
);

name!(
    /// The environment a target stands for; part of every external receipt.
    EnvironmentCode,
    "an environment code",
    "use a lowercase letter or digit, then at most 31 of `a-z 0-9 -`",
    |text| bytes_within(text, 32, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
);

name!(
    /// A MySQL catalog (database) that may be a target: never one of the server's own.
    Catalog,
    "a catalog that may be a target",
    "use 1 to 64 of `A-Z a-z 0-9 _`, and none of the server's own catalogs",
    |text| bytes_within(text, 64, |b| b.is_ascii_alphanumeric() || b == b'_')
        && !is_system_catalog(text)
);

name!(
    /// The code of a plugin.
    PluginCode,
    "a plugin code",
    "use a letter or digit, then at most 63 of `A-Z a-z 0-9 . _ -`",
    |text| bytes_within(text, 64, |b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
);

name!(
    /// The key of a contribution within its release.
    ContributionKey,
    "a contribution key",
    "use 1 to 128 of `A-Z a-z 0-9 . _ : / -`",
    |text| bytes_within(text, 128, |b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b))
);

name!(
    /// The code of an executor, `name:vN`. It is part of recorded plans and is never renamed.
    ExecutorCode,
    "an executor code",
    "write `name:vN`, such as `sql-jdbc:v1`",
    is_executor_code
);

impl ExecutorCode {
    /// `dry-run:v1`: decides and reports, connects to nothing.
    pub fn dry_run_v1() -> Self {
        Self("dry-run:v1".to_owned())
    }

    /// `sql-jdbc:v1`: runs allowed SQL on the isolated target. The name is historical.
    pub fn sql_jdbc_v1() -> Self {
        Self("sql-jdbc:v1".to_owned())
    }
}

/// The server's own catalogs, in any case: `lower_case_table_names` may fold them.
pub(crate) fn is_system_catalog(text: &str) -> bool {
    ["mysql", "information_schema", "performance_schema", "sys"]
        .iter()
        .any(|system| text.eq_ignore_ascii_case(system))
}

fn is_executor_code(text: &str) -> bool {
    let Some((name, version)) = text.split_once(":v") else {
        return false;
    };
    bytes_within(name, 48, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && bytes_within(version, 4, |b| b.is_ascii_digit())
        && !version.starts_with('0')
}

/// A released version of a plugin: what a receipt's identity names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginRelease {
    /// The plugin.
    pub code: PluginCode,
    /// Its semantic version.
    pub version: semver::Version,
}

impl fmt::Display for PluginRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.code, self.version)
    }
}

/// Forward, or its reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Direction {
    /// The contribution's payload.
    Forward,
    /// Its compensation payload.
    Compensate,
}

impl Direction {
    /// As the receipt stores it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "FORWARD",
            Self::Compensate => "COMPENSATE",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Direction {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "FORWARD" => Ok(Self::Forward),
            "COMPENSATE" => Ok(Self::Compensate),
            _ => Err(InvalidName::new("a direction", "write `FORWARD` or `COMPENSATE`", text)),
        }
    }
}

/// What a step handed back for the caller to keep.
///
/// `sql:<environment-code>:<step-idempotency-key>`, `dry-run:<step-idempotency-key>`, or the like of
/// an embedder's executor: it can be computed without asking anyone, so a redelivery always gives the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExternalReceipt(String);

impl ExternalReceipt {
    /// The receipt of a step that ran on a target.
    pub fn sql(environment: &EnvironmentCode, key: &StepKey) -> Self {
        Self(format!("sql:{environment}:{key}"))
    }

    /// The receipt of a dry run.
    pub fn dry_run(key: &StepKey) -> Self {
        Self(format!("dry-run:{key}"))
    }

    /// The receipt of an executor of the embedder's own: `<name>:<step-idempotency-key>`, with the
    /// name of its code, which an outbox has room for.
    pub fn own(executor: &ExecutorCode, key: &StepKey) -> Self {
        let name = executor.as_str().split(':').next().unwrap_or_default();
        Self(format!("{name}:{key}"))
    }

    /// The receipt's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExternalReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: FromStr>(texts: &[&str]) {
        for text in texts {
            assert!(text.parse::<T>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_step_key_is_ascii_and_bounded() {
        assert!("plan-7:step.3_A".parse::<StepKey>().is_ok());
        assert!("k".repeat(128).parse::<StepKey>().is_ok());
        refused::<StepKey>(&["", " a", "a b", "é", "a/b", "a\0", &"k".repeat(129)]);
    }

    #[test]
    fn an_environment_code_starts_with_a_letter_or_digit() {
        assert!("preview".parse::<EnvironmentCode>().is_ok());
        assert!("9-eu".parse::<EnvironmentCode>().is_ok());
        refused::<EnvironmentCode>(&["", "-a", "Preview", "a_b", &"a".repeat(33)]);
    }

    #[test]
    fn a_system_catalog_is_no_target_in_any_case() {
        assert!("ruoyi_plugin_preview".parse::<Catalog>().is_ok());
        refused::<Catalog>(&["", "mysql", "MySQL", "Sys", "a-b", "a.b", "a`", &"a".repeat(65)]);
    }

    #[test]
    fn an_executor_code_has_a_version() {
        assert_eq!("sql-jdbc:v1".parse(), Ok(ExecutorCode::sql_jdbc_v1()));
        refused::<ExecutorCode>(&["sql-jdbc", "sql-jdbc:v0", "sql-jdbc:1", ":v1", "SQL:v1", "a:v"]);
    }

    #[test]
    fn receipts_are_exact() {
        let key: StepKey = "step-1".parse().unwrap();
        let environment = "preview".parse().unwrap();
        assert_eq!(ExternalReceipt::sql(&environment, &key).as_str(), "sql:preview:step-1");
        assert_eq!(ExternalReceipt::dry_run(&key).as_str(), "dry-run:step-1");
    }
}
