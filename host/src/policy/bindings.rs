//! The host's side of wit/policy.wit, generated; `answer` turns it into the model.

wasmtime::component::bindgen!({
    world: "policy",
    path: "../wit",
    ownership: Borrowing { duplicate_if_necessary: true },
    exports: { default: async },
});

pub(super) use exports::tollgate::policy::gate;

/// The one export, as the component's type spells it.
pub(super) const GATE: &str = "tollgate:policy/gate@1.0.0";

/// Its functions.
pub(super) const GATE_FUNCTIONS: [&str; 2] = ["decide", "describe"];
