//! A component's place in a store: written once, and then the same for ever.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tollgate::digest::Digest;
use tollgate::policy::read_component;

use super::super::replace::replace;
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
        Err(Failure::new(Exit::PinMismatch, message)
            .with_help("give what changed a new version, or move the file that is there away"))
    }

    /// Writes it whole, unless it is there already; whether it was written.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<bool, Failure> {
        if self.present()?.is_some_and(|present| *present == *bytes) {
            return Ok(false);
        }
        replace(&self.path, bytes)
            .map_err(|error| Failure::usage(format!("`{}`: {error}", self.path.display())))?;
        Ok(true)
    }

    fn present(&self) -> Result<Option<std::borrow::Cow<'static, [u8]>>, Failure> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(read_component(&self.path)?)),
        }
    }
}
