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
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Characters of a value that [`visible_line`] shows, at most: an error as a ledger holds it is whole.
pub const LINE_CHARACTERS_MAX: usize = 500;

/// The same for a value that stands within a line: what breaks a line or moves in it is made visible
/// too, so that no value can pose as a line of its own. Of a long one it is its beginning and its length.
pub fn visible_line(text: &str) -> String {
    let cut = text.char_indices().nth(LINE_CHARACTERS_MAX);
    let shown = cut.and_then(|(at, _)| text.get(..at)).unwrap_or(text);
    let mut line = visible(shown).replace('\n', "␊").replace('\t', "␉");
    if cut.is_some() {
        let _ = write!(line, "… ({} characters)", text.chars().count());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_cannot_drive_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\rc\u{202e}d\u{9b}é"), "a␛[2Jb␍c<U+202E>d<U+009B>é");
        assert_eq!(visible("a\tb\n"), "a\tb\n");
        assert_eq!(visible("\u{ad}\u{206a}\u{fff9}\u{e0041}"), "<U+00AD><U+206A><U+FFF9><U+E0041>");
    }

    #[test]
    fn a_value_cannot_pose_as_a_line() {
        let forged = visible_line("1.0.0\nverified\r\tx\u{85}\u{2028}y\u{b}z");
        assert_eq!(forged, "1.0.0␊verified␍␉x<U+0085><U+2028>y␋z");
        // Whatever a terminal or a reader of lines takes for an end of one.
        assert!(!forged.contains(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']));
    }

    #[test]
    fn a_long_value_is_cut_and_says_how_long_it_is() {
        let whole = "é".repeat(LINE_CHARACTERS_MAX);
        assert_eq!(visible_line(&whole), whole);
        assert_eq!(visible_line(&(whole.clone() + "\n")), whole + "… (501 characters)");
    }
}
