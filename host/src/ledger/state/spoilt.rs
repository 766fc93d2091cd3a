//! The machine under planted bugs: each takes one state for another.

use super::{Event, Executions, LeaseTime, Previous, State, Whose};
use crate::planted::{Bug, is_planted};

/// The state the machine takes this one for.
pub(super) fn seen(mut state: State, event: Event) -> State {
    match event {
        Event::Claim(_) => {
            claimed(&mut state);
            match state {
                State::Turned { previous, .. } if is_planted(Bug::SupersededForwardRuns) => {
                    State::Failed { by_me: false, previous, executions: Executions::BelowBound }
                }
                state => state,
            }
        }
        Event::Turn(_) => {
            if let State::Running { lease, .. } = &mut state
                && is_planted(Bug::CompensateRunningForward)
            {
                *lease = LeaseTime::Over;
            }
            state
        }
        Event::Inspect => match state {
            State::Succeeded { by_me: true } if is_planted(Bug::FailedOverSucceeded) => {
                State::Running {
                    whose: Whose::Mine,
                    lease: LeaseTime::Open,
                    previous: Previous::Gone,
                    executions: Executions::BelowBound,
                }
            }
            state => state,
        },
        _ => state,
    }
}

fn claimed(state: &mut State) {
    if let State::Running { lease, .. } = state
        && is_planted(Bug::ClaimOverOpenLease)
    {
        *lease = LeaseTime::Over;
    }
    if let State::Running { executions, .. } | State::Failed { executions, .. } = state
        && is_planted(Bug::ExecutionsUnbounded)
    {
        *executions = Executions::BelowBound;
    }
    if let State::Absent { previous }
    | State::Running { previous, .. }
    | State::Failed { previous, .. } = state
        && is_planted(Bug::TakeoverWithoutKill)
    {
        *previous = Previous::Gone;
    }
}
