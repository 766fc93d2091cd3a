//! Detached signatures of components, in minisign's format: Ed25519 over the `BLAKE2b` digest of the
//! bytes, in a small text file that `minisign -V` reads and `minisign -S` writes.
//!
//! A digest says which bytes; a signature says who stands behind them. Old signatures over the bytes
//! themselves (`ED` is what is accepted, `Ed` is not) are refused, as minisign does by default.

use std::fmt::{self, Write as _};
use std::io::Cursor;

use minisign::{PublicKeyBox, SecretKeyBox, SignatureBox};
use semver::Version;

use crate::digest::Digest;

/// Bytes of a signature's or a key's text, at most. Real ones have a third of a kilobyte.
pub const SIGNATURE_BYTES_MAX: usize = 4 << 10;

/// What a signature's file is called: the component's name with this behind it.
pub const SIGNATURE_SUFFIX: &str = ".minisig";

/// How the second line of a secret key starts that is protected by a password: `Ed`, `Sc`, `B2`.
const ENCRYPTED_KEY: &str = "RWRTY0Iy";

/// A text is no key, or no signature.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Neither a file of minisign's nor the line in it.
    #[error("this is no minisign public key: {0}")]
    Public(String),
    /// A secret key where a public one belongs.
    #[error("this is a secret key, and what is trusted is the public one")]
    SecretForPublic,
    /// Not a file of minisign's.
    #[error("this is no minisign secret key: {0}")]
    Secret(String),
    /// A public key where a secret one belongs.
    #[error("this is a public key, and signing takes the secret one")]
    PublicForSecret,
    /// The key is protected, and no password was given.
    #[error("the secret key is protected by a password")]
    Encrypted,
    /// It cannot be opened with this password.
    #[error("the secret key cannot be opened: {0}")]
    Password(String),
}

/// A signature does not vouch for the bytes.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// Not a signature of minisign's.
    #[error("this is no minisign signature")]
    Malformed,
    /// Over the bytes and not over their digest.
    #[error("the signature is of minisign's old form, without a digest")]
    Legacy,
    /// Made with another key than the one that is trusted.
    #[error("it was signed with the key {found}, trusted is the key {trusted}")]
    OtherKey {
        /// The id of the trusted key.
        trusted: String,
        /// The id of the key that signed.
        found: String,
    },
    /// Of other bytes, or forged.
    #[error("the signature is not of these bytes, or its comment was changed")]
    Wrong,
    /// Made for something else, as its own comment says.
    #[error("its comment says that it was made for {named}, this is {found}")]
    OtherSubject {
        /// What the comment names.
        named: String,
        /// What it is on.
        found: String,
    },
    /// It could not be made.
    #[error("the bytes cannot be signed: {0}")]
    Sign(String),
}

/// A key that is trusted.
#[derive(Debug, Clone)]
pub struct PublicKey(minisign::PublicKey);

impl PublicKey {
    /// Reads a key: the content of a public key's file, or the one line of it that is the key.
    ///
    /// # Errors
    ///
    /// [`KeyError::Public`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let refused = |error: minisign::PError| KeyError::Public(error.to_string());
        let text = text.trim();
        if is_secret(text) {
            return Err(KeyError::SecretForPublic);
        }
        let key = if text.contains('\n') {
            let key = PublicKeyBox::from_string(text).map_err(refused)?;
            key.into_public_key().map_err(refused)?
        } else {
            minisign::PublicKey::from_base64(text).map_err(refused)?
        };
        if !key.to_bytes().starts_with(b"Ed") {
            return Err(KeyError::Public("it is for another algorithm".into()));
        }
        Ok(Self(key))
    }

    /// The key's id, as minisign prints it.
    pub fn id(&self) -> String {
        id(self.0.keynum())
    }
}

/// A key that signs. Never printed.
pub struct SecretKey(minisign::SecretKey);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

impl SecretKey {
    /// Reads the content of a secret key's file. A key without a password (`minisign -G -W`) needs
    /// none.
    ///
    /// # Errors
    ///
    /// [`KeyError::Encrypted`] when a password is needed and none was given, [`KeyError::Password`]
    /// when it is not the right one, [`KeyError::Secret`] otherwise.
    pub fn parse(text: &str, password: Option<String>) -> Result<Self, KeyError> {
        let refused = |error: minisign::PError| KeyError::Secret(error.to_string());
        if PublicKey::parse(text).is_ok() {
            return Err(KeyError::PublicForSecret);
        }
        let key = SecretKeyBox::from_string(text).map_err(refused)?;
        let is_encrypted = text.lines().nth(1).is_some_and(|it| it.starts_with(ENCRYPTED_KEY));
        match password {
            _ if !is_encrypted => key
                .into_unencrypted_secret_key()
                .or_else(|error| without_checksum(text).ok_or(error))
                .map_err(refused),
            None => return Err(KeyError::Encrypted),
            password => {
                key.into_secret_key(password).map_err(|error| KeyError::Password(error.to_string()))
            }
        }
        .map(Self)
    }

    /// The same, with the password asked for on the terminal.
    ///
    /// # Errors
    ///
    /// As [`SecretKey::parse`].
    pub fn parse_with_prompt(text: &str) -> Result<Self, KeyError> {
        let key = SecretKeyBox::from_string(text);
        key.and_then(|key| key.into_secret_key(None))
            .map(Self)
            .map_err(|error| KeyError::Password(error.to_string()))
    }

    /// The key to trust what this one signs.
    ///
    /// # Errors
    ///
    /// [`KeyError::Secret`] when the key is damaged.
    pub fn public_key(&self) -> Result<PublicKey, KeyError> {
        let key = minisign::PublicKey::from_secret_key(&self.0);
        key.map(PublicKey).map_err(|error| KeyError::Secret(error.to_string()))
    }

    /// Signs bytes; the comment is signed with them.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Sign`].
    pub fn sign(&self, bytes: &[u8], comment: &str) -> Result<Signature, SignatureError> {
        let untrusted = "signature of a Tollgate policy";
        let signed =
            minisign::sign(None, &self.0, Cursor::new(bytes), Some(comment), Some(untrusted))
                .map_err(|error| SignatureError::Sign(error.to_string()))?;
        let signature = Signature::parse(&signed.into_string())?;
        // A damaged key signs too, and nobody could verify it.
        let public = self.public_key().map_err(|error| SignatureError::Sign(error.to_string()))?;
        signature.verify(&public, bytes)?;
        Ok(signature)
    }
}

/// Whether the second line is as long as that of a secret key's file.
fn is_secret(text: &str) -> bool {
    text.lines()
        .nth(1)
        .and_then(|line| decoded(line.trim()))
        .is_some_and(|key| key.len() == SECRET_KEY_BYTES)
}

/// Length of a secret key in bytes, and of the checksum at its end.
const SECRET_KEY_BYTES: usize = 158;
const CHECKSUM_BYTES: usize = 32;

/// A key without a password as minisign 0.11 writes it: with zeros for a checksum, which the crate
/// takes for a damaged key.
fn without_checksum(text: &str) -> Option<minisign::SecretKey> {
    let bytes = decoded(text.lines().nth(1)?.trim())?;
    let checksum = bytes.get(SECRET_KEY_BYTES - CHECKSUM_BYTES..)?;
    let has_none = checksum.len() == CHECKSUM_BYTES && checksum.iter().all(|byte| *byte == 0);
    if !has_none || bytes.get(..4) != Some(b"Ed\0\0") {
        return None;
    }
    minisign::SecretKey::from_bytes(&bytes).ok()
}

/// Base64 with the usual alphabet, padded.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let digits = text.trim_end_matches('=');
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    (text.len().is_multiple_of(4) && text.len() - digits.len() < 3 && bits == 0).then_some(bytes)
}

/// A detached signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    text: String,
}

impl Signature {
    /// Reads the content of a signature's file. That it is of certain bytes is for
    /// [`Signature::verify`] to find.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let lines: Vec<&str> = text.lines().collect();
        // An algorithm, a key's id and a signature, and then the comment's signature: the crate reads
        // no further than its lines are long.
        let has_shape = text.len() <= SIGNATURE_BYTES_MAX
            && lines.get(1).is_some_and(|line| line.trim().len() == 100)
            && lines.get(3).is_some_and(|line| line.trim().len() == 88);
        if !has_shape || SignatureBox::from_string(text).is_err() {
            return Err(SignatureError::Malformed);
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The text of the signature's file.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the key signed exactly these bytes; the comment that was signed with them. A digest in
    /// the comment has to be theirs.
    ///
    /// # Errors
    ///
    /// [`SignatureError`], naming what is not as it should be.
    pub fn verify(&self, key: &PublicKey, bytes: &[u8]) -> Result<String, SignatureError> {
        let signature =
            SignatureBox::from_string(&self.text).map_err(|_| SignatureError::Malformed)?;
        if !signature.is_prehashed() {
            return Err(SignatureError::Legacy);
        }
        if signature.keynum() != key.0.keynum() {
            return Err(SignatureError::OtherKey {
                trusted: key.id(),
                found: id(signature.keynum()),
            });
        }
        minisign::verify(&key.0, &signature, Cursor::new(bytes), true, false, false)
            .map_err(|_| SignatureError::Wrong)?;
        let comment = signature.trusted_comment().map_err(|_| SignatureError::Malformed)?;
        let found = Digest::of(bytes);
        let named = comment.split_whitespace().filter_map(|word| word.parse::<Digest>().ok());
        match named.into_iter().find(|named| *named != found) {
            Some(named) => Err(SignatureError::OtherSubject {
                named: named.to_string(),
                found: found.to_string(),
            }),
            None => Ok(comment),
        }
    }
}

/// The policy that a signature was made for, as its comment says: name, version, digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    name: String,
    version: Version,
}

impl Subject {
    /// The comment of a signature of a policy's.
    pub fn comment(name: &str, version: &Version, digest: Digest) -> String {
        format!("{name} {version} {digest}")
    }

    /// What a comment says; `None` when it has another form, as those of `minisign -S` have.
    pub fn of(comment: &str) -> Option<Self> {
        let words: Vec<&str> = comment.split_whitespace().collect();
        let [name, version, digest] = words.as_slice() else { return None };
        digest.parse::<Digest>().ok()?;
        Some(Self { name: (*name).to_owned(), version: version.parse().ok()? })
    }

    /// Whether it is this policy.
    ///
    /// # Errors
    ///
    /// [`SignatureError::OtherSubject`].
    pub fn check(&self, name: &str, version: &Version) -> Result<(), SignatureError> {
        if self.name == name && self.version == *version {
            return Ok(());
        }
        Err(SignatureError::OtherSubject {
            named: format!("{} {}", self.name, self.version),
            found: format!("{name} {version}"),
        })
    }
}

/// A key's id as minisign prints it: the number's hexadecimal digits, the highest first.
fn id(number: &[u8]) -> String {
    number.iter().rev().fold(String::new(), |mut id, byte| {
        let _ = write!(id, "{byte:02X}");
        id
    })
}

#[cfg(test)]
mod tests {
    use minisign::KeyPair;

    use super::*;

    fn keys() -> (SecretKey, PublicKey) {
        let KeyPair { sk, .. } = KeyPair::generate_unencrypted_keypair().unwrap();
        let text = sk.to_box(None).unwrap().into_string();
        let secret = SecretKey::parse(&text, None).unwrap();
        let public = secret.public_key().unwrap();
        (secret, public)
    }

    #[test]
    fn what_was_signed_is_verified_and_nothing_else() {
        let ((secret, public), (_, other)) = (keys(), keys());
        let signature = secret.sign(b"component", "p 1.0.0 sha256:00").unwrap();
        assert_eq!(signature.verify(&public, b"component").unwrap(), "p 1.0.0 sha256:00");
        assert!(matches!(signature.verify(&public, b"componenu"), Err(SignatureError::Wrong)));
        let error = signature.verify(&other, b"component").unwrap_err();
        assert!(error.to_string().contains(&public.id()), "{error}");

        let forged = signature.as_str().replace("p 1.0.0", "p 9.0.0");
        let forged = Signature::parse(&forged).unwrap();
        assert!(matches!(forged.verify(&public, b"component"), Err(SignatureError::Wrong)));
    }

    #[test]
    fn a_comment_that_names_something_else_is_believed() {
        let (secret, public) = keys();
        let version = Version::new(1, 0, 0);
        let own = Subject::comment("p", &version, Digest::of("component"));
        let signature = secret.sign(b"component", &own).unwrap();
        let subject = Subject::of(&signature.verify(&public, b"component").unwrap()).unwrap();
        subject.check("p", &version).unwrap();
        for (name, version) in [("q", Version::new(1, 0, 0)), ("p", Version::new(1, 0, 1))] {
            let error = subject.check(name, &version).unwrap_err();
            assert!(error.to_string().contains("made for p 1.0.0"), "{error}");
        }
        let other = Subject::comment("p", &version, Digest::of("another"));
        let refused = secret.sign(b"component", &other);
        assert!(matches!(refused, Err(SignatureError::OtherSubject { .. })), "{refused:?}");
        assert_eq!(Subject::of("timestamp:1700000000\tfile:p.wasm\thashed"), None);
    }

    #[test]
    fn one_kind_of_key_is_not_taken_for_the_other() {
        let (_, public) = keys();
        let file = public.0.to_box().unwrap().into_string();
        for text in [file.as_str(), file.lines().nth(1).unwrap()] {
            let refused = SecretKey::parse(text, None);
            assert!(matches!(refused, Err(KeyError::PublicForSecret)), "{refused:?}");
        }
        let refused = PublicKey::parse(OF_MINISIGN_0_11);
        assert!(matches!(refused, Err(KeyError::SecretForPublic)), "{refused:?}");
    }

    #[test]
    fn no_text_that_is_no_signature_gets_far() {
        let (secret, public) = keys();
        let good = secret.sign(b"x", "comment").unwrap();
        let lines: Vec<&str> = good.as_str().lines().collect();
        for cut in 0..lines.len() {
            assert!(Signature::parse(&lines[..cut].join("\n")).is_err(), "{cut} lines");
        }
        for line in [1, 3] {
            let mut short = lines.clone();
            short[line] = "RWQ=";
            assert!(Signature::parse(&short.join("\n")).is_err());
            let zeros = "A".repeat(lines[line].len() - 2) + "==";
            let mut changed = lines.clone();
            changed[line] = &zeros;
            let verified = Signature::parse(&changed.join("\n")).map(|it| it.verify(&public, b"x"));
            assert!(!matches!(verified, Ok(Ok(_))), "line {line}");
        }
        assert!(Signature::parse(&"x".repeat(SIGNATURE_BYTES_MAX + 1)).is_err());
    }

    /// Made with `minisign -G -W` of Debian 12, for this test and nothing else.
    const OF_MINISIGN_0_11: &str = "untrusted comment: minisign encrypted secret key\n\
        RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAhw3geBXEIMmwQvoJOB5\
        84iISx/ZoCGsJDW4PqlRoQoD9PWPMqpIo4KP2poz4vrRlQhtKxdavLmUi1sCqCd1vVPqeDszoKZbBAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";

    #[test]
    fn a_key_of_minisign_without_a_password_signs() {
        let secret = SecretKey::parse(OF_MINISIGN_0_11, None).unwrap();
        let public = "RWSHDeB4FcQgyaP2poz4vrRlQhtKxdavLmUi1sCqCd1vVPqeDszoKZbB";
        let signature = secret.sign(b"x", "comment").unwrap();
        signature.verify(&PublicKey::parse(public).unwrap(), b"x").unwrap();

        let damaged = OF_MINISIGN_0_11.replace("hw3geBXEIMmwQvoJ", "hw3geBXEIMmwQvoK");
        let damaged = SecretKey::parse(&damaged, None).unwrap();
        assert!(damaged.sign(b"x", "comment").is_err(), "nobody could verify it");
    }

    #[test]
    fn keys_are_read_as_files_and_as_lines() {
        let (secret, public) = keys();
        let file = public.0.to_box().unwrap().into_string();
        for text in [file.as_str(), file.lines().nth(1).unwrap()] {
            assert_eq!(PublicKey::parse(text).unwrap().id(), public.id());
        }
        for text in ["", "RWQ", "untrusted comment: x\n", "untrusted comment: x\nRWQ\n"] {
            assert!(PublicKey::parse(text).is_err(), "{text}");
            assert!(SecretKey::parse(text, None).is_err(), "{text}");
        }
        assert!(!format!("{secret:?}").contains("RW"));
    }
}
