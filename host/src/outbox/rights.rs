//! What the control account has to be allowed.

/// What a worker does: it claims, renews and records, and adds no row.
pub const WORKER_RIGHTS: &[&str] = &["SELECT", "UPDATE"];

/// What everything on the outbox takes: submitting and taking back add rows. None is ever deleted.
pub const RIGHTS: &[&str] = &["SELECT", "INSERT", "UPDATE"];
