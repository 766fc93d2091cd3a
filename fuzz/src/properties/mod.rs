//! What must hold for every payload there is.
//!
//! Each property takes a payload and says what is wrong with the policy's answer to it.

mod decided;
mod lexer;
mod names;
mod redecided;

use tollgate_policy::{Decision, Request};

pub use decided::decided;
pub use lexer::{Lexeme, Mark, lex};
pub use names::names;
pub use redecided::redecided;

/// The catalog every payload is decided for.
pub const CATALOG: &str = "plugin_preview";

/// Tables of that catalog that belong to the host.
pub const PROTECTED_TABLES: &[&str] = &["factory_plugin_target_receipt", "Ledger"];

/// What does not hold.
pub type Violation = String;

/// A property of the answer to a payload.
pub type Property = fn(&[u8]) -> Result<(), Violation>;

/// Every property, by the name of its fuzz target.
pub const PROPERTIES: &[(&str, Property)] =
    &[("decide", decided), ("redecide", redecided), ("names", names)];

fn decide(payload: &[u8]) -> Decision {
    tollgate_policy::decide(&Request {
        payload,
        catalog: CATALOG,
        protected_tables: PROTECTED_TABLES,
    })
}

/// Says what is wrong unless it holds.
fn ensure(holds: bool, violation: impl FnOnce() -> Violation) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(violation()) }
}
