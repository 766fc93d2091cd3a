//! Every state of a protocol, visited. Here and not in a suite, so that the checker is compiled with
//! this crate's optimisation: unoptimised it takes twenty times as long.

use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model as _};

use crate::protocol::{Action, Protocol};

/// What a walk through all states found.
#[derive(Debug)]
pub struct Exploration {
    /// States that differ.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Steps of the longest way without a detour.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// What was asked, and what came of it.
    pub findings: Vec<Finding>,
}

/// One property of the protocol, in all states.
#[derive(Debug)]
pub struct Finding {
    /// The property.
    pub property: &'static str,
    /// Whether it must hold in every state, or be possible in one.
    pub expectation: Expectation,
    /// The way to a state that decides: one where it does not hold, or one where it does.
    pub way: Option<Vec<Action>>,
}

impl Finding {
    /// Whether a promise is broken.
    pub fn is_broken(&self) -> bool {
        self.expectation == Expectation::Always && self.way.is_some()
    }

    /// Whether something that should be possible never happens.
    pub fn is_never(&self) -> bool {
        self.expectation == Expectation::Sometimes && self.way.is_none()
    }
}

/// Visits every state there is.
pub fn explore(protocol: Protocol) -> Exploration {
    walk(protocol, HasDiscoveries::All)
}

/// The first promise that does not hold, and how many steps lead there; stops at the first one.
pub fn first_broken(protocol: Protocol) -> Option<(&'static str, usize)> {
    let walked = walk(protocol, HasDiscoveries::AnyFailures);
    let broken = walked.findings.into_iter().find(Finding::is_broken)?;
    Some((broken.property, broken.way?.len()))
}

fn walk(protocol: Protocol, until: HasDiscoveries) -> Exploration {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = protocol.checker().threads(threads).finish_when(until).spawn_bfs().join();
    let finding = |property: stateright::Property<Protocol>| Finding {
        way: checker.discovery(property.name).map(stateright::Path::into_actions),
        property: property.name,
        expectation: property.expectation,
    };
    Exploration {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: begun.elapsed(),
        findings: protocol.properties().into_iter().map(finding).collect(),
    }
}
