//! Manifests of policies and of signatures: written the same for the same component, read strictly.

use std::collections::BTreeMap;

use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use semver::Version;
use serde::Serialize;

use crate::digest::Digest;
use crate::policy::{COMPONENT_BYTES_MAX, Policy, PolicyPin, UNKNOWN_COMPILER};
use crate::signature::SIGNATURE_BYTES_MAX;
use crate::text::visible;

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

/// The compiler that made the component, as in a pin.
const COMPILER: &str = "dev.tollgate.policy.compiler";
/// Its flags, as in a pin: a list in JSON.
const FLAGS: &str = "dev.tollgate.policy.flags";
/// Characters of a compiler or a flag that are taken over. A version has a few dozen.
const MADE_MAX: usize = 200;
/// Flags that are taken over.
const FLAGS_MAX: usize = 32;

/// When every policy was created, as far as its artifact says: the moment is in no component, and the
/// same component shall give the same artifact. Readers of the format want some moment.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// What is uploaded: two blobs, and the manifest that names them.
pub(super) struct Upload {
    pub(super) config: Vec<u8>,
    pub(super) layer: Vec<u8>,
    pub(super) manifest: Vec<u8>,
}

/// What an artifact says about its component. Nothing vouches for it, so nothing is decided by it; what
/// it says is free of control characters and not long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// The policy's name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<Version>,
    /// The compiler that made it.
    pub compiler: Option<String>,
    /// The compiler's flags.
    pub flags: Vec<String>,
}

/// The one layer of an artifact, as its manifest describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) digest: Digest,
    pub(super) bytes: u64,
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
    /// The artifact of a policy, with what made it as the pin says.
    pub(super) fn of_policy(policy: &Policy, pin: &PolicyPin, component: Vec<u8>) -> Self {
        let config = Config {
            created: CREATED,
            architecture: "wasm",
            // What a component is for, in the words of the format; this one asks nothing of it.
            os: "wasip2",
            layer_digests: [pin.sha256],
            component: Component { exports: policy.exports(), imports: [] },
        };
        let mut annotations = BTreeMap::from([
            ("org.opencontainers.image.title".to_owned(), pin.name.clone()),
            ("org.opencontainers.image.version".to_owned(), pin.version.to_string()),
        ]);
        if pin.compiler != UNKNOWN_COMPILER {
            annotations.insert(COMPILER.to_owned(), pin.compiler.clone());
        }
        if !pin.flags.is_empty() {
            let flags = serde_json::Value::from(pin.flags.clone());
            annotations.insert(FLAGS.to_owned(), flags.to_string());
        }
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

/// The one layer of a policy's manifest and what the manifest says of it, or what is not as it has to be.
pub(super) fn policy_layer(manifest: &[u8]) -> Result<(Layer, Made), String> {
    let manifest = read(manifest)?;
    let found = &manifest.config.media_type;
    if found != CONFIG_TYPE {
        return Err(format!("its configuration is of type `{found}`"));
    }
    let layer = only_layer(&manifest, LAYER_TYPE, COMPONENT_BYTES_MAX)?;
    Ok((layer, Made::of(&manifest.annotations.unwrap_or_default())))
}

impl Made {
    fn of(annotations: &BTreeMap<String, String>) -> Self {
        let has = |key: &str| annotations.get(key);
        let flags = has(FLAGS).and_then(|flags| serde_json::from_str::<Vec<String>>(flags).ok());
        let flags =
            flags.filter(|flags| flags.len() <= FLAGS_MAX && flags.iter().all(|it| is_plain(it)));
        Self {
            name: has("org.opencontainers.image.title").filter(|it| is_plain(it)).cloned(),
            version: has("org.opencontainers.image.version").and_then(|it| it.parse().ok()),
            compiler: has(COMPILER).filter(|it| is_plain(it)).cloned(),
            flags: flags.unwrap_or_default(),
        }
    }
}

/// Whether a text of a manifest's may be shown and written down as it is.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= MADE_MAX
        && visible(text) == text
        && !text.contains(['\n', '\t'])
}

/// The one layer of a signature's manifest.
pub(super) fn signature_layer(manifest: &[u8]) -> Result<Layer, String> {
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
) -> Result<Layer, String> {
    let [layer] = manifest.layers.as_slice() else {
        return Err(format!("it has {} layers and not one", manifest.layers.len()));
    };
    if layer.media_type != media_type {
        return Err(format!("its layer is of type `{}`", layer.media_type));
    }
    let Some(bytes) = u64::try_from(layer.size).ok().filter(|bytes| *bytes <= bytes_max) else {
        return Err(format!("its layer has {} bytes, at most {bytes_max} are read", layer.size));
    };
    let digest = layer.digest.parse().map_err(|error| format!("its layer: {error}"))?;
    Ok(Layer { digest, bytes })
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
        let (layer, made) = policy_layer(&good).unwrap();
        assert_eq!(layer, Layer { digest: Digest::of("x"), bytes: 1 });
        assert_eq!(made, Made::default());
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

    #[test]
    fn what_a_manifest_says_is_taken_over_when_it_is_plain() {
        let made = |compiler: &str, flags: &str| {
            let annotations = [(COMPILER, compiler), (FLAGS, flags)];
            Made::of(&annotations.map(|(key, it)| (key.to_owned(), it.to_owned())).into())
        };
        let good = made("rustc 1.95.0", "[\"-Ca\"]");
        assert_eq!(good.compiler.as_deref(), Some("rustc 1.95.0"));
        assert_eq!(good.flags, ["-Ca"]);
        for bad in ["", "a\nb", "a\x1b[31m", "a\u{202e}b", &"x".repeat(MADE_MAX + 1)] {
            assert_eq!(made(bad, "no list"), Made::default(), "{bad:?}");
            let flags = serde_json::Value::from(vec![bad]).to_string();
            assert_eq!(made(bad, &flags), Made::default(), "{bad:?}");
        }
    }
}
