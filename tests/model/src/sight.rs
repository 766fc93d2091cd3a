//! What one worker sees, as a state of the product's machine: `host/src/ledger/view.rs`, restated.

use tollgate::ledger::state::{Compensation, Executions, Fit, LeaseTime, Previous, State, Whose};

use crate::world::{EXECUTIONS_MAX, Row, SessionId, Side, Status, World};

/// Whether a session that the row names, other than the worker's, may act.
fn presence(row: &Row, mine: Option<SessionId>) -> Previous {
    let named = row.holder.is_some() && row.holder != mine;
    if named && row.status != Status::Succeeded { Previous::Present } else { Previous::Gone }
}

pub(super) fn executions(count: u8) -> Executions {
    if count >= EXECUTIONS_MAX { Executions::AtBound } else { Executions::BelowBound }
}

impl World {
    /// A row that was not turned, relative to the worker.
    pub(super) fn own_state(&self, worker: usize, row: &Row, previous: Previous) -> State {
        let worker = &self.workers[worker];
        let by_me = row.token == worker.token && row.token.is_some();
        let executions = executions(row.executions);
        match row.status {
            Status::Succeeded => State::Succeeded { by_me },
            Status::Failed => State::Failed { by_me, previous, executions },
            Status::Running => {
                let whose = match (by_me, row.holder.is_some() && row.holder == worker.session) {
                    (true, true) => Whose::Mine,
                    (true, false) => Whose::MineWaiting,
                    (false, _) => Whose::Other,
                };
                State::Running { whose, lease: row.lease, previous, executions }
            }
        }
    }

    /// The row as the holder of a lease on it sees it, whatever became of its session.
    pub(super) fn sight_of_lease(&self, worker: usize) -> State {
        let gone = Previous::Gone;
        match self.row(self.workers[worker].side) {
            Some(row) => self.own_state(worker, row, gone),
            None => State::Absent { previous: gone },
        }
    }

    /// The worker's own row, with what matters of the other one.
    pub(super) fn sight(&self, worker: usize) -> State {
        let (side, session) = (self.workers[worker].side, self.workers[worker].session);
        let before = match (side, self.row(Side::Forward)) {
            (Side::Compensation, Some(forward)) => presence(forward, session),
            _ => Previous::Gone,
        };
        let Some(row) = self.row(side) else {
            return State::Absent { previous: before };
        };
        let previous = match presence(row, session) {
            Previous::Present => Previous::Present,
            Previous::Gone => before,
        };
        if side == Side::Forward && row.turned {
            let compensation = match self.row(Side::Compensation).map(|row| row.status) {
                Some(Status::Running) => Compensation::Running,
                Some(Status::Succeeded) => Compensation::Succeeded,
                Some(Status::Failed) | None => Compensation::Failed,
            };
            return State::Turned { compensation, by_me: false, previous };
        }
        self.own_state(worker, row, previous)
    }

    /// The forward row as the compensation that would turn it sees it.
    pub(super) fn forward_sight(&self, worker: usize) -> State {
        let Some(row) = self.row(Side::Forward) else {
            return State::Absent { previous: Previous::Gone };
        };
        let previous = presence(row, self.workers[worker].session);
        if row.turned {
            return State::Turned { compensation: Compensation::Running, by_me: true, previous };
        }
        self.own_state(worker, row, previous)
    }

    /// Whether the compensation runs, or may: the step's own is not counted against its compensation.
    pub(super) fn opposite_runs(&self, worker: usize) -> bool {
        let compensation = self.row(Side::Compensation).filter(|row| row.status == Status::Running);
        self.workers[worker].side == Side::Forward
            && compensation.is_some_and(|row| row.lease == LeaseTime::Open || row.holder.is_some())
    }

    pub(super) fn fit(&self, worker: usize) -> Fit {
        if self.opposite_runs(worker) { Fit::OppositeRunning } else { Fit::Same }
    }

    /// The sessions that the rows name and that have to be gone before the worker runs anything.
    pub(super) fn named(&self, worker: usize) -> [Option<SessionId>; 2] {
        let worker = &self.workers[worker];
        let holder = |side| {
            self.row(side).and_then(|row| row.holder).filter(|id| Some(*id) != worker.session)
        };
        match worker.side {
            Side::Forward => [holder(Side::Forward), None],
            Side::Compensation => [holder(Side::Compensation), holder(Side::Forward)],
        }
    }
}
