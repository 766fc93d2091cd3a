//! One call in one fresh instance: its budgets, and what it means when it does not come back.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use wasmtime::{Engine, ResourceLimiter, Store, Trap};

use super::bindings::PolicyPre;
use super::bindings::gate::Guest;
use super::error::NoDecision;
use super::limits::{
    GUEST_FUEL_MAX, GUEST_INSTANCES_MAX, GUEST_MEMORIES_MAX, GUEST_MEMORY_BYTES_MAX,
    GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX,
};

/// Fuel after which a guest hands control back, so that the deadline is looked at: a millisecond's worth
/// of machine code, some ten of interpreted code. What one instruction copies or fills costs a unit a
/// byte (wasmtime's `VariableOperatorCost`), so no instruction takes longer than its fuel.
const FUEL_PER_TURN: u64 = 2_000_000;

/// What one call took. The same component and request take the same anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumption {
    /// In wasmtime's units of fuel, of [`GUEST_FUEL_MAX`].
    pub fuel: u64,
    /// Linear memory in bytes at its largest, of [`GUEST_MEMORY_BYTES_MAX`].
    pub memory_bytes: usize,
}

/// What a store holds: the bounds of its guest, and how much memory it has taken.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    memory_bytes: usize,
}

/// The guest asked for more than it may have.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("more than {allowed} {unit}")]
struct Exhausted {
    allowed: usize,
    unit: &'static str,
}

impl Bounds {
    fn within(desired: usize, allowed: usize, unit: &'static str) -> wasmtime::Result<bool> {
        if desired > allowed { Err(Exhausted { allowed, unit }.into()) } else { Ok(true) }
    }
}

impl ResourceLimiter for Bounds {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = Self::within(desired, GUEST_MEMORY_BYTES_MAX, "bytes of memory")?;
        // A memory never shrinks, and there is one.
        self.memory_bytes = desired;
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Self::within(desired, GUEST_TABLE_ELEMENTS_MAX, "table elements")
    }

    fn instances(&self) -> usize {
        // A component's own instance counts as one more.
        GUEST_INSTANCES_MAX as usize + 1
    }

    fn tables(&self) -> usize {
        GUEST_TABLES_MAX as usize
    }

    fn memories(&self) -> usize {
        GUEST_MEMORIES_MAX as usize
    }
}

/// Calls the guest in an instance that exists for this call alone.
pub(super) fn call<R>(
    engine: &Engine,
    policy: &PolicyPre<Bounds>,
    deadline: Duration,
    call: impl AsyncFnOnce(&Guest, &mut Store<Bounds>) -> wasmtime::Result<R>,
) -> Result<(R, Consumption), NoDecision> {
    let late = || NoDecision::Deadline { deadline };
    let begun = Instant::now();
    let mut store = Store::new(engine, Bounds::default());
    store.limiter(|bounds| bounds);
    let instance = store
        .set_fuel(GUEST_FUEL_MAX)
        .and_then(|()| store.fuel_async_yield_interval(Some(FUEL_PER_TURN)))
        .and_then(|()| {
            let instantiated = policy.instantiate_async(&mut store);
            drive(instantiated, begun, deadline).transpose()
        })
        .map_err(|error| bound_or_trap(&error).unwrap_or(NoDecision::Host(error)))?
        .ok_or_else(late)?;
    let called = call(instance.tollgate_policy_gate(), &mut store);
    let answer = drive(called, begun, deadline).ok_or_else(late)?;
    let consumed = Consumption {
        fuel: GUEST_FUEL_MAX.saturating_sub(store.get_fuel().unwrap_or_default()),
        memory_bytes: store.data().memory_bytes,
    };
    tracing::debug!(fuel = consumed.fuel, memory_bytes = consumed.memory_bytes);
    answer.map(|answer| (answer, consumed)).map_err(|error| {
        // What is left is an argument or a result that does not fit the canonical ABI, such as an
        // address outside the guest's memory: a trap as well, found by the host.
        let reason = || NoDecision::Trap { reason: error.to_string() };
        bound_or_trap(&error).unwrap_or_else(reason)
    })
}

/// Goes on with a guest that hands control back each [`FUEL_PER_TURN`]; `None` once the deadline is over.
/// What is left of the guest's turn then is unwound, as by a trap.
fn drive<T>(guest: impl Future<Output = T>, begun: Instant, deadline: Duration) -> Option<T> {
    let mut guest = pin!(guest);
    // Nobody has to wake it: it waits for nothing.
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(answer) = guest.as_mut().poll(&mut context) {
            return Some(answer);
        }
        if begun.elapsed() >= deadline {
            return None;
        }
    }
}

fn bound_or_trap(error: &wasmtime::Error) -> Option<NoDecision> {
    if let Some(&Exhausted { allowed, unit }) = error.downcast_ref() {
        return Some(NoDecision::Memory { allowed, unit });
    }
    Some(match error.downcast_ref()? {
        Trap::OutOfFuel => NoDecision::Fuel { fuel_max: GUEST_FUEL_MAX },
        trap => NoDecision::Trap { reason: trap.to_string() },
    })
}
