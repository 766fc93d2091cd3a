//! `tollgate policy pin`

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{Policy, PolicyPin, PolicyStore, check_signature, read_component};

use super::super::replace::replace;
use super::super::sandbox::{KeyArguments, RuntimeArguments};
use super::super::{Exit, Failure, Global, Run, output};
use super::about;
use super::component_file::Target;
use super::pins_file::{PinsFile, Placed};
use super::pull::signature_of;

/// Pin a component to an executor code: from then on it, and it alone, decides for that code
///
/// The component is checked as the host checks it before it decides, and is put beside pins.toml as
/// NAME-VERSION.wasm, where earlier versions stay. Of pins.toml the one pin changes; comments and
/// everything else stay as they are. The same pin again changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy pin sql-jdbc:v1 mysql-repeatable-subset-1.1.0.wasm --store policies --dry-run
  tollgate policy pin sql-jdbc:v1 mysql-repeatable-subset-1.1.0.wasm --store policies --supersede

Steps that the earlier component allowed and that have not succeeded go on only under that very
component, or under one that supersedes it. Look at what changes first: `tollgate policy diff`.

Exit code 2 when the component is no policy for this code, 4 when a component of the same name and
version with other bytes is there.")]
pub(super) struct Pin {
    /// Executor code it decides for
    #[arg(value_name = "EXECUTOR")]
    executor: ExecutorCode,
    /// Component to pin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory with pins.toml and components
    #[arg(long, value_name = "DIR", env = "TOLLGATE_POLICIES")]
    store: PathBuf,
    /// Record that it supersedes the component that was pinned before, so that steps decided by
    /// that one may go on under this one
    #[arg(long)]
    supersede: bool,
    /// Compiler to record [default: the one recorded for these bytes, or what they say themselves]
    #[arg(long, value_name = "TEXT")]
    compiler: Option<String>,
    /// Write nothing; print what would change in pins.toml
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    key: KeyArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Pin {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let bytes = read_component(&self.file)?;
        if let Some(key) = self.key.read()? {
            check_signature(&self.file, &bytes, &key)?;
        }
        let policy = self.runtime.start()?.load_unpinned(&bytes)?;
        let mut pin = pin_for(&policy, &self.executor)?;
        let pins = PinsFile::read(&self.store)?;
        self.describe(&mut pin, &bytes, &pins);
        let placed = pins.place(pin, self.supersede)?;
        let target = Target::new(&self.store, &placed.pin.file);
        target.refuse_other_bytes(&bytes)?;
        if self.dry_run {
            output::print(&would_change(&placed))?;
            return Ok(Exit::Done);
        }
        fs::create_dir_all(&self.store)?;
        let copied = target.write(&bytes)?;
        self.copy_signature(&target)?;
        let mut text = said(&placed);
        if placed.changes_nothing() {
            text.push_str("  it was pinned already: nothing changed\n");
        } else {
            placed.write()?;
        }
        if copied {
            let _ = writeln!(text, "  copied to {}", target.path().display());
        }
        output::print(&text)?;
        Ok(Exit::Done)
    }
}

impl Pin {
    /// A signature that lies beside the component goes with it.
    fn copy_signature(&self, target: &Target) -> Result<(), Failure> {
        match fs::read(signature_of(&self.file)) {
            Ok(signature) => Ok(replace(&signature_of(target.path()), &signature)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What made it: as recorded, when these bytes are pinned already, or as they say.
    fn describe(&self, pin: &mut PolicyPin, bytes: &[u8], pins: &PinsFile) {
        let published = PolicyStore::embedded().ok();
        let published = published.iter().flat_map(|store| store.pins().iter());
        let mut known = pins.pins().iter().chain(published);
        if let Some(known) = known.find(|known| known.sha256 == pin.sha256) {
            pin.compiler.clone_from(&known.compiler);
            pin.flags.clone_from(&known.flags);
        } else if let Some(compiler) = about::compiler(bytes) {
            pin.compiler = compiler;
        }
        if let Some(compiler) = &self.compiler {
            pin.compiler.clone_from(compiler);
        }
    }
}

/// The pin of a policy for an executor code, which has to be one that it is written for.
pub(super) fn pin_for(policy: &Policy, executor: &ExecutorCode) -> Result<PolicyPin, Failure> {
    let codes = &policy.description().executor_codes;
    if !codes.contains(executor) {
        let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let message =
            format!("the policy is written for {}, not for `{executor}`", codes.join(", "));
        return Err(Failure::usage(message).with_help("name a code that it is written for"));
    }
    Ok(PolicyPin { executor: executor.clone(), ..policy.pin().clone() })
}

fn would_change(placed: &Placed) -> String {
    if placed.changes_nothing() { "pins.toml stays as it is\n".into() } else { placed.diff() }
}

/// What decides from now on, and what becomes of steps that were begun before.
fn said(placed: &Placed) -> String {
    let PolicyPin { executor, name, version, sha256, .. } = &placed.pin;
    let mut text = format!("{executor}  {name} {version}\n  {sha256}\n");
    if let Some(previous) = placed.previous.as_ref().filter(|it| it.sha256 != *sha256) {
        let PolicyPin { name, version, sha256, .. } = previous;
        let _ = match placed.superseded_now() {
            Some(_) => writeln!(text, "  supersedes {name} {version}, {sha256}"),
            None => writeln!(
                text,
                "  in the place of {name} {version}, {sha256}, whose unfinished steps it will not go \
                 on with: --supersede says that it may"
            ),
        };
    }
    text
}
