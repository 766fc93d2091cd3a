//! Putting a policy into a registry.

use oci_client::RegistryOperation;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;

use crate::digest::Digest;
use crate::policy::Policy;
use crate::signature::{PublicKey, Signature};

use super::artifact::Upload;
use super::connection::Registry;
use super::error::RegistryError;
use super::place::Place;

/// A policy with the bytes it was loaded from.
#[derive(Debug)]
pub struct Artifact<'a> {
    /// The policy.
    pub policy: &'a Policy,
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
        self.log_in(RegistryOperation::Push).await?;
        self.log_in(RegistryOperation::Pull).await?;
        let upload = Upload::of_policy(artifact.policy, artifact.component.to_vec());
        let manifest = Digest::of(&upload.manifest);
        let present = self.manifest_digest(&self.place).await?;
        let is_new = present.as_deref() != Some(manifest.to_string().as_str());
        if let Some(found) = present.filter(|_| is_new && !force) {
            let place = self.place.clone();
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
        let (client, reference) = (&self.client, place.reference());
        for blob in [&upload.layer, &upload.config] {
            let digest = Digest::of(blob).to_string();
            let present = self.retrying(place, || client.blob_exists(reference, &digest)).await?;
            if !present {
                self.retrying(place, || client.push_blob(reference, blob.clone(), &digest)).await?;
            }
        }
        let content_type = OCI_IMAGE_MEDIA_TYPE.parse();
        let content_type = content_type.map_err(|_| RegistryError::Refused {
            registry: place.registry().to_owned(),
            answer: "the manifest's type cannot be sent".into(),
        })?;
        self.retrying(place, || {
            client.push_manifest_raw(
                reference,
                upload.manifest.clone(),
                Clone::clone(&content_type),
            )
        })
        .await?;
        // What the registry took is what was sent.
        let (expected, found) = (Digest::of(&upload.manifest), self.manifest_digest(place).await?);
        if found.as_deref() == Some(expected.to_string().as_str()) {
            return Ok(());
        }
        Err(RegistryError::Tampered {
            place: place.clone(),
            expected: expected.to_string(),
            found: found.unwrap_or_else(|| "nothing".into()),
        })
    }

    /// The manifest that a place leads to; `None` when nothing is there.
    async fn manifest_digest(&self, place: &Place) -> Result<Option<String>, RegistryError> {
        let (client, reference) = (&self.client, place.reference());
        let digest =
            self.retrying(place, || client.fetch_manifest_digest(reference, self.auth())).await;
        match digest {
            Ok(digest) => Ok(Some(digest)),
            Err(RegistryError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
