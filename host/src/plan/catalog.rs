//! Where installed releases come from.

use std::pin::Pin;

use super::contribution::InstalledRelease;
use super::manifest::ReleaseError;
use crate::ids::PluginRelease;

/// A boxed future, so that a trait with it can be used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The catalog could not say what is installed. This is no statement about the release.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The catalog itself cannot be read now.
    #[error("the installed releases cannot be read")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The release is installed but not readable as a release.
    #[error("the installed release is broken")]
    Broken(#[source] ReleaseError),
}

impl CatalogError {
    /// Whether asking again may give an answer without anyone changing the release.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Asks what is installed, each time anew: a step is checked against what is there when it runs.
///
/// [`FolderCatalog`](super::FolderCatalog) is the reference implementation.
pub trait ContributionCatalog: Send + Sync {
    /// The release as it is installed now, or `None` when it is not.
    fn installed<'a>(
        &'a self,
        release: &'a PluginRelease,
    ) -> BoxFuture<'a, Result<Option<InstalledRelease>, CatalogError>>;

    /// Where it looks for the release, as messages to an operator name it: a release that one machine
    /// lacks is found by its place. By default nothing is said.
    fn place(&self, _release: &PluginRelease) -> Option<String> {
        None
    }
}
