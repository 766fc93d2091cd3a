//! Files that are replaced whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Puts these bytes in the place of a file's content: whoever reads the file, and whatever happens in
/// between, sees the old content or the new one. What has no file yet gets one that all may read.
///
/// The permissions stay, and the owner where the system lets this user keep it. A symbolic link stays
/// one: what it leads to is replaced. A hard link is cut off, as the price of never losing content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = behind_links(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    // Renaming asks for no permission on the file itself; writing would have.
    match OpenOptions::new().write(true).open(&path) {
        Ok(present) => adopt(&file, &present.metadata()?)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_public(&file)?,
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

fn behind_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        found => found,
    }
}

#[cfg(unix)]
fn adopt(file: &NamedTempFile, of: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let is = file.as_file().metadata()?;
    if (is.uid(), is.gid()) != (of.uid(), of.gid()) {
        // Only root may give a file away; for everyone else it becomes theirs, as with an editor.
        let _ = fchown(file.as_file(), Some(of.uid()), Some(of.gid()));
    }
    // Last: a change of the owner takes permissions away.
    file.as_file().set_permissions(of.permissions())
}

#[cfg(not(unix))]
fn adopt(file: &NamedTempFile, of: &fs::Metadata) -> io::Result<()> {
    file.as_file().set_permissions(of.permissions())
}

/// A temporary file is private; what is published is not.
#[cfg(unix)]
fn make_public(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_public(_file: &NamedTempFile) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn permissions_stay_and_nothing_else_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sql");
        for kept in [0o600, 0o640, 0o755] {
            fs::write(&path, "before").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            replace(&path, b"after").unwrap();
            assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"after"[..], kept));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_can_be_read_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.toml");
        replace(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o644);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("deep/a.sql"), folder.path().join("link.sql"));
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(&file, "before").unwrap();
        symlink("deep/a.sql", &link).unwrap();
        replace(&link, b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"after");
    }

    #[test]
    fn the_old_content_is_there_until_the_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sql");
        fs::write(&path, "before").unwrap();
        let mut reader = fs::File::open(&path).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        replace(&path, b"after").unwrap();
        // Not written over: who had the old file open still reads all of it.
        assert_ne!(fs::metadata(&path).unwrap().ino(), before);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "before");
    }

    #[test]
    fn what_cannot_be_replaced_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a.sql");
        fs::create_dir(&directory).unwrap();
        assert!(replace(&directory, b"after").is_err());
        assert!(directory.is_dir());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
