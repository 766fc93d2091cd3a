//! Where in which registry a policy is.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::sync::Arc;

use oci_client::Reference;

use crate::digest::Digest;

/// A place in a registry: `HOST[:PORT]/REPOSITORY:TAG`, or with `@sha256:…` of a manifest.
///
/// Nothing is left to defaults: a name without a host would mean a registry of someone's choice, and
/// one without a tag the tag `latest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    reference: Arc<Reference>,
}

/// The text is no place in a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It begins with a scheme.
    #[error("`{0}` begins with a scheme")]
    Scheme(String),
    /// Its first part is no host.
    #[error("`{0}` does not begin with a registry's host")]
    Host(String),
    /// It has neither a tag nor a digest.
    #[error("`{0}` has no tag")]
    Tag(String),
    /// It is no reference at all.
    #[error("`{0}` is no reference of a registry: {1}")]
    Form(String, String),
}

impl PlaceError {
    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Scheme(_) => {
                "leave the scheme out: loopback addresses are spoken to over HTTP, all others over \
                 HTTPS, and nothing changes that"
            }
            _ => "write HOST[:PORT]/REPOSITORY:TAG, such as registry.example/policies/mysql:1.0.0",
        }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains("://") {
            return Err(PlaceError::Scheme(text.to_owned()));
        }
        let is_host = |part: &str| part == "localhost" || part.contains(['.', ':']);
        let Some((_, name)) = text.split_once('/').filter(|(host, _)| is_host(host)) else {
            return Err(PlaceError::Host(text.to_owned()));
        };
        if !name.contains([':', '@']) {
            return Err(PlaceError::Tag(text.to_owned()));
        }
        let reference: Reference = text.parse().map_err(|error: oci_client::ParseError| {
            PlaceError::Form(text.to_owned(), error.to_string())
        })?;
        Ok(Self::of(reference))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reference.fmt(f)
    }
}

impl Place {
    /// The registry, as it is connected to: a host, and a port when it is not the usual one.
    pub fn registry(&self) -> &str {
        self.reference.resolve_registry()
    }

    /// Whether the registry is on this machine: an address of 127.0.0.0/8 or `localhost`, and none of the
    /// names below it. It is then spoken to over plain HTTP.
    pub fn is_loopback(&self) -> bool {
        let registry = self.registry();
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        host == "localhost" || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }

    /// The repository.
    pub fn repository(&self) -> &str {
        self.reference.repository()
    }

    /// The tag, when it is one that leads to the manifest and no digest.
    pub fn tag(&self) -> Option<&str> {
        self.reference.tag().filter(|_| self.reference.digest().is_none())
    }

    /// What leads to the manifest: a digest, or else a tag.
    pub(super) fn of_manifest(&self) -> &str {
        self.reference.digest().or(self.reference.tag()).unwrap_or_default()
    }

    /// The digest of the manifest, when the place has one.
    pub(super) fn digest(&self) -> Option<&str> {
        self.reference.digest()
    }

    /// The same repository, by the digest of a manifest.
    #[must_use]
    pub fn by_digest(&self, manifest: Digest) -> Self {
        Self::of(self.reference.clone_with_digest(manifest.to_string()))
    }

    /// Where the signature of a component of this repository is.
    #[must_use]
    pub fn of_signature(&self, component: Digest) -> Self {
        let tag = component.to_string().replace(':', "-") + ".minisig";
        let (registry, repository) = (self.reference.registry(), self.reference.repository());
        Self::of(Reference::with_tag(registry.to_owned(), repository.to_owned(), tag))
    }

    /// What docker's configuration calls the registry.
    pub(super) fn credentials_name(&self) -> &str {
        match self.reference.registry() {
            "docker.io" | "index.docker.io" => "https://index.docker.io/v1/",
            registry => registry,
        }
    }

    fn of(reference: Reference) -> Self {
        Self { reference: Arc::new(reference) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse().unwrap()
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for local in ["localhost:5000/p:1", "127.0.0.1:5000/p:1", "127.8.9.1/p:1", "localhost/p:1"]
        {
            assert!(place(local).is_loopback(), "{local}");
        }
        for other in [
            "registry.example/p:1",
            "10.0.0.1:5000/p:1",
            "127.0.0.1.example:5000/p:1",
            "localhost.example/p:1",
            "registry.localhost:5000/p:1",
            "0.0.0.0:5000/p:1",
        ] {
            assert!(!place(other).is_loopback(), "{other}");
        }
    }

    #[test]
    fn nothing_is_left_to_defaults() {
        let refused = |text: &str| text.parse::<Place>().unwrap_err();
        assert!(matches!(refused("policies/mysql:1"), PlaceError::Host(_)));
        assert!(matches!(refused("mysql:1"), PlaceError::Host(_)));
        assert!(matches!(refused("registry.example/mysql"), PlaceError::Tag(_)));
        assert!(matches!(refused("http://registry.example/mysql:1"), PlaceError::Scheme(_)));
        assert!(matches!(refused("registry.example/Mysql:1"), PlaceError::Form(..)));
        assert!(matches!(refused("registry.example/mysql@sha256:12"), PlaceError::Form(..)));
    }

    #[test]
    fn a_signature_is_beside_its_component() {
        let digest = Digest::of("x");
        let signature = place("registry.example:5000/a/b:1.0").of_signature(digest).to_string();
        let hex = digest.to_string().replace("sha256:", "");
        assert_eq!(signature, format!("registry.example:5000/a/b:sha256-{hex}.minisig"));
        assert!(signature.parse::<Place>().is_ok(), "within the length of a tag");
    }
}
