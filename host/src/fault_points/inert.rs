//! The points of a program without the feature: each is the future it was given.

use super::Point;

/// Reads nothing: there is nothing to arm.
pub const fn arm() {}

/// A lost connection that no one stages: it does not exist.
pub(crate) enum Lost {}

/// The write itself.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a point must leave nothing behind, in any profile")]
pub(crate) fn at<T, E, F>(_point: Point, write: F) -> F
where
    E: From<Lost>,
    F: Future<Output = Result<T, E>>,
{
    write
}

/// Nothing.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a point must leave nothing behind, in any profile")]
pub(crate) fn reach(_point: Point) -> std::future::Ready<()> {
    std::future::ready(())
}
