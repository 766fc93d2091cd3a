//! Keeping a lease, knowing that one still has it, and giving it back.

use super::fault::LedgerFault;
use super::inspection::own_row;
use super::lease::Lease;
use super::sql::{TABLE, UNIQUE_KEY, literal};
use super::state::{Answer, Event, Executions, LeaseTime, Previous, State, Whose, transition};
use super::{Ledger, sql, writes};
use crate::blame::Blame;
use crate::fault_points::{Point, at};
use crate::metrics::{RenewedLease, metrics};
use crate::session::Columns;
use crate::target::TargetConnection;

/// The lease was not prolonged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenewError {
    /// The step is over, by this lease or another: there is nothing to prolong.
    #[error("the step is over, so its lease is not renewed")]
    Over,
    /// Another holder has the row.
    #[error("the lease of the step was lost before it was renewed")]
    LeaseLost,
    /// The row is gone.
    #[error("the receipt of the step is gone from the ledger")]
    RowLost,
    /// The server refused, or its answer was lost. The lease goes on until its deadline.
    #[error("the lease could not be renewed")]
    Fault(#[from] LedgerFault),
}

/// The lease is not, or not known to be, this holder's any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Its deadline has passed; another holder may take the step over at any moment.
    #[error("the lease of the step is over")]
    LeaseOver,
    /// Another holder has the row.
    #[error("the lease of the step was lost")]
    LeaseLost,
    /// The row is gone.
    #[error("the receipt of the step is gone from the ledger")]
    RowLost,
    /// The server refused, or its answer was lost.
    #[error("it could not be checked who holds the lease")]
    Fault(#[from] LedgerFault),
}

macro_rules! hold_codes {
    ($error:ident, $ended:ident, $code:literal) => {
        impl $error {
            /// The stable code.
            pub const fn code(&self) -> &'static str {
                match self {
                    Self::$ended => $code,
                    Self::LeaseLost => "lease-lost",
                    Self::RowLost => "receipt-lost",
                    Self::Fault(fault) => fault.code(),
                }
            }

            /// Who can do something about it.
            pub const fn blame(&self) -> Blame {
                match self {
                    Self::$ended | Self::LeaseLost => Blame::Server,
                    Self::RowLost => Blame::Operator,
                    Self::Fault(fault) => fault.blame(),
                }
            }

            /// What to do about it.
            pub const fn help(&self) -> &'static str {
                match self {
                    Self::$ended | Self::LeaseLost => {
                        "deliver the step again: the receipt tells what took effect"
                    }
                    Self::RowLost => {
                        "find out who deleted from the ledger before delivering the step again"
                    }
                    Self::Fault(fault) => fault.help(),
                }
            }
        }
    };
}

hold_codes!(RenewError, Over, "step-over");
hold_codes!(HoldError, LeaseOver, "lease-over");

impl Ledger {
    /// Prolongs the lease from the database's now, and shows how many statements are done.
    ///
    /// Called on a second connection: in the payload's session it would lock the row until the payload
    /// commits, and a statement that runs long cannot be interrupted for it.
    ///
    /// # Errors
    ///
    /// Only [`RenewError::Fault`] is worth another try.
    pub async fn renew(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
        statements_done: u32,
    ) -> Result<(), RenewError> {
        let renewed = self.renew_uncounted(connection, lease, statements_done).await;
        metrics().renewal(
            RenewedLease::Receipt,
            match &renewed {
                Ok(()) => "renewed",
                Err(RenewError::Fault(_)) => "error",
                Err(_) => "lost",
            },
        );
        renewed
    }

    async fn renew_uncounted(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
        statements_done: u32,
    ) -> Result<(), RenewError> {
        let bound = self.options().statement_timeout;
        let statement = writes::extend(&lease.key, &lease.token, lease.duration, statements_done);
        match at(Point::Renew, sql::execute(connection, bound, &statement)).await {
            Ok(1) => return Ok(()),
            Err(fault) if fault.is_table_lost() => return Err(RenewError::RowLost),
            answer => answer?,
        };
        let (state, _) = own_row(self, connection, lease, "").await?;
        Err(match transition(state, Event::Renew).answer {
            Answer::CompletedByMe | Answer::CompletedByOther => RenewError::Over,
            Answer::RowLost => RenewError::RowLost,
            _ => RenewError::LeaseLost,
        })
    }

    /// Ends the lease at once, for a holder that goes on no further: the next delivery need not wait
    /// for its deadline.
    ///
    /// Called when [`Ledger::inspect`] saw the holder's session gone. To everyone else it is as if the
    /// lease's time had passed.
    ///
    /// # Errors
    ///
    /// There is nothing to give back, or it is not known whether it was.
    pub async fn give_back(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<(), RenewError> {
        let bound = self.options().statement_timeout;
        let statement = writes::give_back(&lease.key, &lease.token);
        match sql::execute(connection, bound, &statement).await? {
            1 => Ok(()),
            _ => Err(RenewError::LeaseLost),
        }
    }

    /// Sets the lease's session for its payload and checks the lease, in one round trip; with it goes a
    /// look of the caller's, if any: a query, whose rows are given back. From here on what the payload's DML
    /// does stays uncommitted.
    ///
    /// # Errors
    ///
    /// Nothing of the payload must be sent.
    pub(crate) async fn begin(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
        look: Option<&str>,
    ) -> Result<Vec<Columns>, HoldError> {
        let bound = self.options().statement_timeout;
        let (setting, query) = (connection.payload_setting(), held_query(lease));
        let sent = async {
            let statements: Vec<&str> = look.into_iter().chain([&*setting, &*query]).collect();
            let mut answers = sql::several(connection, bound, &statements).await;
            let seen = if look.is_some() { answers.rows()? } else { Vec::new() };
            answers.changed()?;
            Ok::<_, LedgerFault>((seen, self.seen_held(connection, lease, answers.rows()).await?))
        };
        let (seen, state) = at(Point::HoldCheck, sent).await?;
        held(state).map(|()| seen)
    }

    /// Checks, before a statement of the payload is sent, that the lease is still this holder's and open.
    ///
    /// It reads without a lock, so the payload's own session may ask inside its transaction.
    ///
    /// # Errors
    ///
    /// The statement must not be sent.
    pub async fn check_held(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
    ) -> Result<(), HoldError> {
        let bound = self.options().statement_timeout;
        let asked = async {
            let answer = sql::rows(connection, bound, &held_query(lease)).await;
            self.seen_held(connection, lease, answer).await
        };
        held(at(Point::HoldCheck, asked).await?)
    }

    /// What [`held_query`] answered; without a row it is found out what became of the lease.
    async fn seen_held(
        &self,
        connection: &mut TargetConnection,
        lease: &Lease,
        answer: Result<Vec<Columns>, LedgerFault>,
    ) -> Result<State, LedgerFault> {
        let rows = match answer {
            Err(fault) if fault.is_table_lost() => Vec::new(),
            answer => answer?,
        };
        let Some(row) = rows.first() else {
            return Ok(own_row(self, connection, lease, "").await?.0);
        };
        let lease = if row.flag("lease_over")? { LeaseTime::Over } else { LeaseTime::Open };
        let (previous, executions) = (Previous::Gone, Executions::BelowBound);
        Ok(State::Running { whose: Whose::Mine, lease, previous, executions })
    }
}

/// The row while it is the lease's, and no more of it than that: it is asked for before every statement
/// of a payload.
fn held_query(lease: &Lease) -> String {
    format!(
        "SELECT r.lease_deadline <= UTC_TIMESTAMP(6) AS lease_over FROM {TABLE} r \
         FORCE INDEX ({UNIQUE_KEY}) WHERE r.step_idempotency_key = {} AND r.status = 'RUNNING' \
         AND r.lease_token = {} AND r.session_id = {} AND r.session_marker = {} AND r.server_id = {}",
        literal(lease.key.as_str()),
        literal(lease.token.as_str()),
        lease.holder.session_id,
        literal(&lease.holder.marker),
        literal(&lease.holder.server),
    )
}

fn held(state: State) -> Result<(), HoldError> {
    match transition(state, Event::Check).answer {
        Answer::Held => Ok(()),
        Answer::LeaseOver => Err(HoldError::LeaseOver),
        Answer::RowLost => Err(HoldError::RowLost),
        _ => Err(HoldError::LeaseLost),
    }
}
