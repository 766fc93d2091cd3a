//! Why there is no bundle: none could be made, or none is there.

use std::io;

use super::layout::{
    BUNDLE_BYTES_MAX, EVIDENCE_FORMAT, EVIDENCE_VERSION, Misplaced, STATEMENT_COUNT_MAX,
};
use crate::digest::Digest;
use crate::policy::NoDecision;

/// No evidence can be made of this.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is nothing to give evidence of.
    #[error("there is no decision to give evidence of")]
    NoDecision(#[source] NoDecision),
    /// The bytes are not those of the policy that decided.
    #[error("the component has the digest {found}, the policy that decided is {expected}")]
    Component {
        /// The policy's digest.
        expected: Digest,
        /// That of the bytes.
        found: Digest,
    },
    /// The receipt was made small.
    #[error("the receipt was pruned: it no longer names the decision")]
    Pruned,
    /// The payload is not the one the receipt is about.
    #[error("the payload has the digest {found}, the receipt's content hash is {expected}")]
    ContentHash {
        /// The receipt's content hash.
        expected: Digest,
        /// That of the payload.
        found: Digest,
    },
    /// The policy is not the one the receipt names.
    #[error("the policy has the digest {found}, the receipt names {expected}")]
    Policy {
        /// The receipt's policy digest.
        expected: Digest,
        /// That of the policy.
        found: Digest,
    },
    /// The same policy decides something else than the receipt says.
    #[error("the decision has the digest {found}, the receipt names {expected}")]
    Decision {
        /// The receipt's decision digest.
        expected: Digest,
        /// That of the decision made now.
        found: Digest,
    },
    /// More statements than a bundle numbers.
    #[error("the decision has {0} statements, a bundle holds {STATEMENT_COUNT_MAX}")]
    Statements(usize),
    /// A member would be larger than any verifier reads.
    #[error("`{name}` would have {bytes} bytes, more than a bundle holds")]
    Size {
        /// The member, or the bundle.
        name: String,
        /// Its bytes.
        bytes: u64,
    },
    /// The archive could not be written.
    #[error("the archive cannot be written")]
    Archive(#[source] io::Error),
}

impl ExportError {
    /// Whether digests disagree, rather than there being nothing to export.
    pub const fn is_mismatch(&self) -> bool {
        matches!(
            self,
            Self::Component { .. }
                | Self::ContentHash { .. }
                | Self::Policy { .. }
                | Self::Decision { .. }
        )
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NoDecision(no_decision) => no_decision.help(),
            Self::Component { .. } => "load the policy from the very bytes that go into the bundle",
            Self::Pruned => "export evidence before `tollgate receipts prune`",
            Self::ContentHash { .. } => "name the payload as it was when the step ran",
            Self::Policy { .. } => "name the component that decided: `--policy FILE`",
            Self::Decision { .. } => {
                "ask for the catalog the step ran in; if it is that one, the receipt was not written \
                 by this policy's decision"
            }
            Self::Statements(_) | Self::Size { .. } => "split the payload",
            Self::Archive(_) => "try again with more free memory",
        }
    }
}

/// The file is no evidence bundle that can be verified.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// It cannot be read.
    #[error("the bundle cannot be read")]
    Read(#[source] io::Error),
    /// It is larger than any bundle.
    #[error("the file has more than {BUNDLE_BYTES_MAX} bytes: it is no bundle")]
    Size,
    /// It is no archive of any kind.
    #[error("the file is no evidence bundle: it does not begin as a tar archive does")]
    NoArchive,
    /// It is a damaged archive.
    #[error("the bundle is not an intact tar archive")]
    Archive(#[source] io::Error),
    /// Its members are not those of a bundle.
    #[error("the bundle's members are not as they should be: {0}")]
    Members(MemberError),
    /// A member is larger than any bundle has.
    #[error("`{name}` has {bytes} bytes, more than the {bytes_max} it may have")]
    MemberSize {
        /// The member.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// What it may have.
        bytes_max: u64,
    },
    /// It is an archive of something else.
    #[error("the archive is no evidence bundle: it has no `manifest.json`")]
    NoManifest,
    /// `manifest.json` does not say what this is.
    #[error("`manifest.json` does not say that this is a bundle of format `{EVIDENCE_FORMAT}`")]
    Manifest(#[source] Option<serde_json::Error>),
    /// It was written by another version of Tollgate.
    #[error("the bundle has version {0}, this program reads version {EVIDENCE_VERSION}")]
    Version(u32),
}

/// Which member is not where it belongs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct MemberError(#[from] pub(super) Misplaced);

impl EvidenceError {
    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Read(_) => "check the path and its permissions",
            Self::Size | Self::NoArchive | Self::NoManifest | Self::Manifest(_) => {
                "name a file that `tollgate evidence export` wrote"
            }
            Self::Members(MemberError(Misplaced::Order { .. } | Misplaced::NoFile(_))) => {
                "its members are out of order or more than plain files, as after unpacking and packing \
                 again: take the file as it was exported, or export it again; the same facts give the \
                 same bytes"
            }
            Self::Archive(_) | Self::Members(_) | Self::MemberSize { .. } => {
                "it was cut off or altered on its way: take the file as it was exported, or export it \
                 again; the same facts give the same bytes"
            }
            Self::Version(_) => "verify it with a Tollgate that knows its version",
        }
    }
}
