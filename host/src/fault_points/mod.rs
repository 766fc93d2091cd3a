//! Named points where a test makes a write go wrong: the process dies, the write is not sent, its
//! answer is lost, or it waits.
//!
//! Without the feature `fault-points`, which no build has by default, a point gives back the very
//! future it was given: nothing of this is in the program, not even a name. With it, faults come from
//! `TOLLGATE_FAULT_POINTS`, read by [`arm`], or from [`Faults`] around a future of a test's own.
//! How they are written is told by [`Faults::parse`].

#[cfg(feature = "fault-points")]
mod active;
#[cfg(not(feature = "fault-points"))]
mod inert;
#[cfg(feature = "fault-points")]
mod spec;

#[cfg(feature = "fault-points")]
pub use self::active::{Faults, Firing, arm};
#[cfg(feature = "fault-points")]
pub(crate) use self::active::{Lost, at, reach};
#[cfg(not(feature = "fault-points"))]
pub use self::inert::arm;
#[cfg(not(feature = "fault-points"))]
pub(crate) use self::inert::{Lost, at, reach};
#[cfg(feature = "fault-points")]
pub use self::spec::SpecError;

/// Lists the points: what each is called in a test, and where it is.
macro_rules! points {
    ($($(#[$about:meta])* $point:ident = $name:literal,)*) => {
        /// A write, or another moment, that can be made to go wrong.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Point { $($(#[$about])* $point,)* }

        #[cfg(feature = "fault-points")]
        impl Point {
            /// Every point there is.
            pub(crate) const ALL: &[Self] = &[$(Self::$point,)*];

            /// What it is called in `TOLLGATE_FAULT_POINTS`.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$point => $name,)* }
            }
        }
    };
}

points! {
    /// The ledger's one statement that puts a token on a step: inserted, or taken over.
    ClaimInsert = "claim-insert",
    /// The COMMIT of a claim that turns the other direction's receipt.
    ClaimCommit = "claim-commit",
    /// The KILL of an earlier holder's session, the actor's token already on the row.
    TakeoverKill = "takeover-kill",
    /// The write that puts the actor's session on a row it has taken over.
    Adopt = "adopt",
    /// The look at the lease before a statement of the payload.
    HoldCheck = "hold-check",
    /// A statement of the payload.
    Statement = "statement",
    /// The receipt's way to SUCCEEDED, in the payload's transaction.
    Complete = "complete",
    /// The COMMIT of the payload's transaction.
    Commit = "commit",
    /// The receipt's way to FAILED.
    FailRecord = "fail-record",
    /// The renewal of a receipt's lease.
    Renew = "renew",
    /// The look at what a lost answer left.
    Inspect = "inspect",
    /// The executor's outcome on its way to whoever asked: not a write, so no answer is lost.
    Ack = "ack",
    /// A worker's claim in the outbox.
    OutboxClaim = "outbox-claim",
    /// The renewal of a worker's claim.
    OutboxRenew = "outbox-renew",
    /// What came of a step, on its way into the outbox.
    OutboxRecord = "outbox-record",
}
