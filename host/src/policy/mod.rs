//! Policies: pinned WebAssembly components that decide what SQL may run.
//!
//! A [`PolicyStore`] has pins and bytes, a [`PolicyRuntime`] turns bytes whose digest is the pinned
//! one into a [`Policy`], a policy decides, and an allowing [`Decision`] becomes [`Admitted`], the
//! only thing an executor runs. What is not a decision is [`NoDecision`]: never an allow, and never
//! recorded as a denial by rule.
//!
//! Nothing here connects to anything, and no SQL is parsed in this process.
//!
//! ```
//! use tollgate::policy::{DecisionRequest, PolicyRuntime, PolicyStore, RuntimeOptions};
//!
//! let store = PolicyStore::embedded()?;
//! let pin = store.pin(&"sql-jdbc:v1".parse()?)?;
//! let runtime = PolicyRuntime::new(RuntimeOptions::default())?;
//! let policy = runtime.load(pin, &store.component(pin)?)?;
//!
//! let decision = policy.decide(&DecisionRequest {
//!     payload: b"DROP DATABASE plugin_preview",
//!     catalog: &"plugin_preview".parse()?,
//!     protected_tables: &["factory_plugin_target_receipt"],
//! })?;
//! assert!(decision.admit().is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod bindings;
mod cache;
mod compiled;
mod decision;
mod description;
mod engine;
mod error;
mod instance;
mod limits;
mod pins;
mod position;
mod runtime;
#[cfg(feature = "registry")]
mod signed;
mod slots;
mod store;
mod structure;
mod wire;

pub use cache::CompileCache;
pub use decision::{
    Access, Admitted, Decision, Denied, Diagnostic, Edit, Operation, Outcome, Severity, Span,
    Statement, TableAccess,
};
pub use description::{Description, PayloadLimits, Session};
pub use engine::{Allocation, Backend, WASMTIME_VERSION};
pub use error::{LoadError, NoDecision, RuntimeError};
pub use instance::Consumption;
pub use limits::{
    COMPONENT_BRANCHES_MAX, COMPONENT_BYTES_MAX, COMPONENT_CANONICALS_MAX,
    COMPONENT_CODE_BYTES_MAX, COMPONENT_DECLARATIONS_MAX, COMPONENT_FUNCTIONS_MAX,
    COMPONENT_INSTANCES_MAX, COMPONENT_INTERFACE_BYTES_MAX, COMPONENT_MERGES_MAX,
    COMPONENT_MODULES_MAX, COMPONENT_SQUARES_MAX, FUNCTION_BRANCHES_MAX, FUNCTION_BYTES_MAX,
    FUNCTION_LOCALS_MAX, FUNCTION_LOOP_NESTING_MAX, FUNCTION_MERGES_MAX, GUEST_FUEL_MAX,
    GUEST_INSTANCES_MAX, GUEST_MEMORIES_MAX, GUEST_MEMORY_BYTES_MAX, GUEST_STACK_BYTES_MAX,
    GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX, TYPE_ARITY_MAX,
};
pub use pins::{Pins, PinsError, PolicyPin, UNKNOWN_COMPILER};
pub use position::{LineIndex, Position, PositionSpan};
pub use runtime::{
    CacheUse, DecisionRequest, PROTECTED_TABLES, Policy, PolicyRuntime, RuntimeOptions,
};
#[cfg(feature = "registry")]
pub use signed::{read_signature, signature_path, verified_signature};
pub use store::{PINS_FILE, PolicyStore, StoreError, read_component};
