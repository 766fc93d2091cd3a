//! What made a component: as a pin of it says, or as its bytes do.

use std::path::Path;

use tollgate::policy::{PINS_FILE, PolicyPin, PolicyStore};

use super::about;

/// Completes a pin by what is known of its component's bytes.
pub(super) fn complete<'a>(
    pin: &mut PolicyPin,
    bytes: &[u8],
    known: impl IntoIterator<Item = &'a PolicyPin>,
) {
    let sha256 = pin.sha256;
    let is_known = |known: &&PolicyPin| known.sha256 == sha256;
    let published = PolicyStore::embedded().ok();
    let published = published.as_ref().and_then(|store| store.pins().iter().find(is_known));
    if let Some(known) = known.into_iter().find(is_known).or(published) {
        pin.compiler.clone_from(&known.compiler);
        pin.flags.clone_from(&known.flags);
    } else if let Some(compiler) = about::compiler(bytes) {
        pin.compiler = compiler;
    }
}

/// The store that a component lies in, when there are pins beside it that can be read.
pub(super) fn store_of(component: &Path) -> Option<PolicyStore> {
    let folder = component.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    folder.join(PINS_FILE).exists().then(|| PolicyStore::open(folder).ok()).flatten()
}
