//! Forms that servers accept and sqlparser does not, as tokens it reads the same way.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::diagnostics::{Finding, code};
use crate::head::Kind;
use crate::lexer::{Literal, LiteralKind, span_of};

/// What a handle of an index option starts with that is KEY_BLOCK_SIZE; no literal has such a handle.
pub(crate) const KEY_BLOCK_SIZE: &str = "key-block-size ";
/// The handle of an index option that makes the index a FULLTEXT one.
pub(crate) const FULLTEXT: &str = "fulltext";
/// The handle of an index option that makes the index a SPATIAL one.
pub(crate) const SPATIAL: &str = "spatial";

/// What rewriting found besides.
#[derive(Default)]
pub(crate) struct Rewritten {
    /// `.*` was taken off the targets of a DELETE.
    pub(crate) star_targets: bool,
    pub(crate) findings: Vec<Finding>,
}

/// Rewrites one statement's tokens in place.
pub(crate) fn rewrite(
    kind: Kind,
    tokens: &mut Vec<TokenWithSpan>,
    literals: &[Literal],
) -> Rewritten {
    let mut rewritten = Rewritten::default();
    infix_words(tokens);
    match kind {
        Kind::Insert => {}
        Kind::DropTable => drop_tables(tokens),
        Kind::Delete => rewritten.star_targets = star_targets(tokens),
        Kind::CreateTable => {
            names_in_quotes(tokens, literals);
            rewritten.findings.extend(mixed_elements(tokens));
            key_block_size(tokens);
            special_indexes(tokens);
            rewritten.findings.extend(partitions(tokens));
        }
    }
    rewritten
}

fn keyword(token: Option<&TokenWithSpan>) -> Option<Keyword> {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

fn is_word(token: Option<&TokenWithSpan>, expected: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// `a MOD b` is `a % b`. `a DIV b` has no symbol; it travels as `||`, which the lexer never gives.
/// sqlparser reads operators that are words through a hook that copies what stands to their left,
/// so a chain of them would cost the square of its length.
fn infix_words(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let word = tokens.get(at);
        let symbol = if is_word(word, "MOD") {
            Token::Mod
        } else if is_word(word, "DIV") {
            Token::StringConcat
        } else {
            continue;
        };
        let follows_operand =
            at.checked_sub(1).and_then(|at| tokens.get(at)).is_some_and(ends_operand);
        if let (true, Some(token)) = (follows_operand, tokens.get_mut(at)) {
            token.token = symbol;
        }
    }
}

/// Can an operand end here? A word can unless it is reserved: after SELECT, `MOD(` is a call.
fn ends_operand(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || matches!(
                    word.keyword,
                    Keyword::NULL
                        | Keyword::TRUE
                        | Keyword::FALSE
                        | Keyword::END
                        | Keyword::DEFAULT
                )
                || !crate::names::is_reserved(&word.value)
                || crate::functions::NILADIC
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(&word.value))
        }
        Token::RParen
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_) => true,
        _ => false,
    }
}

/// DROP TABLES is DROP TABLE.
fn drop_tables(tokens: &mut [TokenWithSpan]) {
    if let Some(token) = tokens.get_mut(1)
        && is_word(Some(token), "TABLES")
    {
        token.token = Token::make_keyword("TABLE");
    }
}

/// `DELETE a.*, b.* FROM …` is `DELETE a, b FROM …`, and so before USING.
fn star_targets(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let froms = |token: &TokenWithSpan| keyword(Some(token)) == Some(Keyword::FROM);
    let usings = |token: &TokenWithSpan| keyword(Some(token)) == Some(Keyword::USING);
    let end = match tokens.iter().position(froms) {
        Some(1) => tokens.iter().position(usings).unwrap_or(0),
        Some(at) => at,
        None => 0,
    };
    let before = tokens.len();
    if !tokens.iter().take(end).any(|token| token.token == Token::Mul) {
        return false;
    }
    let mut source = std::mem::take(tokens).into_iter().enumerate().peekable();
    while let Some((at, token)) = source.next() {
        let star = source.peek().is_some_and(|(_, next)| next.token == Token::Mul);
        if at + 1 < end && token.token == Token::Period && star {
            source.next();
        } else {
            tokens.push(token);
        }
    }
    tokens.len() < before
}

/// `ENGINE = 'InnoDB'`, `CHARSET "utf8"` and their kin take a string where the parser wants a word.
/// Manual: "CREATE TABLE Statement", table options.
fn names_in_quotes(tokens: &mut [TokenWithSpan], literals: &[Literal]) {
    for at in 1..tokens.len() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let named = match before.map(|token| &token.token) {
            Some(Token::Eq) => at.checked_sub(2).and_then(|at| tokens.get(at)),
            _ => before,
        };
        let takes_name = matches!(
            keyword(named),
            Some(Keyword::ENGINE | Keyword::CHARSET | Keyword::COLLATE | Keyword::ROW_FORMAT)
        ) || (keyword(named) == Some(Keyword::SET) && {
            let set = if before.map(|token| &token.token) == Some(&Token::Eq) { 3 } else { 2 };
            let character = at.checked_sub(set).and_then(|at| tokens.get(at));
            keyword(character) == Some(Keyword::CHARACTER)
        });
        let Some(token) = tokens.get_mut(at) else {
            return;
        };
        if let (true, Token::SingleQuotedString(handle)) = (takes_name, &token.token)
            && let Some(literal) = handle.parse::<usize>().ok().and_then(|at| literals.get(at))
            && literal.kind == LiteralKind::String
            && !literal.adjacent
        {
            // Quoted, so that it cannot become a keyword.
            token.token = Token::Word(Word {
                value: literal.text.clone(),
                quote_style: Some('`'),
                keyword: Keyword::NoKeyword,
            });
        }
    }
}

/// KEY_BLOCK_SIZE of an index: inside the parentheses of the table, where it is no table option.
fn key_block_size(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(Some(token), "KEY_BLOCK_SIZE")) {
        return;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    // Taken out at once: one by one costs the square of how many there are.
    let mut dropped = Vec::new();
    while at < tokens.len() {
        match tokens.get(at).map(|token| &token.token) {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 1 && is_word(tokens.get(at), "KEY_BLOCK_SIZE") {
            let equals = tokens.get(at + 1).is_some_and(|token| token.token == Token::Eq);
            let value = at + 1 + usize::from(equals);
            if let Some(Token::Number(digits, _)) = tokens.get(value).map(|token| &token.token) {
                let handle = format!("{KEY_BLOCK_SIZE}{digits}");
                if let Some(token) = tokens.get_mut(value) {
                    token.token = Token::SingleQuotedString(handle);
                }
                if let Some(token) = tokens.get_mut(at) {
                    token.token = Token::make_keyword("COMMENT");
                }
                if equals {
                    dropped.push(at + 1);
                }
            }
        }
        at += 1;
    }
    let mut dropped = dropped.into_iter().peekable();
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        dropped.next_if_eq(&(at - 1)).is_none()
    });
}

/// `FULLTEXT KEY k (a) COMMENT 'x'`: the parser reads no options of such an index, so it travels as a
/// plain one whose first option says what it is.
fn special_indexes(tokens: &mut Vec<TokenWithSpan>) {
    let special =
        |token| matches!(keyword(Some(token)), Some(Keyword::FULLTEXT | Keyword::SPATIAL));
    if !tokens.iter().any(special) {
        return;
    }
    let mut depth = 0_usize;
    let mut starts_element = false;
    let mut pending = None;
    let mut source = std::mem::take(tokens).into_iter().peekable();
    while let Some(mut token) = source.next() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let closes = token.token == Token::RParen && depth == 1;
        let kind = match keyword(Some(&token)) {
            Some(Keyword::FULLTEXT) if starts_element => Some(FULLTEXT),
            Some(Keyword::SPATIAL) if starts_element => Some(SPATIAL),
            _ => None,
        };
        starts_element = matches!(token.token, Token::LParen | Token::Comma) && depth == 1;
        if kind.is_some() {
            pending = kind;
            let word = source.peek().and_then(|next| keyword(Some(next)));
            if !matches!(word, Some(Keyword::KEY | Keyword::INDEX)) {
                token.token = Token::make_keyword("KEY");
                tokens.push(token);
            }
            continue;
        }
        let span = token.span;
        tokens.push(token);
        if let Some(kind) = pending.take_if(|_| closes) {
            let option =
                [Token::make_keyword("COMMENT"), Token::SingleQuotedString(kind.to_owned())];
            tokens.extend(option.map(|token| TokenWithSpan { token, span }));
        }
    }
}

/// A column with a key, a check or a reference of its own, behind keys or checks of the table: the
/// parser loses which came first, and servers number and order keys by that.
fn mixed_elements(tokens: &[TokenWithSpan]) -> Option<Finding> {
    let mut depth = 0_usize;
    let mut element_seen = false;
    let mut column = None;
    let mut starts = false;
    for token in tokens {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let word = keyword(Some(token));
        if depth == 1 && starts {
            let element = matches!(
                word,
                Some(
                    Keyword::KEY
                        | Keyword::INDEX
                        | Keyword::UNIQUE
                        | Keyword::PRIMARY
                        | Keyword::FULLTEXT
                        | Keyword::SPATIAL
                        | Keyword::CONSTRAINT
                        | Keyword::FOREIGN
                        | Keyword::CHECK
                )
            );
            column = (!element && element_seen).then_some(token.span);
            element_seen |= element;
        } else if depth == 1
            && matches!(
                word,
                Some(Keyword::KEY | Keyword::UNIQUE | Keyword::REFERENCES | Keyword::CHECK)
            )
            && let Some(span) = column
        {
            return Some(
                Finding::new(&code::INDEX_OPTION)
                    .message("column with a key of its own behind keys of the table")
                    .help("write the columns first, then keys and checks")
                    .near(span_of(span)),
            );
        }
        starts = matches!(token.token, Token::LParen | Token::Comma) && depth == 1;
    }
    None
}

/// Takes PARTITION BY off the end, so that the rest is still read.
fn partitions(tokens: &mut Vec<TokenWithSpan>) -> Option<Finding> {
    let mut depth = 0_usize;
    let at = tokens.iter().enumerate().position(|(at, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
            && keyword(Some(token)) == Some(Keyword::PARTITION)
            && keyword(tokens.get(at + 1)) == Some(Keyword::BY)
    })?;
    let span = tokens.get(at).and_then(|token| span_of(token.span));
    tokens.truncate(at);
    Some(Finding::new(&code::PARTITION).near(span))
}
