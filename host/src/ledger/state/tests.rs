//! Every pair of state and event, and what must hold over all of them.

use std::fmt::Write as _;

use super::*;

const PREVIOUS: [Previous; 2] = [Previous::Gone, Previous::Present];
const EXECUTIONS: [Executions; 2] = [Executions::BelowBound, Executions::AtBound];
const FITS: [Fit; 4] = [Fit::Same, Fit::OtherIdentity, Fit::OtherPin, Fit::OppositeRunning];

fn states() -> Vec<State> {
    let mut states = vec![State::Succeeded { by_me: true }, State::Succeeded { by_me: false }];
    for previous in PREVIOUS {
        states.push(State::Absent { previous });
        for executions in EXECUTIONS {
            for by_me in [true, false] {
                states.push(State::Failed { by_me, previous, executions });
            }
            for whose in [Whose::Other, Whose::MineWaiting, Whose::Mine] {
                for lease in [LeaseTime::Open, LeaseTime::Over] {
                    states.push(State::Running { whose, lease, previous, executions });
                }
            }
        }
        for compensation in [Compensation::Running, Compensation::Failed, Compensation::Succeeded] {
            for by_me in [true, false] {
                states.push(State::Turned { compensation, by_me, previous });
            }
        }
    }
    states
}

fn events() -> Vec<Event> {
    let mut events = vec![
        Event::PreviousGone,
        Event::PreviousRemains,
        Event::Check,
        Event::Renew,
        Event::Complete,
        Event::Fail,
        Event::Inspect,
        Event::Release,
    ];
    for fit in FITS {
        events.extend([Event::Claim(fit), Event::Turn(fit)]);
    }
    events
}

fn pairs() -> impl Iterator<Item = (State, Event, Transition)> {
    states().into_iter().flat_map(|state| {
        events().into_iter().map(move |event| (state, event, transition(state, event)))
    })
}

/// A state a paragraph, the events that come to the same on one line.
fn table() -> String {
    let mut table = String::new();
    for state in states() {
        writeln!(table, "{state:?}").unwrap();
        let mut outcomes: Vec<(Transition, Vec<String>)> = Vec::new();
        for event in events() {
            let outcome = transition(state, event);
            let named = format!("{event:?}");
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, events)) => events.push(named),
                None => outcomes.push((outcome, vec![named])),
            }
        }
        for (Transition { write, answer }, events) in outcomes {
            let write = write.map_or_else(String::new, |write| format!("{write:?}, "));
            writeln!(table, "    {write}{answer:?} ← {}", events.join(" ")).unwrap();
        }
    }
    table
}

#[test]
fn every_pair_is_as_reviewed() {
    let table = table();
    let reviewed = include_str!("table.txt");
    for (line, (now, before)) in table.lines().zip(reviewed.lines()).enumerate() {
        assert_eq!(now, before, "line {} of host/src/ledger/state/table.txt", line + 1);
    }
    assert_eq!(table.lines().count(), reviewed.lines().count());
}

#[test]
fn succeeded_is_final() {
    for (state, event, transition) in pairs() {
        if matches!(state, State::Succeeded { .. }) {
            // A compensation bars the step; it does not undo its receipt.
            assert!(matches!(transition.write, None | Some(Write::Turn)), "{event:?}");
        }
    }
}

#[test]
fn an_open_lease_is_touched_by_its_holder_or_an_operator_only() {
    for (state, event, transition) in pairs() {
        if let State::Running { whose: Whose::Other, lease: LeaseTime::Open, .. } = state {
            let by_operator = event == Event::Release;
            assert!(by_operator || transition.write.is_none(), "{state:?} {event:?}");
        }
    }
}

#[test]
fn nothing_runs_while_an_earlier_session_may() {
    for (state, event, Transition { write, answer }) in pairs() {
        let unknown = event != Event::PreviousGone && previous_of(state) == Previous::Present;
        let held = matches!(state, State::Running { whose: Whose::Mine, .. });
        if answer == Answer::Granted && !held {
            assert!(!unknown, "{state:?} {event:?}");
            assert!(write.is_some(), "{state:?} {event:?} was granted without a write");
        }
    }
}

#[test]
fn only_the_token_completes_fails_or_prolongs() {
    for (state, event, Transition { write, .. }) in pairs() {
        let mine = matches!(state, State::Running { whose: Whose::Mine | Whose::MineWaiting, .. });
        if let Some(Write::Complete | Write::RecordFailure | Write::Extend | Write::Adopt) = write {
            assert!(mine, "{state:?} {event:?}");
        }
    }
}

#[test]
fn a_turned_step_never_runs_again() {
    for (state, event, Transition { write, answer }) in pairs() {
        if matches!(state, State::Turned { .. }) {
            assert_eq!(write, None, "{state:?} {event:?}");
            assert_ne!(answer, Answer::Granted, "{state:?} {event:?}");
        }
    }
}

#[test]
fn another_identity_never_writes() {
    for (state, event, Transition { write, .. }) in pairs() {
        if let Event::Claim(Fit::OtherIdentity) | Event::Turn(Fit::OtherIdentity) = event {
            // Without a row there is nothing to differ from.
            assert!(
                write.is_none() || matches!(state, State::Absent { .. }),
                "{state:?} {event:?}"
            );
        }
    }
}

/// Repeating an event after its write applied changes nothing more, or nothing but the lease.
#[test]
fn the_writer_sees_what_it_wrote() {
    for (state, event, Transition { write, answer }) in pairs() {
        let Some(written) = write else { continue };
        let next = after(state, written, Executions::BelowBound);
        match answer {
            Answer::Granted => {
                assert_eq!(transition(next, Event::Check).answer, Answer::Held);
                assert_eq!(transition(next, Event::Complete).write, Some(Write::Complete));
            }
            Answer::ClearPrevious => {
                assert_eq!(transition(next, Event::Check).answer, Answer::LeaseLost);
                assert_eq!(transition(next, Event::Complete).write, None);
                assert_eq!(transition(next, Event::PreviousGone).answer, Answer::Granted);
            }
            Answer::Completed => {
                assert_eq!(transition(next, Event::Inspect).answer, Answer::CompletedByMe);
            }
            Answer::FailureRecorded => {
                assert_eq!(transition(next, Event::Fail).answer, Answer::FailureRecorded);
            }
            Answer::Turned => {
                let again = transition(next, Event::Turn(Fit::Same));
                assert_eq!(again.answer, Answer::Turned, "{state:?} {event:?}");
            }
            _ => {}
        }
    }
}
