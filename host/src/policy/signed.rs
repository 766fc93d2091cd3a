//! Signatures that lie beside components, as `<file>.minisig`.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::signature::{
    PublicKey, SIGNATURE_BYTES_MAX, SIGNATURE_SUFFIX, Signature, SignatureError, Subject,
};

use super::store::StoreError;

/// Where a component's signature lies.
pub fn signature_path(component: &Path) -> PathBuf {
    let mut path = component.as_os_str().to_owned();
    path.push(SIGNATURE_SUFFIX);
    path.into()
}

/// Reads the signature beside a component, once and no more of it than a signature has; `None` when
/// there is none. That it is of certain bytes is for [`Signature::verify`] to find.
///
/// A symbolic link may lead to another file of the same folder or below it, as those of mounted
/// configuration do, and nowhere else.
///
/// # Errors
///
/// [`StoreError::Unsigned`] for what cannot be read, [`StoreError::Signature`] for what is none.
pub fn read_signature(component: &Path) -> Result<Option<Signature>, StoreError> {
    let path = signature_path(component);
    let text = match read_within_folder(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(StoreError::Unsigned {
                path: component.to_owned(),
                reason: format!("`{}`: {error}", path.display()),
            });
        }
    };
    let signature = Signature::parse(&text)
        .map_err(|source| StoreError::Signature { path: component.to_owned(), source })?;
    Ok(Some(signature))
}

/// A component's signature, which the key has to have made, and what the signature says it is of.
///
/// # Errors
///
/// [`StoreError::Unsigned`] or [`StoreError::Signature`].
pub fn verified_signature(
    component: &Path,
    bytes: &[u8],
    key: &PublicKey,
) -> Result<(Signature, Option<Subject>), StoreError> {
    let signature = read_signature(component)?.ok_or_else(|| StoreError::Unsigned {
        path: component.to_owned(),
        reason: format!("there is no `{}`", signature_path(component).display()),
    })?;
    let untrusted =
        |source: SignatureError| StoreError::Signature { path: component.to_owned(), source };
    let comment = signature.verify(key, bytes).map_err(untrusted)?;
    Ok((signature, Subject::of(&comment)))
}

fn read_within_folder(path: &Path) -> io::Result<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
    let resolved = fs::canonicalize(path)?;
    if !resolved.starts_with(folder) {
        return Err(io::Error::other("it is a link that leads out of its folder"));
    }
    let file = open(&resolved)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    file.take(SIGNATURE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a file that is no link any more, without waiting for whoever writes into a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;

    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    File::options().read(true).custom_flags(flags.cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What has the form of a signature.
    fn text() -> String {
        let (signature, comment) = ("A".repeat(85), "A".repeat(86));
        format!(
            "untrusted comment: x\nRUSHDeB4FcQgyQ{signature}=\ntrusted comment: x\n{comment}==\n"
        )
    }

    fn told(component: &Path) -> String {
        read_signature(component).unwrap_err().to_string()
    }

    #[test]
    fn a_link_is_followed_within_the_folder_and_nowhere_else() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("store");
        fs::create_dir_all(folder.join("..data")).unwrap();
        let component = folder.join("p.wasm");
        assert!(read_signature(&component).unwrap().is_none());
        fs::write(folder.join("..data/x"), text()).unwrap();
        symlink("..data/x", signature_path(&component)).unwrap();
        assert!(read_signature(&component).unwrap().is_some());

        fs::write(outer.path().join("secret"), text()).unwrap();
        fs::remove_file(signature_path(&component)).unwrap();
        symlink("../secret", signature_path(&component)).unwrap();
        assert!(told(&component).contains("leads out of its folder"), "{}", told(&component));
    }

    #[test]
    fn what_is_no_small_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let component = folder.path().join("p.wasm");
        fs::create_dir(signature_path(&component)).unwrap();
        assert!(told(&component).contains("it is no file"), "{}", told(&component));
        fs::remove_dir(signature_path(&component)).unwrap();
        fs::write(signature_path(&component), text().repeat(1000)).unwrap();
        let error = read_signature(&component).unwrap_err();
        assert!(matches!(error, StoreError::Signature { .. }), "{error:?}");
    }
}
