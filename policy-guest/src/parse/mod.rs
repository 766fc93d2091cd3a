//! sqlparser, set up to read expressions as MySQL's grammar groups them.
//!
//! The parser's own expression rules are PostgreSQL's with exceptions. Its dialect hooks replace
//! three things: precedence (manual: "Operator Precedence"), what may start an operand, and data
//! types. Everything else (statements, clauses, table definitions) is sqlparser's. Where its AST has
//! no place for something MySQL has, an AST form that no text can produce here carries it:
//!
//! - `a DIV b` is `a || b`; `rewrite` makes it of tokens, and the lexer never emits `||`.
//! - `BINARY x` is `Cast { kind: DoubleColon }`; the lexer never emits `::`.
//! - `CHAR(… USING cs)` is `Convert { target_before_value: true }`, a form of another dialect.
//! - `INTERVAL(n, …)` is a function called [`INTERVAL_INDEX`], which no name can spell.
//! - Units of time are `DateTimeField::Custom`; data types are `DataType::Custom`.

mod prefix;
mod types;

use sqlparser::ast::{ColumnOption, DataType, Expr, Statement};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub(crate) use prefix::INTERVAL_INDEX;

/// sqlparser's own limit on recursion; it does not see chains that nest to the left. Above
/// `nesting_max`, so that our bound is the message people read, with room for the parentheses that
/// normalised text adds.
const RECURSION_MAX: usize = 100;

/// Why a statement was not parsed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The recursion limit was reached.
    TooDeep,
    /// The text stops making sense at this token, or at its end.
    At { token: Option<TokenWithSpan>, before: Token },
}

/// Parses the tokens of one statement.
pub(crate) fn parse(tokens: Vec<TokenWithSpan>) -> Result<Statement, Box<Failure>> {
    let dialect = Gate(MySqlDialect {});
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(RECURSION_MAX)
        .with_tokens_with_locations(tokens);
    let failure = match parser.parse_statement() {
        Ok(statement) if parser.peek_token_ref().token == Token::EOF => return Ok(statement),
        Ok(_) => parser.get_current_index() + 1,
        Err(ParserError::RecursionLimitExceeded) => return Err(Box::new(Failure::TooDeep)),
        Err(ParserError::ParserError(message) | ParserError::TokenizerError(message)) => {
            stops_at(&parser, &message).unwrap_or_else(|| parser.get_current_index())
        }
    };
    let before = failure.checked_sub(1).map_or(Token::EOF, |at| parser.token_at(at).token.clone());
    let token = Some(parser.token_at(failure).clone()).filter(|token| token.token != Token::EOF);
    Err(Box::new(Failure::At { token, before }))
}

/// The token at which the parser stopped. It may have backed up over what it tried, so its message
/// says better than its position: `… at Line: 1, Column: 17`, where the column is 1 + byte offset.
fn stops_at(parser: &Parser<'_>, message: &str) -> Option<usize> {
    let column = message.rsplit_once("Column: ")?.1.trim().parse::<u64>().ok()?;
    let mut at = 0;
    while parser.token_at(at).token != Token::EOF {
        if parser.token_at(at).span.start.column >= column {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// MySQL's dialect with MySQL's grammar of expressions.
#[derive(Debug)]
struct Gate(MySqlDialect);

/// Binding powers, one per level of MySQL's grammar; `NOT` and the unary operators are prefixes.
mod power {
    pub(super) const OR: u8 = 5;
    pub(super) const XOR: u8 = 7;
    pub(super) const AND: u8 = 10;
    pub(super) const NOT: u8 = 15;
    pub(super) const COMPARISON: u8 = 20;
    pub(super) const PREDICATE: u8 = 22;
    pub(super) const BIT_OR: u8 = 24;
    pub(super) const BIT_AND: u8 = 26;
    pub(super) const SHIFT: u8 = 28;
    pub(super) const SUM: u8 = 30;
    pub(super) const PRODUCT: u8 = 40;
    pub(super) const BIT_XOR: u8 = 45;
    pub(super) const UNARY: u8 = 48;
}

impl Dialect for Gate {
    fn dialect(&self) -> std::any::TypeId {
        self.0.dialect()
    }

    fn is_identifier_start(&self, character: char) -> bool {
        self.0.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.0.is_identifier_part(character)
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        Some(prefix::parse(parser))
    }

    fn parse_data_type(&self, parser: &mut Parser<'_>) -> Option<Result<DataType, ParserError>> {
        Some(types::parse(parser))
    }

    /// SERIAL DEFAULT VALUE, which stands for `NOT NULL AUTO_INCREMENT UNIQUE`.
    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let serial = matches!(&parser.peek_token_ref().token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("SERIAL"));
        if !serial {
            return Ok(None);
        }
        parser.advance_token();
        parser.expect_keyword_is(Keyword::DEFAULT)?;
        parser.expect_keyword_is(Keyword::VALUE)?;
        Ok(Some(Ok(Some(ColumnOption::DialectSpecific(vec![Token::make_keyword("SERIAL")])))))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let power = match &parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::OR => power::OR,
                Keyword::XOR => power::XOR,
                Keyword::AND => power::AND,
                Keyword::IS => power::COMPARISON,
                Keyword::IN
                | Keyword::BETWEEN
                | Keyword::LIKE
                | Keyword::RLIKE
                | Keyword::REGEXP => power::PREDICATE,
                Keyword::NOT => match &parser.peek_nth_token_ref(1).token {
                    Token::Word(next)
                        if matches!(
                            next.keyword,
                            Keyword::IN
                                | Keyword::BETWEEN
                                | Keyword::LIKE
                                | Keyword::RLIKE
                                | Keyword::REGEXP
                        ) =>
                    {
                        power::PREDICATE
                    }
                    _ => 0,
                },
                _ => 0,
            },
            Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
            | Token::Spaceship => power::COMPARISON,
            Token::Pipe => power::BIT_OR,
            Token::Ampersand => power::BIT_AND,
            Token::ShiftLeft | Token::ShiftRight => power::SHIFT,
            Token::Plus | Token::Minus => power::SUM,
            Token::Mul | Token::Div | Token::Mod | Token::StringConcat => power::PRODUCT,
            Token::Caret => power::BIT_XOR,
            _ => 0,
        };
        Some(Ok(power))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Or => power::OR,
            Precedence::Xor => power::XOR,
            Precedence::And => power::AND,
            Precedence::UnaryNot => power::NOT,
            Precedence::Is | Precedence::Eq => power::COMPARISON,
            Precedence::Between | Precedence::Like => power::PREDICATE,
            Precedence::Pipe => power::BIT_OR,
            Precedence::Ampersand => power::BIT_AND,
            Precedence::PlusMinus => power::SUM,
            Precedence::MulDivModOp => power::PRODUCT,
            Precedence::Caret => power::BIT_XOR,
            other => self.0.prec_value(other),
        }
    }

    // What follows is MySqlDialect's answer to questions the statement parser asks.

    fn supports_singular_value_keyword(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_create_table_select(&self) -> bool {
        true
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        true
    }

    fn supports_insert_set(&self) -> bool {
        true
    }

    fn supports_cross_join_constraint(&self) -> bool {
        true
    }

    fn supports_select_modifiers(&self) -> bool {
        true
    }

    fn supports_table_hints(&self) -> bool {
        true
    }

    fn supports_constraint_keyword_without_name(&self) -> bool {
        true
    }

    fn supports_key_column_option(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    /// Joins without a condition are denied, so that what they would group need not be known; the
    /// other answer would make the parser recurse for each of them.
    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    fn is_table_factor_alias(
        &self,
        explicit: bool,
        keyword: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        self.0.is_table_factor_alias(explicit, keyword, parser)
    }
}
