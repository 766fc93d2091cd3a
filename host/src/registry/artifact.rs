//! Manifests of policies and of signatures: written the same for the same component, read strictly.

use std::collections::BTreeMap;

use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde::Serialize;

use crate::digest::Digest;
use crate::policy::{COMPONENT_BYTES_MAX, Policy};
use crate::signature::SIGNATURE_BYTES_MAX;

/// The configuration of a WebAssembly artifact.
pub(super) const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// A component.
pub(super) const LAYER_TYPE: &str = "application/wasm";
/// A signature in minisign's format.
pub(super) const SIGNATURE_TYPE: &str = "application/vnd.tollgate.minisig";
/// The configuration of an artifact that has none.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// Its only content.
const EMPTY: &[u8] = b"{}";

/// When every policy was created, as far as its artifact says: the moment is in no component, and the
/// same component shall give the same artifact. Readers of the format want some moment.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// What is uploaded: two blobs, and the manifest that names them.
pub(super) struct Upload {
    pub(super) config: Vec<u8>,
    pub(super) layer: Vec<u8>,
    pub(super) manifest: Vec<u8>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'static str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [Digest; 1],
    component: Component<'a>,
}

#[derive(Serialize)]
struct Component<'a> {
    exports: &'a [String],
    /// A policy imports nothing, or it would not have loaded.
    imports: [String; 0],
}

impl Upload {
    /// The artifact of a policy.
    pub(super) fn of_policy(policy: &Policy, component: Vec<u8>) -> Self {
        let pin = policy.pin();
        let config = Config {
            created: CREATED,
            architecture: "wasm",
            // What a component is for, in the words of the format; this one asks nothing of it.
            os: "wasip2",
            layer_digests: [pin.sha256],
            component: Component { exports: policy.exports(), imports: [] },
        };
        let annotations = BTreeMap::from([
            ("org.opencontainers.image.title".to_owned(), pin.name.clone()),
            ("org.opencontainers.image.version".to_owned(), pin.version.to_string()),
        ]);
        let config = json(&config);
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: descriptor(CONFIG_TYPE, &config),
            layers: vec![descriptor(LAYER_TYPE, &component)],
            annotations: Some(annotations),
            ..OciImageManifest::default()
        };
        Self { config, layer: component, manifest: json(&manifest) }
    }

    /// The artifact of a signature of what a manifest leads to.
    pub(super) fn of_signature(signature: &str, subject: &[u8]) -> Self {
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            artifact_type: Some(SIGNATURE_TYPE.to_owned()),
            config: descriptor(EMPTY_TYPE, EMPTY),
            layers: vec![descriptor(SIGNATURE_TYPE, signature.as_bytes())],
            subject: Some(descriptor(OCI_IMAGE_MEDIA_TYPE, subject)),
            ..OciImageManifest::default()
        };
        Self {
            config: EMPTY.to_vec(),
            layer: signature.as_bytes().to_vec(),
            manifest: json(&manifest),
        }
    }
}

/// The one layer of a policy's manifest, or what is not as it has to be.
pub(super) fn policy_layer(manifest: &[u8]) -> Result<Digest, String> {
    let manifest = read(manifest)?;
    let found = &manifest.config.media_type;
    if found != CONFIG_TYPE {
        return Err(format!("its configuration is of type `{found}`"));
    }
    only_layer(&manifest, LAYER_TYPE, COMPONENT_BYTES_MAX)
}

/// The one layer of a signature's manifest.
pub(super) fn signature_layer(manifest: &[u8]) -> Result<Digest, String> {
    only_layer(&read(manifest)?, SIGNATURE_TYPE, SIGNATURE_BYTES_MAX as u64)
}

fn read(manifest: &[u8]) -> Result<OciImageManifest, String> {
    serde_json::from_slice(manifest)
        .map_err(|error| format!("its manifest cannot be read: {error}"))
}

fn only_layer(
    manifest: &OciImageManifest,
    media_type: &str,
    bytes_max: u64,
) -> Result<Digest, String> {
    let [layer] = manifest.layers.as_slice() else {
        return Err(format!("it has {} layers and not one", manifest.layers.len()));
    };
    if layer.media_type != media_type {
        return Err(format!("its layer is of type `{}`", layer.media_type));
    }
    if u64::try_from(layer.size).map_or(true, |bytes| bytes > bytes_max) {
        return Err(format!("its layer has {} bytes, at most {bytes_max} are read", layer.size));
    }
    layer.digest.parse().map_err(|error| format!("its layer: {error}"))
}

fn descriptor(media_type: &str, content: &[u8]) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(content).to_string(),
        size: i64::try_from(content.len()).unwrap_or(i64::MAX),
        ..OciDescriptor::default()
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Only maps with keys that are no strings cannot be written, and there are none.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(config: &str, layers: &[(&str, &[u8])]) -> Vec<u8> {
        json(&OciImageManifest {
            config: descriptor(config, b"{}"),
            layers: layers.iter().map(|(kind, content)| descriptor(kind, content)).collect(),
            ..OciImageManifest::default()
        })
    }

    #[test]
    fn a_policy_has_one_layer_and_its_type() {
        let good = manifest(CONFIG_TYPE, &[(LAYER_TYPE, b"x")]);
        assert_eq!(policy_layer(&good).unwrap(), Digest::of("x"));
        let image = "application/vnd.oci.image.config.v1+json";
        for bad in [
            manifest(image, &[(LAYER_TYPE, b"x")]),
            manifest(CONFIG_TYPE, &[]),
            manifest(CONFIG_TYPE, &[(LAYER_TYPE, b"x"), (LAYER_TYPE, b"y")]),
            manifest(CONFIG_TYPE, &[("application/vnd.oci.image.layer.v1.tar", b"x")]),
            b"{}".to_vec(),
            b"no json".to_vec(),
        ] {
            assert!(policy_layer(&bad).is_err(), "{}", String::from_utf8_lossy(&bad));
        }
        let text = String::from_utf8(good).unwrap();
        for (from, to) in [("\"size\":1", "\"size\":-1"), ("\"size\":1", "\"size\":99999999999")] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            assert!(policy_layer(changed.as_bytes()).is_err(), "{changed}");
        }
        let sha512 = text.replace("sha256:", "sha512:");
        assert!(policy_layer(sha512.as_bytes()).is_err());
    }
}
