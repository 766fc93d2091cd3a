//! Liveness: from every state that faults can lead to, an end can be reached without another fault.
//!
//! The checker's own `eventually` does not follow cycles, and a protocol that waits and retries is
//! full of them. So the reachable states are enumerated once more with the steps between them that
//! are no faults, and walked backwards from the ends: what is not met has no way out.

use std::collections::HashMap;
use std::collections::VecDeque;

use stateright::Model;

use crate::protocol::Protocol;
use crate::world::World;

/// What the walk found.
#[derive(Debug)]
pub struct Reach {
    /// States that can be reached.
    pub states: usize,
    /// Those among them that are ends.
    pub ends: usize,
    /// One from which no end can be reached.
    pub stuck: Option<World>,
}

/// Walks the protocol.
pub fn ends_are_reachable(protocol: Protocol) -> Reach {
    let (worlds, before) = explore(protocol);
    let mut has_way_out = vec![false; worlds.len()];
    let mut queue = VecDeque::new();
    for (number, world) in worlds.iter().enumerate() {
        if world.is_over() {
            has_way_out[number] = true;
            queue.push_back(number);
        }
    }
    let ends = queue.len();
    while let Some(number) = queue.pop_front() {
        for earlier in before[number].iter().map(|earlier| *earlier as usize) {
            if !has_way_out[earlier] {
                has_way_out[earlier] = true;
                queue.push_back(earlier);
            }
        }
    }
    let stuck = has_way_out.iter().position(|has| !has).map(|number| worlds[number]);
    Reach { states: worlds.len(), ends, stuck }
}

/// Every reachable state, and for each the states from which it is one step that is no fault.
fn explore(protocol: Protocol) -> (Vec<World>, Vec<Vec<u32>>) {
    let mut worlds = protocol.init_states();
    let mut numbers: HashMap<World, usize> =
        worlds.iter().enumerate().map(|(number, world)| (*world, number)).collect();
    let mut before = vec![Vec::new(); worlds.len()];
    let (mut at, mut actions) = (0, Vec::new());
    while let Some(world) = worlds.get(at).copied() {
        actions.clear();
        protocol.actions(&world, &mut actions);
        for action in actions.iter().copied() {
            let Some(next) = protocol.next_state(&world, action) else { continue };
            let number = *numbers.entry(next).or_insert_with(|| {
                worlds.push(next);
                before.push(Vec::new());
                worlds.len() - 1
            });
            if Protocol::is_fair(&world, action) {
                before[number].push(u32::try_from(at).expect("fewer states than that"));
            }
        }
        at += 1;
    }
    (worlds, before)
}
