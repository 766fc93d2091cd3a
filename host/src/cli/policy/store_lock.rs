//! One change of a store at a time.

use std::fs::{self, File};
use std::path::Path;

use super::super::Failure;

/// A store that nobody else changes now; free again when dropped, or when the process is gone.
pub(super) struct StoreLock {
    _folder: Option<File>,
}

impl StoreLock {
    /// Makes the folder when there is none, and waits until nobody else changes what is in it.
    ///
    /// The lock is on the folder itself, so it leaves no file behind. A file system that has no locks
    /// lets the change go on without: components are never written over then either.
    pub(super) fn take(folder: &Path) -> Result<Self, Failure> {
        let refused = |error: std::io::Error| {
            Failure::usage(format!("`{}` cannot be changed: {error}", folder.display()))
                .with_help("name a folder that you may write into")
        };
        fs::create_dir_all(folder).map_err(refused)?;
        if !cfg!(unix) {
            return Ok(Self { _folder: None });
        }
        let file = File::open(folder).map_err(refused)?;
        if let Err(error) = file.lock() {
            tracing::warn!(folder = %folder.display(), %error, "the store cannot be locked");
        }
        Ok(Self { _folder: Some(file) })
    }
}
