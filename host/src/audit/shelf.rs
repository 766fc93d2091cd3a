//! Policies by the digest of their component: those at hand, and those that are fetched when a receipt
//! names them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::digest::Digest;
use crate::policy::Policy;

/// Finds a policy, or says why it is not to be had.
type Fetch = dyn Fn(Digest) -> Result<Policy, String> + Send + Sync;

/// Policies that receipts may name.
pub(super) struct Shelf {
    fetch: Box<Fetch>,
    /// What came of each digest that was asked for: it is fetched once, found or not.
    known: Mutex<Vec<(Digest, Result<Policy, String>)>>,
}

impl Shelf {
    /// With these at hand, and no others.
    pub(super) fn new(policies: impl IntoIterator<Item = Policy>) -> Self {
        let known = policies.into_iter().map(|policy| (policy.pin().sha256, Ok(policy))).collect();
        let none = |_| Err("it is neither in the store nor named".to_owned());
        Self { fetch: Box::new(none), known: Mutex::new(known) }
    }

    /// Looks there for what is not at hand.
    pub(super) fn fetching(
        self,
        fetch: impl Fn(Digest) -> Result<Policy, String> + Send + Sync + 'static,
    ) -> Self {
        Self { fetch: Box::new(fetch), ..self }
    }

    /// The policy with this digest.
    pub(super) fn find(&self, digest: Digest) -> Result<Policy, String> {
        // Held while it is fetched: compiling a component twice at once helps nobody.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(it, _)| *it == digest) {
            return found.clone();
        }
        let found = (self.fetch)(digest);
        known.push((digest, found.clone()));
        found
    }

    /// The policies at hand, those that were fetched included.
    pub(super) fn policies(&self) -> Vec<Policy> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter_map(|(_, found)| found.as_ref().ok().cloned()).collect()
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("known", &self.known).finish_non_exhaustive()
    }
}
