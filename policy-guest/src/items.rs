//! How much is left for the parser once the literals are taken past it.
//!
//! Every token the parser reads costs up to a kilobyte of its tree, so a payload within its bytes
//! could still take more memory than a decision has. A decision that fails for lack of memory
//! decides nothing; these bounds say what to change instead.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;

/// Items of a list in one pair of parentheses, or of one clause: columns, keys, values of a row,
/// arguments, tables, assignments. More than any table has columns (manual: "Limits on Table Column
/// Count and Row Size"). Rows and lists of literals do not count.
pub(crate) const ITEM_COUNT_MAX: usize = 4_096;

/// Tokens of a statement for the parser, without those of literal rows and lists: 15,000 rows with
/// a call in each have fewer.
pub(crate) const PARSED_TOKEN_COUNT_MAX: usize = 262_144;

/// Normalised text has every table qualified and parentheses wherever operators nest, so it has more
/// tokens than what its author wrote, and the same tree.
pub(crate) const PARSED_TOKEN_COUNT_READ_BACK_MAX: usize = 4 * PARSED_TOKEN_COUNT_MAX;

/// The bound that one statement's tokens pass, if they pass one.
pub(crate) fn check(tokens: &[TokenWithSpan], token_count_max: usize) -> Option<Finding> {
    if tokens.len() > token_count_max {
        let first_over = tokens.get(token_count_max).and_then(|token| span_of(token.span));
        return Some(
            Finding::new(&code::TOKEN_COUNT)
                .message(format!(
                    "statement has more than {PARSED_TOKEN_COUNT_MAX} tokens besides its literal rows and lists"
                ))
                .near(first_over),
        );
    }
    let mut outer = Vec::new();
    let mut commas = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => outer.push(std::mem::take(&mut commas)),
            Token::RParen => commas = outer.pop().unwrap_or_default(),
            Token::Comma if outer.is_empty() && is_between_rows(tokens, at) => {}
            Token::Comma => {
                commas += 1;
                if commas == ITEM_COUNT_MAX {
                    return Some(Finding::new(&code::ITEM_COUNT).near(span_of(token.span)));
                }
            }
            _ => {}
        }
    }
    None
}

/// `), (`
fn is_between_rows(tokens: &[TokenWithSpan], comma: usize) -> bool {
    let is = |at: Option<usize>, wanted: &Token| {
        at.and_then(|at| tokens.get(at)).is_some_and(|token| token.token == *wanted)
    };
    is(comma.checked_sub(1), &Token::RParen) && is(comma.checked_add(1), &Token::LParen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> bool {
        check(&crate::lexer::lex(source).tokens, PARSED_TOKEN_COUNT_MAX).is_some()
    }

    #[test]
    fn a_list_has_as_many_items_as_a_table_may_have_columns() {
        let list = |count| format!("DROP TABLE t{}", ", t".repeat(count - 1));
        assert!(!refused(&list(ITEM_COUNT_MAX)));
        assert!(refused(&list(ITEM_COUNT_MAX + 1)));
        let key = |count| format!("CREATE TABLE t (a INT, KEY (a{}))", ", a".repeat(count - 1));
        assert!(!refused(&key(ITEM_COUNT_MAX)));
        assert!(refused(&key(ITEM_COUNT_MAX + 1)));
    }

    #[test]
    fn lists_in_different_parentheses_do_not_add_up() {
        let rows = ", (NOW(), 1 + 1)".repeat(15_000);
        assert!(!refused(&format!("INSERT IGNORE INTO t VALUES (1){rows}")));
    }

    #[test]
    fn tokens_are_counted() {
        assert!(!refused(&"a ".repeat(PARSED_TOKEN_COUNT_MAX)));
        assert!(refused(&"a ".repeat(PARSED_TOKEN_COUNT_MAX + 1)));
    }
}
