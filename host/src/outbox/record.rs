//! Writing down what came of a delivery, while its claim is held.

use mysql_async::Value;

use super::Outbox;
use super::claim::Claim;
use super::fault::{OutboxFault, Runs};
use super::report::{Report, Settlement, settle};
use super::sql::{self, TABLE, microseconds, own_token};
use super::status::{Event, Status};
use crate::control::ControlConnection;
use crate::fault_points::{Point, at};
use crate::ids::ExternalReceipt;
use crate::planted::Bug;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The step's status now.
    pub status: Status,
    /// Whether the next step of its plan became due.
    pub promoted: bool,
}

/// The claim was lost: its lease ended and another worker has the row, or the row is in another
/// state. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the claim on the step was lost to another worker")]
pub struct ClaimLost;

impl Outbox {
    /// Records a report under its claim; the same transaction makes the next step of the plan due
    /// when this one was applied. `Ok(Err(ClaimLost))` when the claim is not held any more.
    ///
    /// Repeat it after a fault: what was written already is recognised by the claim's token.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should: the report may have been written.
    pub async fn record(
        &self,
        connection: &mut ControlConnection,
        claim: &Claim,
        report: &Report,
    ) -> Result<Result<Recorded, ClaimLost>, OutboxFault> {
        let settlement = settle(report, claim.failure_count, self.options.attempts_max);
        let Some(status) = Status::Claimed.next(settlement.event) else {
            return Ok(Err(ClaimLost));
        };
        let mut runs = Runs::default();
        loop {
            let written = write_once(connection, claim, &settlement, status);
            match at(Point::OutboxRecord, written).await {
                Ok(Some(promoted)) => return Ok(Ok(Recorded { status, promoted })),
                Ok(None) => return was_recorded(connection, claim).await,
                Err(fault) if runs.again(&fault).await => {}
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// The whole small transaction.
async fn write_once(
    connection: &mut ControlConnection,
    claim: &Claim,
    settlement: &Settlement,
    status: Status,
) -> Result<Option<bool>, OutboxFault> {
    sql::begin(connection).await?;
    let written = write(connection, claim, settlement, status).await;
    sql::end(connection, written).await
}

/// Writes the row and promotes the next one; none when the claim is not held.
async fn write(
    connection: &mut ControlConnection,
    claim: &Claim,
    settlement: &Settlement,
    status: Status,
) -> Result<Option<bool>, OutboxFault> {
    let reason = settlement.reason.as_ref();
    let completed = if matches!(settlement.event, Event::Apply | Event::Overtake) {
        "UTC_TIMESTAMP(6)"
    } else {
        "NULL"
    };
    let statement = format!(
        "UPDATE {TABLE} SET status = ?, failure_count = ?, lost_count = 0, \
         attempt_count = attempt_count - ?, \
         not_before = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, lease_deadline = NULL, \
         external_receipt = ?, last_error_code = COALESCE(?, last_error_code), \
         last_error = COALESCE(?, last_error), \
         updated_at = UTC_TIMESTAMP(6), completed_at = {completed} \
         WHERE id = ? AND status = 'CLAIMED' AND {}",
        own_token(Bug::RecordWithoutToken)
    );
    let values: Vec<Value> = vec![
        status.as_str().into(),
        settlement.failure_count.into(),
        settlement.undelivered.into(),
        microseconds(settlement.delay),
        settlement.receipt.as_ref().map(ExternalReceipt::as_str).into(),
        reason.map(|reason| reason.code.as_str()).into(),
        reason.map(|reason| reason.message.as_str()).into(),
        claim.id.into(),
        claim.token.as_str().into(),
    ];
    if sql::change(connection, &statement, values).await? == 0 {
        return Ok(None);
    }
    if settlement.event != Event::Apply {
        return Ok(Some(false));
    }
    let statement = format!(
        "UPDATE {TABLE} SET status = 'PENDING', not_before = UTC_TIMESTAMP(6), \
         updated_at = UTC_TIMESTAMP(6) \
         WHERE plan_code = ? AND direction = ? AND position = ? AND status = 'WAITING'"
    );
    let next = claim.position.saturating_add(1);
    let values =
        vec![claim.plan().as_str().into(), claim.step().direction.as_str().into(), next.into()];
    Ok(Some(sql::change(connection, &statement, values).await? == 1))
}

/// An earlier write of the same claim may have taken place without an answer: then the row has the
/// claim's token, and is not claimed any more.
async fn was_recorded(
    connection: &mut ControlConnection,
    claim: &Claim,
) -> Result<Result<Recorded, ClaimLost>, OutboxFault> {
    let query = format!("SELECT status FROM {TABLE} WHERE id = ? AND lease_token = ?");
    let values = vec![claim.id.into(), claim.token.as_str().into()];
    let found = sql::rows(connection, &query, values).await?;
    let Some(row) = found.first() else {
        return Ok(Err(ClaimLost));
    };
    // Whether the next step was promoted is not known any more; asking for work finds out.
    Ok(Ok(Recorded { status: row.required("status")?, promoted: true }))
}
