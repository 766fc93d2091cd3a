//! `plugin.toml`: what a release folder says about itself.
//!
//! ```toml
//! code = "orders"
//! version = "1.4.0"
//!
//! [[contribution]]
//! key = "schema"
//! type = "DATABASE_MIGRATION"
//! target = "sql"
//! idempotent = true                # false when absent
//! forward = "forward.sql"
//! compensation = "compensate.sql"  # optional
//! ```
//!
//! The manifest is read by hand rather than derived, so that every problem is told at once and an
//! unknown key is named together with what was probably meant. Payload files are read in `folder`.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::names::{ContributionKind, TargetName};
use crate::ids::{ContributionKey, PluginRelease};

/// Contributions of one release, at most.
pub const CONTRIBUTION_COUNT_MAX: usize = 1000;

/// A folder is not a release. Every problem that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseError {
    /// The folder.
    pub folder: PathBuf,
    /// At least one problem.
    pub problems: Vec<ReleaseProblem>,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a plugin release", self.folder.display())?;
        for problem in &self.problems {
            write!(f, "\n  {}: {}", problem.code, problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ReleaseError {}

/// One problem of a release folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseProblem {
    /// Which kind of problem.
    pub code: ProblemCode,
    /// What is wrong, naming the place.
    pub message: String,
    /// The edit that repairs it.
    pub help: String,
}

/// Kinds of problems a release folder can have. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemCode {
    /// `plugin.toml` or a payload file cannot be read.
    Unreadable,
    /// `plugin.toml` is not TOML.
    Syntax,
    /// A key nobody knows.
    UnknownKey,
    /// A required key is absent.
    MissingKey,
    /// A value of another type than its key takes.
    WrongType,
    /// A value that breaks the rule of its key.
    InvalidValue,
    /// Two contributions with one key.
    DuplicateContribution,
    /// No contribution at all, or more than [`CONTRIBUTION_COUNT_MAX`].
    ContributionCount,
    /// A path that leads, or may lead, out of the folder.
    PathOutsideFolder,
    /// A file larger than its bound.
    TooLarge,
    /// The folder's place says another release than its `plugin.toml`.
    OtherRelease,
}

impl ProblemCode {
    /// The stable, kebab-case code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::WrongType => "wrong-type",
            Self::InvalidValue => "invalid-value",
            Self::DuplicateContribution => "duplicate-contribution",
            Self::ContributionCount => "contribution-count",
            Self::PathOutsideFolder => "path-outside-folder",
            Self::TooLarge => "too-large",
            Self::OtherRelease => "other-release",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A manifest whose every value was checked; its files were not read yet.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) release: PluginRelease,
    pub(super) contributions: Vec<ManifestContribution>,
}

/// A contribution of a manifest.
#[derive(Debug)]
pub(super) struct ManifestContribution {
    pub(super) key: ContributionKey,
    pub(super) kind: ContributionKind,
    pub(super) target: TargetName,
    pub(super) idempotent: bool,
    pub(super) forward: PathBuf,
    pub(super) compensation: Option<PathBuf>,
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<ReleaseProblem>);

impl Problems {
    pub(super) fn add(
        &mut self,
        code: ProblemCode,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.0.push(ReleaseProblem { code, message: message.into(), help: help.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_error(self, folder: &Path) -> ReleaseError {
        ReleaseError { folder: folder.to_owned(), problems: self.0 }
    }
}

impl Manifest {
    /// Reads the manifest. What is wrong goes to `problems`; a contribution that is wrong is left
    /// out, so that the files of the others can still be looked at.
    pub(super) fn parse(text: &str, problems: &mut Problems) -> Option<Self> {
        let mut root = match toml::from_str::<toml::Table>(text) {
            Ok(table) => Section { place: "plugin.toml".to_owned(), table },
            Err(error) => {
                let line = error.span().map_or(1, |span| {
                    1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
                });
                problems.add(
                    ProblemCode::Syntax,
                    format!("plugin.toml, line {line}: {}", error.message()),
                    "repair the TOML syntax at that line",
                );
                return None;
            }
        };
        let code = root.parsed("code", problems);
        let version = root.parsed::<semver::Version>("version", problems);
        let contributions = contributions(&mut root, problems);
        root.refuse_unknown(&["code", "version", "contribution"], problems);
        let release = PluginRelease { code: code?, version: version? };
        Some(Self { release, contributions })
    }
}

fn contributions(root: &mut Section, problems: &mut Problems) -> Vec<ManifestContribution> {
    let items = match root.table.remove("contribution") {
        Some(toml::Value::Array(items)) => items,
        Some(other) => {
            root.wrong_type("contribution", "an array of tables", &other, problems);
            return Vec::new();
        }
        None => Vec::new(),
    };
    if items.is_empty() || items.len() > CONTRIBUTION_COUNT_MAX {
        problems.add(
            ProblemCode::ContributionCount,
            format!("plugin.toml has {} contributions", items.len()),
            format!("write 1 to {CONTRIBUTION_COUNT_MAX} tables `[[contribution]]`"),
        );
    }
    let mut read: Vec<ManifestContribution> = Vec::new();
    for (index, item) in items.into_iter().take(CONTRIBUTION_COUNT_MAX).enumerate() {
        let place = format!("contribution {}", index + 1);
        let toml::Value::Table(table) = item else {
            root.wrong_type("contribution", "an array of tables", &item, problems);
            continue;
        };
        let Some(contribution) = contribution(Section { place, table }, problems) else {
            continue;
        };
        if read.iter().any(|other| other.key == contribution.key) {
            problems.add(
                ProblemCode::DuplicateContribution,
                format!("contribution {}: the key `{}` is taken", index + 1, contribution.key),
                "give each contribution its own key",
            );
        }
        read.push(contribution);
    }
    read
}

fn contribution(mut section: Section, problems: &mut Problems) -> Option<ManifestContribution> {
    let key = section.parsed("key", problems);
    let kind = section.parsed::<ContributionKind>("type", problems);
    let target = section.parsed("target", problems);
    let idempotent = match section.table.remove("idempotent") {
        None => Some(false),
        Some(toml::Value::Boolean(idempotent)) => Some(idempotent),
        Some(other) => {
            section.wrong_type("idempotent", "`true` or `false`", &other, problems);
            None
        }
    };
    let is_sql = kind.as_ref().is_some_and(ContributionKind::is_database_migration);
    let forward = section.text("forward", true, problems);
    let forward = forward.and_then(|text| section.path("forward", &text, is_sql, problems));
    let (compensation, compensation_is_well) = match section.text("compensation", false, problems) {
        None => (None, true),
        Some(text) => {
            let path = section.path("compensation", &text, is_sql, problems);
            let is_well = path.is_some();
            (path, is_well)
        }
    };
    section.refuse_unknown(
        &["key", "type", "target", "idempotent", "forward", "compensation"],
        problems,
    );
    if !compensation_is_well {
        return None;
    }
    Some(ManifestContribution {
        key: key?,
        kind: kind?,
        target: target?,
        idempotent: idempotent?,
        forward: forward?,
        compensation,
    })
}

/// A table being taken apart; what is left at the end is unknown.
struct Section {
    place: String,
    table: toml::Table,
}

impl Section {
    fn text(&mut self, key: &str, required: bool, problems: &mut Problems) -> Option<String> {
        match self.table.remove(key) {
            Some(toml::Value::String(text)) => Some(text),
            Some(other) => {
                self.wrong_type(key, "a string", &other, problems);
                None
            }
            None => {
                if required {
                    problems.add(
                        ProblemCode::MissingKey,
                        format!("{}: `{key}` is missing", self.place),
                        format!("add `{key} = \"…\"`"),
                    );
                }
                None
            }
        }
    }

    fn parsed<T>(&mut self, key: &str, problems: &mut Problems) -> Option<T>
    where
        T: std::str::FromStr<Err: fmt::Display>,
    {
        let text = self.text(key, true, problems)?;
        text.parse()
            .map_err(|error| {
                problems.add(
                    ProblemCode::InvalidValue,
                    format!("{}: `{key}` is `{text}`: {error}", self.place),
                    format!("write a valid `{key}`"),
                );
            })
            .ok()
    }

    /// A path below the folder: relative, without `..`, and `.sql` where the payload is SQL.
    fn path(
        &self,
        key: &str,
        text: &str,
        is_sql: bool,
        problems: &mut Problems,
    ) -> Option<PathBuf> {
        let path = Path::new(text);
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        if text.is_empty() || text.contains(['\\', '\0']) || !is_below {
            problems.add(
                ProblemCode::PathOutsideFolder,
                format!("{}: `{key}` is `{text}`, which is not below the folder", self.place),
                "name a file relative to plugin.toml, without `..` and with `/`",
            );
            return None;
        }
        if is_sql && path.extension().is_none_or(|extension| extension != "sql") {
            problems.add(
                ProblemCode::InvalidValue,
                format!("{}: `{key}` is `{text}`, which is no `.sql` file", self.place),
                "name a file that ends in `.sql`",
            );
            return None;
        }
        Some(path.to_owned())
    }

    fn wrong_type(&self, key: &str, takes: &str, found: &toml::Value, problems: &mut Problems) {
        problems.add(
            ProblemCode::WrongType,
            format!(
                "{}: `{key}` takes {takes}, not a value of type {}",
                self.place,
                found.type_str()
            ),
            format!("write {takes}"),
        );
    }

    fn refuse_unknown(&self, known: &[&str], problems: &mut Problems) {
        for key in self.table.keys().filter(|key| !known.contains(&key.as_str())) {
            let near = known
                .iter()
                .map(|known| (strsim::damerau_levenshtein(known, key), known))
                .min()
                .filter(|(distance, _)| *distance <= 3);
            let help = match near {
                Some((_, known)) => format!("did you mean `{known}`?"),
                None => format!("remove it; known keys are `{}`", known.join("`, `")),
            };
            problems.add(
                ProblemCode::UnknownKey,
                format!("{}: `{key}` is not a known key", self.place),
                help,
            );
        }
    }
}
