//! Literals, in every form servers read.

use super::Writer;

/// What a string may hold, as written between quotes of either kind. `'` and `"` are doubled or
/// escaped when the string is in them.
const CONTENTS: &[&str] = &[
    "a",
    "b",
    "Z",
    "0",
    "7",
    " ",
    "%",
    "_",
    ".",
    "-",
    "--",
    "-- ",
    "#",
    "/*",
    "*/",
    ";",
    "`",
    ",",
    "(",
    ")",
    "@",
    "?",
    ":",
    "{",
    "$",
    "\\'",
    "\\\"",
    "\\\\",
    "\\n",
    "\\r",
    "\\t",
    "\\b",
    "\\0",
    "\\Z",
    "\\%",
    "\\_",
    "\\a",
    "\\.",
    "\\\\",
    "'",
    "\"",
    "\n",
    "\t",
    "é",
    "日",
    "😀",
    "\u{301}",
    "ß",
    "2024-02-29",
    "12:34:56",
    "1e3",
    "[1]",
    "{\"a\":1}",
    "$[0]",
    "SELECT",
    "x'00'",
];

/// Numbers in every way of writing them.
const NUMBERS: &[&str] = &[
    "1",
    "0",
    "2",
    "-1",
    "10",
    "007",
    "1.5",
    ".5",
    "5.",
    "0.0",
    "1e3",
    "1E+2",
    "1.e-2",
    ".1e1",
    "-0",
    "255",
    "2147483648",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "0.1234567890123456789012345678901",
    "1e308",
    "123456789012345678901234567890123456789",
];

/// Any literal. `\N` is left out: MySQL 8 no longer reads it, and the policy prints NULL.
pub(super) fn any(writer: &mut Writer<'_>) {
    match writer.choices.below(12) {
        0..=2 => number(writer),
        3..=6 => string(writer),
        7 => writer.words_of(&["NULL", "TRUE", "FALSE"]),
        8 => bytes(writer),
        9 => introduced(writer),
        10 => temporal(writer),
        _ => national(writer),
    }
}

pub(super) fn number(writer: &mut Writer<'_>) {
    let number = writer.choices.of_list(NUMBERS);
    writer.token(number);
}

/// A string, sometimes of several literals that touch.
pub(super) fn string(writer: &mut Writer<'_>) {
    let quote = writer.choices.of_list(&['\'', '\'', '"']);
    let text = quoted(writer, quote, CONTENTS);
    writer.token(text);
    while writer.choices.once_in(12) {
        let text = quoted(writer, quote, CONTENTS);
        writer.token(text);
    }
}

/// A string for a place where only one literal may stand.
pub(super) fn single_string(writer: &mut Writer<'_>) {
    let quote = writer.choices.of_list(&['\'', '\'', '"']);
    let text = quoted(writer, quote, CONTENTS);
    writer.token(text);
}

/// A string that MySQL 5.6 keeps whole in an index's comment: of characters with four bytes, and of
/// what stands behind a NUL, it shows bytes from beyond what it kept, other ones each time.
pub(super) fn index_comment(writer: &mut Writer<'_>) {
    let kept = |text: &&str| !text.contains("\\0") && text.chars().all(|one| one.len_utf8() < 4);
    let contents: Vec<&str> = CONTENTS.iter().copied().filter(kept).collect();
    let text = quoted(writer, '\'', &contents);
    writer.token(text);
}

fn quoted(writer: &mut Writer<'_>, quote: char, contents: &[&str]) -> String {
    let mut text = String::from(quote);
    let pieces = writer.choices.below(7);
    for _ in 0..pieces {
        let piece = writer.choices.of_list(contents);
        if piece.contains('\\') {
            text.push_str(piece);
        } else {
            text.push_str(&piece.replace(quote, &format!("{quote}{quote}")));
        }
    }
    text.push(quote);
    text
}

/// Hexadecimal and bit literals, which are strings to some operators and numbers to others.
fn bytes(writer: &mut Writer<'_>) {
    let literal = writer.choices.of_list(&[
        "X'41'",
        "x'00ff'",
        "0x41",
        "0x4",
        "0xC3A9",
        "0xFFFFFFFFFFFFFFFF",
        "X''",
        "b'1000001'",
        "B'0'",
        "0b1",
        "0b01000001",
        "b''",
    ]);
    writer.token(literal);
}

/// A literal that says which character set it is in.
fn introduced(writer: &mut Writer<'_>) {
    let set =
        writer.choices.of_list(&["_utf8mb4", "_latin1", "_binary", "_utf8", "_ascii", "_UTF8MB4"]);
    writer.token(set);
    match writer.choices.below(4) {
        0 => {
            let text = quoted(writer, '\'', &["a", "Z", "\\n", "\\\\", "''", "\\%", " "]);
            writer.token(text);
        }
        1 => writer.token("X'41'"),
        2 => writer.token("0x4142"),
        _ => writer.token("b'1000001'"),
    }
}

/// Standard literals of date and time.
pub(super) fn temporal(writer: &mut Writer<'_>) {
    let (word, text) = writer.choices.of_list(&[
        ("DATE", "'2024-02-29'"),
        ("TIME", "'12:34:56'"),
        ("TIMESTAMP", "'2024-02-29 12:34:56'"),
        ("TIMESTAMP", "\"1999-12-31 23:59:59.5\""),
        ("", "'2024-02-29 12:34:56.123456'"),
        ("", "'1970-01-01'"),
        ("", "20240229123456"),
    ]);
    if !word.is_empty() {
        writer.words(word);
    }
    writer.token(text);
}

fn national(writer: &mut Writer<'_>) {
    let text = quoted(writer, '\'', &["a", "é", "\\'", "\\\\", " ", "%"]);
    let prefix = writer.choices.of_list(&["N", "n"]);
    writer.token(format!("{prefix}{text}"));
}
