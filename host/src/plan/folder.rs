//! Releases as folders: `plugin.toml` and the files it names.
//!
//! Every path is confined to its folder, symbolic links included: a link may point elsewhere within
//! the folder, never out of it. Whoever can write the folder can choose its content; the confinement
//! keeps a release from delivering files that are not its own.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::catalog::{BoxFuture, CatalogError, ContributionCatalog};
use super::contribution::{Contribution, InstalledRelease, Payload};
use super::manifest::{Manifest, ManifestContribution, ProblemCode, Problems, ReleaseError};
use super::step::Step;
use crate::ids::{Direction, PluginRelease};

/// Bytes of one payload file, at most: above any policy's own limit, so that a policy still tells
/// its authors about the limit that counts.
pub const PAYLOAD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of `plugin.toml`, at most: 1,000 contributions with long keys take half of it.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a release folder.
///
/// # Errors
///
/// Every problem of `plugin.toml` and of the files it names, at once.
pub fn read_release(folder: &Path) -> Result<InstalledRelease, ReleaseError> {
    let mut problems = Problems::default();
    let read = read(folder, &mut problems);
    match read {
        Some(release) if problems.is_empty() => Ok(release),
        _ => Err(problems.into_error(folder)),
    }
}

fn read(folder: &Path, problems: &mut Problems) -> Option<InstalledRelease> {
    let root = match folder.canonicalize() {
        Ok(root) => root,
        Err(error) => {
            let help = "name the folder that holds plugin.toml";
            problems.add(ProblemCode::Unreadable, format!("the folder: {error}"), help);
            return None;
        }
    };
    let manifest = read_confined(&root, Path::new("plugin.toml"), MANIFEST_BYTES_MAX, problems)?;
    let Ok(manifest) = String::from_utf8(manifest) else {
        let message = "plugin.toml is not UTF-8";
        problems.add(ProblemCode::Syntax, message, "save it as UTF-8");
        return None;
    };
    let manifest = Manifest::parse(&manifest, problems)?;
    let contributions: Vec<_> = manifest
        .contributions
        .into_iter()
        .filter_map(|contribution| read_payloads(&root, contribution, problems))
        .collect();
    if !problems.is_empty() {
        return None;
    }
    InstalledRelease::new(manifest.release, contributions)
        .map_err(|error| {
            let help = "give each contribution its own key";
            problems.add(ProblemCode::DuplicateContribution, error.to_string(), help);
        })
        .ok()
}

fn read_payloads(
    root: &Path,
    contribution: ManifestContribution,
    problems: &mut Problems,
) -> Option<Contribution> {
    let forward = read_confined(root, &contribution.forward, PAYLOAD_BYTES_MAX, problems);
    let compensation = match &contribution.compensation {
        Some(path) => Some(read_confined(root, path, PAYLOAD_BYTES_MAX, problems)?),
        None => None,
    };
    Some(Contribution {
        key: contribution.key,
        kind: contribution.kind,
        target: contribution.target,
        idempotent: contribution.idempotent,
        forward: Payload::new(forward?),
        compensation: compensation.map(Payload::new),
    })
}

/// Reads a file below the canonical `root`, following links only while they stay below it.
fn read_confined(
    root: &Path,
    path: &Path,
    bytes_max: u64,
    problems: &mut Problems,
) -> Option<Vec<u8>> {
    let shown = path.display();
    let unreadable = |problems: &mut Problems, error: &io::Error| {
        let help = "put the file there, readable for this user";
        problems.add(ProblemCode::Unreadable, format!("`{shown}`: {error}"), help);
    };
    let resolved = match root.join(path).canonicalize() {
        Ok(resolved) => resolved,
        Err(error) => {
            unreadable(problems, &error);
            return None;
        }
    };
    if !resolved.starts_with(root) {
        problems.add(
            ProblemCode::PathOutsideFolder,
            format!("`{shown}` is a link that leads out of the folder"),
            "replace the link by the file",
        );
        return None;
    }
    // Asked before opening: opening a pipe would wait for its writer.
    if !fs::metadata(&resolved).is_ok_and(|metadata| metadata.is_file()) {
        unreadable(problems, &io::Error::other("not a regular file"));
        return None;
    }
    let mut bytes = Vec::new();
    let read =
        File::open(&resolved).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > bytes_max => {
            let message = format!("`{shown}` has more than {bytes_max} bytes");
            problems.add(ProblemCode::TooLarge, message, "split it into several contributions");
            None
        }
        Ok(_) => Some(bytes),
        Err(error) => {
            unreadable(problems, &error);
            None
        }
    }
}

/// The reference [`ContributionCatalog`]: releases as folders on disk.
///
/// They are read anew each time a step asks, so a folder that changed is seen.
#[derive(Debug, Clone)]
pub struct FolderCatalog(Layout);

#[derive(Debug, Clone)]
enum Layout {
    Tree(PathBuf),
    Single(PathBuf),
}

impl FolderCatalog {
    /// Releases below `root`, each at `<root>/<plugin code>/<version>/plugin.toml`.
    pub fn tree(root: impl Into<PathBuf>) -> Self {
        Self(Layout::Tree(root.into()))
    }

    /// One release: the folder that holds its `plugin.toml`.
    pub fn single(folder: impl Into<PathBuf>) -> Self {
        Self(Layout::Single(folder.into()))
    }

    /// The folder of a release, whether it is there or not.
    fn folder(&self, release: &PluginRelease) -> PathBuf {
        match &self.0 {
            Layout::Tree(root) => {
                root.join(release.code.as_str()).join(release.version.to_string())
            }
            Layout::Single(folder) => folder.clone(),
        }
    }

    /// The file of a step's payload, as the manifest of its release names it; none where that cannot
    /// be told. For messages: what is decided on comes from [`FolderCatalog::read`].
    pub fn payload_file(&self, step: &Step) -> Option<PathBuf> {
        let folder = self.folder(&step.release);
        let text = fs::read_to_string(folder.join("plugin.toml")).ok()?;
        let manifest = Manifest::parse(&text, &mut Problems::default())?;
        let mut contributions = manifest.contributions.into_iter();
        let contribution = contributions.find(|it| it.key == step.contribution)?;
        let file = match step.direction {
            Direction::Forward => contribution.forward,
            Direction::Compensate => contribution.compensation?,
        };
        Some(folder.join(file))
    }

    /// Reads the release, blocking.
    ///
    /// # Errors
    ///
    /// The folder is there but cannot be read, or is no release.
    pub fn read(&self, release: &PluginRelease) -> Result<Option<InstalledRelease>, CatalogError> {
        let folder = self.folder(release);
        match fs::metadata(&folder) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CatalogError::Unavailable(Box::new(error))),
        }
        let installed = read_release(&folder).map_err(CatalogError::Broken)?;
        if installed.release() == release {
            return Ok(Some(installed));
        }
        match &self.0 {
            Layout::Single(_) => Ok(None),
            Layout::Tree(_) => {
                let mut problems = Problems::default();
                problems.add(
                    ProblemCode::OtherRelease,
                    format!("plugin.toml says `{}`", installed.release()),
                    format!("move the folder, or make plugin.toml say `{release}`"),
                );
                Err(CatalogError::Broken(problems.into_error(&folder)))
            }
        }
    }
}

impl ContributionCatalog for FolderCatalog {
    fn installed<'a>(
        &'a self,
        release: &'a PluginRelease,
    ) -> BoxFuture<'a, Result<Option<InstalledRelease>, CatalogError>> {
        let (catalog, release) = (self.clone(), release.clone());
        Box::pin(async move {
            tokio::task::spawn_blocking(move || catalog.read(&release))
                .await
                .map_err(|error| CatalogError::Unavailable(Box::new(error)))?
        })
    }

    fn place(&self, release: &PluginRelease) -> Option<String> {
        Some(self.folder(release).display().to_string())
    }
}
