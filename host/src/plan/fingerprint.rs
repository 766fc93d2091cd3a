//! Content hashes and publication fingerprints.
//!
//! A content hash names exact bytes. A publication fingerprint names what a release publishes: it
//! is the SHA-256 over this encoding (the forms are those of the private module `canonical`; all
//! numbers are big-endian):
//!
//! ```text
//! tag     "tollgate:publication:v1" 0x00
//! count   number of contributions                     4 bytes
//! for each contribution, keys in ascending byte order:
//!   text    key                                       4 bytes of length, then UTF-8
//!   text    type, such as DATABASE_MIGRATION
//!   text    target, such as sql
//!   flag    idempotent                                1 byte, 0 or 1
//!   digest  content hash of the forward payload       32 bytes
//!   flag    whether there is a compensation payload   1 byte, 0 or 1
//!   digest  its content hash, only when there is one  32 bytes
//! ```
//!
//! The plugin's code and version are not in it: the same contributions published again have the
//! same fingerprint.

use super::canonical::Canonical;
use super::contribution::Contribution;
use crate::digest::Digest;

/// The SHA-256 of a payload's exact bytes: no line ending, encoding or whitespace is touched.
pub fn content_hash(payload: &[u8]) -> Digest {
    Digest::of(payload)
}

/// The fingerprint of what a release publishes, from its contributions in any order.
///
/// Changing a key, a type, a target, `idempotent`, a payload byte, or whether there is a
/// compensation, changes it.
pub fn publication_fingerprint<'a>(
    contributions: impl IntoIterator<Item = &'a Contribution>,
) -> Digest {
    encode(contributions).fingerprint()
}

fn encode<'a>(contributions: impl IntoIterator<Item = &'a Contribution>) -> Canonical {
    let mut contributions: Vec<_> = contributions.into_iter().collect();
    contributions.sort_by(|a, b| a.key.cmp(&b.key));
    let mut canonical = Canonical::tagged("tollgate:publication:v1");
    canonical.count(contributions.len());
    for contribution in contributions {
        canonical.text(contribution.key.as_str());
        canonical.text(contribution.kind.as_str());
        canonical.text(contribution.target.as_str());
        canonical.flag(contribution.idempotent);
        canonical.digest(&contribution.forward.content_hash());
        canonical.flag(contribution.compensation.is_some());
        if let Some(compensation) = &contribution.compensation {
            canonical.digest(&compensation.content_hash());
        }
    }
    canonical
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Payload;

    fn contribution(key: &str) -> Contribution {
        Contribution {
            key: key.parse().unwrap(),
            kind: "DATABASE_MIGRATION".parse().unwrap(),
            target: "sql".parse().unwrap(),
            idempotent: true,
            forward: Payload::new(b"DROP TABLE IF EXISTS t".as_slice()),
            compensation: None,
        }
    }

    #[test]
    fn the_encoding_is_as_documented() {
        let mut expected = b"tollgate:publication:v1\0\0\0\0\x01\0\0\0\x01a\0\0\0\x12".to_vec();
        expected.extend(b"DATABASE_MIGRATION\0\0\0\x03sql\x01");
        expected.extend(Digest::of("DROP TABLE IF EXISTS t").as_bytes());
        expected.push(0);
        assert_eq!(encode([&contribution("a")]).bytes(), expected);
    }

    #[test]
    fn the_order_of_contributions_is_not_in_it() {
        let (a, b) = (contribution("a"), contribution("b"));
        assert_eq!(publication_fingerprint([&a, &b]), publication_fingerprint([&b, &a]));
    }

    #[test]
    fn every_recorded_property_is_in_it() {
        let base = contribution("a");
        let changed = [
            contribution("b"),
            Contribution { kind: "MENU".parse().unwrap(), ..base.clone() },
            Contribution { target: "page".parse().unwrap(), ..base.clone() },
            Contribution { idempotent: false, ..base.clone() },
            Contribution { forward: Payload::new(b"x".as_slice()), ..base.clone() },
            Contribution { compensation: Some(base.forward.clone()), ..base.clone() },
        ];
        let mut seen = vec![publication_fingerprint([&base])];
        for contribution in &changed {
            let fingerprint = publication_fingerprint([contribution]);
            assert!(!seen.contains(&fingerprint), "{contribution:?}");
            seen.push(fingerprint);
        }
    }
}
