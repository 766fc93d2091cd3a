//! Files that are replaced whole or not at all, and which files may be.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Failure;

/// A file that a command is told to write, and what it may take the place of. One rule holds for all of
/// them: never what the command reads, and nothing that nobody said may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The option that names it.
    pub(crate) option: &'static str,
    /// The file.
    pub(crate) path: &'a Path,
    /// What may be there.
    pub(crate) replaces: Replaces,
}

/// What may be there already.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Replaces {
    /// Nothing at all, until the user adds `--force`.
    Nothing,
    /// What the same command wrote before, as these bytes tell.
    Earlier(Written),
    /// Anything, as the user said; in a folder that the command reads, only [`Replaces::Earlier`].
    Anything(Written),
}

/// Something that a command writes, told by its first bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Whether these are the first bytes of one.
    pub(crate) begins: fn(&[u8]) -> bool,
}

/// Bytes of a file that is there which are looked at, at most.
const BEGINNING_BYTES: u64 = 64 << 10;

impl Place<'_> {
    /// Refuses what may not be replaced. `inputs` are the files and folders that the command reads.
    ///
    /// # Errors
    ///
    /// A usage error that names the file and why it stays.
    pub(crate) fn check(&self, inputs: &[&Path]) -> Result<(), Failure> {
        let Self { option, path, replaces } = self;
        // What is not there replaces nothing, and what cannot be looked at cannot be replaced either.
        let Ok(present) = fs::metadata(path) else { return Ok(()) };
        let refused = |why: String, help: String| {
            let message = format!("`{}` is there already{why}", path.display());
            Err(Failure::usage(message).with_help(help))
        };
        let elsewhere = format!("name another file for `{option}`");
        let is_input = |input: &&&Path| is_same(path, &present, input);
        if let Some(input) = inputs.iter().find(is_input) {
            let why = format!(", and this command reads it, as `{}`", input.display());
            return refused(why, elsewhere);
        }
        let among_inputs = inputs.iter().any(|input| is_beneath(path, input));
        match replaces {
            Replaces::Nothing => refused(String::new(), format!("{elsewhere}, or add `--force`")),
            Replaces::Anything(_) if !among_inputs => Ok(()),
            Replaces::Anything(earlier) | Replaces::Earlier(earlier) => {
                if (earlier.begins)(&beginning(path)) {
                    return Ok(());
                }
                refused(format!(", and no {}", earlier.name), elsewhere)
            }
        }
    }
}

/// Whether two paths lead to one file: by another name, a symbolic link or a hard link.
#[cfg(unix)]
fn is_same(_path: &Path, present: &fs::Metadata, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let of = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
    fs::metadata(other).is_ok_and(|other| of(&other) == of(present))
}

#[cfg(not(unix))]
fn is_same(path: &Path, _present: &fs::Metadata, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(path).is_some_and(|path| Some(path) == real(other))
}

/// Whether a path leads into a folder.
fn is_beneath(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    folder.is_dir() && real(path).zip(real(folder)).is_some_and(|(path, it)| path.starts_with(it))
}

fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be read is nothing that we wrote.
    let _ = File::open(path).and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut bytes));
    bytes
}

/// Puts these bytes in the place of a file's content: whoever reads the file, and whatever happens in
/// between, sees the old content or the new one. What has no file yet gets one that all may read.
///
/// The permissions stay, and the owner where the system lets this user keep it. A symbolic link stays
/// one: what it leads to is replaced. A hard link is cut off, as the price of never losing content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = behind_links(path)?;
    let mut file = NamedTempFile::new_in(folder_of(&path))?;
    file.write_all(bytes)?;
    // Renaming asks for no permission on the file itself; writing would have.
    match OpenOptions::new().write(true).open(&path) {
        Ok(present) => adopt(&file, &present.metadata()?)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_public(&file)?,
        Err(error) => return Err(error),
    }
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    sync_folder(&path)
}

/// Puts these bytes where nothing is yet, whole or not at all, for all to read. What is there stays, a
/// symbolic link included: that is [`io::ErrorKind::AlreadyExists`].
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    make_public(&file)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path)
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A name lasts when its folder is on the disk, too.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(folder_of(path))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
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

    /// What a refusal says, if it is one.
    fn refusal(path: &Path, replaces: Replaces, inputs: &[&Path]) -> Option<String> {
        let place = Place { option: "--to", path, replaces };
        place.check(inputs).err().map(|failure| format!("{failure:?}"))
    }

    const EARLIER: Written = Written { name: "note", begins: |bytes| bytes.starts_with(b"note") };

    #[test]
    fn what_is_read_is_never_replaced_under_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("input"), "note").unwrap();
        symlink("input", at("link")).unwrap();
        fs::hard_link(at("input"), at("hard")).unwrap();
        fs::create_dir(at("sub")).unwrap();
        for name in ["input", "link", "hard", "sub/../input"] {
            for replaces in [Replaces::Anything(EARLIER), Replaces::Earlier(EARLIER)] {
                let told = refusal(&at(name), replaces, &[&at("other"), &at("input")]).unwrap();
                assert!(told.contains("this command reads it"), "{name}: {told}");
            }
        }
        // The other way round: the input is the link.
        assert!(refusal(&at("input"), Replaces::Anything(EARLIER), &[&at("link")]).is_some());
    }

    #[test]
    fn what_may_go_is_what_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "note 1").unwrap();
        fs::write(at("mine"), "mine").unwrap();
        let (input, beneath) = (at("input"), [folder.path()]);
        for replaces in [Replaces::Nothing, Replaces::Earlier(EARLIER), Replaces::Anything(EARLIER)]
        {
            assert_eq!(refusal(&at("new"), replaces, &[&input]), None);
        }
        assert!(refusal(&at("old"), Replaces::Nothing, &[]).unwrap().contains("--force"));
        assert_eq!(refusal(&at("old"), Replaces::Earlier(EARLIER), &[]), None);
        let told = refusal(&at("mine"), Replaces::Earlier(EARLIER), &[]).unwrap();
        assert!(told.contains("and no note"), "{told}");
        assert_eq!(refusal(&at("mine"), Replaces::Anything(EARLIER), &[&input]), None);
        // In a folder that is read, what lies there may be what is read.
        assert!(refusal(&at("mine"), Replaces::Anything(EARLIER), &beneath).is_some());
        assert_eq!(refusal(&at("old"), Replaces::Anything(EARLIER), &beneath), None);
    }

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
    fn what_is_there_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("p.wasm"), folder.path().join("q.wasm"));
        create(&path, b"first").unwrap();
        symlink("elsewhere", &link).unwrap();
        for taken in [&path, &link] {
            let error = create(taken, b"second").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"first"[..], 0o644));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
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
