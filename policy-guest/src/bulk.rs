//! Lists of nothing but literals, taken past the parser.
//!
//! What is large in real payloads is rows and IN lists, and there is nothing to parse in them: a
//! literal, a comma, a literal. The parser spends thousands of instructions on each, so it is given
//! one literal in place of all, whose handle says where the tokens are. Conversion puts them back.
//! It is the same list in the same places: nothing is decided here.

use sqlparser::ast::{Expr as Ast, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span as TokenSpan, Token, TokenWithSpan};

use crate::context::Context;
use crate::diagnostics::{Finding, code};
use crate::head::Kind;
use crate::model::Expr;

/// What a handle that stands for a list starts with; no literal has such a handle.
const HANDLE: &str = "list ";

/// Tokens of one list, or of rows that follow each other, from the first `(` to the last `)`.
type List = Vec<TokenWithSpan>;

/// Takes the lists out of a statement's tokens.
pub(crate) fn fold(kind: Kind, tokens: &mut Vec<TokenWithSpan>) -> Vec<List> {
    let mut places = match kind {
        Kind::CreateTable | Kind::DropTable => return Vec::new(),
        Kind::Insert => rows(tokens),
        Kind::Delete => Vec::new(),
    };
    let start = places.last().map_or(0, |&(_, end)| end);
    in_lists(tokens, start, &mut places);
    if places.is_empty() {
        return Vec::new();
    }
    let folded: usize = places.iter().map(|(start, end)| end - start).sum();
    let mut lists = Vec::with_capacity(places.len());
    let mut rest = Vec::with_capacity(tokens.len() - folded + places.len() * 3);
    let mut source = std::mem::take(tokens).into_iter();
    let mut at = 0;
    for (start, end) in places {
        rest.extend(source.by_ref().take(start - at));
        let list: List = source.by_ref().take(end - start).collect();
        rest.extend(stand_in(&list, lists.len()));
        lists.push(list);
        at = end;
    }
    rest.extend(source);
    *tokens = rest;
    lists
}

/// `(`, a handle and `)`, where the list's own stand.
fn stand_in(list: &[TokenWithSpan], index: usize) -> impl Iterator<Item = TokenWithSpan> + use<> {
    let (open, close) = (list.first().cloned(), list.last().cloned());
    let handle = open.as_ref().zip(close.as_ref()).map(|(open, close)| {
        let span = TokenSpan { start: open.span.end, end: close.span.start };
        let token = Token::SingleQuotedString(format!("{HANDLE}{index}"));
        TokenWithSpan { token, span }
    });
    [open, handle, close].into_iter().flatten()
}

fn token(tokens: &[TokenWithSpan], at: usize) -> Option<&Token> {
    tokens.get(at).map(|token| &token.token)
}

fn keyword(tokens: &[TokenWithSpan], at: usize) -> Option<Keyword> {
    match token(tokens, at)? {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

fn is_literal(tokens: &[TokenWithSpan], at: usize) -> bool {
    match token(tokens, at) {
        Some(
            Token::Number(_, false)
            | Token::SingleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_),
        ) => true,
        _ => matches!(keyword(tokens, at), Some(Keyword::NULL | Keyword::TRUE | Keyword::FALSE)),
    }
}

/// The end of a list of literals in parentheses, if that is what starts here.
fn list_end(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    if token(tokens, open) != Some(&Token::LParen) {
        return None;
    }
    let mut at = open + 1;
    while is_literal(tokens, at) {
        match token(tokens, at + 1)? {
            Token::Comma => at += 2,
            Token::RParen => return Some(at + 2),
            _ => return None,
        }
    }
    None
}

/// Where the rows of `INSERT [IGNORE] [INTO] name [(columns)] VALUES` start.
fn first_row(tokens: &[TokenWithSpan]) -> Option<usize> {
    let skip = |at: usize, word| at + usize::from(keyword(tokens, at) == Some(word));
    let mut at = skip(skip(1, Keyword::IGNORE), Keyword::INTO) + 1;
    while token(tokens, at) == Some(&Token::Period) {
        at += 2;
    }
    if token(tokens, at) == Some(&Token::LParen) {
        let columns = tokens.get(at + 1..)?.iter().take_while(|token| {
            matches!(token.token, Token::Word(_) | Token::Comma | Token::Period)
        });
        at += columns.count() + 2;
        if token(tokens, at - 1) != Some(&Token::RParen) {
            return None;
        }
    }
    matches!(keyword(tokens, at), Some(Keyword::VALUES | Keyword::VALUE)).then_some(at + 1)
}

/// Runs of rows that are all literals.
fn rows(tokens: &[TokenWithSpan]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let Some(mut at) = first_row(tokens) else {
        return runs;
    };
    while token(tokens, at) == Some(&Token::LParen) {
        let end = if let Some(end) = list_end(tokens, at) {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == at => *last = end,
                _ => runs.push((at, end)),
            }
            end
        } else {
            match closing(tokens, at) {
                Some(close) => close + 1,
                None => return runs,
            }
        };
        if token(tokens, end) != Some(&Token::Comma) {
            return runs;
        }
        at = end + 1;
    }
    runs
}

/// The parenthesis that closes this one.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let behind = tokens.get(open..)?.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    Some(open + behind)
}

/// `IN (…)` with two literals or more.
fn in_lists(tokens: &[TokenWithSpan], start: usize, places: &mut Vec<(usize, usize)>) {
    let mut at = start;
    while at < tokens.len() {
        at += 1;
        if keyword(tokens, at - 1) == Some(Keyword::IN)
            && let Some(end) = list_end(tokens, at)
            && end > at + 3
        {
            places.push((at, end));
            at = end;
        }
    }
}

/// The literal a token is.
fn value(token: TokenWithSpan) -> Option<ValueWithSpan> {
    let value = match token.token {
        Token::Number(digits, long) => Value::Number(digits, long),
        Token::SingleQuotedString(handle) => Value::SingleQuotedString(handle),
        Token::NationalStringLiteral(handle) => Value::NationalStringLiteral(handle),
        Token::HexStringLiteral(handle) => Value::HexStringLiteral(handle),
        Token::SingleQuotedByteStringLiteral(handle) => {
            Value::SingleQuotedByteStringLiteral(handle)
        }
        Token::Word(word) => match word.keyword {
            Keyword::NULL => Value::Null,
            Keyword::TRUE => Value::Boolean(true),
            Keyword::FALSE => Value::Boolean(false),
            _ => return None,
        },
        _ => return None,
    };
    Some(ValueWithSpan { value, span: token.span })
}

impl Context<'_> {
    /// The list that an expression stands for.
    fn folded(&mut self, expr: &Ast) -> Option<List> {
        let Ast::Value(ValueWithSpan { value: Value::SingleQuotedString(handle), .. }) = expr
        else {
            return None;
        };
        let index = handle.strip_prefix(HANDLE)?.parse::<usize>().ok()?;
        self.lists.get_mut(index).map(std::mem::take)
    }

    /// Rows as they were written: those of a list, or the one row itself.
    pub(crate) fn unfolded_rows(&mut self, row: Vec<Ast>) -> Option<Vec<Vec<Expr>>> {
        let list = match row.as_slice() {
            [only] => self.folded(only),
            _ => None,
        };
        match list {
            Some(list) => self.rows_of(list),
            None => self.every(row, Self::expr).map(|row| vec![row]),
        }
    }

    /// Items as they were written: those of a list, or the items themselves.
    pub(crate) fn unfolded_items(&mut self, items: Vec<Ast>) -> Option<Vec<Expr>> {
        self.unfolded_rows(items).map(|rows| rows.into_iter().flatten().collect())
    }

    /// What stands in parentheses: a list, which is a row, or an expression.
    pub(crate) fn nested(&mut self, inner: Ast) -> Option<Expr> {
        match self.folded(&inner) {
            Some(list) => self.rows_of(list)?.pop().map(Expr::Row),
            None => self.expr(inner),
        }
    }

    fn rows_of(&mut self, list: List) -> Option<Vec<Vec<Expr>>> {
        let mut rows = Vec::new();
        let mut row = Vec::new();
        let mut complete = true;
        for token in list {
            match token.token {
                Token::LParen | Token::Comma => {}
                Token::RParen => rows.push(std::mem::take(&mut row)),
                _ => match value(token).map(|value| self.value(value)) {
                    Some(Some(literal)) => row.push(literal),
                    Some(None) => complete = false,
                    // A list has only what is a literal; without one nothing is understood.
                    None => return self.refuse(Finding::new(&code::EXPRESSION)),
                },
            }
        }
        complete.then_some(rows)
    }
}
