//! `tollgate policy build`

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{PolicyPin, PolicyStore};
use wit_component::ComponentEncoder;

use super::super::sandbox::{RuntimeArguments, refused};
use super::super::{Exit, Failure, Global, Run, output};
use super::component_file;
use super::pin::pin_for;
use super::pins_file::PinsFile;
use super::store_lock::StoreLock;

/// Encode a core module as a policy component, put it into a store and pin it
///
/// The module is what `cargo build --target wasm32-unknown-unknown` makes of a policy crate. The
/// component is checked as the host checks it before it decides: no imports, the gate exported, a
/// description that can be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy build target/wasm32-unknown-unknown/component/tollgate_policy.wasm \\
      --store policies --compiler \"$(rustc --version)\"
  tollgate policy build core.wasm --store policies --compiler \"$(rustc --version)\" --check

`script/build-policy` calls this with what makes the bytes reproducible.")]
pub(super) struct Build {
    /// Core module to encode
    #[arg(value_name = "MODULE")]
    module: PathBuf,
    /// Directory for the component and its pin
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Compiler to record, as `rustc --version` prints it
    #[arg(long, value_name = "TEXT")]
    compiler: String,
    /// Compiler flag to record; may be repeated
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Executor code to pin it to [default: the first the policy is written for]
    #[arg(long, value_name = "CODE")]
    executor: Option<ExecutorCode>,
    /// Record that it supersedes the component that was pinned before, so that steps decided by
    /// that one may go on under this one
    #[arg(long)]
    supersede: bool,
    /// Put other bytes in the place of a component of the same name and version. For a version that
    /// is still in the making: a published one never changes
    #[arg(long)]
    force: bool,
    /// Write nothing; exit with 4 when the pinned component has other bytes. Components are only
    /// comparable when the same compiler made them
    #[arg(long, conflicts_with = "supersede")]
    check: bool,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Build {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let component = encode(&self.module)?;
        let policy = self.runtime.start()?.load_unpinned(&component);
        let policy = policy.map_err(refused(self.module.display()))?;
        let mut pin = match &self.executor {
            Some(executor) => pin_for(&policy, executor)?,
            None => policy.pin().clone(),
        };
        pin.compiler.clone_from(&self.compiler);
        pin.flags.clone_from(&self.flags);
        if self.check { self.compare(&pin) } else { self.write(pin, &component) }
    }
}

impl Build {
    fn compare(&self, built: &PolicyPin) -> Result<Exit, Failure> {
        let store = PolicyStore::open(&self.store)?;
        let pinned = store.pin(&built.executor)?;
        let found = Digest::of(store.component(pinned)?);
        if pinned.compiler != built.compiler {
            output::print(&format!(
                "{}: not compared, it was made by {}, this is {}\n",
                pinned.file, pinned.compiler, built.compiler
            ))?;
            return Ok(Exit::Done);
        }
        if built.sha256 != pinned.sha256 {
            let what = "is not what the source gives";
            return Err(mismatch(&pinned.file, what, pinned.sha256, built.sha256));
        }
        output::print(&format!("{}: the source gives the pinned bytes, {found}\n", pinned.file))?;
        Ok(Exit::Done)
    }

    fn write(&self, pin: PolicyPin, component: &[u8]) -> Result<Exit, Failure> {
        let _lock = StoreLock::take(&self.store)?;
        let placed = PinsFile::read(&self.store)?.place(pin, self.supersede)?;
        let target = component_file::Target::new(&self.store, &placed.pin.file);
        if self.force {
            target.write_over(component)?;
        } else {
            target.write(component)?;
        }
        placed.write()?;
        let PolicyPin { executor, name, version, sha256, .. } = &placed.pin;
        output::print(&format!("{name} {version} for {executor}, {sha256}\n"))?;
        Ok(Exit::Done)
    }
}

/// Encodes without any adapter: an adapter is what would bring imports.
fn encode(module: &Path) -> Result<Vec<u8>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("`{}` cannot become a component: {error}", module.display()))
            .with_help("build the policy crate for `wasm32-unknown-unknown` as a cdylib")
    };
    let bytes = fs::read(module).map_err(|error| unusable(&error))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(ComponentEncoder::encode)
        .map_err(|error| unusable(&format_args!("{error:#}")))
}

fn mismatch(file: &str, what: &str, pinned: Digest, found: Digest) -> Failure {
    let error = format!("`{file}` {what}: pinned {pinned}, found {found}");
    Failure::new(Exit::PinMismatch, error)
        .with_help("`script/build-policy` builds it anew; a new digest needs review")
}
