//! What a worker does next: `tollgate::ledger`'s claim and `sql-jdbc:v1`'s run, restated step by step.
//!
//! Each move is one round trip. Where an answer can be lost after its effect, the move says which.

use tollgate::ledger::state::{Answer, Event, Fit, Write, transition};
use tollgate::planted::{Bug, is_planted};

use crate::world::{
    Breach, Doing, EXECUTIONS_MAX, Payload, Phase, SessionId, Side, Underway, World,
};
use crate::writes::{TAKEN, Written};

/// Whether the answer to something that took effect was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It was.
    Heard,
    /// The connection broke first.
    Lost,
    /// The connection broke even before it took effect, and it still may.
    Late,
}

/// One step of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Move {
    /// It is handed the step, connects, and reads.
    Deliver,
    /// It reads, the first time on a new connection or once more.
    Read,
    /// Its claim's write is carried out.
    Write(Reply),
    /// It kills the sessions it waits for.
    Kill,
    /// It sees them gone and puts its session on the row.
    Adopt(Reply),
    /// It gives up waiting for them.
    GiveUp,
    /// It looks for the other direction after its claim, and undoes it when there is one.
    LookAround(Reply),
    /// It checks its lease.
    Check,
    /// It sends the statement.
    Send,
    /// It renews its lease beside that.
    Renew,
    /// It hears the answer to its statement or its COMMIT.
    Hear,
    /// It completes the receipt in its transaction.
    Complete,
    /// It sends COMMIT.
    Commit,
    /// It rolls back and records the failure.
    Fail(Reply),
    /// On a new connection, it looks at what became of its run.
    Inspect,
    /// Its connection breaks.
    Lose,
    /// It dies.
    Crash,
}

impl Move {
    /// Every move.
    pub const ALL: [Self; 25] = [
        Self::Deliver,
        Self::Read,
        Self::Write(Reply::Heard),
        Self::Write(Reply::Lost),
        Self::Write(Reply::Late),
        Self::Kill,
        Self::Adopt(Reply::Heard),
        Self::Adopt(Reply::Lost),
        Self::Adopt(Reply::Late),
        Self::GiveUp,
        Self::LookAround(Reply::Heard),
        Self::LookAround(Reply::Lost),
        Self::LookAround(Reply::Late),
        Self::Check,
        Self::Send,
        Self::Renew,
        Self::Hear,
        Self::Complete,
        Self::Commit,
        Self::Fail(Reply::Heard),
        Self::Fail(Reply::Lost),
        Self::Fail(Reply::Late),
        Self::Inspect,
        Self::Lose,
        Self::Crash,
    ];
}

impl World {
    /// The world after the move; none when the worker cannot make it.
    pub(super) fn take(mut self, payload: Payload, worker: usize, step: Move) -> Option<Self> {
        let phase = self.workers[worker].phase;
        match (step, phase) {
            (Move::Deliver, Phase::Idle) => {
                let token = self.fresh_token();
                self.workers[worker].token = Some(token);
                self.open(worker, token)?;
                self.read(worker);
            }
            (Move::Deliver, _) | (_, Phase::Idle | Phase::Absent) => return None,
            (Move::Crash, _) => self.drop_delivery(worker),
            (Move::Lose, phase) => {
                // A claim that breaks before its write took effect only reads again: nothing new.
                let is_new = !phase.is_claim() || self.connected(worker).is_none();
                is_new.then_some(())?;
                self.lose(worker)?;
            }
            (Move::Kill, Phase::Clearing { named, killed: false }) => {
                self.connected(worker)?;
                named.into_iter().flatten().for_each(|id| self.session_mut(id).killed = true);
                self.workers[worker].phase = Phase::Clearing { named, killed: true };
            }
            (Move::Kill, Phase::Settling { old: Some(old), killed: false, fails }) => {
                self.connected(worker)?;
                self.session_mut(old).killed = true;
                let old = Some(old);
                self.workers[worker].phase = Phase::Settling { old, killed: true, fails };
            }
            (Move::Kill, Phase::Resuming { old: Some(old), killed: false }) => {
                self.connected(worker)?;
                self.session_mut(old).killed = true;
                self.workers[worker].phase = Phase::Resuming { old: Some(old), killed: true };
            }
            (Move::Renew, Phase::Checking | Phase::Sending | Phase::Waiting) => {
                self.renew(worker)?;
            }
            (step, phase) => {
                let session = self.connected(worker)?;
                if phase.is_claim() {
                    self.claim(worker, step, phase)?;
                } else {
                    self.run(payload, worker, session, step, phase)?;
                }
            }
        }
        Some(self)
    }

    fn claim(&mut self, worker: usize, step: Move, phase: Phase) -> Option<()> {
        match (step, phase) {
            (Move::Read, Phase::Reading) => self.read(worker),
            (Move::Read, Phase::Resuming { old, .. }) => {
                (old.is_none() || is_planted(Bug::ResumeWithoutKill)).then_some(())?;
                self.read(worker);
            }
            (Move::GiveUp, Phase::Resuming { old: Some(_), killed: true }) => self.close(worker),
            (Move::Kill, Phase::Writing { .. }) => self.end_who_locks(worker)?,
            (Move::Write(reply), Phase::Writing { .. }) => self.write_claim(worker, reply)?,
            (Move::Adopt(reply), Phase::Clearing { named, killed }) => {
                let may_go_on =
                    named == [None; 2] || (killed && is_planted(Bug::TakeoverWithoutWaiting));
                may_go_on.then_some(())?;
                self.adopt(worker, reply)?;
            }
            (Move::GiveUp, Phase::Clearing { named, killed: true }) if named != [None; 2] => {
                let write = transition(TAKEN, Event::PreviousRemains).write?;
                if self.write(worker, write, false) == Written::Waits {
                    return None;
                }
                self.close(worker);
            }
            (Move::LookAround(reply), Phase::Granted) => {
                if self.opposite_runs(worker) {
                    self.withdraw(worker, reply)?;
                } else {
                    (reply == Reply::Heard).then_some(())?;
                    self.workers[worker].phase = Phase::Checking;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads, asks the machine, and says what is to be written.
    fn read(&mut self, worker: usize) {
        let said = transition(self.sight(worker), Event::Claim(self.fit(worker)));
        let named = self.named(worker);
        let Some(write) = said.write else {
            match said.answer {
                Answer::Granted => self.workers[worker].phase = Phase::Granted,
                Answer::ClearPrevious => {
                    self.workers[worker].phase = Phase::Clearing { named, killed: false };
                }
                _ => self.close(worker),
            }
            return;
        };
        let mut phase = Phase::Writing { write, turn: None, named, fresh: [true; 2] };
        if self.workers[worker].side == Side::Compensation {
            let forward = transition(self.forward_sight(worker), Event::Turn(Fit::Same));
            phase = match (forward.answer, forward.write) {
                (Answer::Turned, turn) => Phase::Writing { write, turn, named, fresh: [true; 2] },
                (_, Some(bar)) => {
                    Phase::Writing { write: bar, turn: None, named, fresh: [true; 2] }
                }
                (_, None) => return self.close(worker),
            };
        }
        self.workers[worker].phase = phase;
    }

    /// Carries out the claim's write: both rows or neither.
    fn write_claim(&mut self, worker: usize, reply: Reply) -> Option<()> {
        let Phase::Writing { write, turn, named, fresh } = self.workers[worker].phase else {
            return None;
        };
        let (side, actor) = (self.workers[worker].side, self.actor(worker));
        let sent = Underway { write, turn, fresh, withdraws: false };
        if reply == Reply::Late {
            return self.leave_underway(worker, sent);
        }
        let written = self.would_both(actor, side, sent);
        if written == Written::Waits {
            return None;
        }
        let applies = written == Written::Yes;
        if applies {
            // First, so that what the machine sees of its own row is what it will see.
            if let Some(turn) = turn {
                self.apply(actor, Side::Forward, turn);
            }
            self.write(worker, write, fresh[side as usize]);
        }
        self.workers[worker].phase = match write {
            _ if !applies => Phase::Reading,
            Write::TurnAbsent => Phase::Reading,
            Write::InsertWaiting | Write::TakeOverWaiting => {
                Phase::Clearing { named, killed: false }
            }
            _ => Phase::Granted,
        };
        match reply {
            Reply::Heard => Some(()),
            // What did not apply is as good as never sent: that is `Lose`.
            _ => applies.then(|| self.lose(worker))?,
        }
    }

    /// The connection breaks, and what was sent last is still on its way.
    fn leave_underway(&mut self, worker: usize, sent: Underway) -> Option<()> {
        let session = self.workers[worker].session?;
        self.session_mut(session).underway = Some(sent);
        self.lose(worker)
    }

    /// The row is locked by a holder whose lease is over: it is ended, and the row read again.
    fn end_who_locks(&mut self, worker: usize) -> Option<()> {
        let Phase::Writing { write, turn, named, fresh } = self.workers[worker].phase else {
            return None;
        };
        let waits_for_others = matches!(write, Write::TakeOverWaiting | Write::InsertWaiting);
        (waits_for_others && named != [None; 2]).then_some(())?;
        let (side, actor) = (self.workers[worker].side, self.actor(worker));
        let sent = Underway { write, turn, fresh, withdraws: false };
        (self.would_both(actor, side, sent) == Written::Waits).then_some(())?;
        self.connected(worker)?;
        named.into_iter().flatten().for_each(|id| self.session_mut(id).killed = true);
        self.workers[worker].phase = Phase::Reading;
        Some(())
    }

    fn adopt(&mut self, worker: usize, reply: Reply) -> Option<()> {
        let said = transition(TAKEN, Event::PreviousGone);
        if reply == Reply::Late {
            return self.leave_underway(worker, Underway::own(said.write?));
        }
        match self.write(worker, said.write?, false) {
            Written::Waits => return None,
            Written::No if reply == Reply::Lost => return None,
            Written::No => self.close(worker),
            Written::Yes => self.workers[worker].phase = Phase::Granted,
        }
        if reply == Reply::Lost { self.lose(worker) } else { Some(()) }
    }

    /// Undoes a grant under which nothing ran.
    fn withdraw(&mut self, worker: usize, reply: Reply) -> Option<()> {
        let (side, actor) = (self.workers[worker].side, self.actor(worker));
        if reply == Reply::Late {
            let sent = Underway { withdraws: true, ..Underway::own(Write::RecordFailure) };
            return self.leave_underway(worker, sent);
        }
        match self.would(actor, side, Write::RecordFailure, false) {
            Written::Waits => return None,
            Written::No if reply == Reply::Lost => return None,
            Written::No => {}
            Written::Yes => {
                self.apply(actor, side, Write::RecordFailure);
                self.rows[side as usize].as_mut()?.executions -= 1;
            }
        }
        if reply == Reply::Lost {
            return self.lose(worker);
        }
        self.close(worker);
        Some(())
    }

    fn run(
        &mut self,
        payload: Payload,
        worker: usize,
        session: SessionId,
        step: Move,
        phase: Phase,
    ) -> Option<()> {
        match (step, phase) {
            (Move::Check, Phase::Checking) => match self.asked(worker, Event::Check) {
                Answer::Held => self.workers[worker].phase = Phase::Sending,
                Answer::LeaseOver => self.workers[worker].phase = Phase::Failing,
                _ => self.drop_delivery(worker),
            },
            (Move::Send, Phase::Sending) => self.send(worker, session),
            (Move::Hear, Phase::Waiting) => {
                self.workers[worker].phase = match self.session(session).doing {
                    Doing::Nothing => Phase::Completing,
                    Doing::Refused => Phase::Failing,
                    Doing::Statement | Doing::Commit => return None,
                };
                self.session_mut(session).doing = Doing::Nothing;
            }
            (Move::Complete, Phase::Completing) => self.complete(payload, worker, session)?,
            (Move::Commit, Phase::Committing) => {
                self.session_mut(session).doing = Doing::Commit;
                self.workers[worker].phase = Phase::Committed;
            }
            (Move::Hear, Phase::Committed) => {
                (self.session(session).doing == Doing::Nothing).then_some(())?;
                self.close(worker);
            }
            (Move::Fail(reply), Phase::Failing) => self.fail(worker, session, reply)?,
            (Move::Inspect, Phase::Settling { old, fails, .. }) => {
                (old.is_none() || is_planted(Bug::InspectWithoutKill)).then_some(())?;
                // A locking read.
                self.row(self.workers[worker].side)
                    .is_none_or(|row| row.lock.is_none())
                    .then_some(())?;
                match self.asked(worker, Event::Inspect) {
                    Answer::StillMine if fails => self.workers[worker].phase = Phase::Failing,
                    _ => self.close(worker),
                }
            }
            (Move::GiveUp, Phase::Settling { old: Some(_), killed: true, .. }) => {
                self.close(worker);
            }
            _ => return None,
        }
        Some(())
    }

    fn asked(&self, worker: usize, event: Event) -> Answer {
        transition(self.sight_of_lease(worker), event).answer
    }

    fn send(&mut self, worker: usize, session: SessionId) {
        let is_at_it = |(id, other): (usize, &Option<crate::world::Session>)| {
            other.is_some_and(|other| {
                id != usize::from(session)
                    && (matches!(other.doing, Doing::Statement | Doing::Commit)
                        || other.effect
                        || other.completes)
            })
        };
        if self.sessions.iter().enumerate().any(is_at_it) {
            self.note(Breach::TwoAtOnce);
        }
        let side = self.workers[worker].side;
        self.data.starts[side as usize] += 1;
        if self.data.starts[side as usize] > EXECUTIONS_MAX {
            self.note(Breach::BeyondBound);
        }
        if side == Side::Compensation {
            self.data.reversing = true;
        }
        self.session_mut(session).doing = Doing::Statement;
        self.workers[worker].phase = Phase::Waiting;
    }

    fn complete(&mut self, payload: Payload, worker: usize, session: SessionId) -> Option<()> {
        match self.write(worker, Write::Complete, false) {
            Written::Waits => return None,
            Written::Yes => {
                self.session_mut(session).completes = true;
                self.workers[worker].phase = Phase::Committing;
            }
            Written::No => {
                if is_planted(Bug::LostLeaseWithoutRollback) {
                    self.commit(payload, session);
                }
                self.close(worker);
            }
        }
        Some(())
    }

    fn renew(&mut self, worker: usize) -> Option<()> {
        let side = self.workers[worker].side;
        let row = self.row(side)?;
        let is_own = row.token == self.workers[worker].token;
        if is_own && row.lease == tollgate::ledger::state::LeaseTime::Open {
            // Changes nothing that anyone could act on: an open lease is not taken.
            return None;
        }
        let actor = self.actor(worker);
        match self.would(actor, side, Write::Extend, false) {
            Written::Waits => return None,
            Written::Yes => self.apply(actor, side, Write::Extend),
            Written::No => self.settle(worker, false)?,
        }
        Some(())
    }

    fn fail(&mut self, worker: usize, session: SessionId, reply: Reply) -> Option<()> {
        let (side, actor) = (self.workers[worker].side, self.actor(worker));
        self.roll_back(session);
        if reply == Reply::Late {
            return self.leave_underway(worker, Underway::own(Write::RecordFailure));
        }
        match self.would(actor, side, Write::RecordFailure, false) {
            Written::Waits => return None,
            Written::Yes => self.apply(actor, side, Write::RecordFailure),
            Written::No if reply == Reply::Lost => return None,
            Written::No => {}
        }
        if reply == Reply::Lost {
            return self.lose(worker);
        }
        self.close(worker);
        Some(())
    }

    /// The connection broke: a claim is resumed by its token, a run is settled, on a new connection.
    fn lose(&mut self, worker: usize) -> Option<()> {
        match self.workers[worker].phase {
            Phase::Idle | Phase::Absent => return None,
            Phase::Reading | Phase::Writing { .. } | Phase::Clearing { .. } | Phase::Granted => {
                let old = self.workers[worker].session;
                self.disconnect(worker);
                self.open(worker, self.workers[worker].token?)?;
                self.workers[worker].phase = Phase::Resuming { old, killed: false };
            }
            Phase::Settling { .. } | Phase::Resuming { .. } => self.drop_delivery(worker),
            _ => self.settle(worker, true)?,
        }
        Some(())
    }

    fn settle(&mut self, worker: usize, fails: bool) -> Option<()> {
        let old = self.workers[worker].session;
        self.disconnect(worker);
        self.open(worker, self.workers[worker].token?)?;
        self.workers[worker].phase = Phase::Settling { old, killed: false, fails };
        Some(())
    }
}
