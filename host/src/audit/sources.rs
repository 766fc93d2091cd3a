//! Which payloads a list of paths means.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// The paths do not lead to payloads.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Nothing is there.
    #[error("`{}` does not exist", .0.display())]
    Missing(PathBuf),
    /// A directory cannot be listed.
    #[error("a directory cannot be listed")]
    Walk(#[from] walkdir::Error),
    /// A directory has nothing to check.
    #[error("`{}` has no `.sql` file in it", .0.display())]
    Empty(PathBuf),
}

/// Files as given; directories as every `*.sql` in them, at any depth, sorted by name at each level.
/// What is named twice is taken once. Links to files are followed, links to directories are not.
///
/// # Errors
///
/// [`CollectError`] for the first path that leads to nothing.
pub fn collect<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, CollectError> {
    let mut found = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        if path.is_dir() {
            let before = found.len();
            for entry in WalkDir::new(path).sort_by_file_name() {
                let entry = entry?;
                if is_sql(entry.path()) && entry.path().is_file() {
                    found.push(entry.into_path());
                }
            }
            if found.len() == before {
                return Err(CollectError::Empty(path.to_owned()));
            }
        } else if path.exists() {
            found.push(path.to_owned());
        } else {
            return Err(CollectError::Missing(path.to_owned()));
        }
    }
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    Ok(found)
}

fn is_sql(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_are_walked_in_a_stable_order() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("b/deep")).unwrap();
        for file in ["c.sql", "a.SQL", "b/2.sql", "b/10.sql", "b/deep/x.sql", "notes.md", "b/sql"] {
            fs::write(root.join(file), "").unwrap();
        }
        let found = collect(&[root.to_owned(), root.join("notes.md"), root.join("c.sql")]).unwrap();
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.SQL", "b/10.sql", "b/2.sql", "b/deep/x.sql", "c.sql", "notes.md"]);
    }

    #[test]
    fn a_path_that_leads_to_nothing_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(collect(&[directory.path()]), Err(CollectError::Empty(_))));
        let missing = directory.path().join("x.sql");
        assert!(matches!(collect(&[missing]), Err(CollectError::Missing(_))));
    }
}
