//! The receipt's protocol, every interleaving of it: two workers on one step, its compensation, deaths,
//! lost answers, statements that outlive their worker, leases that end at any moment.
//!
//! The machine and the conditions of its writes are the product's own; see `tests/src/model`.

use std::time::Instant;

use stateright::{Checker, Expectation, Model as _, Property};
use tollgate_tests::model::{Cast, Payload, Protocol, ends_are_reachable};

/// Who is at work, and how many faults may happen in one run. More of them
/// take more time than a test has.
///
/// A lease that ends is no fault, so that even without one a worker acts on after it lost its step.
fn casts(payload: Payload) -> [(Cast, u8); 3] {
    // With DDL each state has more that may follow: even one fault costs minutes there.
    let of_three = u8::from(payload == Payload::Dml);
    [(Cast::Two, 2), (Cast::OneAndBack, 2), (Cast::TwoAndBack, of_three)]
}

/// What has to be possible in a model with these workers and faults, so that the rest says something.
fn is_expected(cast: Cast, faults: u8, name: &str) -> bool {
    match name {
        "a step is taken back" | "a step that never ran is barred" => cast != Cast::Two,
        "a statement outlives its worker" | "a COMMIT outlives its worker" => faults > 0,
        _ => true,
    }
}

fn explore(payload: Payload) {
    for (cast, faults) in casts(payload) {
        let begun = Instant::now();
        let protocol = Protocol::of(payload, cast, Some(faults));
        let checker = protocol.checker().threads(2).spawn_bfs().join();
        println!(
            "{payload:?}, {cast:?}, {faults} fault(s): {} states, {} steps, {} deep, {:.1} s",
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            begun.elapsed().as_secs_f32(),
        );
        for property in protocol.properties() {
            if is_expected(cast, faults, property.name) {
                judge(&checker, &property);
            }
        }
    }
}

/// Stops with the property that does not hold and a way there.
fn judge(checker: &impl Checker<Protocol>, property: &Property<Protocol>) {
    match (&property.expectation, checker.discovery(property.name)) {
        (Expectation::Sometimes, None) => {
            panic!("`{}` never happens in the model", property.name)
        }
        (Expectation::Always, Some(path)) => {
            panic!("`{}` does not hold after {:#?}", property.name, path.into_actions())
        }
        _ => {}
    }
}

#[test]
fn a_payload_of_dml_keeps_every_promise_in_every_interleaving() {
    explore(Payload::Dml);
}

#[test]
fn a_payload_with_ddl_keeps_every_promise_in_every_interleaving() {
    explore(Payload::Ddl);
}

#[test]
fn from_everywhere_an_end_is_reached_without_another_fault() {
    for payload in [Payload::Dml, Payload::Ddl] {
        for (cast, faults) in [(Cast::Two, 1), (Cast::OneAndBack, 1)] {
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
