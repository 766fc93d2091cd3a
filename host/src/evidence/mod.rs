//! Evidence: everything about one decision in one file, which anyone can verify offline.
//!
//! An [`EvidenceBundle`] is a POSIX tar archive in one canonical form, so that the same facts give the
//! same bytes, with the payload, the component that decided, what it was asked and what it answered,
//! and of a step that ran, its receipt. [`EvidenceBundle::export`] makes one from a decision made now;
//! [`EvidenceBundle::verify`] trusts nothing of it: it computes every digest again, decides again in
//! the sandbox and lists everything that is not as recorded. docs/evidence.md describes the format.
//!
//! Nothing here connects to anything or opens a file. A bundle proves what was decided; that
//! statements ran is the receipt's word, which nothing signs.

mod archive;
mod bundle;
mod difference;
mod error;
mod export;
mod facts;
mod layout;
mod records;
mod verify;

pub use bundle::EvidenceBundle;
pub use difference::{Difference, DifferenceKind};
pub use error::{EvidenceError, ExportError};
pub use export::Exhibit;
pub use facts::RecordedReceipt;
pub use layout::{
    BUNDLE_BYTES_MAX, DECISION_BYTES_MAX, DOCUMENT_BYTES_MAX, EVIDENCE_FORMAT, EVIDENCE_VERSION,
    STATEMENT_COUNT_MAX,
};
pub use verify::{Sandbox, Summary, Verification};
