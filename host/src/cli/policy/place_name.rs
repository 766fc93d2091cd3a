//! What a place in a registry promises by its name, and whether the policy there keeps it.

use semver::Version;
use tollgate::policy::PolicyPin;
use tollgate::registry::Place;

/// What of a place's name is not that of the policy. None of it decides anything: it is told.
pub(super) fn differences(place: &Place, pin: &PolicyPin) -> Vec<String> {
    let mut differences = Vec::new();
    let name = place.repository().rsplit('/').next().unwrap_or_default();
    if name != pin.name {
        differences.push(format!("the repository is called `{name}`, the policy `{}`", pin.name));
    }
    let version = |tag: &str| tag.strip_prefix('v').unwrap_or(tag).parse::<Version>().ok();
    if let Some(tag) = place.tag()
        && version(tag).is_some_and(|version| version != pin.version)
    {
        differences.push(format!("the tag is `{tag}`, the policy's version {}", pin.version));
    }
    differences
}
