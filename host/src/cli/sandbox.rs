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

    /// Whether someone has to have signed what is pinned.
    pub(super) const fn has_key(&self) -> bool {
        self.key.verify_key.is_some()
    }

    /// The folder, when it is not the one that is built in.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// Opens the store; with a key, every component in it has to be signed by that key.
    pub(super) fn open_vouched(&self) -> Result<PolicyStore, Failure> {
        let store = self.open()?;
        if store.key_id().is_some() {
            for pin in store.pins() {
                store.component(pin)?;
            }
        }
        Ok(store)
    }

    /// Opens another store, on the same terms.
    pub(super) fn open_other(&self, directory: &Path) -> Result<PolicyStore, Failure> {
        self.key.guard(PolicyStore::open(directory)?)
    }
}

/// Who has to stand behind a policy.
#[derive(Debug, Args)]
pub(super) struct KeyArguments {
    /// Public key (minisign) that has to have signed the policy, pinned or named: its file, or the key itself.
    /// The signature lies beside the component, as FILE.minisig
    #[arg(long, value_name = "KEY", env = "TOLLGATE_POLICY_KEY")]
    verify_key: Option<String>,
}

impl KeyArguments {
    /// Reads the key, when there is one to trust.
    pub(super) fn read(&self) -> Result<Option<PublicKey>, Failure> {
        let Some(named) = &self.verify_key else { return Ok(None) };
        // A key first: no file that lies where a command runs can stand in for one.
        match PublicKey::parse(named) {
            Ok(key) => return Ok(Some(key)),
            Err(KeyError::Public(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let path = Path::new(named);
        if !path.exists() {
            let message = format!("`{named}` is no file that is there, and no minisign public key");
            return Err(Failure::usage(message).with_help(PUBLIC_KEY_HELP));
        }
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(SIGNATURE_BYTES_MAX as u64).read_to_string(&mut text))
            .map_err(|error| {
                Failure::usage(format!("`{named}` cannot be read: {error}"))
                    .with_help(PUBLIC_KEY_HELP)
            })?;
        PublicKey::parse(&text).map(Some).map_err(|error| key_failure(&error, Some(path)))
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
    /// Keep no compiled policies, whatever --cache and the environment say
    #[arg(long)]
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
    runtime.load(pin, &store.component(pin)?).map_err(refused(&pin.file))
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
    let policy = runtime.load(pin, &component).map_err(refused(&pin.file))?;
    Ok(LoadedPolicy { policy, component })
}

/// What a component that is named by its file is loaded under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilePin {
    /// Its own description, whatever the store says of it.
    Own,
    /// Its pin, when the store has one.
    OfStore,
}

/// Loads a component from a file. With a key it has to be signed, like those of a store.
pub(super) fn load_file(
    runtime: &PolicyRuntime,
    store: &PolicyStore,
    path: &Path,
    pin: FilePin,
) -> Result<LoadedPolicy, Failure> {
    let component = read_component(path)?;
    store.check_file(path, &component)?;
    let pin = match pin {
        FilePin::Own => None,
        FilePin::OfStore => {
            let digest = Digest::of(&component);
            store.pins().iter().find(|pin| pin.sha256 == digest)
        }
    };
    let policy = match pin {
        Some(pin) => runtime.load(pin, &component),
        None => runtime.load_unpinned(&component),
    };
    let policy = policy.map_err(refused(path.display()))?;
    Ok(LoadedPolicy { policy, component })
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

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let help = error.help();
        let exit = if error.is_mismatch() { Exit::PinMismatch } else { Exit::Usage };
        Self::new(exit, error).with_help(help)
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let help = error.help();
        Self::usage(error).with_help(help)
    }
}

/// Which component was refused.
#[derive(Debug, thiserror::Error)]
#[error("`{component}` cannot be loaded as a policy")]
struct Refused {
    component: String,
    source: LoadError,
}

/// Why a component was refused, by the name it goes by here.
pub(super) fn refused(component: impl std::fmt::Display) -> impl FnOnce(LoadError) -> Failure {
    move |source| {
        let (exit, help) = (exit_of(&source), source.help());
        Failure::new(exit, Refused { component: component.to_string(), source }).with_help(help)
    }
}

const fn exit_of(error: &LoadError) -> Exit {
    match error {
        error if error.is_pin_mismatch() => Exit::PinMismatch,
        LoadError::Describe(_) => Exit::NoDecision,
        _ => Exit::Usage,
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let (exit, help) = (exit_of(&error), error.help());
        Self::new(exit, error).with_help(help)
    }
}

/// Where a public key is.
const PUBLIC_KEY_HELP: &str = "name the file that ends in .pub, or the line in it that is the key";

/// What is wrong with a key, and with which file when it came from one.
pub(super) fn key_failure(error: &KeyError, path: Option<&Path>) -> Failure {
    let help = match error {
        KeyError::Public(_) | KeyError::SecretForPublic => PUBLIC_KEY_HELP,
        KeyError::Secret(_) | KeyError::PublicForSecret => {
            "name the secret key's file, as `minisign -G` wrote it"
        }
        KeyError::Encrypted => "name a file with the password: TOLLGATE_SIGN_PASSWORD_FILE",
        KeyError::Password(_) => "give the password that the key was made with",
    };
    let message = match path {
        Some(path) => format!("`{}` cannot be used: {error}", path.display()),
        None => error.to_string(),
    };
    Failure::usage(message).with_help(help)
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        key_failure(&error, None)
    }
}
