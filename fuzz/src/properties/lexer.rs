//! A second reading of MySQL's lexical rules, written without a look at the policy's.
//!
//! It reads what the policy prints, so it is short: whatever printed text never has (comments,
//! double quotes, variables, semicolons) comes out as a [`Mark::Stray`].

/// What a lexeme is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A name in backticks.
    Name,
    /// A word without quotes: keyword, function, character set.
    Word,
    /// A string, hexadecimal or bit literal in single quotes, letter included.
    Text,
    /// A number, `0x…` and `0b…` included.
    Number,
    /// An operator or punctuation, one byte each.
    Symbol,
    /// What a printed statement must not have.
    Stray,
}

/// A lexeme, where it starts, and its text as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lexeme<'a> {
    /// What it is.
    pub mark: Mark,
    /// Byte offset of its start.
    pub at: usize,
    /// Its text, quotes included.
    pub text: &'a str,
}

impl<'a> Lexeme<'a> {
    /// Is it this very word or symbol?
    pub fn is(&self, text: &str) -> bool {
        matches!(self.mark, Mark::Word | Mark::Symbol) && self.text == text
    }

    /// What stands between the backticks of a name.
    pub fn name(&self) -> Option<&'a str> {
        self.text.strip_prefix('`')?.strip_suffix('`').filter(|_| self.mark == Mark::Name)
    }

    /// Byte offset behind it.
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Cuts a text into its lexemes; white space separates them.
pub fn lex(source: &str) -> Vec<Lexeme<'_>> {
    let mut lexemes = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let (mark, length) = lexeme(rest, first);
        lexemes.push(Lexeme { mark, at, text: &rest[..length] });
        at += length;
    }
    lexemes
}

/// The kind and length of the lexeme a text starts with.
fn lexeme(rest: &str, first: char) -> (Mark, usize) {
    let second = rest[first.len_utf8()..].chars().next();
    match (first, second) {
        ('`', _) => match rest[1..].find('`') {
            // A doubled backtick is legal in a name, but no name of the policy has one.
            Some(length) if !rest[length + 2..].starts_with('`') => (Mark::Name, length + 2),
            _ => (Mark::Stray, rest.len()),
        },
        ('\'', _) => quoted(rest, 0),
        ('X' | 'x' | 'B' | 'b' | 'N' | 'n', Some('\'')) => quoted(rest, 1),
        ('-', Some('-')) | ('/', Some('*')) | ('*', Some('/')) | ('|' | '&', Some('|' | '&')) => {
            (Mark::Stray, 2)
        }
        ('0'..='9', _) | ('.', Some('0'..='9')) => (Mark::Number, number(rest)),
        _ if is_word(first) => {
            (Mark::Word, rest.find(|other| !is_word(other)).unwrap_or(rest.len()))
        }
        _ if "().,=<>+-*/%&|^~!".contains(first) => (Mark::Symbol, 1),
        _ => (Mark::Stray, first.len_utf8()),
    }
}

/// A string: doubled quotes and backslash escapes stay inside.
fn quoted(rest: &str, prefix: usize) -> (Mark, usize) {
    let mut characters = rest.char_indices().skip(prefix + 1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '\'' if characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            '\'' => return (Mark::Text, at + 1),
            _ => {}
        }
    }
    (Mark::Stray, rest.len())
}

/// Digits, letters and points, and the sign of an exponent. A name that starts with a digit is one
/// as well: printed names have backticks.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let hexadecimal = rest.starts_with("0x");
    let ends = |at: usize| {
        let exponent = !hexadecimal && at > 0 && matches!(bytes[at - 1], b'e' | b'E');
        !(bytes[at].is_ascii_alphanumeric()
            || bytes[at] == b'.'
            || (exponent && matches!(bytes[at], b'+' | b'-')))
    };
    (0..bytes.len()).find(|at| ends(*at)).unwrap_or(bytes.len())
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$')
}
