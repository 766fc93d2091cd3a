//! Getting a policy from a registry.

use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use reqwest::Method;
use reqwest::header::ACCEPT;

use crate::digest::Digest;
use crate::signature::{PublicKey, Signature, SignatureError, Subject};

use super::MANIFEST_BYTES_MAX;
use super::artifact::{self, Layer, Made};
use super::connection::Registry;
use super::error::RegistryError;
use super::http::Read;
use super::login::Purpose;
use super::place::Place;

/// A policy from a registry. Its bytes have the digest, and nothing else is known of them yet.
#[derive(Debug)]
pub struct Pulled {
    /// The component's bytes.
    pub component: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// The digest of the manifest that the place led to.
    pub manifest: Digest,
    /// The signature, when a key was given: it vouches for the bytes.
    pub signature: Option<Signature>,
    /// What the signature says it was made for.
    pub subject: Option<Subject>,
    /// What the manifest says about the bytes; nothing vouches for it.
    pub made: Made,
}

impl Registry {
    /// Fetches a policy: the digest is compared before anything else is fetched, and the signature
    /// before the bytes are given out.
    ///
    /// # Errors
    ///
    /// [`RegistryError`]; with a key, [`RegistryError::Unsigned`] and [`RegistryError::Signature`].
    pub async fn pull(
        &self,
        expected: Option<Digest>,
        key: Option<&PublicKey>,
    ) -> Result<Pulled, RegistryError> {
        self.within_budget(self.pull_all(expected, key)).await
    }

    async fn pull_all(
        &self,
        expected: Option<Digest>,
        key: Option<&PublicKey>,
    ) -> Result<Pulled, RegistryError> {
        let place = &self.place;
        self.log_in(Purpose::Pull).await?;
        let manifest = self.manifest(place).await?;
        let (layer, made) =
            artifact::policy_layer(&manifest).map_err(|what| self.not_a_policy(place, &what))?;
        if let Some(expected) = expected.filter(|expected| *expected != layer.digest) {
            let place = place.clone();
            return Err(RegistryError::OtherDigest { place, expected, found: layer.digest });
        }
        let component = self.blob(place, layer).await?;
        let (signature, subject) = match key {
            Some(key) => {
                let (signature, subject) = self.signature(layer.digest, &component, key).await?;
                (Some(signature), subject)
            }
            None => (None, None),
        };
        let manifest = Digest::of(&manifest);
        Ok(Pulled { component, digest: layer.digest, manifest, signature, subject, made })
    }

    async fn signature(
        &self,
        digest: Digest,
        component: &[u8],
        key: &PublicKey,
    ) -> Result<(Signature, Option<Subject>), RegistryError> {
        let place = self.place.of_signature(digest);
        let Some(signature) = self.signature_at(&place).await? else {
            return Err(RegistryError::Unsigned { place });
        };
        let untrusted = |source| RegistryError::Signature { place: place.clone(), source };
        let signature = signature.map_err(untrusted)?;
        let comment = signature.verify(key, component).map_err(untrusted)?;
        Ok((signature, Subject::of(&comment)))
    }

    /// The signature at a place: none, one, or something that is none.
    pub(super) async fn signature_at(
        &self,
        place: &Place,
    ) -> Result<Option<Result<Signature, SignatureError>>, RegistryError> {
        let manifest = match self.manifest(place).await {
            Ok(manifest) => manifest,
            Err(RegistryError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok(layer) = artifact::signature_layer(&manifest) else {
            return Ok(Some(Err(SignatureError::Malformed)));
        };
        let text = self.blob(place, layer).await?;
        let text = String::from_utf8(text).map_err(|_| SignatureError::Malformed);
        Ok(Some(text.and_then(|text| Signature::parse(&text))))
    }

    /// The manifest at a place, which has the digest of the place and the one that the registry says.
    async fn manifest(&self, place: &Place) -> Result<Vec<u8>, RegistryError> {
        let url = self.of_repository(place, &format!("manifests/{}", place.of_manifest()))?;
        let read = Read::Whole(MANIFEST_BYTES_MAX);
        let answer = self
            .ask(place, read, (Method::GET, &url), |it| it.header(ACCEPT, OCI_IMAGE_MEDIA_TYPE))
            .await?;
        let said = answer.headers.get("docker-content-digest").and_then(|it| it.to_str().ok());
        // Of another algorithm nothing is known here, and the place's own digest is none.
        let said = said.filter(|said| said.starts_with("sha256:"));
        let found = Digest::of(&answer.body).to_string();
        match place.digest().into_iter().chain(said).find(|expected| *expected != found) {
            Some(expected) => {
                let (place, expected) = (place.clone(), self.told(expected));
                Err(RegistryError::Tampered { place, expected, found })
            }
            None => Ok(answer.body),
        }
    }

    /// A blob's bytes: as many as the manifest says, with the digest that it says.
    async fn blob(&self, place: &Place, layer: Layer) -> Result<Vec<u8>, RegistryError> {
        let Layer { digest, bytes: expected } = layer;
        let url = self.of_repository(place, &format!("blobs/{digest}"))?;
        let other_size = |found| RegistryError::OtherSize { place: place.clone(), expected, found };
        let bytes = match self.ask(place, Read::Whole(expected), (Method::GET, &url), |it| it).await
        {
            Ok(answer) => answer.body,
            Err(RegistryError::TooLarge { .. }) => return Err(other_size("more".into())),
            Err(error) => return Err(error),
        };
        if bytes.len() as u64 != expected {
            return Err(other_size(bytes.len().to_string()));
        }
        let found = Digest::of(&bytes);
        if found == digest {
            return Ok(bytes);
        }
        let (expected, found) = (digest.to_string(), found.to_string());
        Err(RegistryError::Tampered { place: place.clone(), expected, found })
    }

    fn not_a_policy(&self, place: &Place, what: &str) -> RegistryError {
        RegistryError::NotAPolicy { place: place.clone(), what: self.told(what) }
    }
}
