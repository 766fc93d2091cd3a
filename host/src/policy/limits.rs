//! What a policy component may use, and the determinism profile it runs under.
//!
//! These are constants, not options: a bound that differs between two machines would let them give
//! different answers to the same payload.

use wasmtime::WasmFeatures;

/// Linear memory of one decision, in bytes.
pub const GUEST_MEMORY_BYTES_MAX: usize = 256 << 20;

/// Native stack of guest code, in bytes. Callers of [`Policy::decide`](super::Policy::decide) need
/// a thread with twice that, which is what Rust gives a thread by default.
pub const GUEST_STACK_BYTES_MAX: usize = 1 << 20;

/// Elements of one table. The published policy has fewer than 2,000 indirect functions.
pub const GUEST_TABLE_ELEMENTS_MAX: usize = 20_000;

/// Core instances of a component. Without adapters there is one, and up to two shims.
pub const GUEST_INSTANCES_MAX: u32 = 4;

/// Tables of a component.
pub const GUEST_TABLES_MAX: u32 = 4;

/// Linear memories of a component.
pub const GUEST_MEMORIES_MAX: u32 = 1;

/// Budget of one call, in wasmtime's units of fuel (about one per instruction): the deterministic
/// bound that decides. The most expensive payloads within policy v1's limits (100 statements of 900
/// operators each) take half of it and just under a second.
pub const GUEST_FUEL_MAX: u64 = 10_000_000_000;

/// The WebAssembly proposals a policy may use: what rustc emits for `wasm32-unknown-unknown`, and
/// the component model. None of them depends on the machine: no SIMD (relaxed SIMD least of all),
/// no threads, no 64-bit or multiple memories.
pub(super) const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::CALL_INDIRECT_OVERLONG)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::BULK_MEMORY_OPT)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::COMPONENT_MODEL);
