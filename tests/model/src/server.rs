//! What a session does by itself: MySQL, as far as it matters.

use tollgate::planted::{Bug, is_planted};

use crate::world::{Breach, Doing, Payload, SessionId, Side, Status, World};

/// What a session does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Its statement ends.
    Finish,
    /// It refuses its statement.
    Refuse,
    /// Its COMMIT takes place.
    Commit,
    /// What it was sent before its client gave up arrives.
    Arrive,
    /// It is gone, with what it did not commit.
    Vanish,
}

impl Deed {
    /// Every deed.
    pub const ALL: [Self; 5] =
        [Self::Finish, Self::Refuse, Self::Commit, Self::Arrive, Self::Vanish];
}

impl World {
    /// The world after the deed; none when the session cannot do it.
    pub(super) fn serve(mut self, payload: Payload, id: SessionId, deed: Deed) -> Option<Self> {
        let session = self.sessions[usize::from(id)]?;
        match deed {
            // A killed session may still end what it does, until it is gone.
            Deed::Finish if session.doing == Doing::Statement => {
                self.session_mut(id).doing = Doing::Nothing;
                if payload == Payload::Ddl || is_planted(Bug::CompleteOutsideTransaction) {
                    self.lands(payload, session.side);
                } else {
                    self.session_mut(id).effect = true;
                }
            }
            Deed::Refuse if session.doing == Doing::Statement && session.client => {
                self.session_mut(id).doing = Doing::Refused;
            }
            Deed::Commit if session.doing == Doing::Commit => {
                self.session_mut(id).doing = Doing::Nothing;
                self.commit(payload, id);
            }
            // It may be carried out already when the session is killed.
            Deed::Arrive => self.arrive(id, session.underway?)?,
            // A client that died is noticed between statements only; its COMMIT may not have come.
            Deed::Vanish
                if session.killed || (!session.client && session.doing != Doing::Statement) =>
            {
                self.remove(id);
            }
            _ => return None,
        }
        Some(self)
    }

    /// The session's transaction takes effect.
    pub(super) fn commit(&mut self, payload: Payload, id: SessionId) {
        let session = *self.session(id);
        if session.effect {
            if !session.completes {
                self.note(Breach::StaleDmlCommitted);
            }
            self.lands(payload, session.side);
        }
        if session.completes {
            let has_effect = self.data.effects[session.side as usize] > 0;
            let row = self.rows[session.side as usize].as_mut().expect("its lock keeps the row");
            row.status = Status::Succeeded;
            if row.token != Some(session.token) {
                self.note(Breach::StaleHolderWrote);
            }
            if !has_effect {
                self.note(Breach::SucceededWithoutEffect);
            }
            self.touched(session.side);
        }
        self.roll_back(id);
    }

    /// The payload's effect is there for good.
    fn lands(&mut self, payload: Payload, side: Side) {
        let effects = &mut self.data.effects[side as usize];
        *effects = (*effects + 1).min(2);
        if payload == Payload::Dml && *effects == 2 {
            self.note(Breach::DmlTwice);
        }
        let is_reversed = self.data.reversing
            || self.row(Side::Compensation).is_some_and(|row| row.status == Status::Succeeded);
        if side == Side::Forward && is_reversed {
            self.note(Breach::ForwardAfterCompensation);
        }
    }
}
