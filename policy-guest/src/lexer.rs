//! MySQL's lexical rules, from payload text to the tokens the parser is given.
//!
//! sqlparser's own tokenizer differs from the server in ways that can be talked round (executable
//! comments are inlined, `--` before a no-break space is a comment, `0x41` and `X'41'` become one,
//! unescaping is not MySQL's), so the policy reads the text itself by the rules of the manual's
//! chapters "Comments", "String Literals", "Hexadecimal Literals", "Bit-Value Literals" and "Schema
//! Object Names", and hands the parser an equivalent token stream. Two conventions carry what the
//! parser has no place for:
//!
//! - A token's location is `line 1, column 1 + byte offset`, so spans of the AST are byte offsets.
//! - A string, hexadecimal or bit token holds a *handle*, the literal's index in [`Lexed::literals`]:
//!   no content of a literal can change how the text around it is parsed.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span as TokenSpan, Token, TokenWithSpan, Word};

use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::keywords::word_token;

/// What a literal is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiteralKind {
    /// `'…'` or `"…"`; under the pinned `sql_mode` both are strings.
    String,
    /// `N'…'`
    National,
    /// `X'…'`
    Hex,
    /// `0x…`, a number or a string by context.
    HexNumber,
    /// `b'…'`
    Bit,
    /// `0b…`
    BitNumber,
}

/// A literal, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) kind: LiteralKind,
    /// A string's value after MySQL's escape rules; otherwise the digits.
    pub(crate) text: String,
    pub(crate) span: Span,
    /// Several adjacent literals that the server concatenates in an expression.
    pub(crate) adjacent: bool,
}

/// A lexed payload.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<TokenWithSpan>,
    pub(crate) literals: Vec<Literal>,
    pub(crate) findings: Vec<Finding>,
    /// Findings beyond [`FINDINGS_MAX`].
    pub(crate) unlisted: usize,
}

/// Findings that are kept: many more than are ever listed. A payload can have one at each byte, and
/// a million of them do not fit into the memory of one decision.
const FINDINGS_MAX: usize = 10_000;

/// About as many bytes of a payload make a token: a list that grew as it was filled would be copied
/// time and again.
const BYTES_PER_TOKEN: usize = 4;

/// Lexes a payload. Whatever the policy refuses by its spelling alone becomes a finding, and a
/// neutral token takes its place so that the rest is still read.
pub(crate) fn lex(source: &str) -> Lexed {
    let tokens = Vec::with_capacity(source.len() / BYTES_PER_TOKEN + 1);
    let out = Lexed { tokens, ..Lexed::default() };
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at: 0, out };
    while lexer.at < lexer.bytes.len() {
        lexer.next();
    }
    lexer.out
}

/// Byte offsets of a token or a part of the AST; none for what sqlparser gives no location.
pub(crate) fn span_of(span: TokenSpan) -> Option<Span> {
    let offset = |location: Location| u32::try_from(location.column.checked_sub(1)?).ok();
    (span.start.line == 1 && span.end.line == 1)
        .then(|| Some(Span { start: offset(span.start)?, end: offset(span.end)? }))
        .flatten()
}

/// Can the byte be part of an unquoted identifier? Bytes of non-ASCII characters can.
/// Manual: "Schema Object Names", unquoted identifiers.
pub(crate) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Lexed,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// How many bytes of a word stand here.
    fn word_length(&self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.iter().position(|&byte| !is_word_byte(byte)).unwrap_or(rest.len())
    }

    fn text(&self, start: usize, end: usize) -> &str {
        self.source.get(start..end).unwrap_or_default()
    }

    fn span(start: usize, end: usize) -> Span {
        // A payload is bounded to 1 MiB before it is lexed.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span { start: offset(start), end: offset(end) }
    }

    fn push(&mut self, token: Token, start: usize) {
        let location = |at: usize| Location { line: 1, column: at as u64 + 1 };
        let span = TokenSpan { start: location(start), end: location(self.at) };
        self.out.tokens.push(TokenWithSpan { token, span });
    }

    fn symbol(&mut self, length: usize, token: Token) {
        let start = self.at;
        self.at += length;
        self.push(token, start);
    }

    fn report(&mut self, finding: Finding, start: usize, end: usize) {
        if self.out.findings.len() < FINDINGS_MAX {
            self.out.findings.push(finding.at(Self::span(start, end)));
        } else {
            self.out.unlisted += 1;
        }
    }

    fn next(&mut self) {
        let byte = self.peek(0);
        match byte {
            0xef if self.at == 0 && self.source.starts_with('\u{feff}') => self.byte_order_mark(),
            b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
            b'#' => self.line_comment(1),
            b'-' if self.peek(1) == b'-' && self.starts_dash_comment() => self.line_comment(2),
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'\'' | b'"' => self.string(LiteralKind::String, self.at),
            b'`' => self.quoted_name(),
            b'0'..=b'9' => self.number_or_name(),
            b'.' if self.peek(1).is_ascii_digit() && !self.follows_name() => self.number(),
            b'@' => self.variable(),
            b'?' => self.placeholder(1),
            b':' => self.colon(),
            b'\\' => self.backslash(),
            _ if is_word_byte(byte) => self.word(),
            _ => self.operator(byte),
        }
    }

    fn byte_order_mark(&mut self) {
        self.at = '\u{feff}'.len_utf8();
        let finding = Finding::new(&code::CHARACTER)
            .message("byte order mark")
            .help("save the file as UTF-8 without a byte order mark")
            .replace(Self::span(0, self.at), "");
        self.report(finding, 0, self.at);
    }

    /// `--` opens a comment only before white space or a control character.
    /// Manual: "'--' as the Start of a Comment". At the end of the text servers read a comment where
    /// other readers do not, so that is left to fail.
    fn starts_dash_comment(&self) -> bool {
        matches!(self.bytes.get(self.at + 2), Some(b' ' | b'\t' | b'\n' | b'\r'))
    }

    /// A line comment ends at a line feed and at nothing else.
    fn line_comment(&mut self, opener: usize) {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        if self.peek(opener) == b'+' {
            self.report(Finding::new(&code::HINT), start, start + length);
        }
        self.at = start + length;
        self.control_characters(start, self.at);
    }

    /// A plain comment ends at the first `*/`; comments do not nest.
    fn block_comment(&mut self) {
        let start = self.at;
        let body = self.bytes.get(start + 2..).unwrap_or_default();
        let closed = body.windows(2).position(|pair| pair == b"*/");
        self.at = closed.map_or(self.bytes.len(), |length| start + 2 + length + 2);
        match (self.bytes.get(start + 2), self.bytes.get(start + 3)) {
            (Some(b'!'), _) | (Some(b'M' | b'm'), Some(b'!')) => {
                self.report(Finding::new(&code::EXECUTABLE_COMMENT), start, self.at);
            }
            (Some(b'+'), _) => self.report(Finding::new(&code::HINT), start, self.at),
            _ if closed.is_none() => {
                let finding = Finding::new(&code::UNTERMINATED).message("comment has no end");
                self.report(finding, start, self.at);
            }
            _ => self.control_characters(start, self.at),
        }
    }

    fn control_characters(&mut self, start: usize, end: usize) {
        let body = self.bytes.get(start..end).unwrap_or_default();
        let found = body
            .iter()
            .position(|&byte| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r'));
        if let Some(offset) = found {
            let at = start + offset;
            self.report(Finding::new(&code::CHARACTER), at, at + 1);
        }
    }

    /// Reads a string from its opening quote; `start` is where the literal starts, introducing
    /// letter included.
    fn string(&mut self, kind: LiteralKind, start: usize) {
        let quote = self.peek(0);
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().position(|&byte| byte == quote || byte == b'\\');
            let Some(plain) = plain else {
                let finding = Finding::new(&code::UNTERMINATED).message("string has no end");
                self.at = self.bytes.len();
                self.report(finding, start, self.at);
                return;
            };
            text.push_str(self.text(self.at, self.at + plain));
            self.at += plain;
            if self.peek(0) == b'\\' {
                self.escape(&mut text);
            } else if self.peek(1) == quote {
                text.push(quote as char);
                self.at += 2;
            } else {
                self.at += 1;
                break;
            }
        }
        self.push_string(kind, text, start);
    }

    /// Manual: "Special Character Escape Sequences". `\%` and `\_` keep their backslash; any other
    /// escape stands for the character itself.
    fn escape(&mut self, text: &mut String) {
        self.at += 1;
        let Some(escaped) = self.source.get(self.at..).and_then(|rest| rest.chars().next()) else {
            return;
        };
        self.at += escaped.len_utf8();
        match escaped {
            '0' => text.push('\0'),
            'b' => text.push('\u{8}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'Z' => text.push('\u{1a}'),
            '%' | '_' => {
                text.push('\\');
                text.push(escaped);
            }
            other => text.push(other),
        }
    }

    /// Adjacent strings are one value to the server (manual: "String Literals").
    fn push_string(&mut self, kind: LiteralKind, text: String, start: usize) {
        let end = self.at;
        if kind == LiteralKind::String
            && let Some(last) = self.out.tokens.last_mut()
            && matches!(last.token, Token::SingleQuotedString(_) | Token::NationalStringLiteral(_))
            && let Some(literal) = self.out.literals.last_mut()
        {
            literal.text.push_str(&text);
            literal.span.end = Self::span(start, end).end;
            literal.adjacent = true;
            last.span.end = Location { line: 1, column: end as u64 + 1 };
            return;
        }
        self.push_literal(kind, text, start);
    }

    fn push_literal(&mut self, kind: LiteralKind, text: String, start: usize) {
        let handle = self.out.literals.len().to_string();
        let token = match kind {
            LiteralKind::String => Token::SingleQuotedString(handle),
            LiteralKind::National => Token::NationalStringLiteral(handle),
            LiteralKind::Hex | LiteralKind::HexNumber => Token::HexStringLiteral(handle),
            LiteralKind::Bit | LiteralKind::BitNumber => {
                Token::SingleQuotedByteStringLiteral(handle)
            }
        };
        let span = Self::span(start, self.at);
        self.out.literals.push(Literal { kind, text, span, adjacent: false });
        self.push(token, start);
    }

    /// `X'…'` and `b'…'`, from the quote on.
    fn digits_in_quotes(&mut self, kind: LiteralKind, start: usize) {
        let body = self.bytes.get(self.at + 1..).unwrap_or_default();
        let length = body.iter().position(|&byte| byte == b'\'').unwrap_or(body.len());
        let digits = self.text(self.at + 1, self.at + 1 + length).to_owned();
        self.at = (self.at + length + 2).min(self.bytes.len());
        let well_formed = length < body.len()
            && match kind {
                LiteralKind::Hex => {
                    length.is_multiple_of(2) && digits.bytes().all(|b| b.is_ascii_hexdigit())
                }
                _ => digits.bytes().all(|b| matches!(b, b'0' | b'1')),
            };
        if !well_formed {
            let finding =
                Finding::new(&code::LITERAL).message("malformed hexadecimal or bit literal");
            self.report(finding, start, self.at);
        }
        self.push_literal(kind, digits, start);
    }

    fn quoted_name(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut name = String::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(plain) = rest.iter().position(|&byte| byte == b'`') else {
                let finding = Finding::new(&code::UNTERMINATED).message("quoted name has no end");
                self.at = self.bytes.len();
                self.report(finding, start, self.at);
                return;
            };
            name.push_str(self.text(self.at, self.at + plain));
            self.at += plain + 1;
            if self.peek(0) != b'`' {
                break;
            }
            name.push('`');
            self.at += 1;
        }
        let word = Word { value: name, quote_style: Some('`'), keyword: Keyword::NoKeyword };
        self.push(Token::Word(word), start);
    }

    /// Does a name, or the closing backtick of one, stand directly before?
    fn follows_name(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        before.is_some_and(|&byte| is_word_byte(byte) || byte == b'`')
    }

    /// A run that starts with a digit: `0x…`, `0b…`, a number, or an identifier such as `2fa`.
    fn number_or_name(&mut self) {
        let start = self.at;
        let after_dot = start.checked_sub(1).and_then(|at| self.bytes.get(at)) == Some(&b'.');
        let run = self.word_length();
        let word = self.text(start, start + run);
        let behind = self.bytes.get(start + run..start + run + 2).unwrap_or_default();
        let digits = |prefix: &str, accepts: fn(&u8) -> bool| {
            word.strip_prefix(prefix)
                .filter(|digits| !digits.is_empty() && digits.as_bytes().iter().all(accepts))
                .map(str::to_owned)
        };
        if after_dot {
            let token = word_token(word);
            self.symbol(run, token);
        } else if let Some(digits) = digits("0x", u8::is_ascii_hexdigit) {
            self.at = start + run;
            self.push_literal(LiteralKind::HexNumber, digits, start);
        } else if let Some(digits) = digits("0b", |byte| matches!(byte, b'0' | b'1')) {
            self.at = start + run;
            self.push_literal(LiteralKind::BitNumber, digits, start);
        } else if is_number_run(word, behind) {
            self.number();
        } else {
            let token = word_token(word);
            self.symbol(run, token);
        }
    }

    /// Digits, a point, digits, an exponent; each part may be missing as the manual's "Numeric
    /// Literals" allows.
    fn number(&mut self) {
        let start = self.at;
        self.digits();
        if self.peek(0) == b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let name = rest.iter().take_while(|&&byte| is_word_byte(byte)).count();
        if name > 0 {
            let finding = Finding::new(&code::LITERAL).message("number runs into a name");
            self.report(finding, start, self.at + name);
        }
        let text = self.text(start, self.at).to_owned();
        self.push(Token::Number(text, false), start);
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let letter = self.peek(0).to_ascii_lowercase();
        if self.peek(1) == b'\'' && matches!(letter, b'x' | b'b' | b'n') {
            self.at += 1;
            return match letter {
                b'x' => self.digits_in_quotes(LiteralKind::Hex, start),
                b'b' => self.digits_in_quotes(LiteralKind::Bit, start),
                _ => self.string(LiteralKind::National, start),
            };
        }
        self.at += self.word_length();
        let word = self.text(start, self.at);
        if !word.is_ascii() && word.contains(is_blank_look_alike) {
            return self.report(Finding::new(&code::CHARACTER), start, self.at);
        }
        let token = word_token(word);
        self.push(token, start);
    }

    /// User and system variables, in every spelling: `@a`, `@'a'`, `@@port`, `@@global.port`.
    fn variable(&mut self) {
        let start = self.at;
        while self.peek(0) == b'@' {
            self.at += 1;
        }
        if let quote @ (b'\'' | b'"' | b'`') = self.peek(0) {
            self.at += 1;
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += rest.iter().position(|&byte| byte == quote).map_or(rest.len(), |at| at + 1);
        } else {
            while is_word_byte(self.peek(0)) || self.peek(0) == b'.' {
                self.at += 1;
            }
        }
        self.report(Finding::new(&code::VARIABLE), start, self.at);
        self.push(Token::make_keyword("NULL"), start);
    }

    fn placeholder(&mut self, opener: usize) {
        let start = self.at;
        self.at += opener;
        self.at += self.word_length();
        self.report(Finding::new(&code::PLACEHOLDER), start, self.at);
        self.push(Token::make_keyword("NULL"), start);
    }

    fn colon(&mut self) {
        if self.peek(1) == b'=' {
            let start = self.at;
            self.at += 2;
            self.report(
                Finding::new(&code::VARIABLE).message("assignment to a variable"),
                start,
                self.at,
            );
            self.push(Token::Eq, start);
        } else {
            self.placeholder(1);
        }
    }

    /// `\N` is NULL to the server (manual: "NULL Values").
    fn backslash(&mut self) {
        if self.peek(1) == b'N' && !is_word_byte(self.peek(2)) {
            self.symbol(2, Token::make_keyword("NULL"));
        } else {
            self.refuse_character();
        }
    }

    fn operator(&mut self, byte: u8) {
        let pair = (byte, self.peek(1));
        match pair {
            (b'<', b'=') if self.peek(2) == b'>' => self.symbol(3, Token::Spaceship),
            (b'<', b'=') => self.symbol(2, Token::LtEq),
            (b'<', b'>') | (b'!', b'=') => self.symbol(2, Token::Neq),
            (b'<', b'<') => self.symbol(2, Token::ShiftLeft),
            (b'>', b'=') => self.symbol(2, Token::GtEq),
            (b'>', b'>') => self.symbol(2, Token::ShiftRight),
            (b'&', b'&') => self.symbol(2, Token::make_keyword("AND")),
            (b'|', b'|') => {
                self.report(Finding::new(&code::DOUBLE_BAR), self.at, self.at + 2);
                self.symbol(2, Token::make_keyword("OR"));
            }
            (b'-', b'>') => {
                let length = if self.peek(2) == b'>' { 3 } else { 2 };
                self.report(Finding::new(&code::JSON_ARROW), self.at, self.at + length);
                self.symbol(length, Token::Plus);
            }
            _ => match single(byte) {
                Some(token) => self.symbol(1, token),
                None => self.refuse_character(),
            },
        }
    }

    fn refuse_character(&mut self) {
        let start = self.at;
        let character = self.source.get(start..).and_then(|rest| rest.chars().next());
        self.at += character.map_or(1, char::len_utf8);
        self.report(Finding::new(&code::CHARACTER), start, self.at);
    }
}

const fn single(byte: u8) -> Option<Token> {
    Some(match byte {
        b'(' => Token::LParen,
        b')' => Token::RParen,
        b',' => Token::Comma,
        b'.' => Token::Period,
        b';' => Token::SemiColon,
        b'=' => Token::Eq,
        b'<' => Token::Lt,
        b'>' => Token::Gt,
        b'+' => Token::Plus,
        b'-' => Token::Minus,
        b'*' => Token::Mul,
        b'/' => Token::Div,
        b'%' => Token::Mod,
        b'&' => Token::Ampersand,
        b'|' => Token::Pipe,
        b'^' => Token::Caret,
        b'~' => Token::Tilde,
        b'!' => Token::ExclamationMark,
        _ => return None,
    })
}

/// White space that is none to the server, and marks that cannot be seen.
fn is_blank_look_alike(character: char) -> bool {
    (character.is_whitespace() && !character.is_ascii())
        || matches!(
            character,
            '\u{80}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
}

/// Is a run of word bytes that starts with a digit a number? `after` is what follows the run.
fn is_number_run(word: &str, after: &[u8]) -> bool {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else {
        return rest.is_empty();
    };
    match exponent.as_bytes() {
        // `1e+5`: the sign ends the run.
        [] => matches!(after, [b'+' | b'-', digit, ..] if digit.is_ascii_digit()),
        digits => digits.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        lex(source).tokens.iter().map(|token| token.token.to_string()).collect()
    }

    fn strings(source: &str) -> Vec<String> {
        lex(source).literals.into_iter().map(|literal| literal.text).collect()
    }

    fn codes(source: &str) -> Vec<&'static str> {
        lex(source).findings.iter().map(Finding::code).collect()
    }

    #[test]
    fn escapes_follow_the_manual() {
        assert_eq!(
            strings(r"'\0\b\n\r\t\Z\\\'''' '\%\_\a\x'"),
            ["\0\u{8}\n\r\t\u{1a}\\''\\%\\_ax"]
        );
        assert_eq!(strings(r#""a""b'c""#), ["a\"b'c"]);
    }

    #[test]
    fn adjacent_strings_are_one_literal() {
        assert_eq!(strings("'a' /* x */ \"b\" N'c' 'd'"), ["ab", "cd"]);
    }

    #[test]
    fn numbers_and_names_that_start_with_digits() {
        assert_eq!(
            words("1 1. .5 1e5 1e+5 1.5E-3 2fa 3d t.1st 1e"),
            ["1", "1.", ".5", "1e5", "1e+5", "1.5E-3", "2fa", "3d", "t", ".", "1st", "1e"]
        );
        assert_eq!(strings("0x4A 0b10 X'41' b'1'"), ["4A", "10", "41", "1"]);
        assert_eq!(words("0X41 0xZZ 0b12"), ["0X41", "0xZZ", "0b12"]);
    }

    #[test]
    fn comments_end_where_the_server_ends_them() {
        assert_eq!(words("a -- x\rb\nc # d\ne /* f /* g */ h"), ["a", "c", "e", "h"]);
        assert_eq!(words("5--3"), ["5", "-", "-", "3"]);
    }

    #[test]
    fn spellings_that_are_refused_are_found() {
        for (source, expected) in [
            ("/*!50000 x */", "executable-comment"),
            ("/*M! x */", "executable-comment"),
            ("/*+ x */", "optimizer-hint"),
            ("#+ x", "optimizer-hint"),
            ("/* x", "unterminated"),
            ("'x", "unterminated"),
            ("`x", "unterminated"),
            ("@a", "variable"),
            ("@@global.port", "variable"),
            ("?", "placeholder"),
            (":x", "placeholder"),
            ("a || b", "double-bar"),
            ("a\u{a0}b", "character"),
            ("a\u{0}b", "character"),
            ("{x}", "character"),
            ("X'ABC'", "literal"),
        ] {
            assert!(codes(source).contains(&expected), "{source}: {:?}", codes(source));
        }
    }

    #[test]
    fn locations_are_byte_offsets() {
        let lexed = lex("é `x`");
        let spans: Vec<_> = lexed.tokens.iter().filter_map(|token| span_of(token.span)).collect();
        assert_eq!(spans, [Span { start: 0, end: 2 }, Span { start: 3, end: 6 }]);
    }

    #[test]
    fn no_span_cuts_a_character_in_two() {
        let starts = [
            "", "a", "1", "1.", ".5", "1e", "1e+5", "0x", "0x4", "0b", "x'", "b'", "n'", "'", "\"",
            "`", "'\\", "@", "@'", "@@a.", "?", ":", ":=", "\\", "\\N", "|", "->", "#", "#+",
            "-- ", "/*", "/*+", "/*!", "a.5", "`a`.5", "<", "!", "{", "\u{0}", "\u{feff}",
        ];
        for start in starts {
            for character in ["é", "ث", "\u{a0}", "名", "🦀"] {
                let source = format!("{start}{character}{start}{character}");
                let lexed = lex(&source);
                let tokens = lexed.tokens.iter().filter_map(|token| span_of(token.span));
                let findings = lexed.findings.iter().filter_map(|finding| finding.span);
                let literals = lexed.literals.iter().map(|literal| literal.span);
                for span in tokens.chain(findings).chain(literals) {
                    assert!(
                        source.get(span.start as usize..span.end as usize).is_some(),
                        "{source}: {span:?}"
                    );
                }
            }
        }
    }
}
