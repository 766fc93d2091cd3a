//! A folder with payloads and components, and the binary at work in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cli::{self, Run};
use crate::hostile::{self, Decide};

/// A temporary folder that commands run in.
#[derive(Debug)]
pub struct Desk {
    folder: TempDir,
}

impl Default for Desk {
    fn default() -> Self {
        Self::new()
    }
}

impl Desk {
    /// An empty one.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and the folders it is in.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        fs::write(&path, content).expect("the file can be written");
        path
    }

    /// Writes a component that decides in this way, and says where.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn hostile(&self, decide: Decide) -> String {
        let path = self.write(&format!("{decide:?}.wasm"), hostile::policy(decide));
        path.to_str().expect("a temporary folder has a plain name").to_owned()
    }

    /// `tollgate` with these arguments, in the folder. What is compiled is shared by all tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cli::command(arguments);
        command.current_dir(self.folder.path()).env("TOLLGATE_CACHE", compiled());
        command
    }

    /// Runs it.
    pub fn run(&self, arguments: &[&str]) -> Run {
        cli::run(&mut self.command(arguments))
    }
}

/// Where the tests keep compiled components: `target/tmp/compiled`.
pub fn compiled() -> PathBuf {
    cli::target_folder().join("tmp/compiled")
}
