//! Where variables come from: the process, a file below it, or a map in a test.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::keys::PREFIX;
use super::problem::{ConfigProblem, ProblemCode};

/// A variable's value is not Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value is not Unicode")]
pub struct NotUnicode;

/// Named text values.
///
/// Values are asked for one by one, so that what a configuration does not need is not read.
pub trait Environment {
    /// The value of a variable; none when it is not set.
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>>;

    /// The names of every variable that is set and starts with `FACTORY_PLUGIN_`.
    fn names(&self) -> Vec<String>;
}

impl<E: Environment + ?Sized> Environment for &E {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        (**self).value(name)
    }

    fn names(&self) -> Vec<String> {
        (**self).names()
    }
}

/// The variables of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        std::env::var_os(name).map(|value| value.into_string().map_err(|_| NotUnicode))
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| name.starts_with(PREFIX))
            .collect()
    }
}

impl Environment for BTreeMap<String, String> {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        self.get(name).cloned().map(Ok)
    }

    fn names(&self) -> Vec<String> {
        self.keys().filter(|name| name.starts_with(PREFIX)).cloned().collect()
    }
}

/// A TOML file with the same keys: `FACTORY_PLUGIN_EXECUTOR_CODE = "dry-run:v1"`.
///
/// Values are strings, integers or booleans. Keys that do not start with `FACTORY_PLUGIN_` are
/// refused, so that a misspelt prefix is not silently nothing.
#[derive(Clone, Default)]
pub struct TomlFile(BTreeMap<String, String>);

impl std::fmt::Debug for TomlFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl TomlFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Every problem of the file: unreadable, not TOML, keys outside the prefix, values that are
    /// tables or lists. The problem's variable is the file's path or the key.
    pub fn read(path: &Path) -> Result<Self, Vec<ConfigProblem>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::NotFound => "the configuration file does not exist".to_owned(),
                kind => format!("the configuration file cannot be read: {kind}"),
            };
            let help = "give `--config` a readable UTF-8 file".to_owned();
            vec![ConfigProblem::new(&name, ProblemCode::UnreadableFile, what, help)]
        })?;
        Self::parse(&name, &text)
    }

    /// Parses the text of a file called `name`.
    ///
    /// # Errors
    /// As [`TomlFile::read`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<ConfigProblem>> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            // The parser's own message may quote the line, and the line may hold a password.
            let line = error.span().map_or(1, |span| {
                1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
            });
            let what = format!("line {line} of the configuration file is not TOML");
            let help = "write `NAME = \"value\"`, one a line".to_owned();
            vec![ConfigProblem::new(name, ProblemCode::Invalid, what, help)]
        })?;
        let mut values = BTreeMap::new();
        let mut problems = Vec::new();
        for (key, value) in table {
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                _ => {
                    let what = "the value is neither a string, an integer nor a boolean";
                    let help = format!("write `{key} = \"value\"`");
                    problems.push(ConfigProblem::new(&key, ProblemCode::Invalid, what, help));
                    continue;
                }
            };
            if key.starts_with(PREFIX) {
                values.insert(key, text);
            } else {
                problems.push(super::keys::unknown(&key));
            }
        }
        if problems.is_empty() { Ok(Self(values)) } else { Err(problems) }
    }
}

impl Environment for TomlFile {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        self.0.value(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }
}

/// One source above another: the upper one wins.
#[derive(Clone)]
pub struct Layered<U, L> {
    upper: U,
    lower: L,
}

impl<U: Environment, L: Environment> std::fmt::Debug for Layered<U, L> {
    /// The names alone, whatever the sources print of themselves.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl<U: Environment, L: Environment> Layered<U, L> {
    /// Puts `upper` above `lower`.
    pub fn new(upper: U, lower: L) -> Self {
        Self { upper, lower }
    }

    /// A password given above in one form hides the other form below: `X_PASSWORD` in the
    /// environment and `X_PASSWORD_FILE` in the file are not a conflict.
    fn hidden_by_other_form(&self, name: &str) -> bool {
        let other = match name.strip_suffix("_PASSWORD_FILE") {
            Some(stem) => format!("{stem}_PASSWORD"),
            None if name.ends_with("_PASSWORD") => format!("{name}_FILE"),
            None => return false,
        };
        self.upper.names().contains(&other)
    }
}

impl<U: Environment, L: Environment> Environment for Layered<U, L> {
    fn value(&self, name: &str) -> Option<Result<String, NotUnicode>> {
        self.upper
            .value(name)
            .or_else(|| if self.hidden_by_other_form(name) { None } else { self.lower.value(name) })
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.upper.names();
        names.extend(self.lower.names());
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_upper_layer_wins() {
        let upper = map(&[("FACTORY_PLUGIN_EXECUTOR_CODE", "sql-jdbc:v1")]);
        let lower = TomlFile::parse("f", "FACTORY_PLUGIN_EXECUTOR_CODE = 'dry-run:v1'").unwrap();
        let layered = Layered::new(upper, lower);
        assert_eq!(layered.value("FACTORY_PLUGIN_EXECUTOR_CODE"), Some(Ok("sql-jdbc:v1".into())));
        assert_eq!(layered.names().len(), 1);
    }

    #[test]
    fn a_password_above_hides_the_password_file_below() {
        let upper = map(&[("FACTORY_PLUGIN_SQL_TARGET_PASSWORD", "x")]);
        let lower = map(&[("FACTORY_PLUGIN_SQL_TARGET_PASSWORD_FILE", "/nowhere")]);
        let layered = Layered::new(upper, lower);
        assert_eq!(layered.value("FACTORY_PLUGIN_SQL_TARGET_PASSWORD_FILE"), None);
    }

    #[test]
    fn a_broken_file_names_the_line_and_not_its_text() {
        let text = "FACTORY_PLUGIN_EXECUTOR_CODE = 'dry-run:v1'\nFACTORY_PLUGIN_SQL_TARGET_PASSWORD = canary\n";
        let problems = TomlFile::parse("f.toml", text).unwrap_err();
        let shown = format!("{problems:?}");
        assert!(shown.contains("line 2"), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_key_outside_the_prefix_is_refused() {
        let problems =
            TomlFile::parse("f", "FACTORY_PLUGN_EXECUTOR_CODE = 'a'\nx = [1]").unwrap_err();
        assert_eq!(problems.len(), 2);
    }
}
