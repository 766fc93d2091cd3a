//! A conditional write, applied: `host/src/ledger/writes.rs`, with the product's own conditions.

use tollgate::ledger::state::{
    Executions, Guard, LeaseTime, Names, Previous, Standing, State, Write, after, guard,
};

use crate::sight::executions;
use crate::world::{Breach, Phase, Row, SessionId, Side, Status, Token, Underway, World};

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor {
    /// Its token.
    pub(super) token: Token,
    /// Its session, which a claim puts on the row.
    pub(super) session: Option<SessionId>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It applied.
    Yes,
    /// Its condition did not hold.
    No,
    /// Another session has the row locked.
    Waits,
}

fn holds(guard: Guard, row: Option<&Row>, token: Token, fresh: bool) -> bool {
    let Some(row) = row else {
        return guard.standing == Standing::Missing;
    };
    let is_live = row.status == Status::Running && row.lease == LeaseTime::Open;
    let is_named = match guard.names {
        None => true,
        Some(Names::AsRead) => fresh,
        Some(Names::OwnToken) => row.token == Some(token),
    };
    let stands = match guard.standing {
        Standing::Missing => false,
        Standing::Running => row.status == Status::Running,
        Standing::FailedOrOver => row.status != Status::Succeeded && !is_live,
        Standing::NotLive => !is_live,
        Standing::Any => true,
    };
    is_named && stands
}

impl World {
    /// The worker, as one that writes.
    pub(super) fn actor(&self, worker: usize) -> Actor {
        let worker = &self.workers[worker];
        let token = worker.token.expect("a worker that writes has a token");
        Actor { token, session: worker.session }
    }

    /// Whether the write would apply to the side's row now.
    pub(super) fn would(&self, actor: Actor, side: Side, write: Write, fresh: bool) -> Written {
        let row = self.row(side);
        if row.is_some_and(|row| row.lock.is_some() && row.lock != actor.session) {
            return Written::Waits;
        }
        if holds(guard(write), row, actor.token, fresh) { Written::Yes } else { Written::No }
    }

    /// What would become of a write to the side's row, and in the same transaction to the forward row.
    pub(super) fn would_both(&self, actor: Actor, side: Side, sent: Underway) -> Written {
        let Underway { write, turn, fresh, .. } = sent;
        let own = self.would(actor, side, write, fresh[side as usize]);
        let other = match (turn, write) {
            (Some(turn), _) => {
                self.would(actor, Side::Forward, turn, fresh[Side::Forward as usize])
            }
            (None, Write::TurnAbsent) => self.would(actor, Side::Forward, write, true),
            (None, _) => Written::Yes,
        };
        match (own, other) {
            (Written::Waits, _) | (_, Written::Waits) => Written::Waits,
            (Written::Yes, Written::Yes) => Written::Yes,
            _ => Written::No,
        }
    }

    /// What a session was sent before its client gave up arrives, and applies if it still may.
    pub(super) fn arrive(&mut self, id: SessionId, sent: Underway) -> Option<()> {
        let session = *self.session(id);
        let actor = Actor { token: session.token, session: Some(id) };
        match self.would_both(actor, session.side, sent) {
            Written::Waits => return None,
            Written::No => {}
            Written::Yes => {
                if let Some(turn) = sent.turn {
                    self.apply(actor, Side::Forward, turn);
                }
                self.apply(actor, session.side, sent.write);
                if sent.withdraws {
                    self.rows[session.side as usize].as_mut()?.executions -= 1;
                }
            }
        }
        self.session_mut(id).underway = None;
        Some(())
    }

    /// Applies the write if it may, and notes what must not have happened.
    pub(super) fn write(&mut self, worker: usize, write: Write, fresh: bool) -> Written {
        let (side, actor) = (self.workers[worker].side, self.actor(worker));
        let written = self.would(actor, side, write, fresh);
        if written == Written::Yes {
            let seen = self.sight(worker);
            self.apply(actor, side, write);
            self.compare(worker, seen, write);
        }
        written
    }

    /// Applies a write whose condition holds.
    pub(super) fn apply(&mut self, actor: Actor, side: Side, write: Write) {
        let (token, session) = (Some(actor.token), actor.session);
        self.judge(actor, side, write);
        let before = self.rows[side as usize];
        let mut row = before.unwrap_or(Row {
            status: Status::Running,
            token,
            lease: LeaseTime::Open,
            executions: 0,
            holder: None,
            turned: false,
            lock: None,
        });
        match write {
            Write::Insert | Write::TakeOver => {
                row = Row { status: Status::Running, token, lease: LeaseTime::Open, ..row };
                row.executions += 1;
                row.holder = session;
            }
            Write::InsertWaiting | Write::TakeOverWaiting => {
                row = Row { status: Status::Running, token, lease: LeaseTime::Open, ..row };
            }
            Write::Adopt => {
                row.lease = LeaseTime::Open;
                row.executions += 1;
                row.holder = session;
            }
            Write::GiveBack | Write::EndLease => row.lease = LeaseTime::Over,
            Write::Extend => row.lease = LeaseTime::Open,
            // Committed with the session's transaction; see `server`.
            Write::Complete => row.lock = session,
            Write::RecordFailure => {
                row.status = Status::Failed;
                row.holder = None;
            }
            Write::Turn => {
                if row.status == Status::Running {
                    row.status = Status::Failed;
                }
                row.turned = true;
                row.token = None;
            }
            Write::TurnAbsent => return self.bar(),
        }
        self.rows[side as usize] = Some(row);
        self.touched(side);
    }

    /// A forward row that never runs, and its compensation as done.
    fn bar(&mut self) {
        let row = Row {
            status: Status::Failed,
            token: None,
            lease: LeaseTime::Over,
            executions: 0,
            holder: None,
            turned: true,
            lock: None,
        };
        self.rows[Side::Forward as usize] = Some(row);
        let done = Row { status: Status::Succeeded, turned: false, ..row };
        self.rows[Side::Compensation as usize] = Some(done);
        self.touched(Side::Forward);
        self.touched(Side::Compensation);
    }

    /// Nobody's earlier read of the row is true any more.
    pub(super) fn touched(&mut self, side: Side) {
        for worker in &mut self.workers {
            if let Phase::Writing { fresh, .. } = &mut worker.phase {
                fresh[side as usize] = false;
            }
        }
        for sent in self.sessions.iter_mut().flatten().filter_map(|it| it.underway.as_mut()) {
            sent.fresh[side as usize] = false;
        }
    }

    fn judge(&mut self, actor: Actor, side: Side, write: Write) {
        let Some(row) = self.rows[side as usize] else { return };
        let own = row.token == Some(actor.token);
        if row.status == Status::Succeeded && write != Write::Turn {
            self.note(Breach::SuccessOverwritten);
        }
        match write {
            Write::TakeOver | Write::TakeOverWaiting | Write::Turn => {
                let is_live = row.status == Status::Running && row.lease == LeaseTime::Open;
                if is_live && !own {
                    self.note(Breach::LiveLeaseTaken);
                }
            }
            Write::EndLease => {}
            _ if !own => self.note(Breach::StaleHolderWrote),
            _ => {}
        }
    }

    /// Compares what the machine says the row is afterwards with what the next read shows.
    fn compare(&mut self, worker: usize, seen: State, write: Write) {
        if matches!(write, Write::Complete | Write::TurnAbsent) {
            return;
        }
        let side = self.workers[worker].side;
        let count = self.row(side).map_or(0, |row| row.executions);
        let said = without_previous(after(seen, write, executions(count)));
        if said != without_previous(self.sight(worker)) {
            self.note(Breach::AfterDisagrees);
        }
    }
}

/// Earlier sessions may have gone since the row was read.
fn without_previous(state: State) -> State {
    let gone = Previous::Gone;
    match state {
        State::Absent { .. } => State::Absent { previous: gone },
        State::Running { whose, lease, executions, .. } => {
            State::Running { whose, lease, executions, previous: gone }
        }
        State::Failed { by_me, executions, .. } => {
            State::Failed { by_me, executions, previous: gone }
        }
        State::Turned { compensation, by_me, .. } => {
            State::Turned { compensation, by_me, previous: gone }
        }
        State::Succeeded { by_me } => State::Succeeded { by_me },
    }
}

/// The state that a takeover is in while it waits.
pub(super) const TAKEN: State = State::Running {
    whose: tollgate::ledger::state::Whose::MineWaiting,
    lease: LeaseTime::Open,
    previous: Previous::Present,
    executions: Executions::BelowBound,
};
