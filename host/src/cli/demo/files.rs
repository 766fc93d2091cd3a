//! The sample plugin, as it is in host/demo/.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../demo/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "loyalty-1.0.0/plugin.toml",
    "loyalty-1.0.0/forward.sql",
    "loyalty-1.0.0/compensate.sql",
    "loyalty-1.1.0/plugin.toml",
    "loyalty-1.1.0/cleanup.sql",
];

/// The folder of a release below `root`.
pub(super) fn release(root: &Path, version: &str) -> PathBuf {
    root.join(format!("loyalty-{version}"))
}

/// Writes every release folder below `root`.
pub(super) fn write(root: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// The text of a file of a release.
pub(super) fn text(path: &str) -> &'static str {
    FILES.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| *text)
}
