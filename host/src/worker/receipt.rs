//! The receipt that a compensation presupposes.
//!
//! The ledger answers a compensation of what never ran with success: nothing is to be done. Of a step
//! that the outbox knows as applied that answer is wrong: its receipt is lost, and what it did is still
//! there. So its receipt is looked for before the compensation is delivered, and nothing is written.

use std::time::Duration;

use super::Shared;
use super::delivery::waits;
use crate::clock::jittered;
use crate::executor::{Missing, ReceiptUnread};
use crate::outbox::{Claim, FORWARD_RECEIPT_LOST, Reason, Report};
use crate::text::with_causes;

/// How long a compensation waits when the ledger could not be read.
const UNREAD_WAIT: Duration = Duration::from_secs(15);

/// Why the compensation is not to be delivered; none when nothing speaks against it.
pub(super) async fn missing(shared: &Shared, claim: &Claim) -> Option<Report> {
    let forward = claim.receipt_needed()?;
    match shared.registry.has_receipt(claim.executor(), forward).await {
        Ok(None | Some(true)) => None,
        Ok(Some(false)) => {
            let key = &claim.step().key;
            let message = format!(
                "step `{forward}` was applied and its receipt is gone from the ledger, so `{key}` \
                 would do nothing: restore the receipt from a backup, or undo by hand what the step \
                 did if it is still there; then `tollgate outbox retry {key}`"
            );
            tracing::error!(code = FORWARD_RECEIPT_LOST, "{message}");
            Some(Report::Lost(Reason::new(FORWARD_RECEIPT_LOST, &message)))
        }
        Err(ReceiptUnread::Target(error)) => {
            let (code, message) = (error.code(), with_causes(&error));
            shared.readiness.not_opened(Missing::new(code, &message, error.help()));
            Some(waits(Reason::new(code, &message)))
        }
        Err(error @ ReceiptUnread::Ledger(_)) => Some(Report::Unknown {
            reason: Reason::new(error.code(), &error.to_string()),
            retry_after: jittered(UNREAD_WAIT),
        }),
    }
}
