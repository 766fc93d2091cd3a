//! Labels that are known before anything happens, so that the counters with them begin at 0.
//!
//! A counter that is born with its first event comes to a monitor as 1, and what it grows by since is 0:
//! the first event, often the only one, would raise no alert. A policy's own codes are not known here.
//! The modules that give a code are of higher rank; a test holds these lists against them.

/// Answers to claims.
pub(super) const CLAIMS: &[&str] = &[
    "granted",
    "already-succeeded",
    "not-applicable",
    "busy",
    "identity-mismatch",
    "pin-refused",
    "needs-attention",
    "receipt-pruned",
    "superseded",
];

/// What comes of a renewal.
pub(super) const RENEWALS: &[&str] = &["renewed", "lost", "error"];

/// Why a policy gave no decision.
pub(super) const NO_DECISION: &[&str] =
    &["trap", "fuel", "memory", "deadline", "malformed", "payload-size", "host"];

/// Why no executor applies a step, also one that connects to nothing.
pub(super) const NOT_ADMITTED: &[&str] =
    &["refused", "release-unavailable", "release-broken", "no-decision"];

/// Why `sql-jdbc:v1` does not apply a step, besides: what it found of the step and its payload.
pub(super) const NOT_APPLIED: &[&str] = &[
    "packet-too-large",
    "text-not-carried",
    "identity-mismatch",
    "pin-refused",
    "needs-attention",
    "superseded",
    "receipt-pruned",
    "statement-failed",
    "drift",
    "statement-budget",
    "connection-lost",
    "lease-over",
    "commit-refused",
    "not-committed",
];

/// Why, besides: what it found of the ledger.
pub(super) const LEDGER: &[&str] = &[
    "ledger-statement-refused",
    "ledger-answer-lost",
    "ledger-statement-timeout",
    "ledger-unreadable",
    "receipt-contradictory",
    "plugin-version-too-long",
    "lease-out-of-bounds",
    "claim-answer-lost",
    "session-not-as-kept",
    "claim-contended",
    "ledger-unfit",
    "ledger-missing",
    "ledger-version-missing",
    "ledger-newer",
    "ledger-older",
    "ledger-engine",
    "ledger-unique-key-lost",
    "ledger-foreign-unique-key",
    "ledger-column-missing",
    "ledger-column-type",
    "ledger-column-narrow",
    "ledger-column-collation",
    "ledger-column-nullability",
    "ledger-column-foreign",
];

/// Why it is not known whether a step was applied.
pub(super) const INDETERMINATE: &[&str] = &[
    "claim-unanswered",
    "lease-lost",
    "receipt-lost",
    "still-running",
    "commit-unanswered",
    "failure-unrecorded",
    "lease-held",
    "opposite-direction-running",
    "previous-session-leaving",
    "previous-session-kill-refused",
    "previous-session-not-visible",
    "previous-session-other-account",
    "previous-session-other-catalog",
    "previous-session-unconfirmed",
];

/// Every code of these servers' failures, of the target and of the control catalog.
macro_rules! of_both_sides {
    ($($code:literal),* $(,)?) => {
        &[$(concat!("target-", $code), concat!("control-", $code)),*]
    };
}

/// Why a target was not opened: what the two servers answered.
pub(super) const SERVERS: &[&str] = of_both_sides![
    "name-not-resolved",
    "unreachable",
    "timed-out",
    "connection-lost",
    "tls-not-offered",
    "tls-failed",
    "ca-file-unusable",
    "access-denied",
    "account-blocked",
    "login-unsupported",
    "catalog-unknown",
    "catalog-denied",
    "too-many-sessions",
    "statement-refused",
    "answer-unreadable",
];

/// Why, besides: what did not hold.
pub(super) const ISOLATION: &[&str] = &[
    "catalog-mismatch",
    "control-url-equal",
    "control-catalog-reached",
    "control-catalog-equal",
    "control-tables-in-target",
    "server-not-allowed",
    "server-unsupported",
    "server-read-only",
    "cluster-not-ready",
    "binlog-statements",
    "grants-beyond-catalog",
    "grants-missing",
    "session-contract-unsupported",
    "session-not-pinned",
];
