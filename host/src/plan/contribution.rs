//! Contributions and the releases that carry them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::fingerprint::{content_hash, publication_fingerprint};
use super::names::{ContributionKind, TargetName};
use crate::digest::Digest;
use crate::ids::{ContributionKey, Direction, PluginRelease};

/// The exact bytes a contribution delivers, with their digest.
///
/// `Debug` shows the size and the digest only: literals of a payload may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    bytes: Arc<[u8]>,
    content_hash: Digest,
}

impl Payload {
    /// Takes the bytes as they are.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let content_hash = content_hash(&bytes);
        Self { bytes, content_hash }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The SHA-256 of the bytes.
    pub fn content_hash(&self) -> Digest {
        self.content_hash
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("byte_count", &self.bytes.len())
            .field("content_hash", &self.content_hash)
            .finish()
    }
}

/// One thing a release contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Its key within the release.
    pub key: ContributionKey,
    /// What it is.
    pub kind: ContributionKind,
    /// What it is applied to.
    pub target: TargetName,
    /// Whether its author declares that running it again changes nothing.
    pub idempotent: bool,
    /// What it applies.
    pub forward: Payload,
    /// What takes it back.
    pub compensation: Option<Payload>,
}

impl Contribution {
    /// The payload of one direction.
    pub fn payload(&self, direction: Direction) -> Option<&Payload> {
        match direction {
            Direction::Forward => Some(&self.forward),
            Direction::Compensate => self.compensation.as_ref(),
        }
    }
}

/// Two contributions of one release have the same key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the release has two contributions with the key `{0}`")]
pub struct DuplicateContribution(pub ContributionKey);

/// A release as it is installed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledRelease {
    release: PluginRelease,
    contributions: Vec<Contribution>,
    publication_fingerprint: Digest,
}

impl InstalledRelease {
    /// Puts a release together, its contributions in the order they are to be applied.
    ///
    /// # Errors
    ///
    /// Two contributions have the same key.
    pub fn new(
        release: PluginRelease,
        contributions: impl IntoIterator<Item = Contribution>,
    ) -> Result<Self, DuplicateContribution> {
        let contributions: Vec<_> = contributions.into_iter().collect();
        let mut keys = BTreeSet::new();
        for Contribution { key, .. } in &contributions {
            if !keys.insert(key) {
                return Err(DuplicateContribution(key.clone()));
            }
        }
        let publication_fingerprint = publication_fingerprint(&contributions);
        Ok(Self { release, contributions, publication_fingerprint })
    }

    /// Which release this is.
    pub fn release(&self) -> &PluginRelease {
        &self.release
    }

    /// The contribution with this key.
    pub fn contribution(&self, key: &ContributionKey) -> Option<&Contribution> {
        self.contributions.iter().find(|contribution| contribution.key == *key)
    }

    /// Every contribution, in the order they are to be applied.
    pub fn contributions(&self) -> &[Contribution] {
        &self.contributions
    }

    /// The fingerprint of what the release publishes; see [`publication_fingerprint`].
    pub fn publication_fingerprint(&self) -> Digest {
        self.publication_fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_never_shown() {
        let shown = format!("{:?}", Payload::new(b"canary-literal".as_slice()));
        assert!(!shown.contains("canary") && shown.contains("byte_count: 14"), "{shown}");
    }
}
