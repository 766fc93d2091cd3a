//! What the lines of an export say.
//!
//! Keys that this version does not know are passed over, because receipts may come to say more; a line
//! of a version that it does not know is refused.

use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::super::Undecided;
use super::error::LineFault;
use crate::digest::{Digest, Digester};
use crate::ids::{
    Catalog, Direction, EnvironmentCode, ExecutorCode, ExternalReceipt, PluginRelease, StepKey,
};
use crate::ledger::Status;

/// The version of the lines that this host writes.
pub const LEDGER_EXPORT_VERSION: u32 = 2;

/// The version before it, whose exports do not say where they end.
pub(super) const WITHOUT_CLOSING: u32 = 1;

/// A line of an export, but for the one that closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedLine {
    /// A receipt.
    Receipt {
        /// What it says.
        receipt: Box<ExportedReceipt>,
        /// The line of an earlier receipt with the same key, of which a ledger has one.
        earlier: Option<u64>,
    },
    /// A row that was no receipt.
    Damaged(DamagedRow),
}

/// A receipt with its payload, as far as deciding again and comparing need it.
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
    /// The recorded status.
    pub status: Status,
    /// Statements of the payload.
    pub statement_count: u32,
    /// What the step handed back.
    pub external_receipt: Option<ExternalReceipt>,
    /// When it succeeded, by the database's clock, UTC.
    pub completed_at: Option<String>,
    /// A column that contradicts the rest of the row, which was edited by hand.
    pub contradiction: Option<String>,
    /// The payload; `None` when the export found none with the recorded digest.
    pub payload: Option<String>,
    /// Why there is no payload.
    #[serde(default)]
    pub missing: Option<String>,
}

/// A row of the ledger that did not read as a receipt when it was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedRow {
    /// Order of first claim.
    pub id: u64,
    /// Its key as it stands there, when that much can be read.
    pub key: Option<String>,
    /// The first column that did not read.
    pub column: String,
}

impl DamagedRow {
    /// What it is called, and why nothing can be decided about it.
    pub(in super::super) fn into_undecided(self) -> (PathBuf, Undecided) {
        let Self { id, key, column } = self;
        let path = key.unwrap_or_else(|| format!("row {id}"));
        (PathBuf::from(path), Undecided::Damaged { id, column })
    }

    /// The row as a line of an export, with its line break.
    pub fn to_line(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            version: u32,
            damaged: &'a DamagedRow,
        }
        json(&Line { version: LEDGER_EXPORT_VERSION, damaged: self })
    }
}

/// Sums an export up, line by line, for the line that closes it.
#[derive(Debug, Clone, Default)]
pub struct ExportSum {
    lines: u64,
    digester: Digester,
}

/// What the closing line says about the lines before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Closing {
    /// Their number.
    pub(super) lines: u64,
    /// Of each, with one line feed behind it.
    pub(super) sha256: Digest,
}

impl ExportSum {
    /// Adds a line, with or without its line break.
    pub fn add(&mut self, line: impl AsRef<[u8]>) {
        self.lines += 1;
        self.digester.add(without_break(line.as_ref()));
        self.digester.add(b"\n");
    }

    /// How many lines there are.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    pub(super) fn closing(&self) -> Closing {
        Closing { lines: self.lines, sha256: self.digester.digest() }
    }

    /// The line that closes the export, with its line break.
    pub fn to_line(&self) -> String {
        #[derive(Serialize)]
        struct Line {
            version: u32,
            closing: Closing,
        }
        json(&Line { version: LEDGER_EXPORT_VERSION, closing: self.closing() })
    }
}

/// A line without what ends it: an editor may have put two bytes there.
pub(super) fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn json(value: &impl Serialize) -> String {
    // Only maps with keys that are no strings cannot be written, and there are none.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// A line as it is read.
pub(super) enum Line {
    Receipt(Box<ExportedReceipt>),
    Damaged(DamagedRow),
    Closing(Closing),
}

/// Why a line cannot be read.
pub(super) enum LineError {
    Version(u32),
    Json(LineFault),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error.into())
    }
}

/// What tells of which kind a line is.
#[derive(Deserialize)]
struct Kind {
    version: u32,
    damaged: Option<IgnoredAny>,
    closing: Option<IgnoredAny>,
}

impl Line {
    /// Reads a line and its version.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, u32), LineError> {
        #[derive(Deserialize)]
        struct Damaged {
            damaged: DamagedRow,
        }
        #[derive(Deserialize)]
        struct Closed {
            closing: Closing,
        }
        let Kind { version, damaged, closing } = serde_json::from_slice(bytes)?;
        if !(WITHOUT_CLOSING..=LEDGER_EXPORT_VERSION).contains(&version) {
            return Err(LineError::Version(version));
        }
        let line = if damaged.is_some() {
            Self::Damaged(serde_json::from_slice::<Damaged>(bytes)?.damaged)
        } else if closing.is_some() {
            Self::Closing(serde_json::from_slice::<Closed>(bytes)?.closing)
        } else {
            Self::Receipt(serde_json::from_slice(bytes)?)
        };
        Ok((line, version))
    }
}
