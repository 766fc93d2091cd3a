//! The whole protocol as a model, and what must hold of it.

use stateright::{Model, Property};
use tollgate::ledger::state::{Event, LeaseTime, Write, transition};
use tollgate::planted::Bug;

use crate::server::Deed;
use crate::sight::executions;
use crate::worker::{Move, Reply};
use crate::world::{Breach, Cast, Doing, EXECUTIONS_MAX, Payload, SessionId, Side, Status, World};

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A worker makes a move.
    Worker(usize, Move),
    /// A session does something.
    Session(SessionId, Deed),
    /// The lease on a row ends.
    Expire(Side),
    /// An operator ends it.
    Release(Side),
}

/// The protocol, perhaps with a bug in it.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// Who is at work.
    pub cast: Cast,
    /// How many faults may happen in one run; none is any number.
    pub faults: Option<u8>,
    /// What the step consists of.
    pub payload: Payload,
    /// The bug.
    pub bug: Option<Bug>,
}

impl Protocol {
    /// As it is.
    pub fn of(payload: Payload, cast: Cast, faults: Option<u8>) -> Self {
        Self { cast, faults, payload, bug: None }
    }

    #[cfg(feature = "planted-bugs")]
    fn with_bug<T>(self, run: impl FnOnce() -> T) -> T {
        tollgate::planted::with(self.bug, run)
    }

    #[cfg(not(feature = "planted-bugs"))]
    fn with_bug<T>(self, run: impl FnOnce() -> T) -> T {
        assert_eq!(self.bug, None, "bugs are planted with the feature `planted-bugs`");
        run()
    }

    /// Whether the action is what happens by itself once nothing goes wrong any more.
    pub fn is_fair(world: &World, action: Action) -> bool {
        match action {
            // Without a session there is nothing else a worker can do.
            Action::Worker(worker, Move::Lose) => world.connected(worker).is_none(),
            Action::Worker(_, step) => !matches!(
                step,
                Move::Crash
                    | Move::GiveUp
                    | Move::Write(Reply::Lost | Reply::Late)
                    | Move::Adopt(Reply::Lost | Reply::Late)
                    | Move::LookAround(Reply::Lost | Reply::Late)
                    | Move::Fail(Reply::Lost | Reply::Late)
            ),
            Action::Session(_, deed) => deed != Deed::Refuse,
            Action::Expire(_) => true,
            Action::Release(_) => false,
        }
    }

    fn act(self, world: &World, action: Action) -> Option<World> {
        let next = match action {
            Action::Worker(worker, step) => world.take(self.payload, worker, step)?,
            Action::Session(id, deed) => world.serve(self.payload, id, deed)?,
            Action::Expire(side) => world.ended(side)?,
            Action::Release(side) => {
                let mut next = world.ended(side)?;
                next.touched(side);
                next
            }
        };
        let mut next = next.canonical();
        if !Self::is_fair(world, action)
            && let Some(left) = &mut next.faults
        {
            *left = left.checked_sub(1)?;
        }
        (next != *world).then_some(next)
    }
}

impl World {
    /// The lease of the row is over.
    fn ended(mut self, side: Side) -> Option<Self> {
        let row = self.rows[side as usize].as_mut()?;
        (row.status == Status::Running && row.lease == LeaseTime::Open).then_some(())?;
        let seen = tollgate::ledger::state::State::Running {
            whose: tollgate::ledger::state::Whose::Other,
            lease: row.lease,
            previous: tollgate::ledger::state::Previous::Gone,
            executions: executions(row.executions),
        };
        (transition(seen, Event::Release).write == Some(Write::EndLease)).then_some(())?;
        row.lease = LeaseTime::Over;
        Some(self)
    }
}

fn succeeded(world: &World, side: Side) -> bool {
    world.row(side).is_some_and(|row| row.status == Status::Succeeded)
}

macro_rules! never {
    ($($breach:ident = $name:literal,)*) => {
        vec![$(Property::always($name, |_, world: &World| {
            world.breach != Some(Breach::$breach)
        }),)*]
    };
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.cast, self.faults)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // What follows a breach proves nothing.
        if world.breach.is_some() {
            return;
        }
        for worker in 0..world.workers.len() {
            actions.extend(Move::ALL.map(|step| Action::Worker(worker, step)));
        }
        for (id, session) in world.sessions.iter().enumerate() {
            if session.is_some() {
                let id = SessionId::try_from(id).expect("few sessions");
                actions.extend(Deed::ALL.map(|deed| Action::Session(id, deed)));
            }
        }
        for side in [Side::Forward, Side::Compensation] {
            actions.extend([Action::Expire(side), Action::Release(side)]);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        self.with_bug(|| self.act(world, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never! {
            LiveLeaseTaken = "an open lease is never taken",
            StaleHolderWrote = "only the token's holder changes a receipt",
            SuccessOverwritten = "SUCCEEDED is final",
            StaleDmlCommitted = "no DML of a stale holder survives",
            DmlTwice = "DML takes effect at most once",
            TwoAtOnce = "no two sessions are at the step or its compensation at once",
            ForwardAfterCompensation = "a step never takes effect after its compensation began",
            BeyondBound = "a payload is started no more often than it may be",
            SucceededWithoutEffect = "SUCCEEDED stands for an effect",
            AfterDisagrees = "the row is what the machine says it is after its write",
        };
        properties.extend([
            // What has to be possible, so that the rest says something.
            Property::sometimes("a step succeeds", |_, world| succeeded(world, Side::Forward)),
            Property::sometimes("a step is taken back", |_, world: &World| {
                succeeded(world, Side::Compensation) && world.data.effects == [1, 1]
            }),
            Property::sometimes("a step that never ran is barred", |_, world: &World| {
                succeeded(world, Side::Compensation) && world.data.effects == [0, 0]
            }),
            Property::sometimes("a step runs a second time", |_, world: &World| {
                let is_second =
                    world.row(Side::Forward).is_some_and(|row| row.executions == EXECUTIONS_MAX);
                is_second && succeeded(world, Side::Forward)
            }),
            Property::sometimes("a statement outlives its worker", |_, world: &World| {
                let is_left = |session: &crate::world::Session| {
                    !session.client && session.doing == Doing::Statement
                };
                world.sessions.iter().flatten().any(is_left)
            }),
            Property::sometimes("a ledger write outlives its connection", |_, world: &World| {
                world.sessions.iter().flatten().any(|session| session.underway.is_some())
            }),
            Property::sometimes("a COMMIT outlives its worker", |_, world: &World| {
                let is_left = |session: &crate::world::Session| {
                    !session.client && session.doing == Doing::Commit
                };
                world.sessions.iter().flatten().any(is_left)
            }),
        ]);
        properties
    }
}
