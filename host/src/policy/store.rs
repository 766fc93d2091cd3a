//! Where pinned components come from: the binary itself, or a directory.
//!
//! A store hands out bytes that have the pinned digest, signed when a key is trusted; what they are is for
//! [`PolicyRuntime::load`](super::PolicyRuntime::load) to find.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::ids::ExecutorCode;
#[cfg(feature = "registry")]
use crate::signature::{PublicKey, SignatureError};

use super::limits::COMPONENT_BYTES_MAX;
use super::pins::{Pins, PinsError, PolicyPin};
#[cfg(feature = "registry")]
use super::signed::verified_signature;

/// The file with the pins of a directory.
pub const PINS_FILE: &str = "pins.toml";

/// The published policies this binary was built with.
mod embedded {
    pub(super) const PINS: &str = include_str!("../../../policies/pins.toml");

    /// Every pinned file. A new policy release adds its line here.
    pub(super) const FILES: &[(&str, &[u8])] = &[(
        "mysql-repeatable-subset-1.0.0.wasm",
        include_bytes!("../../../policies/mysql-repeatable-subset-1.0.0.wasm"),
    )];
}

/// Whether a component is one of those this binary was built with.
pub(super) fn is_built_in(digest: Digest) -> bool {
    Pins::parse(embedded::PINS).is_ok_and(|pins| pins.iter().any(|pin| pin.sha256 == digest))
}

/// Pins and the components they name.
#[derive(Debug, Clone)]
pub struct PolicyStore {
    pins: Pins,
    source: Source,
    /// Who has to have signed what is handed out.
    #[cfg(feature = "registry")]
    key: Option<PublicKey>,
}

#[derive(Debug, Clone)]
enum Source {
    Embedded,
    Directory(PathBuf),
}

/// A store, or a component of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is missing or unreadable.
    #[error("`{}` cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no component: nobody writes one of that size.
    #[error("`{}` has {bytes} bytes, a component has at most {COMPONENT_BYTES_MAX}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The file has other bytes than the pinned ones.
    #[error("`{}` has the digest {found}, the pin says {expected}", path.display())]
    OtherBytes {
        /// The file.
        path: PathBuf,
        /// What the pin says.
        expected: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// The pins are not what they should be.
    #[error("`{}` is refused", path.display())]
    Pins {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PinsError,
    },
    /// A key is trusted, and the component comes without a signature.
    #[cfg(feature = "registry")]
    #[error("`{}` is not signed: {reason}", path.display())]
    Unsigned {
        /// The component's file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A key is trusted, and it did not sign the component.
    #[cfg(feature = "registry")]
    #[error("the signature of `{}` is not to be trusted", path.display())]
    Signature {
        /// The component's file.
        path: PathBuf,
        /// Why.
        source: SignatureError,
    },
    /// Nothing is pinned to the executor code.
    #[error("no policy is pinned to the executor `{executor}`; pinned are {}", known(pinned))]
    NotPinned {
        /// The code that was asked for.
        executor: ExecutorCode,
        /// The codes that have a pin.
        pinned: Vec<ExecutorCode>,
    },
}

impl StoreError {
    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and its permissions",
            Self::Size { .. } => "name the component's file",
            Self::Pins { .. } => {
                "take pins.toml as it was published, or write it with script/build-policy"
            }
            #[cfg(feature = "registry")]
            Self::Unsigned { .. } => {
                "pull it again with the key, which puts its signature beside it; the policies built \
                 into the program have none, so name a store with --store"
            }
            #[cfg(feature = "registry")]
            Self::Signature { .. } => {
                "restore the files that were published; trust another key only after review"
            }
            Self::OtherBytes { .. } => {
                "restore the file that was published, or pin the digest of this one after review"
            }
            Self::NotPinned { .. } => "see `tollgate policy list`",
        }
    }

    /// Whether a digest or a signature is not as it has to be, rather than a file or a pin.
    pub const fn is_mismatch(&self) -> bool {
        match self {
            Self::OtherBytes { .. } => true,
            #[cfg(feature = "registry")]
            Self::Unsigned { .. } | Self::Signature { .. } => true,
            _ => false,
        }
    }
}

impl PolicyStore {
    /// The policies this binary was built with.
    ///
    /// # Errors
    ///
    /// [`StoreError::Pins`]; a test keeps it from happening in what is released.
    pub fn embedded() -> Result<Self, StoreError> {
        let pins = Pins::parse(embedded::PINS).map_err(pins_error(Path::new(PINS_FILE)))?;
        Ok(Self {
            pins,
            source: Source::Embedded,
            #[cfg(feature = "registry")]
            key: None,
        })
    }

    /// A directory with `pins.toml` and the components it names.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when `pins.toml` cannot be read or is refused. Components are read when they
    /// are asked for.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        let path = directory.join(PINS_FILE);
        let text = fs::read_to_string(&path)
            .map_err(|source| StoreError::Read { path: path.clone(), source })?;
        let pins = Pins::parse(&text).map_err(pins_error(&path))?;
        Ok(Self {
            pins,
            source: Source::Directory(directory),
            #[cfg(feature = "registry")]
            key: None,
        })
    }

    /// Hands out only components that this key signed: each needs its signature beside it, as
    /// `<file>.minisig`. The embedded store has none, so it hands out nothing then.
    #[cfg(feature = "registry")]
    #[must_use]
    pub fn signed_by(self, key: PublicKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The directory, or `None` for the embedded store.
    pub fn directory(&self) -> Option<&Path> {
        match &self.source {
            Source::Embedded => None,
            Source::Directory(directory) => Some(directory),
        }
    }

    /// Every pin.
    pub const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The pin of an executor code.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotPinned`], naming the codes that have one.
    pub fn pin(&self, executor: &ExecutorCode) -> Result<&PolicyPin, StoreError> {
        self.pins.find(executor).ok_or_else(|| StoreError::NotPinned {
            executor: executor.clone(),
            pinned: self.pins.iter().map(|pin| pin.executor.clone()).collect(),
        })
    }

    /// The bytes of the file a pin names. They have the pinned digest, and are signed when a key is
    /// trusted.
    ///
    /// # Errors
    ///
    /// [`StoreError`], for the file, its digest and its signature, in this order.
    pub fn component(&self, pin: &PolicyPin) -> Result<Cow<'static, [u8]>, StoreError> {
        let bytes = self.read(pin)?;
        let found = Digest::of(&bytes);
        if found != pin.sha256 {
            let (path, expected) = (self.path(pin), pin.sha256);
            return Err(StoreError::OtherBytes { path, expected, found });
        }
        #[cfg(feature = "registry")]
        self.check_signature(pin, &bytes)?;
        Ok(bytes)
    }

    /// The bytes of the component with this digest, pinned or not: versions lie in a store side by side,
    /// and a pin says which of them decides now. `None` when no file of the store has it. A file that
    /// cannot be read hides no other.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the folder cannot be listed, or when a key is trusted that did not sign it.
    pub fn component_with(&self, digest: Digest) -> Result<Option<Cow<'static, [u8]>>, StoreError> {
        let Source::Directory(directory) = &self.source else {
            let has = |(_, bytes): &&(&str, &'static [u8])| Digest::of(bytes) == digest;
            return Ok(embedded::FILES.iter().find(has).map(|(_, bytes)| Cow::Borrowed(*bytes)));
        };
        let failed = |source| StoreError::Read { path: directory.clone(), source };
        for entry in fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_none_or(|extension| extension != "wasm") {
                continue;
            }
            if let Ok(bytes) = read_component(&path)
                && Digest::of(&bytes) == digest
            {
                #[cfg(feature = "registry")]
                self.check_file(&path, &bytes)?;
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Whether the trusted key, if there is one, signed a component that no pin names.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsigned`] or [`StoreError::Signature`].
    #[cfg(feature = "registry")]
    pub fn check_file(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        match &self.key {
            Some(key) => verified_signature(path, bytes, key).map(drop),
            None => Ok(()),
        }
    }

    /// The id of the key that has to have signed what is handed out.
    #[cfg(feature = "registry")]
    pub fn key_id(&self) -> Option<String> {
        self.key.as_ref().map(PublicKey::id)
    }

    #[cfg(feature = "registry")]
    fn check_signature(&self, pin: &PolicyPin, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(key) = &self.key else { return Ok(()) };
        let path = self.path(pin);
        if self.directory().is_none() {
            let reason = "it is built into the program".into();
            return Err(StoreError::Unsigned { path, reason });
        }
        match verified_signature(&path, bytes, key)? {
            (_, Some(subject)) => subject
                .check(&pin.name, &pin.version)
                .map_err(|source| StoreError::Signature { path, source }),
            _ => Ok(()),
        }
    }

    /// Where the file of a pin lies; of what is built in, what it is called.
    fn path(&self, pin: &PolicyPin) -> PathBuf {
        self.directory().map_or_else(|| pin.file.clone().into(), |folder| folder.join(&pin.file))
    }

    fn read(&self, pin: &PolicyPin) -> Result<Cow<'static, [u8]>, StoreError> {
        match &self.source {
            Source::Embedded => embedded::FILES
                .iter()
                .find(|(file, _)| *file == pin.file)
                .map(|(_, bytes)| Cow::Borrowed(*bytes))
                .ok_or_else(|| StoreError::Read {
                    path: PathBuf::from(&pin.file),
                    source: io::Error::new(
                        io::ErrorKind::NotFound,
                        "no such file is built into the program",
                    ),
                }),
            Source::Directory(directory) => read_component(&directory.join(&pin.file)),
        }
    }
}

/// Reads a component's file.
///
/// # Errors
///
/// [`StoreError::Read`] or [`StoreError::Size`].
pub fn read_component(path: &Path) -> Result<Cow<'static, [u8]>, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    // Bounded while it is read: a device or a pipe has no length to ask for.
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(StoreError::Size { path: path.to_owned(), bytes: bytes.len() as u64 });
    }
    Ok(Cow::Owned(bytes))
}

fn pins_error(path: &Path) -> impl Fn(PinsError) -> StoreError {
    move |source| StoreError::Pins { path: path.to_owned(), source }
}

fn known(codes: &[ExecutorCode]) -> String {
    if codes.is_empty() {
        return "none".into();
    }
    codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_pin_has_its_embedded_component() {
        let store = PolicyStore::embedded().unwrap();
        assert!(store.pin(&ExecutorCode::sql_jdbc_v1()).is_ok());
        assert_eq!(store.pins().iter().count(), embedded::FILES.len());
        for pin in store.pins() {
            assert_eq!(Digest::of(store.component(pin).unwrap()), pin.sha256, "{}", pin.file);
            assert!(is_built_in(pin.sha256));
        }
    }

    #[test]
    fn an_earlier_version_is_found_by_its_digest() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write(PINS_FILE, "format = 1\n");
        write("p-1.0.0.wasm", "earlier");
        write("p-1.1.0.wasm", "later");
        write("notes.txt", "no component");
        fs::create_dir(directory.path().join("folder.wasm")).unwrap();
        let store = PolicyStore::open(directory.path()).unwrap();
        let found = |text: &str| store.component_with(Digest::of(text)).unwrap();
        assert_eq!(found("earlier").as_deref(), Some(b"earlier".as_slice()));
        assert_eq!(found("no component"), None);
        let embedded = PolicyStore::embedded().unwrap();
        let pin = embedded.pins().iter().next().unwrap();
        assert!(embedded.component_with(pin.sha256).unwrap().is_some());
        assert_eq!(embedded.component_with(Digest::of("x")).unwrap(), None);
    }

    #[test]
    fn a_code_without_a_pin_is_named_with_those_that_have_one() {
        let store = PolicyStore::embedded().unwrap();
        let error = store.pin(&"sql-jdbc:v9".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("`sql-jdbc:v9`") && error.contains("`sql-jdbc:v1`"), "{error}");
    }

    #[test]
    fn a_directory_without_pins_is_no_store() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(PolicyStore::open(directory.path()), Err(StoreError::Read { .. })));
    }
}
