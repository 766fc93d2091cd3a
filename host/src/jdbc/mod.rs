//! `jdbc:mysql:` URLs: what the original deployment wrote, read strictly.
//!
//! Only one server and one catalog, no user and no password. Properties that mean something for a
//! connection are mapped, properties that only steer the Java driver are accepted and do nothing,
//! every other one is refused by name. Nothing here ever repeats a part of the URL but the name of
//! a property, so a password in the wrong place is not printed.

mod known;
mod normal;
mod parse;
mod problem;
mod properties;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use known::{MappedProperty, ignored_properties, mapped_properties};
pub use normal::NormalisedUrl;
pub use problem::JdbcUrlProblem;

/// The port a URL without one means.
pub(super) const PORT_DEFAULT: u16 = 3306;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// TCP. The host is a lowercase name or an address without brackets.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A unix socket on this machine (property `localSocket`).
    Socket(PathBuf),
}

/// Whether and how TLS is used: Connector/J's `sslMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsMode {
    /// Never.
    Disabled,
    /// When the server offers it; no certificate is checked. Connector/J's default.
    #[default]
    Preferred,
    /// Always; no certificate is checked.
    Required,
    /// Always; the certificate's chain is checked.
    VerifyCa,
    /// Always; the certificate's chain and its host name are checked.
    VerifyIdentity,
}

/// TLS as a URL asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsPolicy {
    pub(super) mode: TlsMode,
    pub(super) ca_file: Option<PathBuf>,
}

impl TlsPolicy {
    /// When TLS is used and what is checked.
    pub fn mode(&self) -> TlsMode {
        self.mode
    }

    /// The PEM file with the only certificate authorities to trust. None: the authorities browsers
    /// trust.
    pub fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }
}

/// A checked `jdbc:mysql:` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct JdbcUrl {
    pub(super) endpoint: Endpoint,
    pub(super) catalog: String,
    pub(super) tls: TlsPolicy,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) socket_timeout: Option<Duration>,
    pub(super) keep_alive: bool,
}

impl JdbcUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// Every problem of the URL at once; none repeats a value.
    pub fn parse(text: &str) -> Result<Self, Vec<JdbcUrlProblem>> {
        parse::jdbc_url(text)
    }

    /// Where the server listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The catalog, in the case it was written.
    pub fn catalog(&self) -> &str {
        &self.catalog
    }

    /// TLS.
    pub fn tls(&self) -> &TlsPolicy {
        &self.tls
    }

    /// `connectTimeout`, when it is given and not 0.
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    /// `socketTimeout`, when it is given and not 0.
    pub fn socket_timeout(&self) -> Option<Duration> {
        self.socket_timeout
    }

    /// `tcpKeepAlive`.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// What two URLs for the same place have in common.
    pub fn normalised(&self) -> NormalisedUrl {
        NormalisedUrl::of(&self.endpoint, &self.catalog)
    }
}

/// A URL is not for eyes: it says where the target is.
impl fmt::Debug for JdbcUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JdbcUrl(..)")
    }
}

/// As [`JdbcUrl`].
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp { .. } => "Tcp(..)",
            Self::Socket(_) => "Socket(..)",
        })
    }
}
