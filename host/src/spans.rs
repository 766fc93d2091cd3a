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
    /// Those of them that are whole numbers; the others are text.
    pub numbers: &'static [&'static str],
    /// What lies in it.
    pub about: &'static str,
}

/// Every span, in the order of its documentation.
pub const LIST: &[Listed] = &[
    Listed {
        name: "delivery",
        fields: &["step_key", "plan", "attempt", "status"],
        numbers: &["attempt"],
        about: "a worker's step, from its claim in the outbox to its record there",
    },
    Listed {
        name: "step",
        fields: &["step_key", "plugin", "direction", "executor", "outcome", "code"],
        numbers: &[],
        about: "one execution by its executor",
    },
    Listed {
        name: "decision",
        fields: &["policy_digest", "outcome", "code"],
        numbers: &[],
        about: "the policy decides on a payload",
    },
    Listed {
        name: "open",
        fields: &["code"],
        numbers: &[],
        about: "a target session is opened and every isolation check made, or one that was kept is taken",
    },
    Listed {
        name: "claim",
        fields: &["result", "code"],
        numbers: &[],
        about: "a receipt's lease is asked for",
    },
    Listed {
        name: "takeover",
        fields: &["session", "code"],
        numbers: &["session"],
        about: "an earlier holder's session is ended and waited for",
    },
    Listed {
        name: "statement",
        fields: &["statement_index", "operation", "affected_rows", "code"],
        numbers: &["statement_index", "affected_rows"],
        about: "one statement of a payload runs",
    },
    Listed {
        name: "completion",
        fields: &["code"],
        numbers: &[],
        about: "the receipt is completed in the payload's transaction, which commits",
    },
    Listed {
        name: "request",
        fields: &["method", "path", "status"],
        numbers: &["status"],
        about: "the page answers",
    },
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

/// A number as a field takes it. Collectors have whole numbers of 64 bits with a sign; of any other type
/// it would arrive as text, which is neither compared nor added up.
pub(crate) fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Fills in a field of a span that was declared empty, with a number.
pub(crate) fn count(span: &Span, field: &'static str, value: impl TryInto<i64>) {
    span.record(field, number(value));
}

/// Fills in a field of a span that was declared empty, with a text.
pub(crate) fn note(span: &Span, field: &'static str, value: impl Display) {
    span.record(field, tracing::field::display(value));
}
