//! The policy of tests/policies/drop-only, built as docs/policy-authors.md says.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cli::{self, Run};
use crate::desk::compiled;
use crate::source::repository;

/// A store of its own with the policy `drop-only`, pinned to `sql-jdbc:v1`.
#[derive(Debug)]
pub struct DropOnly {
    folder: TempDir,
}

impl DropOnly {
    /// Builds it. Of many builds of a test run the first compiles.
    ///
    /// # Panics
    ///
    /// When it cannot be built.
    pub fn build() -> Self {
        let built = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let run = built.script(&[]);
        assert_eq!(run.code(), Some(0), "{run:?}");
        built
    }

    /// The store.
    pub fn store(&self) -> &Path {
        self.folder.path()
    }

    /// The component's file.
    pub fn component(&self) -> PathBuf {
        self.store().join("drop-only-0.1.0.wasm")
    }

    /// `script/build-policy` for it, with further arguments.
    pub fn script(&self, arguments: &[&str]) -> Run {
        let mut script = Command::new(repository().join("script/build-policy"));
        script.args(["--package", "drop-only", "--store"]).arg(self.store()).args(arguments);
        script.env("TOLLGATE", cli::binary()).env("TOLLGATE_CACHE", compiled());
        cli::run(&mut script)
    }
}
