//! Printing.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

pub(crate) use tollgate::text::{visible, visible_line};

/// Writes to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// A value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    // Only maps with keys that are no strings cannot be written, and there are none.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Whether standard output shows colours: a terminal, and nobody said no (<https://no-color.org>).
pub(crate) fn stdout_has_colour() -> bool {
    io::stdout().is_terminal() && wants_colour()
}

/// The same of standard error.
pub(crate) fn stderr_has_colour() -> bool {
    io::stderr().is_terminal() && wants_colour()
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=+,@".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
