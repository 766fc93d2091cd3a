//! Claiming a step: read, ask the state machine, write conditionally, and read again when the row moved.

use std::time::{Duration, Instant};

use super::claim_error::{ClaimError, PendingClaim};
use super::counterpart::{busy_by, busy_opposite};
use super::fault::LedgerFault;
use super::lease::Lease;
use super::receipt::{LeaseToken, PLUGIN_VERSION_CHARS_MAX, Status};
use super::request::{Busy, BusyReason, Claim, ClaimRequest};
use super::row::{Holder, LEASE_SECONDS_MAX, LedgerRow};
use super::state::{Answer, Event, LeaseTime, State, Transition, Whose, Write, transition};
use super::takeover::{self, Remains};
use super::view::{TAKEN, View};
use super::{Ledger, session, sql, writes};
use crate::clock::{Clock, MonotonicClock, jittered};
use crate::fault_points::{Point, at};
use crate::ids::{Direction, ExternalReceipt, StepKey};
use crate::metrics::metrics;
use crate::planted::{Bug, is_planted};
use crate::target::TargetConnection;

/// How often a claim reads again after its write did not apply.
pub(super) const READS_MAX: u32 = 16;

/// The pause after a write that was rolled back for another transaction, cut at random.
const DEADLOCK_PAUSE: Duration = Duration::from_millis(50);

/// Longest advice to wait: a holder may end well before its deadline.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Advice to wait where no deadline tells.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Ledger {
    /// Asks to run a step.
    ///
    /// On [`Claim::Granted`] the claim is committed, nothing of an earlier holder runs on the server any
    /// more, and the lease belongs to this connection's session: the payload must run in it. The session
    /// is left with autocommit on.
    ///
    /// # Errors
    ///
    /// [`ClaimError::AnswerLost`] when the row may carry the claim all the same. After an error whose
    /// fault has an unknown effect the connection must be dropped.
    pub async fn claim(
        &self,
        connection: &mut TargetConnection,
        request: &ClaimRequest,
    ) -> Result<Claim, ClaimError> {
        self.claim_with(connection, request, LeaseToken::fresh()).await
    }

    /// Finds out, on a new connection, what came of a claim whose answer was lost, and goes on with it.
    ///
    /// The lost connection's session is killed and waited for first: a write of the claim that is still
    /// on its way there could otherwise arrive after this one ran something, and name a session on the
    /// row that the next holder would take for the one to end.
    ///
    /// # Errors
    ///
    /// As [`Ledger::claim`].
    pub async fn resume(
        &self,
        connection: &mut TargetConnection,
        request: &ClaimRequest,
        pending: PendingClaim,
    ) -> Result<Claim, ClaimError> {
        let PendingClaim { token, holder } = pending;
        let options = self.options();
        let (bound, wait) = (options.statement_timeout, options.previous_session_wait);
        if !is_planted(Bug::ResumeWithoutKill) {
            let cleared = takeover::clear(connection, &holder, bound, wait).await;
            match cleared {
                Ok(None) => {}
                Ok(Some(remains)) => return Ok(busy_previous(remains)),
                Err(fault) if fault.effect_is_unknown() => {
                    return Err(ClaimError::AnswerLost {
                        pending: PendingClaim { token, holder },
                        fault,
                    });
                }
                Err(fault) => return Err(ClaimError::Fault(fault)),
            }
        }
        self.claim_with(connection, request, token).await
    }

    async fn claim_with(
        &self,
        connection: &mut TargetConnection,
        request: &ClaimRequest,
        token: LeaseToken,
    ) -> Result<Claim, ClaimError> {
        check_request(request)?;
        let bound = self.options().statement_timeout;
        let holder = session::prepared(connection, bound).await.map_err(ClaimError::Shape)?;
        let claiming = Claiming { ledger: self, request, token, holder };
        match claiming.run(connection).await {
            Ok(claim) => {
                metrics().claim(claim.as_str());
                Ok(claim)
            }
            Err(Stop::Contended) => Err(ClaimError::Contended),
            Err(Stop::NotAsKept) => Err(ClaimError::NotAsKept),
            Err(Stop::Fault(fault)) if fault.is_lost_shape() => {
                session::forget(connection);
                self.check_shape(connection).await.map_err(ClaimError::Shape)?;
                Err(ClaimError::Fault(fault))
            }
            Err(Stop::Fault(fault)) if fault.effect_is_unknown() => {
                let Claiming { token, holder, .. } = claiming;
                Err(ClaimError::AnswerLost { pending: PendingClaim { token, holder }, fault })
            }
            Err(Stop::Fault(fault)) => Err(ClaimError::Fault(fault)),
        }
    }
}

fn check_request(request: &ClaimRequest) -> Result<(), ClaimError> {
    let length = request.identity.release.version.to_string().chars().count();
    if length > PLUGIN_VERSION_CHARS_MAX {
        return Err(ClaimError::PluginVersionTooLong { length });
    }
    let longest = Duration::from_secs(LEASE_SECONDS_MAX);
    if request.lease < Duration::from_secs(1) || request.lease > longest {
        return Err(ClaimError::LeaseOutOfBounds { lease: request.lease });
    }
    Ok(())
}

/// Why a claim stopped without an answer.
pub(super) enum Stop {
    Contended,
    NotAsKept,
    Fault(LedgerFault),
}

impl From<LedgerFault> for Stop {
    fn from(fault: LedgerFault) -> Self {
        Self::Fault(fault)
    }
}

/// One claim under way.
pub(super) struct Claiming<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) request: &'a ClaimRequest,
    pub(super) token: LeaseToken,
    pub(super) holder: Holder,
}

impl Claiming<'_> {
    async fn run(&self, connection: &mut TargetConnection) -> Result<Claim, Stop> {
        let mut is_locked = false;
        for _ in 0..READS_MAX {
            let sent_at = MonotonicClock.now();
            let view = self.read(connection).await?;
            let claim = transition(view.state, Event::Claim(view.fit));
            if is_locked
                && claim.answer == Answer::ClearPrevious
                && let Some(remains) = self.clear(connection, &view).await?
            {
                return Ok(busy_previous(remains));
            }
            let Some(write) = claim.write else {
                let around = match claim.answer {
                    Answer::Granted => self.opposite(connection).await?,
                    _ => None,
                };
                return self.answered(connection, &view, claim.answer, sent_at, around).await;
            };
            let turn = self.turned(&view);
            if turn.answer != Answer::Turned {
                if let Some(claim) = self.settle_turn(connection, &view, turn).await? {
                    return Ok(claim);
                }
                continue;
            }
            let sent_at = MonotonicClock.now();
            let written = match turn.write {
                None => self.write(connection, &view, write).await,
                Some(_) => self.write_turning(connection, &view, write).await,
            };
            match yielded(written).await {
                Ok(Written::Yes { opposite }) => {
                    return self.answered(connection, &view, claim.answer, sent_at, opposite).await;
                }
                Ok(Written::No) => {}
                // A holder that stopped between its completion and its COMMIT has the row locked. If
                // its lease is still over, it is ended first and the row is written then; the kill
                // undoes its completion, as losing its token would have.
                Err(fault) if fault.is_lock_wait() && !is_locked => is_locked = true,
                Err(fault) => return Err(fault.into()),
            }
        }
        Err(Stop::Contended)
    }

    fn bound(&self) -> Duration {
        self.ledger.options().statement_timeout
    }

    /// What a claim's answer means to the caller; earlier sessions are cleared on the way.
    async fn answered(
        &self,
        connection: &mut TargetConnection,
        view: &View,
        answer: Answer,
        sent_at: Instant,
        opposite: Option<StepKey>,
    ) -> Result<Claim, Stop> {
        if is_abandoned(view.state) && matches!(answer, Answer::Granted | Answer::ClearPrevious) {
            metrics().takeover();
        }
        if answer == Answer::Granted {
            return self.granted(connection, view, sent_at, opposite).await;
        }
        if answer == Answer::ClearPrevious {
            return self.clear_previous(connection, view).await;
        }
        let Some(row) = &view.row else {
            return Ok(busy_opposite(view, &self.request.key));
        };
        let recorded = Box::new(row.receipt.clone());
        Ok(match answer {
            Answer::AlreadySucceeded if row.receipt.status == Status::Pruned => {
                Claim::Pruned { recorded }
            }
            Answer::AlreadySucceeded => {
                let receipt = self.external_receipt();
                if row.receipt.execution_count == 0 {
                    Claim::NotApplicable(receipt, recorded)
                } else {
                    Claim::AlreadySucceeded(receipt, recorded)
                }
            }
            Answer::Busy => Claim::Busy(busy_lease(row)),
            Answer::IdentityMismatch => Claim::Mismatch { fields: view.differs.clone(), recorded },
            Answer::PinRefused => Claim::PinRefused { recorded },
            Answer::NeedsAttention => Claim::NeedsAttention { recorded },
            Answer::Superseded => {
                Claim::Superseded { by: row.receipt.counterpart.clone(), recorded }
            }
            _ => busy_opposite(view, &self.request.key),
        })
    }

    /// The row carries the token and the session. The other direction may have been claimed at the same
    /// moment: both look after their commit, so at least one sees the other and steps back.
    async fn granted(
        &self,
        connection: &mut TargetConnection,
        view: &View,
        sent_at: Instant,
        seen: Option<StepKey>,
    ) -> Result<Claim, Stop> {
        if let Some(key) = seen {
            let withdraw =
                writes::withdraw(&self.request.key, &self.token, "opposite-direction-running");
            sql::execute(connection, self.bound(), &withdraw).await?;
            return Ok(Claim::Busy(busy_by(key)));
        }
        let counted = matches!(view.state, State::Running { whose: Whose::Mine, .. });
        let before = view.row.as_ref().map_or(0, |row| row.receipt.execution_count);
        Ok(Claim::Granted(Lease {
            key: self.request.key.clone(),
            token: self.token.clone(),
            holder: self.holder.clone(),
            receipt: self.external_receipt(),
            execution_count: if counted { before } else { before + 1 },
            duration: self.request.lease,
            granted_at: sent_at,
        }))
    }

    /// The lease is ours, but sessions before us may still run something.
    async fn clear_previous(
        &self,
        connection: &mut TargetConnection,
        view: &View,
    ) -> Result<Claim, Stop> {
        let remains = self.clear(connection, view).await?;
        let event = if remains.is_none() { Event::PreviousGone } else { Event::PreviousRemains };
        let waiting = TAKEN;
        let Transition { write, answer } = transition(waiting, event);
        let sent_at = MonotonicClock.now();
        if write == Some(Write::Adopt) && answer == Answer::Granted {
            let adopt =
                writes::adopt(&self.request.key, &self.token, self.request.lease, &self.holder);
            let adopted = self.write_and_look(connection, &adopt);
            return match at(Point::Adopt, adopted).await? {
                Written::Yes { opposite } => {
                    self.granted(connection, view, sent_at, opposite).await
                }
                Written::No => Err(Stop::Contended),
            };
        }
        let give_back = writes::give_back(&self.request.key, &self.token);
        sql::execute(connection, self.bound(), &give_back).await?;
        let Some(remains) = remains else {
            return Err(Stop::Contended);
        };
        Ok(busy_previous(remains))
    }

    async fn clear(
        &self,
        connection: &mut TargetConnection,
        view: &View,
    ) -> Result<Option<Remains>, LedgerFault> {
        let rows = [view.row.as_ref(), view.counterpart.as_ref()];
        for row in rows.into_iter().flatten() {
            // The session of a step that is done may be at another one by now.
            let is_done = row.receipt.status == Status::Succeeded;
            let Some(holder) = row.holder.as_ref().filter(|it| !is_done && **it != self.holder)
            else {
                continue;
            };
            let wait = self.ledger.options().previous_session_wait;
            let remains = takeover::clear(connection, holder, self.bound(), wait).await?;
            if remains.is_some() {
                return Ok(remains);
            }
        }
        Ok(None)
    }

    async fn write(
        &self,
        connection: &mut TargetConnection,
        view: &View,
        write: Write,
    ) -> Result<Written, LedgerFault> {
        let statement = self.statement(view, write);
        at(Point::ClaimInsert, self.write_and_look(connection, &statement)).await
    }

    /// Sends a write, committed by itself, and behind it the look around.
    async fn write_and_look(
        &self,
        connection: &mut TargetConnection,
        statement: &str,
    ) -> Result<Written, LedgerFault> {
        let statements = [statement, &self.look_around()];
        let mut answers = sql::several(connection, self.bound(), &statements).await;
        if applied(answers.changed())? {
            Ok(Written::Yes { opposite: answers.row()?.value("opposite")? })
        } else {
            Ok(Written::No)
        }
    }

    /// The look around by itself, where nothing was written.
    async fn opposite(
        &self,
        connection: &mut TargetConnection,
    ) -> Result<Option<StepKey>, LedgerFault> {
        let row = sql::row(connection, self.bound(), &self.look_around()).await?;
        Ok(row.value("opposite")?)
    }

    /// The conditional statement of a claim's write.
    pub(super) fn statement(&self, view: &View, write: Write) -> String {
        let Self { request, token, holder, .. } = self;
        let holder = match write {
            Write::InsertWaiting | Write::TakeOverWaiting => None,
            _ => Some(holder),
        };
        match (&view.row, write) {
            (_, Write::Adopt) => writes::adopt(&request.key, token, request.lease, &self.holder),
            (None, _) => writes::insert(request, token, holder),
            (Some(row), _) => writes::take_over(row, request, token, holder),
        }
    }

    pub(super) fn external_receipt(&self) -> ExternalReceipt {
        ExternalReceipt::sql(&self.request.identity.environment, &self.request.key)
    }

    /// The direction in which the plugin must not be moving.
    pub(super) fn opposite_direction(&self) -> Direction {
        match self.request.identity.direction {
            Direction::Forward => Direction::Compensate,
            Direction::Compensate => Direction::Forward,
        }
    }
}

/// Whether another holder had the step, whose lease is over.
const fn is_abandoned(state: State) -> bool {
    matches!(state, State::Running { whose: Whose::Other, lease: LeaseTime::Over, .. })
}

/// Whether a write that names the row as read applied. A lost race shows as a duplicate key.
pub(super) fn applied(result: Result<u64, LedgerFault>) -> Result<bool, LedgerFault> {
    match result {
        Ok(rows) => Ok(rows == 1),
        Err(fault) if fault.is_duplicate_key() => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// What became of a claim's write.
pub(super) enum Written {
    /// The row is not as it was read.
    No,
    /// It applied and is committed. The other direction, seen after that: a step of the same plugin
    /// that runs.
    Yes { opposite: Option<StepKey> },
}

/// A write that was rolled back for another transaction did not apply: the row is read again, after
/// a pause that takes those who met out of step.
pub(super) async fn yielded(result: Result<Written, LedgerFault>) -> Result<Written, LedgerFault> {
    match result {
        Err(fault) if fault.is_deadlock() => {
            tracing::debug!(code = fault.code(), "a claim met another transaction");
            MonotonicClock.sleep(jittered(DEADLOCK_PAUSE)).await;
            Ok(Written::No)
        }
        result => result,
    }
}

fn busy_previous(remains: Remains) -> Claim {
    Claim::Busy(Busy {
        reason: BusyReason::PreviousSession(remains),
        lease_deadline: None,
        retry_after: RETRY_AFTER,
    })
}

fn busy_lease(row: &LedgerRow) -> Busy {
    Busy {
        reason: BusyReason::LeaseHeld,
        lease_deadline: Some(row.receipt.lease_deadline.clone()),
        retry_after: row.lease_left.clamp(Duration::from_millis(100), RETRY_AFTER_MAX),
    }
}
