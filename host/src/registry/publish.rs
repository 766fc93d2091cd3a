//! Putting a policy into a registry.

use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE,
    OCI_IMAGE_MEDIA_TYPE,
};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use url::Url;

use crate::digest::Digest;
use crate::policy::{Policy, PolicyPin};
use crate::signature::{PublicKey, Signature};

use super::MANIFEST_BYTES_MAX;
use super::artifact::Upload;
use super::connection::Registry;
use super::error::RegistryError;
use super::http::Read;
use super::login::Purpose;
use super::place::Place;

/// Whatever a tag may lead to: what is taken is not always a policy.
const ANY_MANIFEST: [&str; 4] = [
    OCI_IMAGE_MEDIA_TYPE,
    OCI_IMAGE_INDEX_MEDIA_TYPE,
    IMAGE_MANIFEST_MEDIA_TYPE,
    IMAGE_MANIFEST_LIST_MEDIA_TYPE,
];

/// A policy with the bytes it was loaded from.
#[derive(Debug)]
pub struct Artifact<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its pin: what made it goes with it.
    pub pin: &'a PolicyPin,
    /// The component's exact bytes.
    pub component: &'a [u8],
    /// A signature of them, and the key that verifies it.
    pub signature: Option<(&'a Signature, &'a PublicKey)>,
}

/// What is in the registry now.
#[derive(Debug, Clone)]
pub struct Published {
    /// The policy, by the digest of its manifest.
    pub place: Place,
    /// The digest of the manifest.
    pub manifest: Digest,
    /// Whether the tag leads there only now.
    pub is_new: bool,
    /// Where the signature is.
    pub signature: Option<Place>,
}

impl Registry {
    /// Uploads a policy and has the tag lead to it. The same again uploads nothing.
    ///
    /// # Errors
    ///
    /// [`RegistryError::TagTaken`] and [`RegistryError::SignatureTaken`] when something else is there,
    /// unless `force` says that it may be moved. Registries know no condition for that: of two who
    /// publish at once the later one wins.
    pub async fn publish(
        &self,
        artifact: &Artifact<'_>,
        force: bool,
    ) -> Result<Published, RegistryError> {
        self.within_budget(self.publish_all(artifact, force)).await
    }

    async fn publish_all(
        &self,
        artifact: &Artifact<'_>,
        force: bool,
    ) -> Result<Published, RegistryError> {
        self.log_in(Purpose::Push).await?;
        let Artifact { policy, pin, component, .. } = artifact;
        let upload = Upload::of_policy(policy, pin, component.to_vec());
        let manifest = Digest::of(&upload.manifest);
        let present = self.manifest_digest(&self.place).await?;
        let is_new = present != Some(manifest);
        if let Some(found) = present.filter(|_| is_new && !force) {
            let place = self.place.clone();
            let found = found.to_string();
            return Err(RegistryError::TagTaken { place, found, ours: manifest });
        }
        // The signature first: whoever sees the tag finds the policy signed.
        let mut signature = None;
        if let Some((text, key)) = artifact.signature {
            let place = self.place.of_signature(artifact.policy.pin().sha256);
            self.publish_signature(&place, artifact.component, text, key, &upload, force).await?;
            signature = Some(place);
        }
        if is_new {
            self.upload(&self.place, &upload).await?;
        }
        Ok(Published { place: self.place.by_digest(manifest), manifest, is_new, signature })
    }

    async fn publish_signature(
        &self,
        place: &Place,
        component: &[u8],
        signature: &Signature,
        key: &PublicKey,
        policy: &Upload,
        force: bool,
    ) -> Result<(), RegistryError> {
        if let Some(present) = self.signature_at(place).await? {
            match present.and_then(|present| present.verify(key, component)) {
                // No two signatures are alike; one of this key is as good as another.
                Ok(_) => return Ok(()),
                Err(_) if force => {}
                Err(reason) => {
                    return Err(RegistryError::SignatureTaken { place: place.clone(), reason });
                }
            }
        }
        self.upload(place, &Upload::of_signature(signature.as_str(), &policy.manifest)).await
    }

    /// Blobs that are missing, and then the manifest that names them.
    async fn upload(&self, place: &Place, upload: &Upload) -> Result<(), RegistryError> {
        for blob in [&upload.layer, &upload.config] {
            let digest = Digest::of(blob);
            if !self.has_blob(place, digest).await? {
                self.upload_blob(place, blob, digest).await?;
            }
        }
        let url = self.of_repository(place, &format!("manifests/{}", place.of_manifest()))?;
        self.ask(place, Read::Headers, (Method::PUT, &url), |it| {
            it.header(CONTENT_TYPE, OCI_IMAGE_MEDIA_TYPE).body(upload.manifest.clone())
        })
        .await?;
        // What the registry took is what was sent.
        let (expected, found) = (Digest::of(&upload.manifest), self.manifest_digest(place).await?);
        if found == Some(expected) {
            return Ok(());
        }
        Err(RegistryError::Tampered {
            place: place.clone(),
            expected: expected.to_string(),
            found: found.map_or_else(|| "nothing".into(), |found| found.to_string()),
        })
    }

    async fn has_blob(&self, place: &Place, digest: Digest) -> Result<bool, RegistryError> {
        let url = self.of_repository(place, &format!("blobs/{digest}"))?;
        match self.ask(place, Read::Headers, (Method::HEAD, &url), |it| it).await {
            Ok(_) => Ok(true),
            Err(RegistryError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// In two requests: where to, and then all of it.
    async fn upload_blob(
        &self,
        place: &Place,
        blob: &[u8],
        digest: Digest,
    ) -> Result<(), RegistryError> {
        let url = self.of_repository(place, "blobs/uploads/")?;
        let begun = self
            .ask(place, Read::Headers, (Method::POST, &url), |it| it.header(CONTENT_LENGTH, 0))
            .await?;
        let location = begun.headers.get(LOCATION).and_then(|it| it.to_str().ok());
        let location = location.and_then(|location| url.join(location).ok());
        let mut location: Url = location.ok_or_else(|| RegistryError::Refused {
            registry: place.registry().to_owned(),
            answer: "an upload may begin, but not where to".into(),
        })?;
        location.query_pairs_mut().append_pair("digest", &digest.to_string());
        let sent = self
            .ask(place, Read::Headers, (Method::PUT, &location), |it| {
                it.header(CONTENT_TYPE, "application/octet-stream").body(blob.to_vec())
            })
            .await;
        match sent {
            // The answer to an earlier attempt was lost, and the upload is over.
            Err(RegistryError::NotFound(_)) if self.has_blob(place, digest).await? => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// The digest of the manifest that a place leads to, by our own count; `None` when nothing is there.
    async fn manifest_digest(&self, place: &Place) -> Result<Option<Digest>, RegistryError> {
        let url = self.of_repository(place, &format!("manifests/{}", place.of_manifest()))?;
        let read = Read::Whole(MANIFEST_BYTES_MAX);
        let accepted = ANY_MANIFEST.join(", ");
        match self.ask(place, read, (Method::GET, &url), |it| it.header(ACCEPT, &accepted)).await {
            Ok(answer) => Ok(Some(Digest::of(answer.body))),
            Err(RegistryError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
