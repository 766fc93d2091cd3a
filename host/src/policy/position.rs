//! From byte offsets, which policies speak, to the lines and columns people read.

use serde::Serialize;

use super::decision::Span;

/// A place in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Byte offset, from 0.
    pub offset: u32,
    /// Line, from 1. A line ends with LF; a CR before it belongs to it.
    pub line: u32,
    /// Column in Unicode characters, from 1. A tab is one character.
    pub column: u32,
}

/// A stretch of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PositionSpan {
    /// Its first character.
    pub start: Position,
    /// Just after its last character.
    pub end: Position,
}

/// The lines of a payload. A place is found in constant time, wherever it is: a denial may have a
/// hundred thousand of them, all on one line of a megabyte.
#[derive(Debug)]
pub struct LineIndex<'a> {
    payload: &'a [u8],
    /// Offset of each line's first byte.
    starts: Vec<usize>,
    /// Characters before each block of the payload.
    characters: Vec<usize>,
}

/// Bytes of a block: what is counted anew for each place.
const BLOCK_BYTES: usize = 256;

impl<'a> LineIndex<'a> {
    /// Finds the lines.
    pub fn new(payload: &'a [u8]) -> Self {
        let after_breaks =
            payload.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after_breaks).collect();
        let blocks = payload.chunks(BLOCK_BYTES).scan(0, |before, block| {
            *before += count_characters(block);
            Some(*before)
        });
        let characters = std::iter::once(0).chain(blocks).collect();
        Self { payload, starts, characters }
    }

    /// Where a byte offset is. Offsets past the end count as the end.
    pub fn position(&self, offset: u32) -> Position {
        let at = (offset as usize).min(self.payload.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let column = self.characters_before(at) - self.characters_before(start) + 1;
        Position { offset, line: narrow(line), column: narrow(column) }
    }

    fn characters_before(&self, at: usize) -> usize {
        let block = at / BLOCK_BYTES;
        let rest = self.payload.get(block * BLOCK_BYTES..at).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or_default() + count_characters(rest)
    }

    /// Where a span is.
    pub fn span(&self, span: Span) -> PositionSpan {
        PositionSpan { start: self.position(span.start), end: self.position(span.end) }
    }

    /// The bytes of a line, from 1, without its line break, and the offset of its first byte.
    pub fn line(&self, line: u32) -> Option<(usize, &'a [u8])> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).map_or(self.payload.len(), |next| next - 1);
        let text = self.payload.get(start..end)?;
        Some((start, text.strip_suffix(b"\r").unwrap_or(text)))
    }
}

/// Counts the bytes that start a character. In bytes that are not UTF-8 each stray one counts as a
/// character, which is about what a viewer shows.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Payloads are smaller than 4 GiB, so their lines and columns fit.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, needle: &str) -> (u32, u32) {
        let offset = u32::try_from(text.find(needle).unwrap()).unwrap();
        let position = LineIndex::new(text.as_bytes()).position(offset);
        (position.line, position.column)
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        assert_eq!(at("x", "x"), (1, 1));
        assert_eq!(at("äöü x", "x"), (1, 5));
        assert_eq!(at("\t\tx", "x"), (1, 3));
        assert_eq!(at("a\n😀名x", "x"), (2, 3));
    }

    #[test]
    fn every_line_break_starts_a_line() {
        assert_eq!(at("a\r\nb\n\nx", "x"), (4, 1));
        let index = LineIndex::new(b"a\r\nb\n");
        assert_eq!(index.line(1), Some((0, &b"a"[..])));
        assert_eq!(index.line(2), Some((3, &b"b"[..])));
        assert_eq!(index.line(3), Some((5, &b""[..])));
        assert_eq!(index.line(4), None);
        assert_eq!(index.line(0), None);
    }

    #[test]
    fn the_end_is_a_place() {
        let index = LineIndex::new("é\n".as_bytes());
        assert_eq!(index.position(3), Position { offset: 3, line: 2, column: 1 });
        assert_eq!(index.position(99).line, 2);
    }

    #[test]
    fn blocks_do_not_show() {
        for before in [0, 1, 127, 128, 129, 300, 1_000] {
            let text = format!("é\n{}x", "é".repeat(before));
            assert_eq!(at(&text, "x"), (2, u32::try_from(before).unwrap() + 1));
        }
    }

    #[test]
    fn bytes_that_are_not_text_have_a_place_too() {
        assert_eq!(LineIndex::new(b"\xff\xffx").position(2).column, 3);
    }
}
