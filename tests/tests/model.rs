//! The receipt's protocol, every interleaving of it: two workers on one step, its compensation, deaths,
//! lost answers, statements that outlive their worker, leases that end at any moment.
//!
//! The machine and the conditions of its writes are the product's own; see `tests/model`.

use std::time::Instant;

use tollgate_model::{Cast, Payload, Protocol, ends_are_reachable, explore};
use tollgate_tests::asked::number;

/// Who is at work, and how many faults may happen in one run. More of them take more time than a test
/// has.
///
/// A lease that ends is no fault, so that even without one a worker acts on after it lost its step.
fn casts(payload: Payload) -> [(Cast, u8); 3] {
    // With DDL each state has more that may follow.
    let of_three = u8::from(payload == Payload::Dml);
    [(Cast::Two, 3), (Cast::OneAndBack, 2), (Cast::TwoAndBack, of_three)]
}

/// `TOLLGATE_MODEL_MORE_FAULTS` adds to that, for a machine with time: one more takes minutes.
fn more_faults() -> u8 {
    number("TOLLGATE_MODEL_MORE_FAULTS").map_or(0, |more| u8::try_from(more).expect("a few"))
}

/// What has to be possible in a model with these workers and faults, so that the rest says something.
fn is_expected(cast: Cast, faults: u8, name: &str) -> bool {
    match name {
        "a step is taken back" | "a step that never ran is barred" => cast != Cast::Two,
        "a statement outlives its worker"
        | "a COMMIT outlives its worker"
        | "a ledger write outlives its connection" => faults > 0,
        _ => true,
    }
}

fn check(payload: Payload) {
    for (cast, faults) in casts(payload) {
        let faults = faults + more_faults();
        let walked = explore(Protocol::of(payload, cast, Some(faults)));
        println!(
            "{payload:?}, {cast:?}, {faults} fault(s): {} states, {} steps, {} deep, {:.1} s",
            walked.states,
            walked.steps,
            walked.depth,
            walked.took.as_secs_f32(),
        );
        for finding in &walked.findings {
            let name = finding.property;
            assert!(!finding.is_broken(), "`{name}` does not hold after {:#?}", finding.way);
            let is_asked = is_expected(cast, faults, name);
            assert!(!is_asked || !finding.is_never(), "`{name}` never happens in the model");
        }
    }
}

#[test]
fn a_payload_of_dml_keeps_every_promise_in_every_interleaving() {
    check(Payload::Dml);
}

#[test]
fn a_payload_with_ddl_keeps_every_promise_in_every_interleaving() {
    check(Payload::Ddl);
}

#[test]
fn from_everywhere_an_end_is_reached_without_another_fault() {
    for payload in [Payload::Dml, Payload::Ddl] {
        for (cast, faults) in [(Cast::Two, 2), (Cast::OneAndBack, 1)] {
            let begun = Instant::now();
            let reach = ends_are_reachable(Protocol::of(payload, cast, Some(faults)));
            println!(
                "{payload:?}, {cast:?}, {faults} fault(s): {} states, {} ends, {:.1} s",
                reach.states,
                reach.ends,
                begun.elapsed().as_secs_f32(),
            );
            assert!(reach.ends > 0, "no end is reached at all");
            assert_eq!(reach.stuck, None, "no way out");
        }
    }
}
