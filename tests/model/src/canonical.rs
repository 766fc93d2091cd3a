//! One world for all that differ in nothing that matters: in the numbers of sessions and tokens, in
//! which of the step's two workers is which, and in sessions that nobody can tell from gone ones.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::world::{Doing, Phase, SESSIONS_MAX, Session, SessionId, Token, World};

impl World {
    /// That world.
    pub(super) fn canonical(mut self) -> Self {
        self.forget_idle();
        let mut swapped = self;
        swapped.workers.swap(0, 1);
        let (one, other) = (self.renumbered(), swapped.renumbered());
        if hash(&one) <= hash(&other) { one } else { other }
    }

    fn forget_idle(&mut self) {
        for index in 0..SESSIONS_MAX {
            let Some(session) = self.sessions[index] else { continue };
            let id = SessionId::try_from(index).expect("few sessions");
            let acts = session.client
                || matches!(session.doing, Doing::Statement | Doing::Commit)
                || session.effect
                || session.completes
                || session.underway.is_some();
            if !acts && !self.references().contains(&Some(id)) {
                self.remove(id);
            }
        }
    }

    /// Every mention of a session, in a fixed order.
    fn references(&mut self) -> Vec<Option<SessionId>> {
        let mut all = Vec::with_capacity(12);
        self.each_session(|reference| all.push(*reference));
        all
    }

    fn each_session(&mut self, mut visit: impl FnMut(&mut Option<SessionId>)) {
        for worker in &mut self.workers {
            visit(&mut worker.session);
            match &mut worker.phase {
                Phase::Writing { named, .. } | Phase::Clearing { named, .. } => {
                    named.iter_mut().for_each(&mut visit);
                }
                Phase::Settling { old, .. } | Phase::Resuming { old, .. } => visit(old),
                _ => {}
            }
        }
        for row in self.rows.iter_mut().flatten() {
            visit(&mut row.holder);
            visit(&mut row.lock);
        }
    }

    /// Sessions and tokens numbered in the order in which they are mentioned.
    fn renumbered(mut self) -> Self {
        let mut order: Vec<SessionId> = Vec::with_capacity(SESSIONS_MAX);
        let mut add = |id: SessionId| {
            if !order.contains(&id) {
                order.push(id);
            }
        };
        self.references().into_iter().flatten().for_each(&mut add);
        let mut rest: Vec<(u64, SessionId)> = (0..)
            .zip(self.sessions)
            .filter_map(|(id, session)| Some((hash(&anonymous(session?)), id)))
            .collect();
        rest.sort_unstable();
        for (_, id) in rest {
            add(id);
        }
        let number = |id: SessionId| order.iter().position(|other| *other == id);
        let sessions = self.sessions;
        self.sessions = [None; SESSIONS_MAX];
        for (new, old) in order.iter().enumerate() {
            self.sessions[new] = sessions[usize::from(*old)];
        }
        self.each_session(|reference| {
            *reference = reference.and_then(number).and_then(|new| SessionId::try_from(new).ok());
        });
        self.renumber_tokens();
        self
    }

    fn renumber_tokens(&mut self) {
        let mut order: Vec<Token> = Vec::with_capacity(SESSIONS_MAX);
        let mut renumber = |token: &mut Token| {
            let known = order.iter().position(|other| other == token);
            let new = known.unwrap_or_else(|| {
                order.push(*token);
                order.len() - 1
            });
            *token = Token(u8::try_from(new).expect("few tokens"));
        };
        for row in self.rows.iter_mut().flatten() {
            row.token.iter_mut().for_each(&mut renumber);
        }
        for worker in &mut self.workers {
            worker.token.iter_mut().for_each(&mut renumber);
        }
        for session in self.sessions.iter_mut().flatten() {
            renumber(&mut session.token);
        }
    }
}

fn anonymous(session: Session) -> Session {
    Session { token: Token(0), ..session }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
