//! Reading what `tollgate receipts export` wrote: receipts of a ledger with the payloads they are
//! about, so that every decision can be made again without a server.
//!
//! One object a line, docs/schema/ledger-export.schema.json. Keys that this version does not know are
//! passed over, because receipts may come to say more; a line of another version is refused.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::digest::Digest;
use crate::ids::{Catalog, Direction, EnvironmentCode, ExecutorCode, PluginRelease, StepKey};

/// The version of the lines that this host writes and reads.
pub const LEDGER_EXPORT_VERSION: u32 = 1;

/// Bytes of a line, at most: a payload of the largest release file, every byte of it escaped.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// A receipt with its payload, as far as deciding again needs it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportedReceipt {
    /// The step.
    pub key: StepKey,
    /// The environment the target stands for.
    pub environment: EnvironmentCode,
    /// Whose contribution it is.
    pub release: PluginRelease,
    /// Forward, or its reverse.
    pub direction: Direction,
    /// Who ran it.
    pub executor: ExecutorCode,
    /// The catalog the ledger is in, which the payload was decided for.
    pub catalog: Catalog,
    /// The recorded digest of the payload's exact bytes.
    pub content_hash: Digest,
    /// The component that allowed it; none once pruned.
    pub policy_digest: Option<Digest>,
    /// The decision that allowed it; none once pruned.
    pub decision_digest: Option<Digest>,
    /// The payload; `None` when the export found none with the recorded digest.
    pub payload: Option<String>,
    /// Why there is no payload.
    #[serde(default)]
    pub missing: Option<String>,
}

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
        source: serde_json::Error,
    },
    /// A line was written by another version of Tollgate.
    #[error(
        "`{}` line {line} has version {version}, this program reads version {LEDGER_EXPORT_VERSION}",
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
}

impl LedgerExportError {
    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and its permissions",
            Self::LineSize { .. } | Self::Line { .. } => {
                "take the file as `tollgate receipts export` wrote it; its last line is cut off when \
                 the export did not end"
            }
            Self::Version { .. } => "use the version of Tollgate that wrote it",
        }
    }
}

/// What every line says first.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads an export, a receipt at a time.
#[derive(Debug)]
pub struct LedgerExport<R = BufReader<File>> {
    path: PathBuf,
    from: R,
    line: u64,
    failed: bool,
}

impl LedgerExport {
    /// Opens an export.
    ///
    /// # Errors
    ///
    /// [`LedgerExportError::Read`].
    pub fn open(path: &Path) -> Result<Self, LedgerExportError> {
        let file = File::open(path)
            .map_err(|source| LedgerExportError::Read { path: path.to_owned(), source })?;
        Ok(Self::new(path, BufReader::new(file)))
    }
}

impl<R: BufRead> LedgerExport<R> {
    /// Reads an export from elsewhere; `path` is what errors call it.
    pub fn new(path: &Path, from: R) -> Self {
        Self { path: path.to_owned(), from, line: 0, failed: false }
    }

    fn read_line(&mut self) -> Result<Option<Vec<u8>>, LedgerExportError> {
        let mut bytes = Vec::new();
        let path = || self.path.clone();
        let mut bounded = self.from.by_ref().take(LINE_BYTES_MAX + 1);
        let read = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(|source| LedgerExportError::Read { path: path(), source })?;
        self.line += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(LedgerExportError::LineSize { path: path(), line: self.line });
        }
        Ok((read > 0).then_some(bytes))
    }

    fn parse(&self, bytes: &[u8]) -> Result<ExportedReceipt, LedgerExportError> {
        let unreadable =
            |source| LedgerExportError::Line { path: self.path.clone(), line: self.line, source };
        let Versioned { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version != LEDGER_EXPORT_VERSION {
            let (path, line) = (self.path.clone(), self.line);
            return Err(LedgerExportError::Version { path, line, version });
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }
}

impl<R: BufRead> Iterator for LedgerExport<R> {
    type Item = Result<ExportedReceipt, LedgerExportError>;

    /// The next receipt. After an error there is none: what follows may not be what it seems.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.read_line().and_then(|line| line.map(|it| self.parse(&it)).transpose());
        self.failed = next.is_err();
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(version: u32) -> String {
        let digest = Digest::of("x");
        format!(
            "{{\"version\":{version},\"id\":1,\"key\":\"k:1\",\"environment\":\"preview\",\
             \"release\":{{\"code\":\"shop\",\"version\":\"1.0.0\"}},\"direction\":\"FORWARD\",\
             \"executor\":\"sql-jdbc:v1\",\"catalog\":\"plugin_preview\",\"contentHash\":\"{digest}\",\
             \"policyDigest\":null,\"decisionDigest\":\"{digest}\",\"payload\":\"a\\nb\"}}\n"
        )
    }

    fn read(text: &str) -> Vec<Result<ExportedReceipt, LedgerExportError>> {
        LedgerExport::new(Path::new("x.jsonl"), text.as_bytes()).collect()
    }

    #[test]
    fn lines_are_read_one_after_the_other_and_unknown_keys_are_passed_over() {
        let receipts = read(&(line(1) + &line(1)));
        assert_eq!(receipts.len(), 2);
        let receipt = receipts[0].as_ref().unwrap();
        assert_eq!(receipt.payload.as_deref(), Some("a\nb"));
        assert_eq!((receipt.policy_digest, receipt.missing.as_ref()), (None, None));
        assert!(read("").is_empty());
    }

    #[test]
    fn what_is_no_export_ends_the_reading_and_is_told_by_line() {
        let cut = line(1) + &line(1)[..40] + "\n" + &line(1);
        let receipts = read(&cut);
        assert_eq!(receipts.len(), 2, "nothing is read past an error");
        assert!(matches!(receipts[1], Err(LedgerExportError::Line { line: 2, .. })));
        let [Err(error)] = &read(&line(2))[..] else { panic!("a newer line was read") };
        assert!(error.to_string().contains("line 1 has version 2"), "{error}");
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let endless = BufReader::new(io::repeat(b' '));
        let mut export = LedgerExport::new(Path::new("x"), endless);
        assert!(matches!(export.next(), Some(Err(LedgerExportError::LineSize { .. }))));
    }
}
