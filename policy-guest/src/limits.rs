//! What is refused before the parser sees it: sizes, and depths it would not survive.
//!
//! sqlparser's recursion limit does not see chains that nest to the left, and a stack overflow is a
//! trap, which decides nothing. So depth is counted on the token stream.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::describe::LIMITS;
use crate::diagnostics::{Code, Finding, code};
use crate::lexer::span_of;

/// Precedence levels that chain.
const LEVELS: usize = 10;

/// How deep a tree may go down its left side: a full chain, below it one operator of each level.
const SPINE_DEPTH_MAX: u32 = LIMITS.operator_count_max + 10;

/// How deep normalised text may nest when it is read back: it has parentheses wherever operators
/// nest, so it goes deeper than what its author wrote.
pub(crate) const NESTING_READ_BACK_MAX: usize = 2 * LIMITS.nesting_max as usize + 10;

/// Counts one statement's depths; reports each bound once, where it is passed.
pub(crate) fn check(tokens: &[TokenWithSpan], nesting_max: usize) -> Vec<Finding> {
    let mut depth = Depth { nesting_max, ..Depth::default() };
    for token in tokens {
        depth.see(token);
    }
    depth.findings
}

/// What is pending at one precedence level.
#[derive(Default, Clone, Copy)]
struct Link {
    /// Operators in the chain.
    length: u32,
    /// Depth of the tree they make, down its left side.
    depth: u32,
}

#[derive(Default)]
struct Depth {
    nesting_max: usize,
    /// Operators pending per precedence level, for each open parenthesis.
    chains: Vec<[Link; LEVELS]>,
    chain: [Link; LEVELS],
    cases: usize,
    /// Prefix operators directly before.
    prefixes: usize,
    joins: u32,
    /// The last token can end an operand, so that an operator after it is an infix.
    after_operand: bool,
    findings: Vec<Finding>,
}

impl Depth {
    fn see(&mut self, token: &TokenWithSpan) {
        match &token.token {
            Token::LParen => {
                self.chains.push(std::mem::take(&mut self.chain));
                self.after_operand = false;
            }
            Token::RParen => {
                self.chain = self.chains.pop().unwrap_or_default();
                self.after_operand = true;
                self.prefixes = 0;
            }
            Token::Comma => {
                self.chain = [Link::default(); LEVELS];
                self.after_operand = false;
                self.prefixes = 0;
            }
            Token::Word(word) if word.quote_style.is_none() => {
                self.word(token, word.keyword, &word.value);
            }
            operator => match level(operator) {
                Some(at) => self.operator(token, at),
                None => {
                    self.after_operand = true;
                    self.prefixes = 0;
                }
            },
        }
        let nested = self.chains.len() + self.cases + self.prefixes;
        if nested > self.nesting_max {
            self.report(&code::NESTING, token);
        }
    }

    fn word(&mut self, token: &TokenWithSpan, keyword: Keyword, word: &str) {
        let chains = match keyword {
            Keyword::OR => Some(0),
            Keyword::XOR => Some(1),
            Keyword::AND => Some(2),
            Keyword::IS => Some(3),
            Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::REGEXP | Keyword::RLIKE => {
                Some(4)
            }
            Keyword::DIV => Some(8),
            _ if self.after_operand && word.eq_ignore_ascii_case("MOD") => Some(8),
            Keyword::NOT | Keyword::BINARY | Keyword::INTERVAL => {
                self.prefixes += 1;
                self.after_operand = false;
                return;
            }
            Keyword::CASE => {
                self.cases += 1;
                None
            }
            Keyword::END => {
                self.cases = self.cases.saturating_sub(1);
                self.after_operand = true;
                self.prefixes = 0;
                return;
            }
            Keyword::JOIN | Keyword::STRAIGHT_JOIN | Keyword::UNION => {
                self.joins += 1;
                if self.joins > LIMITS.join_count_max {
                    self.report(&code::JOIN_COUNT, token);
                }
                None
            }
            Keyword::SELECT
            | Keyword::FROM
            | Keyword::WHERE
            | Keyword::ON
            | Keyword::HAVING
            | Keyword::WHEN
            | Keyword::THEN
            | Keyword::ELSE
            | Keyword::BY
            | Keyword::SET
            | Keyword::UPDATE
            | Keyword::VALUES => None,
            // A name, or a word that is none of ours.
            _ => {
                self.after_operand = true;
                self.prefixes = 0;
                return;
            }
        };
        match chains {
            Some(at) => self.operator(token, at),
            None => {
                self.chain = [Link::default(); LEVELS];
                self.after_operand = false;
                self.prefixes = 0;
            }
        }
    }

    /// An operator of a level: what binds tighter starts anew behind it.
    fn operator(&mut self, token: &TokenWithSpan, at: usize) {
        if !self.after_operand {
            self.prefixes += 1;
            return;
        }
        self.after_operand = false;
        self.prefixes = 0;
        // The left operand is everything of this level and above; the right one starts anew.
        let depth = self.chain.iter().skip(at).map(|link| link.depth).max().unwrap_or(0) + 1;
        let mut links = self.chain.iter_mut().skip(at);
        let length = links.next().map_or(0, |link| {
            link.depth = depth;
            link.length += 1;
            link.length
        });
        links.for_each(|link| *link = Link::default());
        if length > LIMITS.operator_count_max || depth > SPINE_DEPTH_MAX {
            self.report(&code::OPERATOR_COUNT, token);
        }
    }

    fn report(&mut self, code: &'static Code, token: &TokenWithSpan) {
        if !self.findings.iter().any(|finding| finding.is(code)) {
            self.findings.push(Finding::new(code).near(span_of(token.span)));
        }
    }
}

const fn level(token: &Token) -> Option<usize> {
    Some(match token {
        Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::LtEq
        | Token::Gt
        | Token::GtEq
        | Token::Spaceship => 3,
        Token::Pipe => 5,
        Token::Ampersand => 6,
        Token::ShiftLeft | Token::ShiftRight | Token::Plus | Token::Minus => 7,
        Token::Mul | Token::Div | Token::Mod => 8,
        Token::Caret => 9,
        Token::Tilde | Token::ExclamationMark => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &str) -> bool {
        let found = check(&crate::lexer::lex(source).tokens, LIMITS.nesting_max as usize);
        !found.is_empty()
    }

    #[test]
    fn a_chain_may_have_a_thousand_operators() {
        let chain = |count| format!("DELETE FROM t WHERE id = 0{}", " OR id = 1".repeat(count));
        assert!(!refused(&chain(1_000)));
        assert!(refused(&chain(1_001)));
    }

    #[test]
    fn chains_of_different_levels_add_up_on_the_left() {
        let chain = |operator: &str, count| format!(" {operator} 1").repeat(count);
        let source = format!("SELECT 1{}{}{}", chain("*", 600), chain("+", 600), chain("OR", 1));
        assert!(refused(&source));
        assert!(!refused(&format!("SELECT 1{} + 1{}", chain("*", 600), chain("*", 600))));
    }

    #[test]
    fn rows_and_lists_are_no_chains() {
        assert!(!refused(&format!("INSERT INTO t VALUES (-1){}", ", (-1, 2 + 3)".repeat(5_000))));
        assert!(!refused(&format!("DELETE FROM t WHERE id IN (1{})", ", -1".repeat(5_000))));
    }

    #[test]
    fn prefixes_and_parentheses_nest_together() {
        assert!(!refused(&format!("{}1{}", "(".repeat(40), ")".repeat(40))));
        assert!(refused(&format!("{}1{}", "(".repeat(41), ")".repeat(41))));
        assert!(refused(&format!("{}(1)", "- ".repeat(40))));
        assert!(refused(&"CASE WHEN ".repeat(41)));
    }
}
