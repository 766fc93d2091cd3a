//! What a policy component may use, and the determinism profile it runs under.
//!
//! These are constants, not options: a bound that differs between two machines would let them give
//! different answers to the same payload.

use wasmtime::WasmFeatures;

/// Linear memory of one decision, in bytes.
pub const GUEST_MEMORY_BYTES_MAX: usize = 256 << 20;

/// Native stack of guest code, in bytes. It is a stack of the guest's own, whatever thread asks.
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

/// Bytes of a component, at most. The published policy has 3 MB.
pub const COMPONENT_BYTES_MAX: u64 = 16 << 20;

/// Bytes of code of a component, all functions together. A compiler's time grows with them: the
/// published policy has 2.9 MB.
pub const COMPONENT_CODE_BYTES_MAX: u64 = 8 << 20;

/// Functions of a component. Each costs something however small it is: the published policy has 3,922.
pub const COMPONENT_FUNCTIONS_MAX: u64 = 20_000;

/// Branches of all functions together: blocks, loops, conditions, jumps and targets of jump tables. The
/// published policy has 165,350.
pub const COMPONENT_BRANCHES_MAX: u64 = 500_000;

/// The squares of each function's branches, summed over all functions: what a compiler takes for a
/// function grows with the square. The published policy has 67 million.
pub const COMPONENT_SQUARES_MAX: u64 = 400_000_000;

/// Branches of a function times the values that are known at each of them, summed over all functions. A
/// compiler follows every value through every branch, and keeps it, so its memory grows with this
/// product, too: the published policy has 6 million.
pub const COMPONENT_MERGES_MAX: u64 = 15_000_000;

/// Bytes of one function. The largest of the published policy has 68 KB.
pub const FUNCTION_BYTES_MAX: u64 = 128 << 10;

/// Local variables of one function. The published policy has 106 at most.
pub const FUNCTION_LOCALS_MAX: u64 = 2_000;

/// Branches of one function, as in [`COMPONENT_BRANCHES_MAX`]: 80,000 of them, in a quarter of a megabyte,
/// take minutes. The published policy has 3,425 at most, in a function that reads a keyword.
pub const FUNCTION_BRANCHES_MAX: u64 = 5_000;

/// Loops in loops of one function. Allocating registers asks of every value how many loops it is in, and
/// 2,500 of them take a minute. The published policy has 5 at most.
pub const FUNCTION_LOOP_NESTING_MAX: u64 = 32;

/// Branches of one function times the values at each, as in [`COMPONENT_MERGES_MAX`]. The published policy
/// has 171,000 at most.
pub const FUNCTION_MERGES_MAX: u64 = 400_000;

/// Parameters or results of one function or block. The canonical ABI passes at most 16 of either.
pub const TYPE_ARITY_MAX: u64 = 64;

/// Core modules of a component. Without adapters there is one, and up to two shims.
pub const COMPONENT_MODULES_MAX: u64 = GUEST_INSTANCES_MAX as u64;

/// Instances, of core modules and of components, that a component defines. The published policy has 2,
/// shims add some.
pub const COMPONENT_INSTANCES_MAX: u64 = 16;

/// Functions that a component lifts or lowers, each of which is compiled. A policy exports 2.
pub const COMPONENT_CANONICALS_MAX: u64 = 64;

/// Types, imports, exports, globals, and segments of elements and data that core modules declare, all
/// together. The published policy has 43.
pub const COMPONENT_DECLARATIONS_MAX: u64 = 20_000;

/// Bytes in which a component says what it consists of and which types its interface has: all of it but
/// core modules and custom sections. The published policy has 2 KB.
pub const COMPONENT_INTERFACE_BYTES_MAX: u64 = 64 << 10;

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
