//! `tollgate policy list`

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::policy::{PolicyPin, PolicyStore, StoreError};
use tollgate::text::with_causes;

use super::super::sandbox::StoreArguments;
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;

/// List which policy decides for which executor code, and whether it could
///
/// Every component is read and its digest compared with the pin; with a key, its signature is verified,
/// too. Nothing is loaded.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy list
  tollgate policy list --store policies --format json
  tollgate policy list --store policies --verify-key policy.pub

Exit code 2 when a component cannot be read, 4 when one has other bytes than are pinned, or is not signed
as it has to be; the highest that applies.")]
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
    state: State,
    /// What is amiss, in words.
    problem: Option<String>,
    /// The key that has to have signed it; null when none is trusted.
    key_id: Option<&'a str>,
}

/// What became of a pin's component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It has the pinned bytes, and is signed when a key is trusted.
    Good,
    /// It is away or cannot be read.
    Unreadable,
    /// It has other bytes than the pinned ones.
    OtherBytes,
    /// It is not signed by the trusted key.
    Unsigned,
}

impl State {
    const fn of(error: &StoreError) -> Self {
        match error {
            StoreError::OtherBytes { .. } => Self::OtherBytes,
            error if error.is_mismatch() => Self::Unsigned,
            _ => Self::Unreadable,
        }
    }

    const fn exit(self) -> Exit {
        match self {
            Self::Good => Exit::Done,
            Self::Unreadable => Exit::Usage,
            Self::OtherBytes | Self::Unsigned => Exit::PinMismatch,
        }
    }
}

impl Run for List {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let store = self.store.open()?;
        let key_id = store.key_id();
        let (mut text, mut exit) = (String::new(), Exit::Done);
        for pin in store.pins() {
            let row = Row::of(pin, &store, key_id.as_deref());
            exit = exit.max(row.state.exit());
            match self.format {
                Format::Human => human(&mut text, &row),
                Format::Json => text.push_str(&output::json_line(&row)),
            }
        }
        output::print(&text)?;
        Ok(exit)
    }
}

fn human(text: &mut String, row: &Row<'_>) {
    let Row { executor, name, version, digest, compiler, supersedes, problem, key_id, .. } = row;
    let _ = writeln!(text, "{executor}  {name} {version}\n  {digest}\n  {compiler}");
    for digest in *supersedes {
        let _ = writeln!(text, "  supersedes {digest}");
    }
    match (problem, key_id) {
        (Some(problem), _) => {
            let _ = writeln!(text, "  cannot decide: {problem}");
        }
        (None, Some(key)) => {
            let _ = writeln!(text, "  signed by the key {key}");
        }
        (None, None) => {}
    }
}

impl<'a> Row<'a> {
    fn of(pin: &'a PolicyPin, store: &PolicyStore, key_id: Option<&'a str>) -> Self {
        let error = store.component(pin).err();
        Self {
            executor: pin.executor.as_str(),
            name: &pin.name,
            version: pin.version.to_string(),
            digest: pin.sha256,
            file: &pin.file,
            compiler: &pin.compiler,
            supersedes: &pin.supersedes,
            state: error.as_ref().map_or(State::Good, State::of),
            problem: error.map(|error| with_causes(&error)),
            key_id,
        }
    }
}
