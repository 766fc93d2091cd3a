//! The directory of compiled components: where it is, and whether it can be trusted.
//!
//! What is read from it is native code that runs in this process, so the directory has to be
//! this user's alone. When it is not, nothing is cached and a warning says why; a decision never
//! depends on the cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::compiled::Compiled;

/// Where compiled components are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CompileCache {
    /// `tollgate/components` in the user's cache directory (`$XDG_CACHE_HOME` or `~/.cache`).
    #[default]
    UserDirectory,
    /// A directory of its own; created with mode 0700 when it does not exist.
    Directory(PathBuf),
    /// Nowhere: every process compiles.
    Off,
}

/// Why a cache directory is not used.
#[derive(Debug, thiserror::Error)]
enum Untrusted {
    #[error("there is no cache directory for this user")]
    NoHome,
    #[error("`{}` cannot be used", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("`{}` belongs to user {owner}, not to this process's user {user}", path.display())]
    Owner { path: PathBuf, owner: u32, user: u32 },
    #[error("`{}` is open to others (mode {mode:04o}); run `chmod 700` on it", path.display())]
    Mode { path: PathBuf, mode: u32 },
    #[error("others may replace what is in `{}` (mode {mode:04o})", path.display())]
    Parent { path: PathBuf, mode: u32 },
}

/// Opens the cache, or says why there is none and goes on without.
pub(super) fn open(cache: &CompileCache) -> Option<Compiled> {
    let opened = match cache {
        CompileCache::Off => return None,
        CompileCache::UserDirectory => user_directory().and_then(|path| open_directory(&path)),
        CompileCache::Directory(path) => open_directory(path),
    };
    match opened {
        Ok(cache) => Some(cache),
        Err(reason) => {
            let source = std::error::Error::source(&reason).map(ToString::to_string);
            tracing::warn!(%reason, source, "compiled policies are not cached");
            None
        }
    }
}

fn user_directory() -> Result<PathBuf, Untrusted> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| Untrusted::NoHome)?;
    Ok(strategy.cache_dir().join("tollgate").join("components"))
}

fn open_directory(path: &Path) -> Result<Compiled, Untrusted> {
    let io = |source| Untrusted::Io { path: path.to_owned(), source };
    // Before anything is created: what a folder of another user's would get, nobody would use.
    if let Some(standing) = path.ancestors().skip(1).find(|parent| parent.exists()) {
        nobody_else_may_rename(&standing.canonicalize().map_err(io)?)?;
    }
    create_private(path).map_err(io)?;
    let directory = path.canonicalize().map_err(io)?;
    trusted(&directory)?;
    Ok(Compiled::in_trusted(directory))
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).create(path)
}

#[cfg(unix)]
fn stat(path: &Path) -> Result<(fs::Metadata, u32, u32), Untrusted> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::symlink_metadata(path)
        .map_err(|source| Untrusted::Io { path: path.to_owned(), source })?;
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    Ok((metadata, owner, mode))
}

/// The directory is this user's alone, and nobody else can put another one in its place.
#[cfg(unix)]
fn trusted(directory: &Path) -> Result<(), Untrusted> {
    const OPEN_TO_OTHERS: u32 = 0o077;

    let user = rustix::process::geteuid().as_raw();
    let (metadata, owner, mode) = stat(directory)?;
    if !metadata.is_dir() {
        return Err(Untrusted::NotADirectory { path: directory.to_owned() });
    }
    if owner != user {
        return Err(Untrusted::Owner { path: directory.to_owned(), owner, user });
    }
    if mode & OPEN_TO_OTHERS != 0 {
        return Err(Untrusted::Mode { path: directory.to_owned(), mode });
    }
    directory.parent().map_or(Ok(()), nobody_else_may_rename)
}

/// Nobody but this user and root may put another directory in the place of one in `parent`.
#[cfg(unix)]
fn nobody_else_may_rename(parent: &Path) -> Result<(), Untrusted> {
    const STICKY: u32 = 0o1000;
    const WRITABLE_BY_OTHERS: u32 = 0o022;

    let user = rustix::process::geteuid().as_raw();
    for parent in parent.ancestors() {
        let (_, owner, mode) = stat(parent)?;
        let others_may_rename = mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0;
        if others_may_rename || (owner != user && owner != 0) {
            return Err(Untrusted::Parent { path: parent.to_owned(), mode });
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn nobody_else_may_rename(_parent: &Path) -> Result<(), Untrusted> {
    Ok(())
}

/// Elsewhere the profile directory's access control is all there is.
#[cfg(not(unix))]
fn trusted(directory: &Path) -> Result<(), Untrusted> {
    match fs::symlink_metadata(directory) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Untrusted::NotADirectory { path: directory.to_owned() }),
        Err(source) => Err(Untrusted::Io { path: directory.to_owned(), source }),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn directory(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().canonicalize().unwrap().join("cache");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (outer, path)
    }

    #[test]
    fn a_missing_directory_is_created_private() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("a/b");
        open_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_open_to_others_is_not_used() {
        for mode in [0o755, 0o777, 0o710, 0o701] {
            let (_outer, path) = directory(mode);
            assert!(matches!(open_directory(&path), Err(Untrusted::Mode { .. })), "{mode:o}");
            assert!(open(&CompileCache::Directory(path)).is_none());
        }
        let (_outer, path) = directory(0o700);
        open_directory(&path).unwrap();
    }

    #[test]
    fn a_parent_that_others_may_write_is_not_trusted() {
        let (outer, path) = directory(0o700);
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(open_directory(&path), Err(Untrusted::Parent { .. })));
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        open_directory(&path).unwrap();
    }

    #[test]
    fn nothing_is_created_where_it_would_not_be_used() {
        let (outer, _) = directory(0o700);
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let path = outer.path().join("a/b");
        assert!(matches!(open_directory(&path), Err(Untrusted::Parent { .. })));
        assert!(!outer.path().join("a").exists());
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("cache");
        fs::write(&path, "").unwrap();
        assert!(open_directory(&path).is_err());
    }
}
