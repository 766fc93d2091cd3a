//! One call in one fresh instance: its budgets, and what it means when it does not come back.

use std::time::Duration;

use wasmtime::{Engine, ResourceLimiter, Store, Trap};

use super::bindings::PolicyPre;
use super::bindings::gate::Guest;
use super::error::NoDecision;
use super::limits::{
    GUEST_FUEL_MAX, GUEST_INSTANCES_MAX, GUEST_MEMORIES_MAX, GUEST_MEMORY_BYTES_MAX,
    GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX,
};
use super::watchdog::Watchdog;

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
    watchdog: &Watchdog,
    deadline: Duration,
    call: impl FnOnce(&Guest, &mut Store<Bounds>) -> wasmtime::Result<R>,
) -> Result<(R, Consumption), NoDecision> {
    let _ticking = watchdog.watch();
    let mut store = Store::new(engine, Bounds::default());
    store.limiter(|bounds| bounds);
    store.epoch_deadline_trap();
    store.set_epoch_deadline(Watchdog::epochs(deadline));
    let instance = store
        .set_fuel(GUEST_FUEL_MAX)
        .and_then(|()| policy.instantiate(&mut store))
        .map_err(|error| bound_or_trap(&error, deadline).unwrap_or(NoDecision::Host(error)))?;
    let answer = call(instance.tollgate_policy_gate(), &mut store);
    let consumed = Consumption {
        fuel: GUEST_FUEL_MAX.saturating_sub(store.get_fuel().unwrap_or_default()),
        memory_bytes: store.data().memory_bytes,
    };
    tracing::debug!(fuel = consumed.fuel, memory_bytes = consumed.memory_bytes);
    answer.map(|answer| (answer, consumed)).map_err(|error| {
        // What is left is an argument or a result that does not fit the canonical ABI, such as an
        // address outside the guest's memory: a trap as well, found by the host.
        let reason = || NoDecision::Trap { reason: error.to_string() };
        bound_or_trap(&error, deadline).unwrap_or_else(reason)
    })
}

fn bound_or_trap(error: &wasmtime::Error, deadline: Duration) -> Option<NoDecision> {
    if let Some(&Exhausted { allowed, unit }) = error.downcast_ref() {
        return Some(NoDecision::Memory { allowed, unit });
    }
    Some(match error.downcast_ref()? {
        Trap::OutOfFuel => NoDecision::Fuel { fuel_max: GUEST_FUEL_MAX },
        Trap::Interrupt => NoDecision::Deadline { deadline },
        trap => NoDecision::Trap { reason: trap.to_string() },
    })
}
