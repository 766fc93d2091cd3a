//! The byte encoding that fingerprints are taken over.
//!
//! Four forms, no padding, no alignment, all numbers big-endian:
//!
//! | form | bytes |
//! |---|---|
//! | tag | the tag's ASCII text, then one zero byte |
//! | count | 4 bytes, unsigned |
//! | text | its length in bytes as a count, then its UTF-8 bytes |
//! | flag | one byte, 0 or 1 |
//! | digest | its 32 bytes |
//!
//! Every text carries its length, so no two different sequences have the same encoding.

use crate::digest::Digest;

/// An encoding being written.
#[derive(Debug)]
pub(super) struct Canonical(Vec<u8>);

impl Canonical {
    /// Starts with a tag that says what is encoded and how.
    pub(super) fn tagged(tag: &str) -> Self {
        let mut bytes = tag.as_bytes().to_vec();
        bytes.push(0);
        Self(bytes)
    }

    /// Writes a count. What is counted is bounded far below 2³² wherever it is read; a larger
    /// number would be written as 2³² - 1 and its text after it, which nothing shorter equals.
    pub(super) fn count(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.extend(count.to_be_bytes());
    }

    /// Writes a text.
    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend(text.as_bytes());
    }

    /// Writes a flag.
    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// Writes a digest.
    pub(super) fn digest(&mut self, digest: &Digest) {
        self.0.extend(digest.as_bytes());
    }

    /// The SHA-256 of what was written.
    pub(super) fn fingerprint(&self) -> Digest {
        Digest::of(&self.0)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
