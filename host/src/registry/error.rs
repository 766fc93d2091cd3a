//! Why a policy could not be published or pulled.

use crate::blame::Blame;
use crate::digest::Digest;
use crate::signature::SignatureError;

use super::credentials::CredentialsError;
use super::place::Place;

/// Why a policy could not be published or pulled. Whatever the registry said is shortened to one line,
/// without login, password and tokens.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Docker's configuration cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Connections cannot be made from this machine at all.
    #[error("no connections can be made from here: {0}")]
    Client(String),
    /// The registry did not answer, however often it was asked.
    #[error("the registry `{registry}` cannot be reached: {reason}")]
    Unreachable {
        /// The registry.
        registry: String,
        /// What the last attempt failed with.
        reason: String,
    },
    /// The registry answers that it cannot, however often it was asked.
    #[error("the registry `{registry}` fails, however often it is asked: {answer}")]
    Failing {
        /// The registry.
        registry: String,
        /// What it said last.
        answer: String,
    },
    /// All of it took too long.
    #[error("the registry `{registry}` did not come to an end within {seconds} s")]
    Budget {
        /// The registry.
        registry: String,
        /// The budget, in seconds.
        seconds: u64,
    },
    /// The registry does not let us.
    #[error("the registry `{registry}` asks for other credentials")]
    Unauthorized {
        /// The registry.
        registry: String,
    },
    /// Nothing is there.
    #[error("`{0}` is not in the registry")]
    NotFound(Place),
    /// The registry refused.
    #[error("the registry `{registry}` answered: {answer}")]
    Refused {
        /// The registry.
        registry: String,
        /// What it said.
        answer: String,
    },
    /// An answer has more than it may have; the rest of it was not read.
    #[error(
        "the registry `{registry}` answers with more than {bytes_max} bytes, which is all that is read"
    )]
    TooLarge {
        /// The registry.
        registry: String,
        /// The bound.
        bytes_max: u64,
    },
    /// The registry leads over plain HTTP to another machine.
    #[error(
        "the registry `{registry}` leads to {host} over plain HTTP, which is for this machine alone"
    )]
    PlainHttp {
        /// The registry.
        registry: String,
        /// Where it leads.
        host: String,
    },
    /// The registry does not speak HTTPS.
    #[error(
        "the registry `{registry}` does not speak HTTPS, and plain HTTP is for this machine alone"
    )]
    NoTls {
        /// The registry.
        registry: String,
    },
    /// The registry sent more or fewer bytes than the manifest says.
    #[error("the registry sent {found} bytes for `{place}`, its manifest says {expected}")]
    OtherSize {
        /// Where.
        place: Place,
        /// What the manifest says.
        expected: u64,
        /// What was sent: a number, or `more`.
        found: String,
    },
    /// What is there is no policy.
    #[error("`{place}` is no policy: {what}")]
    NotAPolicy {
        /// Where.
        place: Place,
        /// What is not as it has to be.
        what: String,
    },
    /// A policy is there, and it is another one than is asked for.
    #[error("`{place}` is {found}, not {expected}")]
    OtherDigest {
        /// Where.
        place: Place,
        /// What was asked for.
        expected: Digest,
        /// What the registry has there.
        found: Digest,
    },
    /// The registry sent other bytes than it announced.
    #[error("the registry sent other bytes for `{place}` than it said: {found}, not {expected}")]
    Tampered {
        /// Where.
        place: Place,
        /// What was announced.
        expected: String,
        /// What the bytes have.
        found: String,
    },
    /// The tag leads to something else already.
    #[error("`{place}` is taken: it leads to {found}, this would be {ours}")]
    TagTaken {
        /// Where.
        place: Place,
        /// The manifest that is there.
        found: String,
        /// The manifest that would be.
        ours: Digest,
    },
    /// Another key's signature, or none that can be read, is in the place of ours.
    #[error("another signature of this component is at `{place}`: {reason}")]
    SignatureTaken {
        /// Where.
        place: Place,
        /// Why it is not ours.
        reason: SignatureError,
    },
    /// A key is trusted, and nobody signed.
    #[error("`{place}` has no signature")]
    Unsigned {
        /// Where the signature would be.
        place: Place,
    },
    /// A key is trusted, and it did not sign this.
    #[error("the signature at `{place}` is not to be trusted")]
    Signature {
        /// Where the signature is.
        place: Place,
        /// Why.
        source: SignatureError,
    },
}

impl RegistryError {
    /// Whether digests or signatures disagree, rather than something being away or amiss.
    pub const fn is_mismatch(&self) -> bool {
        matches!(
            self,
            Self::OtherDigest { .. }
                | Self::Tampered { .. }
                | Self::OtherSize { .. }
                | Self::TagTaken { .. }
                | Self::SignatureTaken { .. }
                | Self::Unsigned { .. }
                | Self::Signature { .. }
        )
    }

    /// Who can put it right.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Unreachable { .. }
            | Self::Failing { .. }
            | Self::Budget { .. }
            | Self::Tampered { .. }
            | Self::OtherSize { .. }
            | Self::TooLarge { .. }
            | Self::PlainHttp { .. } => Blame::Server,
            Self::NotAPolicy { .. } => Blame::Policy,
            _ => Blame::Operator,
        }
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Credentials(_) | Self::Unauthorized { .. } => {
                "run `docker login` with a user name and password, or write them into the file that \
                 DOCKER_CONFIG leads to"
            }
            Self::Client(_) => "see that the system's CA certificates are installed",
            Self::Unreachable { .. } | Self::Budget { .. } => {
                "try again; look at the registry and at the way to it"
            }
            Self::Failing { .. } => "try again later; it is the registry itself, it can be reached",
            Self::NotFound(_) => "check the repository and the tag",
            Self::Refused { .. } => "see what it says; nothing was written here",
            Self::NotAPolicy { .. } => {
                "a policy has a configuration `application/vnd.wasm.config.v0+json` and one layer \
                 `application/wasm`: publish it with `tollgate policy publish`"
            }
            Self::OtherDigest { .. } => {
                "compare it with the digest you meant, which is the component's and not the manifest's; if \
                 it is right, find out who moved the tag"
            }
            Self::TooLarge { .. } => "check the address: this is no answer of a registry's",
            Self::PlainHttp { .. } => {
                "have it answer, redirect and log in over HTTPS; nothing was sent there"
            }
            Self::NoTls { .. } => {
                "put HTTPS before the registry, or reach it through a tunnel as localhost:PORT"
            }
            Self::Tampered { .. } | Self::OtherSize { .. } => {
                "do not use this registry until it is known why"
            }
            Self::TagTaken { .. } => {
                "publish under a tag of its own; --force moves the tag away from what others may rely \
                 on"
            }
            Self::SignatureTaken { .. } => "--force puts this signature in its place",
            Self::Unsigned { .. } => {
                "have it signed: `tollgate policy publish FILE PLACE --sign-key KEYFILE`"
            }
            Self::Signature { .. } => "find out who signed it; trust another key only after review",
        }
    }
}
