//! `tollgate policy pin`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    Policy, PolicyPin, StoreError, read_component, read_signature, verified_signature,
};
use tollgate::signature::{PublicKey, Signature};

use super::super::sandbox::{KeyArguments, RuntimeArguments, refused};
use super::super::{Exit, Failure, Global, Run, output};
use super::component_file::Target;
use super::made;
use super::pins_file::{PinsFile, Placed};
use super::store_lock::StoreLock;

/// Pin a component to an executor code: from then on it, and it alone, decides for that code
///
/// The component is checked as the host checks it before it decides, and is put beside pins.toml as
/// NAME-VERSION.wasm, where earlier versions stay. Of pins.toml the one pin changes; everything else stays
/// as it is, and of the pin its comments, except that beside a digest which is another one now. The
/// same pin again changes nothing.
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
    /// Compiler flag to record; may be repeated [default: those recorded for these bytes]
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
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
        let key = self.key.read()?;
        // Read once: what was verified is what is copied.
        let (signature, subject) = match &key {
            Some(key) => {
                let (signature, subject) = verified_signature(&self.file, &bytes, key)?;
                (Some(signature), subject)
            }
            None => (read_signature(&self.file)?, None),
        };
        let policy = self.runtime.start()?.load_unpinned(&bytes);
        let policy = policy.map_err(refused(self.file.display()))?;
        let pin = pin_for(&policy, &self.executor)?;
        if let Some(subject) = subject {
            let path = self.file.clone();
            subject
                .check(&pin.name, &pin.version)
                .map_err(|source| StoreError::Signature { path, source })?;
        }
        if self.dry_run {
            let placed = self.place(pin, &bytes)?;
            Target::new(&self.store, &placed.pin.file).refuse_other_bytes(&bytes)?;
            output::print(&would_change(&placed))?;
            return Ok(Exit::Done);
        }
        // Whoever pins at the same time changes what is there now.
        let _lock = StoreLock::take(&self.store)?;
        let placed = self.place(pin, &bytes)?;
        output::print(&self.write(&placed, &bytes, signature.as_ref(), key.as_ref())?)?;
        Ok(Exit::Done)
    }
}

impl Pin {
    /// Works the change out from the pins as they are.
    fn place(&self, mut pin: PolicyPin, bytes: &[u8]) -> Result<Placed, Failure> {
        let pins = PinsFile::read(&self.store)?;
        made::complete(&mut pin, bytes, pins.pins());
        if let Some(compiler) = &self.compiler {
            pin.compiler.clone_from(compiler);
        }
        if !self.flags.is_empty() {
            pin.flags.clone_from(&self.flags);
        }
        pins.place(pin, self.supersede)
    }

    /// The component first, then its signature, and the pin when both are there. What to say about it.
    fn write(
        &self,
        placed: &Placed,
        bytes: &[u8],
        signature: Option<&Signature>,
        key: Option<&PublicKey>,
    ) -> Result<String, Failure> {
        let target = Target::new(&self.store, &placed.pin.file);
        let is_copied = target.write(bytes)?;
        if let Some(signature) = signature {
            target.write_signature(signature, bytes, key)?;
        }
        let mut text = said(placed);
        if placed.changes_nothing() {
            text.push_str("  it was pinned already: nothing changed\n");
        } else {
            placed.write()?;
        }
        if is_copied {
            let _ = writeln!(text, "  copied to {}", target.path().display());
        }
        Ok(text)
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
        let is_older = placed.pin.name == previous.name && placed.pin.version < previous.version;
        let PolicyPin { name, version, sha256, .. } = previous;
        if is_older {
            let _ = writeln!(text, "  an older version than {version}, which was pinned");
        }
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
