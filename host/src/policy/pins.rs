//! `pins.toml`: which component decides for which executor code.
//!
//! The file is read whole and strictly: an unknown key, a second pin for a code or a file name with
//! a path in it is refused. It is a list, so that history stays readable in a diff.

use std::collections::BTreeSet;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::ExecutorCode;

use super::description::Description;

/// What stands for a compiler that nobody named.
pub const UNKNOWN_COMPILER: &str = "unknown";

/// Which component decides for an executor code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyPin {
    /// The executor the policy decides for.
    pub executor: ExecutorCode,
    /// The policy's name.
    pub name: String,
    /// The policy's version.
    pub version: Version,
    /// The component's file, beside `pins.toml`.
    pub file: String,
    /// The digest of the component's exact bytes.
    pub sha256: Digest,
    /// The compiler that made it, as `rustc --version` prints it.
    pub compiler: String,
    /// The compiler's flags that shape its bytes, folders left out.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Digests of earlier components this one replaces under the same executor code: a step that
    /// one of them decided may go on under this one.
    #[serde(default)]
    pub supersedes: Vec<Digest>,
}

impl PolicyPin {
    /// The pin a component asks for, for the first executor it is written for.
    pub(super) fn describing(description: &Description, sha256: Digest) -> Option<Self> {
        let Description { name, version, executor_codes, .. } = description;
        Some(Self {
            executor: executor_codes.first()?.clone(),
            name: name.clone(),
            version: version.clone(),
            file: format!("{name}-{version}.wasm"),
            sha256,
            compiler: UNKNOWN_COMPILER.into(),
            flags: Vec::new(),
            supersedes: Vec::new(),
        })
    }
}

/// The checked content of `pins.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins(Vec<PolicyPin>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinsFile {
    /// Version of the file's format.
    format: u32,
    #[serde(default, rename = "pin")]
    pins: Vec<PolicyPin>,
}

/// The version of the file format this host reads and writes.
const FORMAT: u32 = 1;

/// What stands above the pins in the file. Evidence bundles hold it: of their version it stays the same.
const HEADER: &str = "\
# Which policy component decides for which executor code. Written by script/build-policy; a pin is
# changed by review, not by hand: the host refuses a component whose sha256 is not the one below.

";

/// `pins.toml` is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// Not TOML, an unknown key, or a value that is not of its kind.
    #[error("the pins cannot be read")]
    Syntax(#[source] Box<toml::de::Error>),
    /// Written by another version of Tollgate.
    #[error("the pins have format {0}, this version reads format {FORMAT}")]
    Format(u32),
    /// Two components for one code.
    #[error("the executor `{0}` is pinned twice")]
    Twice(ExecutorCode),
    /// A component outside the store.
    #[error("`{0}` is not a plain file name")]
    File(String),
}

impl Pins {
    /// Reads the text of `pins.toml`.
    ///
    /// # Errors
    ///
    /// [`PinsError`] with the first thing that is not as it should be.
    pub fn parse(text: &str) -> Result<Self, PinsError> {
        let PinsFile { format, pins } =
            toml::from_str(text).map_err(|error| PinsError::Syntax(Box::new(error)))?;
        if format != FORMAT {
            return Err(PinsError::Format(format));
        }
        let mut seen = BTreeSet::new();
        for pin in &pins {
            if !seen.insert(&pin.executor) {
                return Err(PinsError::Twice(pin.executor.clone()));
            }
            if !is_plain_file_name(&pin.file) {
                return Err(PinsError::File(pin.file.clone()));
            }
        }
        Ok(Self(pins))
    }

    /// The text of `pins.toml`.
    pub fn to_text(&self) -> String {
        let file = PinsFile { format: FORMAT, pins: self.0.clone() };
        // Strings, numbers and lists of them always have a TOML form.
        HEADER.to_owned() + &toml::to_string(&file).unwrap_or_default()
    }

    /// Every pin, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, PolicyPin> {
        self.0.iter()
    }

    /// The pin of an executor code.
    pub fn find(&self, executor: &ExecutorCode) -> Option<&PolicyPin> {
        self.0.iter().find(|pin| pin.executor == *executor)
    }

    /// Puts the pin in, in the place of the one its executor code had.
    pub fn set(&mut self, pin: PolicyPin) {
        match self.0.iter_mut().find(|present| present.executor == pin.executor) {
            Some(present) => *present = pin,
            None => self.0.push(pin),
        }
    }
}

impl<'a> IntoIterator for &'a Pins {
    type Item = &'a PolicyPin;
    type IntoIter = std::slice::Iter<'a, PolicyPin>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn is_plain_file_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        format!(
            "format = 1\n[[pin]]\nexecutor = \"sql-jdbc:v1\"\nname = \"p\"\nversion = \"1.0.0\"\n\
             file = \"p-1.0.0.wasm\"\nsha256 = \"{}\"\ncompiler = \"rustc 1.95.0\"\n",
            Digest::of("x")
        )
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut pins = Pins::parse(&text()).unwrap();
        let mut pin = pins.iter().next().unwrap().clone();
        pin.supersedes.push(Digest::of("older"));
        pin.flags.push("-Clink-arg=-zstack-size=1048576".into());
        pins.set(pin);
        assert_eq!(pins.iter().count(), 1);
        assert_eq!(Pins::parse(&pins.to_text()).unwrap(), pins);
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        for text in [text() + "sha265 = \"x\"\n", format!("size = 1\n{}", text())] {
            let error = Pins::parse(&text).unwrap_err();
            let PinsError::Syntax(source) = error else { panic!("{error}") };
            assert!(source.to_string().contains("unknown field"), "{source}");
        }
    }

    #[test]
    fn a_code_has_one_policy() {
        let twice = text() + text().strip_prefix("format = 1\n").unwrap();
        assert!(matches!(Pins::parse(&twice), Err(PinsError::Twice(_))));
    }

    #[test]
    fn a_component_lies_beside_its_pin() {
        for file in ["../p.wasm", "/p.wasm", "a/p.wasm", "", ".p.wasm", "a\\\\p.wasm"] {
            let text = text().replace("p-1.0.0.wasm", file);
            assert!(matches!(Pins::parse(&text), Err(PinsError::File(_))), "{file}");
        }
    }

    #[test]
    fn another_format_is_refused() {
        let text = text().replace("format = 1", "format = 2");
        assert!(matches!(Pins::parse(&text), Err(PinsError::Format(2))));
    }
}
