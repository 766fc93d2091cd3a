//! The states of a row, and the one function that says which may follow which.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::ids::InvalidName;

/// Where a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// An earlier step of its plan and direction is not done.
    Waiting,
    /// It is its plan's turn, and due at `not_before`.
    Pending,
    /// A worker has it, until its lease is over.
    Claimed,
    /// Done, for good.
    Applied,
    /// A person has to look; its plan stands still.
    NeedsAttention,
    /// It never runs (again): its compensation was asked for.
    Superseded,
}

/// What can happen to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The step before it was applied.
    Promote,
    /// A worker takes it: because it is due, or because the lease of the one who had it is over.
    Claim,
    /// Its worker reports that it was applied.
    Apply,
    /// Its worker hands it back, to be delivered later.
    Defer,
    /// Its worker reports what only a person can mend.
    Attend,
    /// A person mended the cause.
    Retry,
    /// Its compensation was asked for.
    Supersede,
    /// Its worker finds that its compensation was begun.
    Overtake,
}

impl Status {
    /// Every status.
    pub const ALL: &[Self] = &[
        Self::Waiting,
        Self::Pending,
        Self::Claimed,
        Self::Applied,
        Self::NeedsAttention,
        Self::Superseded,
    ];

    /// As the row stores it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "WAITING",
            Self::Pending => "PENDING",
            Self::Claimed => "CLAIMED",
            Self::Applied => "APPLIED",
            Self::NeedsAttention => "NEEDS_ATTENTION",
            Self::Superseded => "SUPERSEDED",
        }
    }

    /// The words for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for an earlier step",
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Applied => "applied",
            Self::NeedsAttention => "needs attention",
            Self::Superseded => "superseded",
        }
    }

    /// What follows; nothing when the event cannot happen to a row in this state.
    ///
    /// Every write names the state it starts from, so a row in another one is left as it is.
    pub const fn next(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Waiting, Event::Promote) => Some(Self::Pending),
            (Self::Pending | Self::Claimed, Event::Claim) => Some(Self::Claimed),
            (Self::Claimed, Event::Apply) => Some(Self::Applied),
            (Self::Claimed, Event::Defer) => Some(Self::Pending),
            (Self::Claimed, Event::Attend) => Some(Self::NeedsAttention),
            (Self::NeedsAttention, Event::Retry) => Some(Self::Pending),
            // Not CLAIMED: what its worker does is not known yet.
            (Self::Waiting | Self::Pending | Self::NeedsAttention, Event::Supersede) => {
                Some(Self::Superseded)
            }
            (Self::Claimed, Event::Overtake) => Some(Self::Superseded),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().find(|status| status.as_str() == text).copied().ok_or_else(|| {
            InvalidName::new("an outbox status", "see sql/factory_plugin_control_outbox.sql", text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 8] = [
        Event::Promote,
        Event::Claim,
        Event::Apply,
        Event::Defer,
        Event::Attend,
        Event::Retry,
        Event::Supersede,
        Event::Overtake,
    ];

    #[test]
    fn every_pair_is_decided() {
        let pairs = Status::ALL.iter().flat_map(|status| EVENTS.map(|event| (*status, event)));
        let table: Vec<String> = pairs
            .filter_map(|(status, event)| Some((status, event, status.next(event)?)))
            .map(|(status, event, next)| format!("{status} {event:?} {next}\n"))
            .collect();
        assert_eq!(
            table.concat(),
            "WAITING Promote PENDING\n\
             WAITING Supersede SUPERSEDED\n\
             PENDING Claim CLAIMED\n\
             PENDING Supersede SUPERSEDED\n\
             CLAIMED Claim CLAIMED\n\
             CLAIMED Apply APPLIED\n\
             CLAIMED Defer PENDING\n\
             CLAIMED Attend NEEDS_ATTENTION\n\
             CLAIMED Overtake SUPERSEDED\n\
             NEEDS_ATTENTION Retry PENDING\n\
             NEEDS_ATTENTION Supersede SUPERSEDED\n"
        );
    }

    #[test]
    fn applied_and_superseded_are_final() {
        for status in [Status::Applied, Status::Superseded] {
            assert!(EVENTS.iter().all(|event| status.next(*event).is_none()), "{status}");
        }
    }

    #[test]
    fn a_status_is_read_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
            assert!(status.as_str().len() <= 16);
        }
        assert!("pending".parse::<Status>().is_err());
    }
}
