//! A granted lease.

use std::time::{Duration, Instant};

use super::receipt::LeaseToken;
use super::row::Holder;
use crate::ids::{ExternalReceipt, StepKey};

/// The right to run a step's payload and to write its receipt, until another takes it over.
///
/// The token inside never shows. A clone is the same right: a renewing connection needs one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub(super) key: StepKey,
    pub(super) token: LeaseToken,
    pub(super) holder: Holder,
    pub(super) receipt: ExternalReceipt,
    pub(super) execution_count: u32,
    pub(super) duration: Duration,
    pub(super) granted_at: Instant,
}

impl Lease {
    /// The step.
    pub fn key(&self) -> &StepKey {
        &self.key
    }

    /// What the step hands back once it is complete.
    pub fn external_receipt(&self) -> &ExternalReceipt {
        &self.receipt
    }

    /// How often the payload was allowed to start, this time included.
    pub fn execution_count(&self) -> u32 {
        self.execution_count
    }

    /// How long the lease is from a grant or a renewal on.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// When to renew: at a third of the lease.
    pub fn renew_interval(&self) -> Duration {
        self.duration / 3
    }

    /// A moment of the host's monotonic clock before the claim was sent. The lease is over, on the
    /// database's clock, no earlier than [`Lease::duration`] after it, if both run at the same pace.
    pub fn granted_at(&self) -> Instant {
        self.granted_at
    }

    /// The session that runs the payload: `CONNECTION_ID()`.
    pub fn session_id(&self) -> u64 {
        self.holder.session_id
    }

    /// Text for the leading comment of every statement of the payload, so that the session can be
    /// told from others in the server's process list. It grants nothing.
    pub fn statement_marker(&self) -> &str {
        &self.holder.marker
    }
}
