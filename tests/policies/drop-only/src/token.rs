//! Words, quoted names and symbols. There are no strings and no comments: where one begins is a
//! symbol that no statement of this policy has a place for.

use crate::Span;

/// A piece of a payload and its place.
#[derive(Debug, Clone)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// Of a quoted name what is between the quotes.
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ASCII letters, digits, `_` and `$`.
    Word,
    /// A name in backticks, without a backtick in it.
    Quoted,
    /// Any other character.
    Symbol,
}

impl Token<'_> {
    /// What ends a statement.
    pub(crate) const SEMICOLON: (Kind, &'static str) = (Kind::Symbol, ";");

    /// Whether it is this keyword, in any case.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }
}

impl PartialEq<(Kind, &str)> for Token<'_> {
    fn eq(&self, (kind, text): &(Kind, &str)) -> bool {
        self.kind == *kind && self.text == *text
    }
}

/// Reads a whole payload. Nothing in it is an error here.
pub(crate) fn read(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let token = token(text, at, first);
        at = token.span.end;
        if !first.is_ascii_whitespace() {
            tokens.push(token);
        }
    }
    tokens
}

fn token(text: &str, start: usize, first: char) -> Token<'_> {
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    if length > 0 {
        let word = rest.get(..length).unwrap_or_default();
        return Token { kind: Kind::Word, text: word, span: start..start + length };
    }
    if let Some((name, _)) = rest.strip_prefix('`').and_then(|quoted| quoted.split_once('`')) {
        return Token { kind: Kind::Quoted, text: name, span: start..start + name.len() + 2 };
    }
    let symbol = rest.get(..first.len_utf8()).unwrap_or_default();
    Token { kind: Kind::Symbol, text: symbol, span: start..start + first.len_utf8() }
}

/// Whether a name may have the character.
pub(crate) fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$')
}
