//! No URL, user, password or literal of a payload is in anything that can be printed: types, commands
//! that fail, and what is left of a process that dies.

mod commands;
mod dying;
mod sources;
mod types;

/// A text that gives something away: every account, password and literal of these tests has it.
const CANARY: &str = "canary";

/// Fails when the text gives anything away.
fn assert_clean(text: &str, whose: &str) {
    for secret in [CANARY, "jdbc:mysql://", "127.0.0.1"] {
        assert!(!text.contains(secret), "{whose} shows `{secret}`:\n{text}");
    }
}
