//! What a worker reports of a delivery, and what follows from it.

use std::time::Duration;

use super::status::Event;
use crate::clock::jittered;
use crate::ids::ExternalReceipt;

/// The wait after the first failed delivery. It doubles with each further one.
pub(super) const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// The longest wait between deliveries.
pub(super) const BACKOFF_MAX: Duration = Duration::from_mins(5);

/// Characters of a message that a row keeps.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Characters of a code that a row keeps.
const CODE_CHARS_MAX: usize = 64;

/// Why a step was not applied, or why that is not known. Holds no literal of a payload, no account
/// and no server's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The stable code.
    pub code: String,
    /// One line for a person.
    pub message: String,
}

impl Reason {
    /// A reason, cut to what a row keeps.
    pub fn new(code: &str, message: &str) -> Self {
        Self {
            // The column is ASCII, as codes are.
            code: code.chars().filter(char::is_ascii).take(CODE_CHARS_MAX).collect(),
            message: message.chars().take(MESSAGE_CHARS_MAX).collect(),
        }
    }
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It was applied, now or earlier.
    Applied(ExternalReceipt),
    /// It was not applied; a later delivery may apply it. Too many of these need a person.
    Failed(Reason),
    /// It was not applied, and no later delivery will before a person mended the cause.
    Refused(Reason),
    /// Its compensation was begun: it never runs again.
    Superseded(Reason),
    /// It is not known whether it was applied: delivered again, and never counted as failed.
    Unknown {
        /// Why.
        reason: Reason,
        /// How long to wait first.
        retry_after: Duration,
    },
    /// It is not known whether it was applied, and its receipt is gone: delivering it again would
    /// not tell, so a person has to look first. Not counted as failed.
    Lost(Reason),
    /// There is nothing that could carry it out now. Not counted as failed.
    Unavailable {
        /// Why.
        reason: Reason,
        /// How long to wait first.
        retry_after: Duration,
    },
    /// The worker stops and hands it back. Not counted as failed.
    Released,
}

/// What a report does to its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settlement {
    pub(super) event: Event,
    /// Not delivered again before this; nothing for an end.
    pub(super) delay: Duration,
    pub(super) failure_count: u32,
    /// Deliveries to take back from the count: one when nothing was delivered.
    pub(super) undelivered: u32,
    /// Nothing leaves the last one in place.
    pub(super) reason: Option<Reason>,
    pub(super) receipt: Option<ExternalReceipt>,
}

/// What follows from a report on a step that had failed so often before.
pub(super) fn settle(report: &Report, failure_count: u32, attempts_max: u32) -> Settlement {
    let settled = |event, delay, reason: Option<&Reason>| Settlement {
        event,
        delay,
        failure_count,
        undelivered: 0,
        reason: reason.cloned(),
        receipt: None,
    };
    match report {
        Report::Applied(receipt) => Settlement {
            receipt: Some(receipt.clone()),
            ..settled(Event::Apply, Duration::ZERO, None)
        },
        Report::Failed(reason) => {
            let failure_count = failure_count.saturating_add(1);
            let (event, delay) = if failure_count >= attempts_max {
                (Event::Attend, Duration::ZERO)
            } else {
                (Event::Defer, jittered(backoff(failure_count)))
            };
            Settlement { failure_count, ..settled(event, delay, Some(reason)) }
        }
        Report::Refused(reason) | Report::Lost(reason) => {
            settled(Event::Attend, Duration::ZERO, Some(reason))
        }
        Report::Superseded(reason) => settled(Event::Overtake, Duration::ZERO, Some(reason)),
        Report::Unknown { reason, retry_after } => {
            settled(Event::Defer, (*retry_after).min(BACKOFF_MAX), Some(reason))
        }
        Report::Unavailable { reason, retry_after } => Settlement {
            undelivered: 1,
            ..settled(Event::Defer, (*retry_after).min(BACKOFF_MAX), Some(reason))
        },
        Report::Released => settled(Event::Defer, Duration::ZERO, None),
    }
}

/// The wait after this many failures, before jitter.
fn backoff(failure_count: u32) -> Duration {
    let doublings = failure_count.saturating_sub(1).min(16);
    (BACKOFF_BASE * 2_u32.pow(doublings)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(before: u32) -> Settlement {
        settle(&Report::Failed(Reason::new("code", "why")), before, 10)
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_bound() {
        let bases: Vec<u64> = (1..=12).map(|count| backoff(count).as_secs()).collect();
        assert_eq!(bases, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
        for before in 0..9 {
            let settlement = failed(before);
            assert_eq!(settlement.event, Event::Defer);
            assert!(settlement.delay >= backoff(before + 1) / 2, "{settlement:?}");
            assert!(settlement.delay <= backoff(before + 1), "{settlement:?}");
        }
    }

    #[test]
    fn the_last_attempt_needs_a_person() {
        assert_eq!((failed(8).event, failed(8).failure_count), (Event::Defer, 9));
        assert_eq!((failed(9).event, failed(9).failure_count), (Event::Attend, 10));
    }

    #[test]
    fn what_is_not_known_is_never_a_failure() {
        let reason = Reason::new("lease-held", "another has it");
        for before in [0, 9, 10, 1000] {
            for report in [
                Report::Unknown { reason: reason.clone(), retry_after: Duration::from_secs(9) },
                Report::Unavailable { reason: reason.clone(), retry_after: Duration::from_secs(9) },
                Report::Released,
            ] {
                let settlement = settle(&report, before, 10);
                assert_eq!((settlement.event, settlement.failure_count), (Event::Defer, before));
            }
        }
    }

    #[test]
    fn a_reason_fits_its_columns() {
        let reason = Reason::new(&"é-x".repeat(100), &"ü".repeat(5_000));
        assert!(reason.code.is_ascii() && reason.code.len() <= 64);
        assert_eq!(reason.message.chars().count(), 1_000);
    }
}
