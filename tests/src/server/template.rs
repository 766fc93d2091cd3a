//! Initialised data directories, made once per kind of server and copied for every start.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::program::user_name;
use super::recipe::Recipe;

/// Fills `to` with a fresh data directory.
///
/// The directory it is copied from is initialised once for each program and its options on this
/// machine, whatever the number of tests that ask at the same time.
pub(super) fn copy_template(name: &str, recipe: &Recipe, to: &Path) -> Result<(), String> {
    let cache = cache_folder();
    let template = cache.join(format!("{name}-{:016x}", fingerprint(recipe)));
    prepare(&cache, &template, recipe)?;
    copy_folder(&template, to)
        .map_err(|error| format!("cannot copy {} to {}: {error}", template.display(), to.display()))
}

fn prepare(cache: &Path, template: &Path, recipe: &Recipe) -> Result<(), String> {
    if template.is_dir() {
        return Ok(());
    }
    let io_error = |error: io::Error| format!("cannot prepare {}: {error}", template.display());
    fs::create_dir_all(cache).map_err(io_error)?;
    let lock = File::create(template.with_extension("lock")).map_err(io_error)?;
    lock.lock().map_err(io_error)?;
    if template.is_dir() {
        return Ok(());
    }
    // Renamed only when whole: a run that was cut short leaves nothing that looks finished.
    let unfinished = template.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(io_error)?;
    }
    fs::create_dir(&unfinished).map_err(io_error)?;
    recipe.initialise(&unfinished)?;
    fs::rename(&unfinished, template).map_err(io_error)
}

/// What the initialised directory depends on: the very program and the options it was made with.
fn fingerprint(recipe: &Recipe) -> u64 {
    let mut hasher = DefaultHasher::new();
    let program = recipe.program.binary();
    program.hash(&mut hasher);
    recipe.format.hash(&mut hasher);
    if let Ok(metadata) = fs::metadata(program) {
        metadata.len().hash(&mut hasher);
        metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH).hash(&mut hasher);
    }
    hasher.finish()
}

/// `tollgate-servers` in cargo's target folder, which carries a tag file, or else in the user's
/// own part of the folder for temporary files.
fn cache_folder() -> PathBuf {
    let target = std::env::current_exe().ok().and_then(|test| {
        test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
    });
    target.map_or_else(
        || std::env::temp_dir().join(format!("tollgate-servers-{}", user_name())),
        |target| target.join("tollgate-servers"),
    )
}

pub(super) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        // The server's identity (`server_uuid`): each one makes its own.
        if entry.file_name() == "auto.cnf" {
            continue;
        }
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
