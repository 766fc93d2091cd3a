//! Policy v1 of Tollgate, written for the executor code `sql-jdbc:v1`.
//!
//! It decides on the SQL of a payload and prints the text that may run. It parses natively only in
//! tests: in production it is a WebAssembly component, where a stack overflow is a trap.

mod decision;

#[cfg(target_family = "wasm")]
mod component;

pub use decision::{
    Access, Allowance, Decision, Diagnostic, Edit, Operation, Request, Severity, Span, Statement,
    TableAccess,
};
pub use describe::{Description, LIMITS, Limits, Session, describe};

mod describe;

/// Decides on one payload.
pub fn decide(_request: &Request<'_>) -> Decision {
    Decision::Deny(vec![Diagnostic {
        code: "no-rules",
        severity: Severity::Error,
        message: "this build has no rules".into(),
        help: None,
        statement: None,
        span: None,
        fix: None,
    }])
}
