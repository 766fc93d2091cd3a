//! What is known here of the step that a compensation takes back.

use super::fault::OutboxFault;
use super::sql::{self, TABLE};
use crate::control::ControlConnection;
use crate::ids::{ExecutorCode, StepKey};
use crate::plan::Step;

/// The code of a compensation whose forward step is APPLIED here and has no receipt any more. The
/// ledger alone would take the step for one that never ran, and its compensation for done.
pub const FORWARD_RECEIPT_LOST: &str = "forward-receipt-lost";

/// The forward step of a compensation that must have a receipt: it was applied by an executor that has
/// effects, and no person has said yet that it is known to be gone.
///
/// A step that was set aside with [`FORWARD_RECEIPT_LOST`] is claimed again only when a person asks for
/// it, so the code that is still in the row is that person's word.
pub(super) async fn receipt_needed(
    connection: &mut ControlConnection,
    step: &Step,
    executor: &ExecutorCode,
    last_error_code: Option<&str>,
) -> Result<Option<StepKey>, OutboxFault> {
    let Some(reversed) = &step.reverses else { return Ok(None) };
    if *executor == ExecutorCode::dry_run_v1() || last_error_code == Some(FORWARD_RECEIPT_LOST) {
        return Ok(None);
    }
    let query = format!(
        "SELECT id FROM {TABLE} WHERE step_idempotency_key = ? AND direction = 'FORWARD' \
         AND status = 'APPLIED'"
    );
    let found = sql::rows(connection, &query, vec![reversed.key.as_str().into()]).await?;
    Ok((!found.is_empty()).then(|| reversed.key.clone()))
}
