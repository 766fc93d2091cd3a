//! Compiled components on disk, loaded by mapping them.
//!
//! A compiled policy is some 14 MB, of which one decision touches a part: mapped, a process reads that
//! part alone, and all processes of a machine share it. wasmtime's own cache compresses its entries, so
//! each process unpacks all of it, which takes longer than everything else a small check does.
//!
//! Beside each is its digest, compared before it is mapped: what a disk or a copy damaged is made anew.
//! That is no signature. Whoever can write here as this user could write to the program as well.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use uuid::Uuid;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::clock;
use crate::digest::{Digest, Digester};

/// Compiled components that are kept, the most recently used ones: a few versions for a few builds.
const ENTRIES_MAX: usize = 16;

/// What the names of entries end with.
const EXTENSION: &str = "cwasm";

/// What the names of their digests end with.
const DIGEST_EXTENSION: &str = "sha256";

/// What the names of those end with that are being written.
const UNFINISHED_EXTENSION: &str = "unfinished";

/// After this time nobody writes any more what was left unfinished.
const UNFINISHED_AGE: Duration = Duration::from_hours(1);

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
    /// run as code. Its digest comes last.
    fn keep(&self, path: &Path, compiled: &[u8]) -> io::Result<()> {
        let digest = Digest::of(compiled).to_string();
        let written = put(path, compiled)
            .and_then(|()| put(&path.with_extension(DIGEST_EXTENSION), digest.as_bytes()));
        self.tidy();
        written
    }

    /// Forgets the entries that were used longest ago, and what someone who is gone left unfinished.
    fn tidy(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut kept: Vec<(_, PathBuf)> = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(modified) = fs::symlink_metadata(&path).and_then(|found| found.modified())
            else {
                continue;
            };
            let is = |wanted: &str| path.extension().is_some_and(|found| found == wanted);
            if is(EXTENSION) {
                kept.push((modified, path));
            } else if is(UNFINISHED_EXTENSION) && clock::age(modified) > UNFINISHED_AGE {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort();
        for (_, path) in kept.iter().take(kept.len().saturating_sub(ENTRIES_MAX)) {
            // Whoever has it mapped keeps it.
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(path.with_extension(DIGEST_EXTENSION));
        }
    }
}

/// What was kept, when it is there, whole, and this engine takes it.
fn kept(engine: &Engine, path: &Path) -> Option<Component> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let expected = fs::read_to_string(path.with_extension(DIGEST_EXTENSION)).ok()?;
    if digest(&file).ok()?.to_string() != expected {
        tracing::warn!(path = %path.display(), "a compiled policy is damaged, and made anew");
        return None;
    }
    // SAFETY: the directory is this user's alone and nobody else can put another one in its place (see
    // `cache`), so what is in it was written by `keep`: whole, as its digest says, and by an engine
    // whose hash is in the name. wasmtime checks once more that it is of its own version and
    // configuration.
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

/// The digest of a file, read in parts: in one piece it would be copied into memory of its own.
fn digest(mut file: &File) -> io::Result<Digest> {
    let mut digester = Digester::default();
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(digester.digest()),
            length => digester.add(part.get(..length).unwrap_or_default()),
        }
    }
}

/// Writes a file that has its name only once it is whole and on the disk. The name it has until then is
/// nobody else's: processes of different containers have the same numbers.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.{UNFINISHED_EXTENSION}", Uuid::new_v4()));
    let written = write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
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
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_none_or(|it| it != DIGEST_EXTENSION)).collect()
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
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for broken in [&b""[..], b"\x7fELF", &whole[..whole.len() / 2], &flipped] {
            fs::write(&entry, broken).unwrap();
            compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
            assert_eq!(fs::read(&entry).unwrap(), whole);
        }
        assert_eq!(compiled.uses(), (0, 5));
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
    fn what_someone_left_unfinished_goes_when_it_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, age| {
            let path = directory.path().join(format!("{name}.{UNFINISHED_EXTENSION}"));
            File::create(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let (old, new) = (file("old", 2 * UNFINISHED_AGE), file("new", Duration::ZERO));
        let compiled = Compiled::in_trusted(directory.path().to_owned());
        compiled.load(&engine(), EMPTY, Digest::of(EMPTY)).unwrap();
        assert_eq!((old.exists(), new.exists()), (false, true));
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
