//! Whose answer an open waits for, for whoever gives up before its own bounds end it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::error::{Side, TargetError};
use crate::session::{HELD_UP_HELP, ServerFailure};

/// What opening a session to the target waits for: one of two servers, since isolation is proven
/// against the control catalog, or neither any more. What was dropped in the middle leaves it as it was.
#[derive(Debug, Default)]
pub struct Awaited(AtomicU8);

const TARGET: u8 = 1;
const CONTROL: u8 = 2;

/// What is said when an answer came too late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The stable code, kebab-case.
    pub code: &'static str,
    /// What did not come.
    pub message: String,
    /// What to do about it.
    pub help: Cow<'static, str>,
}

impl Awaited {
    /// Waits for a first answer of this side; the other one's may be waited for meanwhile.
    pub(super) async fn answer<T>(&self, side: Side, answer: impl Future<Output = T>) -> T {
        self.0.fetch_or(bit(side), Ordering::Relaxed);
        let answer = answer.await;
        self.0.fetch_and(!bit(side), Ordering::Relaxed);
        answer
    }

    /// From here on it is this side alone; neither, once the session is open.
    pub(super) fn only(&self, side: Option<Side>) {
        self.0.store(side.map_or(0, bit), Ordering::Relaxed);
    }

    /// Whose answer is waited for. When it is both, the target comes first: without it nothing is of use.
    pub(super) fn side(&self) -> Option<Side> {
        let bits = self.0.load(Ordering::Relaxed);
        if bits & TARGET != 0 {
            Some(Side::Target)
        } else if bits & CONTROL != 0 {
            Some(Side::Control)
        } else {
            None
        }
    }

    /// What is said of an open, and of what was read on it, that did not end within this time. On a session
    /// that was opened the server does answer, so something there holds the reading up.
    pub fn late(&self, within: Duration) -> Late {
        let seconds = within.as_secs();
        let Some(side) = self.side() else {
            return Late {
                code: "target-statement-timeout",
                message: format!(
                    "the target is there, and a read on it did not end within {seconds} s"
                ),
                help: Cow::Borrowed(HELD_UP_HELP),
            };
        };
        let silence = TargetError::Server { side, failure: ServerFailure::TimedOut };
        let why = match side {
            Side::Target => "",
            Side::Control => ", and the target's isolation is proven against it",
        };
        Late {
            code: silence.code(),
            message: format!("the {side} did not answer within {seconds} s{why}"),
            help: silence.help(),
        }
    }
}

const fn bit(side: Side) -> u8 {
    match side {
        Side::Target => TARGET,
        Side::Control => CONTROL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_silent_is_who_is_waited_for() {
        let awaited = Awaited::default();
        let code = || awaited.late(Duration::from_secs(5)).code;
        let waiting = async {
            tokio::join!(
                awaited.answer(Side::Target, std::future::ready(())),
                awaited.answer(Side::Control, std::future::pending::<()>()),
            )
        };
        assert!(tokio::time::timeout(Duration::ZERO, waiting).await.is_err());
        assert_eq!(code(), "control-timed-out");
        awaited.only(Some(Side::Target));
        assert_eq!(code(), "target-timed-out");
        awaited.only(None);
        assert_eq!(code(), "target-statement-timeout");
    }
}
