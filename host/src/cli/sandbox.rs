//! The arguments of every command that runs a policy, and what they lead to.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    Backend, CompileCache, LoadError, Policy, PolicyPin, PolicyRuntime, PolicyStore, RuntimeError,
    RuntimeOptions, StoreError, read_component,
};
use tollgate::signature::{KeyError, PublicKey, SIGNATURE_BYTES_MAX};

use super::{Exit, Failure};

/// Where policies come from.
#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    /// Directory with pins.toml and components, instead of the policies built into this binary
    #[arg(long, value_name = "DIR", env = "TOLLGATE_POLICIES")]
    store: Option<PathBuf>,
    #[command(flatten)]
    key: KeyArguments,
}

impl StoreArguments {
    /// Opens the store.
    pub(super) fn open(&self) -> Result<PolicyStore, Failure> {
        let store = match &self.store {
            Some(directory) => PolicyStore::open(directory)?,
            None => PolicyStore::embedded()?,
        };
        self.key.guard(store)
    }

    /// The folder, when it is not the one that is built in.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// Opens another store, on the same terms.
    pub(super) fn open_other(&self, directory: &Path) -> Result<PolicyStore, Failure> {
        self.key.guard(PolicyStore::open(directory)?)
    }
}

/// Who has to stand behind a policy.
#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// Public key (minisign) that has to have signed a pinned policy: its file, or the key itself.
    /// The signature lies beside the component, as FILE.minisig
    #[arg(long, value_name = "KEY", env = "TOLLGATE_POLICY_KEY")]
    verify_key: Option<String>,
}

impl KeyArguments {
    /// Reads the key, when there is one to trust.
    pub(super) fn read(&self) -> Result<Option<PublicKey>, Failure> {
        let Some(named) = &self.verify_key else { return Ok(None) };
        let path = Path::new(named);
        if !path.is_file() {
            return Ok(Some(PublicKey::parse(named)?));
        }
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(SIGNATURE_BYTES_MAX as u64).read_to_string(&mut text))
            .map_err(|error| Failure::usage(format!("`{named}`: {error}")))?;
        Ok(Some(PublicKey::parse(&text)?))
    }

    fn guard(&self, store: PolicyStore) -> Result<PolicyStore, Failure> {
        Ok(match self.read()? {
            Some(key) => store.signed_by(key),
            None => store,
        })
    }
}

/// Where compiled policies are kept.
#[derive(Debug, Args)]
pub(super) struct RuntimeArguments {
    /// Directory for compiled policies, of mode 0700 [default: tollgate in the user's cache
    /// directory]
    #[arg(long, value_name = "DIR", env = "TOLLGATE_CACHE")]
    cache: Option<PathBuf>,
    /// Keep no compiled policies
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
}

impl RuntimeArguments {
    /// Sets the sandbox up.
    pub(super) fn start(&self) -> Result<PolicyRuntime, Failure> {
        self.start_on(Backend::default())
    }

    /// Sets a sandbox up in which this executes a policy's code.
    pub(super) fn start_on(&self, backend: Backend) -> Result<PolicyRuntime, Failure> {
        let cache = match &self.cache {
            _ if self.no_cache => CompileCache::Off,
            Some(directory) => CompileCache::Directory(directory.clone()),
            None => CompileCache::UserDirectory,
        };
        Ok(PolicyRuntime::new(RuntimeOptions { cache, backend, ..RuntimeOptions::default() })?)
    }
}

/// Loads the policy an executor code is pinned to.
pub(super) fn load_pinned(
    runtime: &PolicyRuntime,
    store: &PolicyStore,
    executor: &ExecutorCode,
) -> Result<Policy, Failure> {
    let pin = store.pin(executor)?;
    Ok(runtime.load(pin, &store.component(pin)?)?)
}

/// Loads a component that no pin vouches for.
pub(super) fn load_file(runtime: &PolicyRuntime, path: &Path) -> Result<Policy, Failure> {
    runtime.load_unpinned(&read_component(path)?).map_err(in_file(path))
}

/// A policy and the bytes it was loaded from.
pub(super) struct LoadedPolicy {
    pub(super) policy: Policy,
    pub(super) component: Cow<'static, [u8]>,
}

/// Loads the policy of a pin.
pub(super) fn load_with_bytes(
    runtime: &PolicyRuntime,
    store: &PolicyStore,
    pin: &PolicyPin,
) -> Result<LoadedPolicy, Failure> {
    let component = store.component(pin)?;
    Ok(LoadedPolicy { policy: runtime.load(pin, &component)?, component })
}

/// Loads a component from a file, under its pin when the store has one.
pub(super) fn load_file_with_bytes(
    runtime: &PolicyRuntime,
    store: &PolicyStore,
    path: &Path,
) -> Result<LoadedPolicy, Failure> {
    let component = read_component(path)?;
    let digest = Digest::of(&component);
    let policy = match store.pins().iter().find(|pin| pin.sha256 == digest) {
        Some(pin) => runtime.load(pin, &component),
        None => runtime.load_unpinned(&component),
    };
    Ok(LoadedPolicy { policy: policy.map_err(in_file(path))?, component })
}

/// Loads the component with this digest: the pinned one, or an earlier one that lies in the store still.
/// `None` when it is not there.
pub(super) fn load_by_digest(
    runtime: &PolicyRuntime,
    store: &PolicyStore,
    digest: Digest,
) -> Result<Option<LoadedPolicy>, Failure> {
    if let Some(pin) = store.pins().iter().find(|pin| pin.sha256 == digest) {
        return load_with_bytes(runtime, store, pin).map(Some);
    }
    let Some(component) = store.component_with(digest)? else { return Ok(None) };
    Ok(Some(LoadedPolicy { policy: runtime.load_unpinned(&component)?, component }))
}

/// A file that was named as a policy and is none.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be loaded as a policy", path.display())]
struct InFile {
    path: PathBuf,
    source: LoadError,
}

fn in_file(path: &Path) -> impl FnOnce(LoadError) -> Failure {
    |error| {
        let (exit, help) = (exit_of(&error), error.help());
        Failure::new(exit, InFile { path: path.to_owned(), source: error }).with_help(help)
    }
}

fn exit_of(error: &LoadError) -> Exit {
    match error {
        error if error.is_pin_mismatch() => Exit::PinMismatch,
        LoadError::Describe(_) => Exit::NoDecision,
        _ => Exit::Usage,
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let help = error.help();
        let exit = if error.is_signature() { Exit::PinMismatch } else { Exit::Usage };
        Self::new(exit, error).with_help(help)
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let help = error.help();
        Self::usage(error).with_help(help)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let (exit, help) = (exit_of(&error), error.help());
        Self::new(exit, error).with_help(help)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        let help = match &error {
            KeyError::Public(_) => {
                "name the file that ends in .pub, or the line in it that is the key"
            }
            KeyError::Secret(_) => "name the secret key's file, as `minisign -G` wrote it",
            KeyError::Encrypted => "name a file with the password: TOLLGATE_SIGN_PASSWORD_FILE",
            KeyError::Password(_) => "give the password that the key was made with",
        };
        Self::usage(error).with_help(help)
    }
}
