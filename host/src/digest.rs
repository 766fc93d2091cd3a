//! SHA-256 digests of exact bytes.
//!
//! A digest names bytes; a fingerprint (canonical meaning) is a digest of a canonical encoding and
//! has its own place where that encoding is defined.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:<64 lowercase hexadecimal digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Digests the bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Digests bytes that come in parts.
#[derive(Debug, Clone, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> Digest {
        Digest(self.0.clone().finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// The text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: write `sha256:` and 64 lowercase hexadecimal digits")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseDigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").ok_or_else(refused)?.as_bytes();
        if hex.len() != 64 {
            return Err(refused());
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let mut value = 0;
            for &digit in pair {
                value = value << 4
                    | match digit {
                        b'0'..=b'9' => digit - b'0',
                        b'a'..=b'f' => digit - b'a' + 10,
                        _ => return Err(refused()),
                    };
            }
            *byte = value;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_it_is_written() {
        let digest = Digest::of("abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
    }

    #[test]
    fn parts_have_the_digest_of_the_whole() {
        let mut digester = Digester::default();
        assert_eq!(digester.digest(), Digest::of(""));
        for part in ["a", "", "bc"] {
            digester.add(part);
        }
        assert_eq!(digester.digest(), Digest::of("abc"));
    }

    #[test]
    fn other_spellings_are_refused() {
        let lower = Digest::of("abc").to_string();
        for text in [
            "",
            "sha256:",
            lower.trim_start_matches("sha256:"),
            &lower.to_uppercase(),
            &lower.replace("ba78", "BA78"),
            &format!("{lower}00"),
            &lower.replace("ba78", "ba7é"),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
