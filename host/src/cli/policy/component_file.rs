//! A component's place in a store, and its signature's beside it: written once, and then the same for
//! ever.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tollgate::digest::Digest;
use tollgate::policy::{read_component, read_signature, signature_path};
use tollgate::signature::{PublicKey, Signature};

use super::super::replace::{create, replace};
use super::super::{Exit, Failure};

/// Where a component of a name and version lies.
pub(super) struct Target {
    path: PathBuf,
}

impl Target {
    /// A file of a folder.
    pub(super) fn new(folder: &Path, file: &str) -> Self {
        Self { path: folder.join(file) }
    }

    /// A file by its path.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when other bytes are there: someone may rely on them.
    pub(super) fn refuse_other_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(present) = self.present()? else { return Ok(()) };
        let (present, new) = (Digest::of(present), Digest::of(bytes));
        if present == new {
            return Ok(());
        }
        let message =
            format!("`{}` has other bytes: {present}, these are {new}", self.path.display());
        Err(Failure::new(Exit::PinMismatch, message).with_help(
            "give what changed a new version; when it is the file there that is damaged, move it \
                 away and run this again",
        ))
    }

    /// Writes it whole, unless it is there already; whether it was written. Other bytes that are there,
    /// or that someone else puts there meanwhile, stay.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<bool, Failure> {
        match create(&self.path, bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.refuse_other_bytes(bytes).map(|()| false)
            }
            Err(error) => Err(self.unwritable(&error)),
        }
    }

    /// Writes it in the place of other bytes, too.
    pub(super) fn write_over(&self, bytes: &[u8]) -> Result<(), Failure> {
        replace(&self.path, bytes).map_err(|error| self.unwritable(&error))
    }

    /// Puts a signature beside it. Another one that is there stays: it will do when the key that is
    /// trusted made it, too.
    pub(super) fn write_signature(
        &self,
        signature: &Signature,
        bytes: &[u8],
        key: Option<&PublicKey>,
    ) -> Result<(), Failure> {
        let path = signature_path(&self.path);
        match create(&path, signature.as_str().as_bytes()) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(self.unwritable(&error)),
        }
        let is_good = read_signature(&self.path)?.is_some_and(|present| {
            present == *signature || key.is_some_and(|key| present.verify(key, bytes).is_ok())
        });
        if is_good {
            return Ok(());
        }
        let message = format!("`{}` is another signature", path.display());
        Err(Failure::new(Exit::PinMismatch, message)
            .with_help("find out who made it, move it away, and run this again"))
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        Failure::usage(format!("`{}` cannot be written: {error}", self.path.display()))
            .with_help("check the folder and its permissions")
    }

    fn present(&self) -> Result<Option<Cow<'static, [u8]>>, Failure> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(found) if found.is_symlink() && !self.path.exists() => {
                let message = format!("`{}` is a link to what is not there", self.path.display());
                Err(Failure::usage(message).with_help("remove the link, or name another file"))
            }
            _ => Ok(Some(read_component(&self.path)?)),
        }
    }
}
