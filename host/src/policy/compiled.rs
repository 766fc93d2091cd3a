//! Compiled components on disk, loaded by mapping them.
//!
//! A compiled policy is some 14 MB, of which one decision touches a part: mapped, a process reads that
//! part alone, and all processes of a machine share it. wasmtime's own cache compresses its entries, so
//! each process unpacks all of it, which takes longer than everything else a small check does.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::clock;
use crate::digest::Digest;

/// Compiled components that are kept, the most recently used ones: a few versions for a few builds.
const ENTRIES_MAX: usize = 16;

/// What the names of entries end with.
const EXTENSION: &str = "cwasm";

/// A directory of compiled components that this user alone can write.
#[derive(Debug)]
pub(super) struct Compiled {
    directory: PathBuf,
    hits: AtomicUsize,
    misses: AtomicUsize,
}

impl Compiled {
    /// Over a directory that was found to be trusted.
    pub(super) const fn in_trusted(directory: PathBuf) -> Self {
        Self { directory, hits: AtomicUsize::new(0), misses: AtomicUsize::new(0) }
    }

    /// Components that were there, and those that had to be compiled.
    pub(super) fn uses(&self) -> (usize, usize) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Loads a component whose digest this is, compiling it when this engine has not done so before.
    pub(super) fn load(
        &self,
        engine: &Engine,
        bytes: &[u8],
        digest: Digest,
    ) -> wasmtime::Result<Component> {
        let path = self.entry(engine, digest);
        if let Some(component) = kept(engine, &path) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let compiled = engine.precompile_component(bytes)?;
        match self.keep(&path, &compiled) {
            Ok(()) => {
                if let Some(component) = kept(engine, &path) {
                    return Ok(component);
                }
            }
            Err(error) => {
                let path = path.display();
                tracing::warn!(%error, %path, "a compiled policy is not kept");
            }
        }
        // SAFETY: these bytes were made by this engine a moment ago, and have not left this process.
        unsafe { Component::deserialize(engine, compiled) }
    }

    /// The file of a component, as this engine compiles it: another version or configuration of
    /// wasmtime has another.
    fn entry(&self, engine: &Engine, digest: Digest) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let digest = digest.to_string();
        let digest = digest.rsplit(':').next().unwrap_or_default();
        self.directory.join(format!("{digest}-{:016x}.{EXTENSION}", hasher.finish()))
    }

    /// Puts an entry in place as a whole, and on the disk before it has its name: half of one would be
    /// run as code.
    fn keep(&self, path: &Path, compiled: &[u8]) -> io::Result<()> {
        static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{attempt}.unfinished", std::process::id());
        let unfinished = path.with_extension(name);
        let written = write(&unfinished, compiled).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        self.forget_the_oldest();
        written
    }

    fn forget_the_oldest(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut entries: Vec<(_, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|found| found == EXTENSION))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        entries.sort();
        for (_, path) in entries.iter().take(entries.len().saturating_sub(ENTRIES_MAX)) {
            // Whoever has it mapped keeps it.
            let _ = fs::remove_file(path);
        }
    }
}

/// What was kept, when it is there and this engine takes it.
fn kept(engine: &Engine, path: &Path) -> Option<Component> {
    let file = File::open(path).ok()?;
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() {
        return None;
    }
    // SAFETY: the directory is this user's alone and nobody else can put another one in its place (see
    // `cache`), so what is in it was written by `keep`: whole, by an engine whose hash is in the name.
    // wasmtime checks once more that it is of its own version and configuration.
    let component = unsafe { Component::deserialize_file(engine, path) };
    match component {
        Ok(component) => {
            // Used just now, so the last to be forgotten; that it cannot be noted costs a compilation.
            let _ = clock::touch(&file);
            Some(component)
        }
        Err(error) => {
            tracing::debug!(%error, path = %path.display(), "a compiled policy is made anew");
            None
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// The smallest component there is.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn engine() -> Engine {
        Engine::new(wasmtime::Config::new().wasm_component_model(true)).unwrap()
    }

    fn entries(directory: &Path) -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_component_is_compiled_once() {
        let directory = tempfile::tempdir().unwrap();
        let compiled = Compiled::in_trusted(directory.path().to_owned());
        for _ in 0..3 {
            compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        }
        assert_eq!(compiled.uses(), (2, 1));
        assert_eq!(entries(directory.path()).len(), 1, "nothing unfinished is left");
    }

    #[test]
    fn what_is_no_compiled_component_is_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let compiled = Compiled::in_trusted(directory.path().to_owned());
        compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        let entry = entries(directory.path()).remove(0);
        let whole = fs::read(&entry).unwrap();
        for broken in [&b""[..], b"\x7fELF", &whole[..whole.len() / 2]] {
            fs::write(&entry, broken).unwrap();
            compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
            assert_eq!(fs::read(&entry).unwrap(), whole);
        }
        assert_eq!(compiled.uses(), (0, 4));
    }

    #[test]
    fn another_configuration_has_another_entry() {
        let directory = tempfile::tempdir().unwrap();
        let compiled = Compiled::in_trusted(directory.path().to_owned());
        let fuelled = Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap();
        compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        compiled.load(&fuelled, EMPTY, Digest::of(EMPTY)).unwrap();
        assert_eq!(compiled.uses(), (0, 2));
        assert_eq!(entries(directory.path()).len(), 2);
    }

    #[test]
    fn a_directory_that_cannot_be_written_costs_a_compilation_and_no_decision() {
        let gone = tempfile::tempdir().unwrap().path().join("gone");
        let compiled = Compiled::in_trusted(gone);
        compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        assert_eq!(compiled.uses(), (0, 1));
    }

    #[test]
    fn the_oldest_entries_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..ENTRIES_MAX + 3 {
            let file =
                File::create(directory.path().join(format!("{number}.{EXTENSION}"))).unwrap();
            let age = std::time::Duration::from_secs(1_000 - number as u64);
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        let compiled = Compiled::in_trusted(directory.path().to_owned());
        compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        assert_eq!(entries(directory.path()).len(), ENTRIES_MAX);
        assert!(!directory.path().join(format!("3.{EXTENSION}")).exists());
        assert!(directory.path().join(format!("4.{EXTENSION}")).exists());
    }
}
