//! The sample plugins, as they are in host/demo/.

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
    "badges-1.0.0/plugin.toml",
    "badges-1.0.0/forward.sql",
    "badges-1.0.0/compensate.sql",
];

/// The folder of a release below `root`, where a catalog of releases has it.
pub(super) fn release(root: &Path, plugin: &str, version: &str) -> PathBuf {
    root.join(plugin).join(version)
}

/// Writes every release folder below `root`.
pub(super) fn write(root: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let path = root.join(path.replacen('-', "/", 1));
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
