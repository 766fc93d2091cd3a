//! Folders that commands are given on the command line: looked at before anything else is done.
//!
//! A mistyped folder would otherwise look like a folder without releases, and every step like one
//! whose release was removed.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tollgate::plan::FolderCatalog;

use super::Failure;

/// The releases below the folder of `--releases`.
pub(super) fn tree(root: &Path) -> Result<FolderCatalog, Failure> {
    is_folder(root, "name the folder that holds each release at <plugin code>/<version>")?;
    Ok(FolderCatalog::tree(root))
}

/// Refuses a path that leads to no folder.
pub(super) fn is_folder(path: &Path, help: &str) -> Result<(), Failure> {
    let shown = path.display();
    let problem = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => format!("`{shown}` is a file, not a folder"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("the folder `{shown}` does not exist")
        }
        Err(error) => format!("the folder `{shown}` cannot be looked at: {error}"),
    };
    Err(Failure::usage(problem).with_help(help))
}
