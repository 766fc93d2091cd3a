//! Getting a policy from a registry.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use oci_client::RegistryOperation;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use tokio::io::AsyncWrite;

use crate::digest::Digest;
use crate::policy::COMPONENT_BYTES_MAX;
use crate::signature::{PublicKey, SIGNATURE_BYTES_MAX, Signature, SignatureError};

use super::MANIFEST_BYTES_MAX;
use super::artifact;
use super::connection::Registry;
use super::error::RegistryError;
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
        self.log_in(RegistryOperation::Pull).await?;
        let manifest = self.manifest(place).await?;
        let digest = artifact::policy_layer(&manifest).map_err(|what| not_a_policy(place, what))?;
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let place = place.clone();
            return Err(RegistryError::OtherDigest { place, expected, found: digest });
        }
        let component = self.blob(place, digest, COMPONENT_BYTES_MAX).await?;
        let signature = match key {
            Some(key) => Some(self.signature(digest, &component, key).await?),
            None => None,
        };
        Ok(Pulled { component, digest, manifest: Digest::of(&manifest), signature })
    }

    async fn signature(
        &self,
        digest: Digest,
        component: &[u8],
        key: &PublicKey,
    ) -> Result<Signature, RegistryError> {
        let place = self.place.of_signature(digest);
        let Some(signature) = self.signature_at(&place).await? else {
            return Err(RegistryError::Unsigned { place });
        };
        let untrusted = |source| RegistryError::Signature { place: place.clone(), source };
        let signature = signature.map_err(untrusted)?;
        signature.verify(key, component).map_err(untrusted)?;
        Ok(signature)
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
        let Ok(digest) = artifact::signature_layer(&manifest) else {
            return Ok(Some(Err(SignatureError::Malformed)));
        };
        let text = self.blob(place, digest, SIGNATURE_BYTES_MAX as u64).await?;
        let text = String::from_utf8(text).map_err(|_| SignatureError::Malformed);
        Ok(Some(text.and_then(|text| Signature::parse(&text))))
    }

    /// The manifest at a place. The client reads it whole before it is looked at; the budget bounds
    /// what a registry that never stops can send.
    async fn manifest(&self, place: &Place) -> Result<Vec<u8>, RegistryError> {
        let (client, reference) = (&self.client, place.reference());
        let types = &[OCI_IMAGE_MEDIA_TYPE];
        let (manifest, _) = self
            .retrying(place, || client.pull_manifest_raw(reference, self.auth(), types))
            .await?;
        if manifest.len() > MANIFEST_BYTES_MAX {
            let what = format!("its manifest has {} bytes", manifest.len());
            return Err(not_a_policy(place, what));
        }
        Ok(manifest.to_vec())
    }

    /// A blob's bytes, of which no more are taken than may be.
    async fn blob(
        &self,
        place: &Place,
        digest: Digest,
        bytes_max: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let (client, reference, name) = (&self.client, place.reference(), digest.to_string());
        let (bytes, is_whole) = self
            .retrying(place, || async {
                let mut bounded = Bounded { bytes: Vec::new(), bytes_max, is_whole: true };
                match client.pull_blob(reference, name.as_str(), &mut bounded).await {
                    Err(_) if !bounded.is_whole => Ok((Vec::new(), false)),
                    done => done.map(|()| (bounded.bytes, true)),
                }
            })
            .await?;
        if !is_whole {
            let what = format!("its layer has more than {bytes_max} bytes");
            return Err(not_a_policy(place, what));
        }
        // By our own count, whatever the client compared.
        let found = Digest::of(&bytes);
        if found == digest {
            return Ok(bytes);
        }
        let (expected, found) = (digest.to_string(), found.to_string());
        Err(RegistryError::Tampered { place: place.clone(), expected, found })
    }
}

fn not_a_policy(place: &Place, what: String) -> RegistryError {
    RegistryError::NotAPolicy { place: place.clone(), what }
}

/// Takes bytes up to a bound.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: u64,
    is_whole: bool,
}

impl AsyncWrite for Bounded {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if (this.bytes.len() + bytes.len()) as u64 > this.bytes_max {
            this.is_whole = false;
            return Poll::Ready(Err(io::Error::other("larger than it may be")));
        }
        this.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
