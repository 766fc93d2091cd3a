//! Finding out what took effect after an answer was lost.

use super::Ledger;
use super::fault::LedgerFault;
use super::lease::Lease;
use super::row::{LedgerRow, selection};
use super::sql::{self, TABLE, UNIQUE_KEY, literal};
use super::state::{Answer, Event, Previous, State, transition};
use super::takeover::{self, Remains};
use super::view::own_state;
use crate::blame::Blame;
use crate::fault_points::{Point, at};
use crate::ids::ExternalReceipt;
use crate::planted::{Bug, is_planted};
use crate::target::TargetConnection;

/// What became of a run whose answer was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// The completion was committed by this lease.
    Completed(ExternalReceipt),
    /// It was not: the row is as the claim left it, and the lease's session is gone with everything it
    /// had not committed. [`Ledger::fail`] may record that.
    NotCommitted,
    /// This lease's failure is recorded.
    FailureRecorded,
    /// Another holder completed the step.
    CompletedByOther(ExternalReceipt),
    /// Another holder has the row.
    LeaseLost,
    /// The row is gone.
    RowLost,
    /// The lease's session is still on the server: look again later.
    Unsettled(Remains),
}

/// The receipt could not be inspected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipt could not be inspected")]
pub struct InspectError(#[from] LedgerFault);

impl InspectError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        self.0.code()
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        self.0.blame()
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        self.0.help()
    }
}

impl Ledger {
    /// Finds out, on a new connection, what became of a lease's run after an answer was lost.
    ///
    /// The lease's session is killed and waited for first, since a COMMIT on its way could still arrive
    /// after a look at the row. The read takes a lock, so that it sees the last word of the writer.
    ///
    /// # Errors
    ///
    /// Nothing is known yet; look again.
    pub async fn inspect(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<Inspection, InspectError> {
        let options = self.options();
        let is_former = connection.session_id() != lease.session_id();
        if is_former && !is_planted(Bug::InspectWithoutKill) {
            let remains = takeover::clear(
                connection,
                &lease.holder,
                options.statement_timeout,
                options.previous_session_wait,
            )
            .await?;
            if let Some(remains) = remains {
                return Ok(Inspection::Unsettled(remains));
            }
        }
        let read = own_row(self, connection, lease, " FOR UPDATE");
        let (state, row) = at(Point::Inspect, read).await?;
        let receipt = || {
            let recorded = row.as_ref().and_then(|row| row.receipt.external_receipt.clone());
            recorded.unwrap_or_else(|| lease.receipt.clone())
        };
        Ok(match transition(state, Event::Inspect).answer {
            Answer::CompletedByMe => Inspection::Completed(receipt()),
            Answer::StillMine => Inspection::NotCommitted,
            Answer::FailureRecorded => Inspection::FailureRecorded,
            Answer::CompletedByOther => Inspection::CompletedByOther(receipt()),
            Answer::RowLost => Inspection::RowLost,
            _ => Inspection::LeaseLost,
        })
    }
}

/// The lease's row as its holder sees it. `lock` is appended to the query.
pub(super) async fn own_row(
    ledger: &Ledger,
    connection: &mut TargetConnection,
    lease: &Lease,
    lock: &str,
) -> Result<(State, Option<LedgerRow>), LedgerFault> {
    let query = format!(
        "SELECT {} FROM {TABLE} r FORCE INDEX ({UNIQUE_KEY}) WHERE r.step_idempotency_key = {}{lock}",
        selection("r"),
        literal(lease.key.as_str()),
    );
    let options = ledger.options();
    let rows = match sql::rows(connection, options.statement_timeout, &query).await {
        // A table that was dropped has lost this row like any other.
        Err(fault) if fault.is_table_lost() => Vec::new(),
        answer => answer?,
    };
    let Some(columns) = rows.first() else {
        return Ok((State::Absent { previous: Previous::Gone }, None));
    };
    let Some(row) = LedgerRow::read(columns, options.executions_max)? else {
        return Ok((State::Absent { previous: Previous::Gone }, None));
    };
    let state = own_state(
        &row,
        lease.token.as_str(),
        &lease.holder,
        row.presence(&lease.holder),
        row.executions(options.executions_max),
    );
    Ok((state, Some(row)))
}
