//! Finding the payload a receipt is about among the installed releases.

use std::path::Path;

use tollgate::digest::Digest;
use tollgate::ids::{Direction, PluginRelease};
use tollgate::plan::{CatalogError, FolderCatalog, Payload};

/// The payload is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum MissingPayload {
    /// The release is not.
    #[error("release `{0}` is not installed")]
    NotInstalled(PluginRelease),
    /// It is, with other content.
    #[error("release `{release}` has no payload with the content hash {content_hash}")]
    OtherContent { release: PluginRelease, content_hash: Digest },
    /// It cannot be read.
    #[error("release `{release}`: {error}")]
    Unreadable { release: PluginRelease, error: CatalogError },
}

impl MissingPayload {
    /// What to do.
    pub(super) const fn help(&self) -> &'static str {
        match self {
            Self::NotInstalled(_) => {
                "put the release at <plugin code>/<version> below `--releases`, as it was published"
            }
            Self::OtherContent { .. } => "install the release as it was when the step ran",
            Self::Unreadable { .. } => "make the release folder readable, as it was published",
        }
    }
}

/// The payload with this content hash in a release below `releases`. A receipt does not name the
/// contribution; its content hash names the bytes.
pub(super) fn find(
    releases: &Path,
    release: &PluginRelease,
    direction: Direction,
    content_hash: Digest,
) -> Result<Payload, MissingPayload> {
    match FolderCatalog::tree(releases).read(release) {
        Ok(None) => Err(MissingPayload::NotInstalled(release.clone())),
        Ok(Some(installed)) => installed
            .contributions()
            .iter()
            .filter_map(|contribution| contribution.payload(direction))
            .find(|payload| payload.content_hash() == content_hash)
            .cloned()
            .ok_or_else(|| MissingPayload::OtherContent { release: release.clone(), content_hash }),
        Err(error) => Err(MissingPayload::Unreadable { release: release.clone(), error }),
    }
}
