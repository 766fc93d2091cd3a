//! What is wrong with an export.

use std::io;
use std::path::PathBuf;

use super::LINE_BYTES_MAX;
use super::line::{LEDGER_EXPORT_VERSION, WITHOUT_CLOSING};

/// The file is not an export of a ledger, or not all of one.
#[derive(Debug, thiserror::Error)]
pub enum LedgerExportError {
    /// The file cannot be opened or read.
    #[error("`{}` cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file's characters have two bytes each.
    #[error("`{}` is in UTF-16, as some shells write what is redirected", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// The first line is no object, so none of them is a receipt.
    #[error("`{}` is no export of a ledger: it does not begin with a line of JSON", path.display())]
    NotAnExport {
        /// The file.
        path: PathBuf,
    },
    /// A line is longer than any that is written.
    #[error("`{}` line {line} has more than {LINE_BYTES_MAX} bytes", path.display())]
    LineSize {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A line is no receipt.
    #[error("`{}` line {line} is no exported receipt", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: LineFault,
    },
    /// A line was written by another version of Tollgate.
    #[error(
        "`{}` line {line} has version {version}, this program reads versions {WITHOUT_CLOSING} to \
         {LEDGER_EXPORT_VERSION}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The version it says.
        version: u32,
    },
    /// There is no line at all.
    #[error("`{}` is empty: an export of a ledger without receipts has its closing line", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The last line does not close the export.
    #[error(
        "`{}` has no closing line: {}",
        path.display(),
        if *is_earlier {
            "an earlier Tollgate wrote it, and nothing tells whether it is whole"
        } else {
            "it was cut off, or its export did not end"
        }
    )]
    NotClosed {
        /// The file.
        path: PathBuf,
        /// Whether its lines are of the version that has none.
        is_earlier: bool,
    },
    /// The closing line is about other lines.
    #[error(
        "`{}` is not as it was exported: {}",
        path.display(),
        if closed == found {
            format!("its closing line has another digest than the {found} line(s) before it")
        } else {
            format!("its closing line closes {closed} line(s), and there are {found}")
        }
    )]
    OtherLines {
        /// The file.
        path: PathBuf,
        /// How many lines were closed.
        closed: u64,
        /// How many there are.
        found: u64,
    },
    /// There are lines behind the closing one.
    #[error("`{}` line {line} stands behind the closing line", path.display())]
    Behind {
        /// The file.
        path: PathBuf,
        /// The first such line, from 1.
        line: u64,
    },
}

/// What is wrong with a line, and where in it: JSON's own words count lines as well, and there is but one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at byte {byte} of the line")]
pub struct LineFault {
    what: String,
    /// From 1.
    byte: usize,
}

impl From<serde_json::Error> for LineFault {
    fn from(error: serde_json::Error) -> Self {
        let (line, byte) = (error.line(), error.column());
        let told = error.to_string();
        let what = told.strip_suffix(&format!(" at line {line} column {byte}")).unwrap_or(&told);
        Self { what: what.to_owned(), byte }
    }
}

impl LedgerExportError {
    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and its permissions",
            Self::NotAnExport { .. } => {
                "name what `tollgate receipts export` wrote, unpacked; a bundle is for \
                 `tollgate evidence verify`"
            }
            Self::Utf16 { .. } => "export again, in a shell that writes bytes as they come",
            Self::LineSize { .. } | Self::Line { .. } => {
                "take the file as `tollgate receipts export` wrote it; its last line is cut off when \
                 the export did not end"
            }
            Self::Version { .. } => "use the version of Tollgate that wrote it",
            Self::Empty { .. } => "export again: an export that failed leaves an empty file",
            Self::NotClosed { .. } => "export again, or take it for what it has: `--incomplete`",
            Self::OtherLines { .. } => {
                "take the file as `tollgate receipts export` wrote it: lines were edited, added or \
                 removed since"
            }
            Self::Behind { .. } => "give each export its own file",
        }
    }

    /// Whether it is about one line, and the lines behind it are read all the same.
    pub const fn is_of_a_line(&self) -> bool {
        matches!(self, Self::Line { .. } | Self::Version { .. })
    }

    /// The line it is about, from 1.
    pub const fn line(&self) -> Option<u64> {
        match self {
            Self::LineSize { line, .. }
            | Self::Line { line, .. }
            | Self::Version { line, .. }
            | Self::Behind { line, .. } => Some(*line),
            _ => None,
        }
    }
}
