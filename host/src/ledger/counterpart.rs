//! Forward steps and their compensations.
//!
//! The forward row is the arbiter of both directions: it says which compensation was begun, and it is
//! written in the transaction that claims that compensation. A forward step that was turned never runs
//! again; one that never ran gets a row that bars it, so that a late delivery finds it barred.

use super::claim::{Claiming, Stop, Written, applied, yielded};
use super::fault::LedgerFault;
use super::receipt::{IdentityField, StepIdentity};
use super::request::{Busy, BusyReason, Claim, Counterpart};
use super::row::LedgerRow;
use super::state::{
    Answer, Compensation, Event, Executions, Fit, Previous, State, Transition, Write, transition,
};
use super::view::{View, own_state};
use super::{sql, writes};
use crate::fault_points::{Point, at};
use crate::ids::{Direction, StepKey};
use crate::target::TargetConnection;

impl Claiming<'_> {
    /// What the machine says about the forward row of the compensation that is being claimed.
    pub(super) fn turned(&self, view: &View) -> Transition {
        let Some(counterpart) = self.turning() else {
            return Transition { write: None, answer: Answer::Turned };
        };
        let fit = match &view.counterpart {
            Some(forward) if !self.forward_differs(counterpart, forward).is_empty() => {
                Fit::OtherIdentity
            }
            _ => Fit::Same,
        };
        transition(self.forward_state(view.counterpart.as_ref()), Event::Turn(fit))
    }

    fn turning(&self) -> Option<&Counterpart> {
        let compensates = self.request.identity.direction == Direction::Compensate;
        self.request.counterpart.as_ref().filter(|_| compensates)
    }

    fn forward_state(&self, forward: Option<&LedgerRow>) -> State {
        let Some(row) = forward else {
            return State::Absent { previous: Previous::Gone };
        };
        let previous = row.presence(&self.holder);
        match &row.receipt.counterpart {
            Some(begun) => State::Turned {
                compensation: Compensation::Running,
                by_me: *begun == self.request.key,
                previous,
            },
            None => {
                own_state(row, self.token.as_str(), &self.holder, previous, Executions::BelowBound)
            }
        }
    }

    fn forward_differs(
        &self,
        counterpart: &Counterpart,
        forward: &LedgerRow,
    ) -> Vec<IdentityField> {
        let expected = StepIdentity {
            direction: Direction::Forward,
            content_hash: counterpart.content_hash,
            ..self.request.identity.clone()
        };
        expected.differences(&forward.receipt.identity)
    }

    /// Answers a compensation whose forward step cannot be turned; `None`: read again.
    pub(super) async fn settle_turn(
        &self,
        connection: &mut TargetConnection,
        view: &View,
        turn: Transition,
    ) -> Result<Option<Claim>, Stop> {
        if turn.write == Some(Write::TurnAbsent) {
            // The next read finds the compensation recorded as done.
            yielded(self.write_not_applicable(connection).await).await?;
            return Ok(None);
        }
        let Some(forward) = &view.counterpart else {
            return Ok(None);
        };
        let recorded = Box::new(forward.receipt.clone());
        Ok(Some(match turn.answer {
            Answer::IdentityMismatch => {
                Claim::Mismatch { fields: vec![IdentityField::Counterpart], recorded }
            }
            _ => Claim::Busy(Busy {
                lease_deadline: Some(forward.receipt.lease_deadline.clone()),
                retry_after: forward.lease_left,
                ..busy_by(forward.receipt.key.clone())
            }),
        }))
    }

    /// Claims the compensation and turns its forward row, both or neither.
    pub(super) async fn write_turning(
        &self,
        connection: &mut TargetConnection,
        view: &View,
        write: Write,
    ) -> Result<Written, LedgerFault> {
        let Some(forward) = &view.counterpart else {
            return Ok(Written::No);
        };
        let statements = [writes::turn(forward, &self.request.key), self.statement(view, write)];
        self.all_or_none(connection, &statements).await
    }

    async fn write_not_applicable(
        &self,
        connection: &mut TargetConnection,
    ) -> Result<Written, LedgerFault> {
        let Some(counterpart) = self.turning() else {
            return Ok(Written::No);
        };
        let statements = [
            writes::insert_barred(self.request, counterpart),
            writes::insert_not_applicable(self.request, &self.token),
        ];
        self.all_or_none(connection, &statements).await
    }

    /// Both are sent at once, whatever becomes of the first: only when both applied they are committed.
    async fn all_or_none(
        &self,
        connection: &mut TargetConnection,
        [first, second]: &[String; 2],
    ) -> Result<Written, LedgerFault> {
        let bound = self.ledger.options().statement_timeout;
        let statements = ["START TRANSACTION", first, second];
        let mut answers = sql::several(connection, bound, &statements).await;
        answers.changed()?;
        for _ in 0..2 {
            let written = applied(answers.changed());
            if matches!(written, Ok(true)) {
                continue;
            }
            if !written.as_ref().is_err_and(LedgerFault::effect_is_unknown) {
                sql::execute(connection, bound, "ROLLBACK").await?;
            }
            return written.map(|_| Written::No);
        }
        let commit = async {
            let look = self.look_around();
            let mut answers = sql::several(connection, bound, &["COMMIT", &look]).await;
            answers.changed()?;
            Ok(Written::Yes { opposite: answers.row()?.value("opposite")? })
        };
        at(Point::ClaimCommit, commit).await
    }
}

/// Busy: the plugin is moving in the other direction.
pub(super) fn busy_by(key: StepKey) -> Busy {
    Busy {
        reason: BusyReason::OppositeRunning { key },
        lease_deadline: None,
        retry_after: super::claim::RETRY_AFTER,
    }
}

/// Busy by whatever the view shows to be in the way.
pub(super) fn busy_opposite(view: &View, own: &StepKey) -> Claim {
    let by = view.row.as_ref().and_then(|row| row.receipt.counterpart.clone());
    Claim::Busy(busy_by(view.opposite.clone().or(by).unwrap_or_else(|| own.clone())))
}
