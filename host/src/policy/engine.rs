//! The wasmtime engine policies run in.
//!
//! Engines with one behaviour. The usual one keeps a pool of instance slots in reserved address
//! space; where the machine cannot reserve that much (`ulimit -v`, small containers), memory is
//! allocated on demand with explicit bounds checks. What executes the code is a choice as well:
//! machine code by default, bytecode for wasmtime's interpreter where that is built in.

use std::num::NonZeroU32;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig,
    WasmFeatures,
};

use super::limits::{
    FEATURES, GUEST_INSTANCES_MAX, GUEST_MEMORIES_MAX, GUEST_MEMORY_BYTES_MAX,
    GUEST_STACK_BYTES_MAX, GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX,
};

/// How instances get their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Slots in reserved address space.
    Pooled,
    /// Memory mapped for each decision.
    OnDemand,
}

/// What executes a component's code.
///
/// The answers are the same: every backend runs under one determinism profile, counts fuel by the
/// same instructions, and is held to the same decision digests over the whole corpus by a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// The processor, by machine code that Cranelift makes.
    #[default]
    Native,
    /// Pulley, wasmtime's portable interpreter: many times slower, and no generated machine
    /// code. For machines Cranelift has no code generator for, and for whoever wants a second
    /// opinion of the code generator.
    #[cfg(feature = "pulley")]
    Pulley,
}

impl Backend {
    /// The target to compile for; `None` is this machine.
    const fn target(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            #[cfg(feature = "pulley")]
            Self::Pulley => Some(PULLEY_TARGET),
        }
    }
}

/// The interpreter of this machine's word size and byte order.
#[cfg(feature = "pulley")]
const PULLEY_TARGET: &str =
    match (cfg!(target_pointer_width = "64"), cfg!(target_endian = "little")) {
        (true, true) => "pulley64",
        (true, false) => "pulley64be",
        (false, true) => "pulley32",
        (false, false) => "pulley32be",
    };

/// The version of wasmtime this host is built with, for evidence that names what made it.
pub const WASMTIME_VERSION: &str = "48.0.8";

/// Linear memory that stays resident in an idle slot, in bytes: clearing what was written of it is
/// cheaper than faulting it in again. A payload of 440 kB, the largest that is usual, takes as much.
const KEEP_RESIDENT_BYTES: usize = 16 << 20;

/// What the host's side of a call takes of a guest's stack besides the guest: wasmtime asks for some
/// hundred kilobytes.
const HOST_STACK_BYTES: usize = 1 << 20;

/// Builds the engine: pooled when the machine can reserve the address space.
pub(super) fn build(
    slots: NonZeroU32,
    backend: Backend,
    allocation: Option<Allocation>,
) -> wasmtime::Result<(Engine, Allocation)> {
    if allocation != Some(Allocation::OnDemand) {
        let mut config = profile(backend)?;
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(slots.get())));
        match Engine::new(&config) {
            Ok(engine) => return Ok((engine, Allocation::Pooled)),
            Err(error) if allocation.is_some() => return Err(error),
            Err(error) => {
                tracing::debug!(%error, "no address space for a pool; memory is allocated on demand");
            }
        }
    }
    let mut config = profile(backend)?;
    config
        .memory_reservation(0)
        .memory_guard_size(0)
        .memory_reservation_for_growth(1 << 20)
        .memory_may_move(true);
    Ok((Engine::new(&config)?, Allocation::OnDemand))
}

/// What every engine has in common: all that can change an answer.
fn profile(backend: Backend) -> wasmtime::Result<Config> {
    let mut config = Config::new();
    if let Some(target) = backend.target() {
        config.target(target)?;
    }
    config
        .wasm_features(WasmFeatures::all(), false)
        .wasm_features(FEATURES, true)
        .cranelift_nan_canonicalization(true)
        .cranelift_opt_level(OptLevel::Speed)
        .consume_fuel(true)
        .max_wasm_stack(GUEST_STACK_BYTES_MAX)
        .async_stack_size(GUEST_STACK_BYTES_MAX + HOST_STACK_BYTES)
        .concurrency_support(false)
        // A trap is reported by its kind. Without the tables for backtraces a compiled policy is
        // a sixth smaller, and a process starts the faster for it.
        .generate_address_map(false)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false);
    Ok(config)
}

fn pool(slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(GUEST_INSTANCES_MAX))
        .total_memories(slots.saturating_mul(GUEST_MEMORIES_MAX))
        .total_tables(slots.saturating_mul(GUEST_TABLES_MAX))
        .total_stacks(slots)
        .max_core_instances_per_component(GUEST_INSTANCES_MAX)
        .max_memories_per_component(GUEST_MEMORIES_MAX)
        .max_tables_per_component(GUEST_TABLES_MAX)
        .max_memory_size(GUEST_MEMORY_BYTES_MAX)
        .table_elements(GUEST_TABLE_ELEMENTS_MAX)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES)
        // Asks the kernel which pages were written, and clears those alone (Linux 6.7 and later).
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(slots);
    pool
}

/// The determinism profile as wasmtime reports it.
#[cfg(test)]
pub(super) fn describe(engine: &Engine) -> String {
    use std::fmt::Write as _;

    let features = engine.get_wasm_features();
    let mut text = String::new();
    for (name, flag) in WasmFeatures::all().iter_names() {
        let _ = writeln!(text, "{} {}", if features.contains(flag) { '+' } else { '-' }, name);
    }
    let _ = writeln!(text, "strategy {:?}", engine.get_strategy());
    let _ =
        writeln!(text, "nan-canonicalization {:?}", engine.get_cranelift_nan_canonicalization());
    let _ = writeln!(text, "opt-level {:?}", engine.get_cranelift_opt_level());
    let _ = writeln!(text, "consume-fuel {}", engine.get_consume_fuel());
    let _ = writeln!(text, "epoch-interruption {}", engine.get_epoch_interruption());
    let _ = writeln!(text, "max-wasm-stack {}", engine.get_max_wasm_stack());
    let _ = writeln!(text, "shared-memory {}", engine.get_shared_memory());
    let _ = writeln!(text, "concurrency {}", engine.get_concurrency_support());
    for flag in engine.get_cranelift_flags_enabled() {
        let _ = writeln!(text, "flag {flag}");
    }
    for (name, value) in engine.get_cranelift_flags_set() {
        let _ = writeln!(text, "flag {name}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKENDS: &[Backend] = &[
        Backend::Native,
        #[cfg(feature = "pulley")]
        Backend::Pulley,
    ];

    #[test]
    fn the_version_of_wasmtime_is_the_one_that_is_locked() {
        let locked = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"wasmtime\"\nversion = \"{WASMTIME_VERSION}\"\n");
        assert!(locked.contains(&entry), "wasmtime is no longer {WASMTIME_VERSION}");
    }

    #[test]
    fn the_determinism_profile_is_the_published_one_in_every_engine() {
        for backend in BACKENDS {
            for allocation in [Allocation::Pooled, Allocation::OnDemand] {
                let (engine, got) = build(NonZeroU32::MIN, *backend, Some(allocation)).unwrap();
                assert_eq!(got, allocation);
                assert_eq!(describe(&engine), include_str!("determinism-profile.txt"));
                assert_eq!(engine.is_pulley(), *backend != Backend::Native);
            }
        }
    }
}
