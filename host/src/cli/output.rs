//! Printing.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

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

/// Text from a payload as it may go to a terminal: control characters become visible, so that no
/// payload can move the cursor or hide what it is.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(character))),
            '\x7f' => shown.push('␡'),
            // C1 controls, and marks that reorder or hide text.
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_cannot_drive_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\rc\u{202e}d\u{9b}é"), "a␛[2Jb␍c<U+202E>d<U+009B>é");
        assert_eq!(visible("a\tb\n"), "a\tb\n");
    }
}
