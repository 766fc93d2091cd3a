//! On which rows a write applies.
//!
//! The condition of each statement in `writes` is rendered from here, and a model checker evaluates
//! the same value: what is proven is what is sent.

use super::Write;
use crate::planted::{Bug, is_planted};

/// What has to hold of a row, at the moment of the write, for the write to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    /// What the write names of the row besides its key.
    pub names: Option<Names>,
    /// What the row has to be.
    pub standing: Standing,
}

/// What a write names of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// The token and the generation that were read: nothing was written since.
    AsRead,
    /// The actor's own token.
    OwnToken,
}

/// What a row has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Not there: the unique key refuses a second one.
    Missing,
    /// RUNNING.
    Running,
    /// FAILED, or RUNNING and over by the database's clock at the moment of the write.
    FailedOrOver,
    /// Anything but RUNNING with an open lease.
    NotLive,
    /// Anything.
    Any,
}

/// On which rows this write applies.
pub fn guard(write: Write) -> Guard {
    if let Some(spoilt) = spoilt(write) {
        return spoilt;
    }
    match write {
        Write::Insert | Write::InsertWaiting | Write::TurnAbsent => {
            Guard { names: None, standing: Standing::Missing }
        }
        Write::TakeOver | Write::TakeOverWaiting => {
            Guard { names: Some(Names::AsRead), standing: Standing::FailedOrOver }
        }
        Write::Adopt | Write::GiveBack | Write::Extend | Write::Complete | Write::RecordFailure => {
            Guard { names: Some(Names::OwnToken), standing: Standing::Running }
        }
        Write::EndLease => Guard { names: Some(Names::AsRead), standing: Standing::Running },
        Write::Turn => Guard { names: Some(Names::AsRead), standing: Standing::NotLive },
    }
}

/// The guard under a planted bug.
fn spoilt(write: Write) -> Option<Guard> {
    let anyones = Guard { names: None, standing: Standing::Running };
    let live = Guard { names: Some(Names::AsRead), standing: Standing::Any };
    let ended = Guard { names: Some(Names::OwnToken), standing: Standing::Any };
    let (bug, guard) = match write {
        Write::TakeOver if is_planted(Bug::SupersededForwardRuns) => {
            (Bug::SupersededForwardRuns, live)
        }
        Write::TakeOver | Write::TakeOverWaiting => (Bug::ClaimOverOpenLease, live),
        Write::Adopt => (Bug::AdoptWithoutToken, anyones),
        Write::Extend => (Bug::RenewWithoutToken, anyones),
        Write::Complete => (Bug::CompleteWithoutToken, anyones),
        Write::RecordFailure => (Bug::FailedOverSucceeded, ended),
        Write::Turn => (Bug::CompensateRunningForward, live),
        Write::Insert
        | Write::InsertWaiting
        | Write::TurnAbsent
        | Write::GiveBack
        | Write::EndLease => return None,
    };
    is_planted(bug).then_some(guard)
}
