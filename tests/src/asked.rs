//! How much is asked of a suite: numbers from the environment, for runs longer than CI's.

use std::env;

/// A number from the environment; nothing when nobody asks for one.
///
/// # Panics
///
/// When it is not a number: a run must not be shorter than was meant.
pub fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}=`{text}` is not a number")))
}
