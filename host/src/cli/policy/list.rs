//! `tollgate policy list`

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::policy::PolicyPin;

use super::super::sandbox::StoreArguments;
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;

/// List which policy decides for which executor code
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy list
  tollgate policy list --store policies --format json")]
pub(super) struct List {
    #[command(flatten)]
    store: StoreArguments,
    /// How to print them
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    executor: &'a str,
    name: &'a str,
    version: String,
    digest: Digest,
    file: &'a str,
    compiler: &'a str,
    supersedes: &'a [Digest],
}

impl Run for List {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let store = self.store.open()?;
        let mut text = String::new();
        for pin in store.pins() {
            match self.format {
                Format::Human => human(&mut text, pin),
                Format::Json => text.push_str(&output::json_line(&Row::from(pin))),
            }
        }
        output::print(&text)?;
        Ok(Exit::Done)
    }
}

fn human(text: &mut String, pin: &PolicyPin) {
    let PolicyPin { executor, name, version, sha256, compiler, supersedes, .. } = pin;
    let _ = writeln!(text, "{executor}  {name} {version}\n  {sha256}\n  {compiler}");
    for digest in supersedes {
        let _ = writeln!(text, "  supersedes {digest}");
    }
}

impl<'a> From<&'a PolicyPin> for Row<'a> {
    fn from(pin: &'a PolicyPin) -> Self {
        Self {
            executor: pin.executor.as_str(),
            name: &pin.name,
            version: pin.version.to_string(),
            digest: pin.sha256,
            file: &pin.file,
            compiler: &pin.compiler,
            supersedes: &pin.supersedes,
        }
    }
}
