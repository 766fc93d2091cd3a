//! Bugs that are planted on purpose, to see that what proves the product would find them.
//!
//! Each [`Bug`] stands at the place in the code that it takes the sense out of. Without the feature
//! `planted-bugs`, [`is_planted`] is the constant `false` and nothing of a bug is left in the program.
//! With it, the environment variable `TOLLGATE_PLANTED_BUG` names the one bug of the process, and
//! `with` sets it for one call, so that a model checker can try them one after the other.
//!
//! Nothing but tests turns the feature on.

macro_rules! bugs {
    ($($(#[$doc:meta])+ $bug:ident = $name:literal,)+) => {
        /// A bug that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Bug {
            $($(#[$doc])+ $bug,)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &[Self] = &[$(Self::$bug),+];

            /// As `TOLLGATE_PLANTED_BUG` names it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)+
                }
            }
        }
    };
}

bugs! {
    /// A claim takes over a lease that is open.
    ClaimOverOpenLease = "claim-over-open-lease",
    /// A takeover runs without ending the earlier holder's session.
    TakeoverWithoutKill = "takeover-without-kill",
    /// A takeover kills the earlier holder's session and does not wait until it is gone.
    TakeoverWithoutWaiting = "takeover-without-waiting",
    /// A takeover that waited puts its session on the row without looking at the token.
    AdoptWithoutToken = "adopt-without-token",
    /// A renewal prolongs whatever lease is on the row.
    RenewWithoutToken = "renew-without-token",
    /// A completion does not ask for the token.
    CompleteWithoutToken = "complete-without-token",
    /// The payload's DML is committed before the receipt is completed.
    CompleteOutsideTransaction = "complete-outside-transaction",
    /// A completion that finds the lease lost commits instead of rolling back.
    LostLeaseWithoutRollback = "lost-lease-without-rollback",
    /// A failure is recorded whatever the row's status is, and an inspection takes a success for
    /// something that did not happen.
    FailedOverSucceeded = "failed-over-succeeded",
    /// A COMMIT without an answer is taken for a failure.
    UnknownCommitIsFailure = "unknown-commit-is-failure",
    /// A claim whose answer was lost goes on while what was sent before may still arrive.
    ResumeWithoutKill = "resume-without-kill",
    /// An inspection looks at the row while the former session may still act.
    InspectWithoutKill = "inspect-without-kill",
    /// A payload is started however often it was started before.
    ExecutionsUnbounded = "executions-unbounded",
    /// A compensation is claimed while its forward step runs.
    CompensateRunningForward = "compensate-running-forward",
    /// A forward step runs although its compensation was begun.
    SupersededForwardRuns = "superseded-forward-runs",
    /// Two steps with other contents are taken for the same.
    IdentityWithoutContent = "identity-without-content",
    /// A worker records its report on a row that another worker has claimed.
    RecordWithoutToken = "record-without-token",
    /// A worker claims steps whose turn it is not.
    ClaimOutOfOrder = "claim-out-of-order",
    /// A worker renews a claim that another worker has.
    RenewClaimWithoutToken = "renew-claim-without-token",
}

/// Whether the bug is planted in this process or, under `with`, in this call.
#[cfg(not(feature = "planted-bugs"))]
#[inline]
pub const fn is_planted(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
mod chosen {
    use std::cell::Cell;
    use std::sync::OnceLock;

    use super::Bug;

    /// The variable that names the bug of a process.
    pub const VARIABLE: &str = "TOLLGATE_PLANTED_BUG";

    #[derive(Clone, Copy)]
    enum Chosen {
        /// What the process was started with.
        ByProcess,
        /// This bug alone, or none.
        ByCall(Option<Bug>),
    }

    thread_local! {
        static CHOSEN: Cell<Chosen> = const { Cell::new(Chosen::ByProcess) };
    }

    /// Whether the bug is planted in this process or, under [`with`], in this call.
    pub fn is_planted(bug: Bug) -> bool {
        let planted = match CHOSEN.get() {
            Chosen::ByProcess => of_the_process(),
            Chosen::ByCall(planted) => planted,
        };
        planted == Some(bug)
    }

    /// Runs with this bug alone, or with none, whatever the process was started with.
    pub fn with<T>(bug: Option<Bug>, run: impl FnOnce() -> T) -> T {
        let before = CHOSEN.replace(Chosen::ByCall(bug));
        let value = run();
        CHOSEN.set(before);
        value
    }

    fn of_the_process() -> Option<Bug> {
        static BUG: OnceLock<Option<Bug>> = OnceLock::new();
        *BUG.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok()?;
            let bug = Bug::ALL.iter().copied().find(|bug| bug.name() == name);
            if bug.is_none() {
                // A misspelt bug would pass for one that nothing finds.
                tracing::error!(name, "{VARIABLE} names no bug");
                std::process::exit(2);
            }
            bug
        })
    }
}

#[cfg(feature = "planted-bugs")]
pub use chosen::{VARIABLE, is_planted, with};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        assert_eq!(names.len(), Bug::ALL.len());
    }

    #[test]
    fn nothing_is_planted_unless_asked_for() {
        assert!(Bug::ALL.iter().all(|bug| !is_planted(*bug)));
    }
}
