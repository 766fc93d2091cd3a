//! Text for people: from elsewhere, made safe to show, and what an error says.

use std::error::Error;
use std::fmt::Write as _;

/// The error and what caused it, in one line.
pub fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |cause| (*cause).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The text with control characters and marks that reorder or hide text made visible, so that no
/// payload and no server can move a cursor or hide what it says. It is not escaped for any markup.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(character))),
            '\x7f' => shown.push('␡'),
            // C1 controls, and marks that reorder or hide text.
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
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
