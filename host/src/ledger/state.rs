//! The one state machine of a receipt.
//!
//! [`transition`] is total over ([`State`], [`Event`]). The live run, the takeover of a dead holder and
//! the inspection after a lost answer all read a row, reduce it to a [`State`] and ask it; what it
//! answers is a [`Write`], carried out as one conditional statement that applies only while the row is
//! still as read, and an [`Answer`] for the caller.
//!
//! Nothing here knows time, SQL or tokens: a state is what one actor sees, relative to the token it
//! holds. That keeps the states few, so that a test can enumerate them and a model checker can drive
//! [`transition`], [`guard()`] and [`after`] with as many actors as it likes.

mod guard;
#[cfg(feature = "planted-bugs")]
mod spoilt;

pub use guard::{Guard, Names, Standing, guard};

/// What one actor sees of a receipt at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// No row.
    Absent {
        /// Sessions that may still act for this step: of a compensation, the forward's.
        previous: Previous,
    },
    /// RUNNING.
    Running {
        /// Who holds the token.
        whose: Whose,
        /// Whether the lease's deadline has passed on the database's clock.
        lease: LeaseTime,
        /// Sessions of earlier holders.
        previous: Previous,
        /// Whether the payload may start once more.
        executions: Executions,
    },
    /// FAILED.
    Failed {
        /// Whether this actor's token recorded the failure.
        by_me: bool,
        /// Sessions of earlier holders.
        previous: Previous,
        /// Whether the payload may start once more.
        executions: Executions,
    },
    /// SUCCEEDED.
    Succeeded {
        /// Whether this actor's token completed it.
        by_me: bool,
    },
    /// A forward step whose compensation was begun, whatever its own status is.
    Turned {
        /// How far the compensation is.
        compensation: Compensation,
        /// Whether the actor acts for that very compensation.
        by_me: bool,
        /// Sessions of the forward's holders.
        previous: Previous,
    },
}

/// Whose token a RUNNING row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// Another holder's.
    Other,
    /// The actor's, which has not yet seen every earlier session gone: it must not run anything.
    MineWaiting,
    /// The actor's, and the row names the actor's session.
    Mine,
}

/// A lease against the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseTime {
    /// The deadline is ahead.
    Open,
    /// The deadline has passed.
    Over,
}

/// Sessions of earlier holders on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Previous {
    /// None is left; this never becomes `Present` again.
    Gone,
    /// One may still be running a statement.
    Present,
}

/// How often the payload was started, against the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Executions {
    /// It may start again.
    BelowBound,
    /// A person has to look first.
    AtBound,
}

/// How far the compensation of a turned forward step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compensation {
    /// RUNNING, its lease open or over.
    Running,
    /// FAILED, or its row is missing.
    Failed,
    /// SUCCEEDED, or recorded as not applicable.
    Succeeded,
}

/// What happens to a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A delivery asks to run the step.
    Claim(Fit),
    /// The actor saw every earlier session gone.
    PreviousGone,
    /// The actor could not clear the earlier sessions within its bound.
    PreviousRemains,
    /// The actor is about to send a statement of the payload.
    Check,
    /// The actor prolongs its lease.
    Renew,
    /// The actor completes, inside the payload's transaction.
    Complete,
    /// The actor records a failure.
    Fail,
    /// The actor lost an answer, saw its own former session gone, and looks.
    Inspect,
    /// An operator ends the lease.
    Release,
    /// The compensation of this forward step is claimed.
    Turn(Fit),
}

/// How a request fits the row and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fit {
    /// Same identity, allowed pin.
    Same,
    /// Another identity.
    OtherIdentity,
    /// Same identity, but decided under a policy or executor that does not supersede the recorded one.
    OtherPin,
    /// Same identity and pin, but the plugin is moving in the other direction.
    OppositeRunning,
}

/// One conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Write {
    /// Insert the row, RUNNING, with the actor's token and session.
    Insert,
    /// Insert the row, RUNNING, with the actor's token and no session yet.
    InsertWaiting,
    /// Put the actor's token and session on the row.
    TakeOver,
    /// Put the actor's token on the row; it keeps naming the earlier session.
    TakeOverWaiting,
    /// Put the actor's session on the row that already has its token.
    Adopt,
    /// End the lease of a takeover that could not clear the earlier session.
    GiveBack,
    /// Move the deadline.
    Extend,
    /// To SUCCEEDED.
    Complete,
    /// To FAILED.
    RecordFailure,
    /// End a lease at an operator's word.
    EndLease,
    /// Bar the forward step for good: its compensation is begun.
    Turn,
    /// Insert a forward row that never ran, so that it never will, and its compensation as done.
    TurnAbsent,
}

/// What the actor is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Run the payload.
    Granted,
    /// The lease is the actor's; earlier sessions must be gone before it runs anything.
    ClearPrevious,
    /// It was done before: hand back its receipt.
    AlreadySucceeded,
    /// Another holder's lease is open.
    Busy,
    /// The plugin is moving in the other direction.
    BusyOpposite,
    /// An earlier session could not be cleared.
    BusyPrevious,
    /// The key belongs to another step.
    IdentityMismatch,
    /// The recorded policy or executor is not superseded by the requested one.
    PinRefused,
    /// The payload was started too often.
    NeedsAttention,
    /// The step's compensation was begun.
    Superseded,
    /// There is nothing to reverse.
    NotApplicable,
    /// The forward step is barred; the compensation may go on.
    Turned,
    /// The lease is the actor's and open.
    Held,
    /// The actor's token is on the row, but its deadline has passed.
    LeaseOver,
    /// The lease was prolonged.
    Extended,
    /// The receipt is complete, if the transaction commits.
    Completed,
    /// The receipt was completed by the actor's token.
    CompletedByMe,
    /// The receipt was completed by another holder.
    CompletedByOther,
    /// The failure is recorded.
    FailureRecorded,
    /// The row is as the actor's claim left it: what it did not commit is not there.
    StillMine,
    /// Another holder has the row.
    LeaseLost,
    /// The row is gone.
    RowLost,
    /// The lease was ended.
    Released,
    /// There is no lease to end.
    NothingToRelease,
}

/// A write, if any, and the answer that holds once it applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transition {
    /// The conditional write; when it does not apply the row is read again.
    pub write: Option<Write>,
    /// The answer.
    pub answer: Answer,
}

const fn stay(answer: Answer) -> Transition {
    Transition { write: None, answer }
}

const fn write(write: Write, answer: Answer) -> Transition {
    Transition { write: Some(write), answer }
}

/// What to do about an event in a state.
pub fn transition(state: State, event: Event) -> Transition {
    #[cfg(feature = "planted-bugs")]
    let state = spoilt::seen(state, event);
    decide(state, event)
}

const fn decide(state: State, event: Event) -> Transition {
    match event {
        Event::Claim(fit) => claim(state, fit),
        Event::PreviousGone => previous_gone(state),
        Event::PreviousRemains => previous_remains(state),
        Event::Check => check(state),
        Event::Renew => renew(state),
        Event::Complete => complete(state),
        Event::Fail => fail(state),
        Event::Inspect => inspect(state),
        Event::Release => release(state),
        Event::Turn(fit) => turn(state, fit),
    }
}

const fn claim(state: State, fit: Fit) -> Transition {
    match (state, fit) {
        (State::Absent { .. }, Fit::OppositeRunning) => stay(Answer::BusyOpposite),
        (State::Absent { previous: Previous::Gone }, _) => write(Write::Insert, Answer::Granted),
        (State::Absent { previous: Previous::Present }, _) => {
            write(Write::InsertWaiting, Answer::ClearPrevious)
        }
        (_, Fit::OtherIdentity) => stay(Answer::IdentityMismatch),
        (State::Succeeded { .. }, _) => stay(Answer::AlreadySucceeded),
        (State::Turned { compensation: Compensation::Running, .. }, _) => {
            stay(Answer::BusyOpposite)
        }
        (State::Turned { .. }, _) => stay(Answer::Superseded),
        (State::Running { whose: Whose::Other, lease: LeaseTime::Open, .. }, _) => {
            stay(Answer::Busy)
        }
        (_, Fit::OtherPin) => stay(Answer::PinRefused),
        (State::Running { whose: Whose::Mine, .. }, _) => stay(Answer::Granted),
        (State::Running { whose: Whose::MineWaiting, previous, .. }, _) => match previous {
            Previous::Gone => write(Write::Adopt, Answer::Granted),
            Previous::Present => stay(Answer::ClearPrevious),
        },
        (
            State::Running { executions: Executions::AtBound, .. }
            | State::Failed { executions: Executions::AtBound, .. },
            _,
        ) => stay(Answer::NeedsAttention),
        (_, Fit::OppositeRunning) => stay(Answer::BusyOpposite),
        (State::Running { previous, .. } | State::Failed { previous, .. }, Fit::Same) => {
            match previous {
                Previous::Gone => write(Write::TakeOver, Answer::Granted),
                Previous::Present => write(Write::TakeOverWaiting, Answer::ClearPrevious),
            }
        }
    }
}

const fn previous_gone(state: State) -> Transition {
    match state {
        State::Running { whose: Whose::MineWaiting, .. } => write(Write::Adopt, Answer::Granted),
        State::Running { whose: Whose::Mine, .. } => stay(Answer::Granted),
        _ => stay(lost(state)),
    }
}

const fn previous_remains(state: State) -> Transition {
    match state {
        State::Running { whose: Whose::MineWaiting, .. } => {
            write(Write::GiveBack, Answer::BusyPrevious)
        }
        State::Running { whose: Whose::Mine, .. } => stay(Answer::Granted),
        _ => stay(lost(state)),
    }
}

const fn check(state: State) -> Transition {
    match state {
        State::Running { whose: Whose::Mine, lease, .. } => match lease {
            LeaseTime::Open => stay(Answer::Held),
            LeaseTime::Over => stay(Answer::LeaseOver),
        },
        _ => stay(lost(state)),
    }
}

const fn renew(state: State) -> Transition {
    match state {
        // While nobody took the row over, a late renewal is as good as an early one.
        State::Running { whose: Whose::Mine | Whose::MineWaiting, .. } => {
            write(Write::Extend, Answer::Extended)
        }
        _ => stay(lost(state)),
    }
}

const fn complete(state: State) -> Transition {
    match state {
        // The token decides, not the clock: the row is locked and nobody else has it.
        State::Running { whose: Whose::Mine, .. } => write(Write::Complete, Answer::Completed),
        _ => stay(lost(state)),
    }
}

const fn fail(state: State) -> Transition {
    match state {
        State::Running { whose: Whose::Mine | Whose::MineWaiting, .. } => {
            write(Write::RecordFailure, Answer::FailureRecorded)
        }
        State::Failed { by_me: true, .. } => stay(Answer::FailureRecorded),
        _ => stay(lost(state)),
    }
}

const fn inspect(state: State) -> Transition {
    match state {
        State::Running { whose: Whose::Mine | Whose::MineWaiting, .. } => stay(Answer::StillMine),
        State::Failed { by_me: true, .. } => stay(Answer::FailureRecorded),
        _ => stay(lost(state)),
    }
}

const fn release(state: State) -> Transition {
    match state {
        State::Running { .. } => write(Write::EndLease, Answer::Released),
        State::Absent { .. } => stay(Answer::RowLost),
        State::Failed { .. } | State::Succeeded { .. } | State::Turned { .. } => {
            stay(Answer::NothingToRelease)
        }
    }
}

const fn turn(state: State, fit: Fit) -> Transition {
    match (state, fit) {
        (State::Absent { .. }, _) => write(Write::TurnAbsent, Answer::NotApplicable),
        (_, Fit::OtherIdentity) | (State::Turned { by_me: false, .. }, _) => {
            stay(Answer::IdentityMismatch)
        }
        (State::Turned { by_me: true, .. }, _) => stay(Answer::Turned),
        (State::Running { lease: LeaseTime::Open, .. }, _) | (_, Fit::OppositeRunning) => {
            stay(Answer::BusyOpposite)
        }
        (
            State::Running { lease: LeaseTime::Over, .. }
            | State::Failed { .. }
            | State::Succeeded { .. },
            Fit::Same | Fit::OtherPin,
        ) => write(Write::Turn, Answer::Turned),
    }
}

/// What an actor that lost its lease is told.
const fn lost(state: State) -> Answer {
    match state {
        State::Absent { .. } => Answer::RowLost,
        State::Succeeded { by_me: true } => Answer::CompletedByMe,
        State::Succeeded { by_me: false } => Answer::CompletedByOther,
        State::Running { .. } | State::Failed { .. } | State::Turned { .. } => Answer::LeaseLost,
    }
}

/// The row after the actor's own write applied, as the actor sees it.
///
/// `executions` is what the count is against the bound once the write applied.
pub const fn after(state: State, write: Write, executions: Executions) -> State {
    let previous = previous_of(state);
    let mine = State::Running {
        whose: Whose::Mine,
        lease: LeaseTime::Open,
        previous: Previous::Gone,
        executions,
    };
    match write {
        Write::Insert | Write::TakeOver | Write::Adopt => mine,
        Write::InsertWaiting | Write::TakeOverWaiting => State::Running {
            whose: Whose::MineWaiting,
            lease: LeaseTime::Open,
            previous,
            executions,
        },
        Write::GiveBack | Write::EndLease => {
            State::Running { whose: whose_of(state), lease: LeaseTime::Over, previous, executions }
        }
        Write::Extend => {
            State::Running { whose: whose_of(state), lease: LeaseTime::Open, previous, executions }
        }
        Write::Complete => State::Succeeded { by_me: true },
        Write::RecordFailure => State::Failed { by_me: true, previous, executions },
        Write::Turn => State::Turned { compensation: Compensation::Running, by_me: true, previous },
        Write::TurnAbsent => State::Turned {
            compensation: Compensation::Succeeded,
            by_me: true,
            previous: Previous::Gone,
        },
    }
}

const fn previous_of(state: State) -> Previous {
    match state {
        State::Absent { previous }
        | State::Running { previous, .. }
        | State::Failed { previous, .. }
        | State::Turned { previous, .. } => previous,
        State::Succeeded { .. } => Previous::Gone,
    }
}

const fn whose_of(state: State) -> Whose {
    match state {
        State::Running { whose, .. } => whose,
        State::Absent { .. }
        | State::Failed { .. }
        | State::Succeeded { .. }
        | State::Turned { .. } => Whose::Other,
    }
}

#[cfg(test)]
mod tests;
