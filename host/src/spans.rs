//! What spans are called and which fields they have, and how a part of the work is put in one.
//!
//! Names and fields are stable, and listed in `docs/metrics.md`: traces are searched by them. No field
//! holds a statement, a literal of a payload, an account or the name of a server.

use std::fmt::Display;
use std::pin::Pin;

use tracing::{Instrument as _, Span};

/// A span.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// Its fields. One that has nothing to say is absent.
    pub fields: &'static [&'static str],
    /// What lies in it.
    pub about: &'static str,
}

/// Every span, in the order of its documentation.
pub const LIST: &[Listed] = &[
    Listed {
        name: "delivery",
        fields: &["step_key", "plan", "attempt", "status"],
        about: "a worker's step, from its claim in the outbox to its record there",
    },
    Listed {
        name: "step",
        fields: &["step_key", "plugin", "direction", "executor", "outcome", "code"],
        about: "one execution by its executor",
    },
    Listed {
        name: "decision",
        fields: &["policy_digest", "outcome", "code"],
        about: "the policy decides on a payload",
    },
    Listed {
        name: "open",
        fields: &["code"],
        about: "a target session is opened and every isolation check made, or one that was kept is taken",
    },
    Listed { name: "claim", fields: &["result", "code"], about: "a receipt's lease is asked for" },
    Listed {
        name: "takeover",
        fields: &["session", "code"],
        about: "an earlier holder's session is ended and waited for",
    },
    Listed {
        name: "statement",
        fields: &["statement_index", "operation", "affected_rows", "code"],
        about: "one statement of a payload runs",
    },
    Listed {
        name: "completion",
        fields: &["code"],
        about: "the receipt is completed in the payload's transaction, which commits",
    },
    Listed { name: "request", fields: &["method", "path", "status"], about: "the page answers" },
];

/// A part of the work. Boxed: a future that is handed on from one to the next is in each of them.
pub(crate) type Part<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Runs a part of the work in a span, which keeps the code of what went wrong.
pub(crate) async fn within<T, E>(
    span: Span,
    code: impl FnOnce(&E) -> &'static str,
    part: Part<'_, T, E>,
) -> Result<T, E> {
    let result = part.instrument(span.clone()).await;
    if let Err(error) = &result {
        note(&span, "code", code(error));
    }
    result
}

/// Fills in a field of a span that was declared empty.
pub(crate) fn note(span: &Span, field: &'static str, value: impl Display) {
    span.record(field, tracing::field::display(value));
}
