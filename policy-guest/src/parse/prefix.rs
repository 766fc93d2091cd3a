//! What may start an operand, by MySQL's `simple_expr`.

use sqlparser::ast::{
    CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, TypedString,
    UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::ast::{TimezoneInfo, TrimWhereField};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::power;

/// The name under which `INTERVAL(n, a, b, …)` travels; a name in the text cannot hold it.
pub(crate) const INTERVAL_INDEX: &str = "\u{1}INTERVAL";

type Parsed = Result<Expr, ParserError>;

/// Parses one operand, prefix operators included.
pub(super) fn parse(parser: &mut Parser<'_>) -> Parsed {
    let token = parser.next_token();
    let span = token.span;
    let value = |value| Ok(Expr::Value(ValueWithSpan { value, span }));
    match token.token {
        Token::Word(word) => operand(parser, word, span),
        Token::Number(digits, long) => value(Value::Number(digits, long)),
        Token::SingleQuotedString(handle) => value(Value::SingleQuotedString(handle)),
        Token::NationalStringLiteral(handle) => value(Value::NationalStringLiteral(handle)),
        Token::HexStringLiteral(handle) => value(Value::HexStringLiteral(handle)),
        Token::SingleQuotedByteStringLiteral(handle) => {
            value(Value::SingleQuotedByteStringLiteral(handle))
        }
        Token::Minus => unary(parser, UnaryOperator::Minus),
        Token::Plus => unary(parser, UnaryOperator::Plus),
        Token::Tilde => unary(parser, UnaryOperator::BitwiseNot),
        Token::ExclamationMark => unary(parser, UnaryOperator::BangNot),
        Token::LParen => parenthesised(parser),
        _ => unexpected(parser, token),
    }
}

fn unexpected<T>(parser: &mut Parser<'_>, token: TokenWithSpan) -> Result<T, ParserError> {
    parser.expected("an expression", token)
}

fn unary(parser: &mut Parser<'_>, op: UnaryOperator) -> Parsed {
    let expr = Box::new(parser.parse_subexpr(power::UNARY)?);
    Ok(Expr::UnaryOp { op, expr })
}

/// A sub-query, a parenthesised expression or a row.
fn parenthesised(parser: &mut Parser<'_>) -> Parsed {
    if starts_query(parser) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        return Ok(Expr::Subquery(query));
    }
    let mut items = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    match (items.pop(), items.is_empty()) {
        (Some(only), true) => Ok(Expr::Nested(Box::new(only))),
        (Some(last), false) => {
            items.push(last);
            Ok(Expr::Tuple(items))
        }
        (None, _) => unexpected(parser, TokenWithSpan::wrap(Token::RParen)),
    }
}

/// Does a query follow, possibly inside further parentheses?
fn starts_query(parser: &Parser<'_>) -> bool {
    let mut ahead = 0;
    while parser.peek_nth_token_ref(ahead).token == Token::LParen {
        ahead += 1;
    }
    let Token::Word(word) = &parser.peek_nth_token_ref(ahead).token else {
        return false;
    };
    let query = matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::TABLE)
        || (word.keyword == Keyword::VALUES
            && parser.peek_nth_token_ref(ahead + 1).token != Token::LParen);
    // `((SELECT 1) + 1)` is an expression: only a query directly inside is taken as one.
    query && word.quote_style.is_none() && ahead == 0
}

fn opens(parser: &Parser<'_>) -> bool {
    parser.peek_token_ref().token == Token::LParen
}

/// An operand that starts with a word.
fn operand(parser: &mut Parser<'_>, word: Word, span: sqlparser::tokenizer::Span) -> Parsed {
    if word.quote_style.is_none() {
        let constant = |value| Ok(Expr::Value(ValueWithSpan { value, span }));
        // With a space before the parenthesis these are names to the server (manual: "Function Name
        // Parsing and Resolution").
        let called = opens(parser) && parser.peek_token_ref().span.start == span.end;
        match word.keyword {
            Keyword::NULL => return constant(Value::Null),
            Keyword::TRUE => return constant(Value::Boolean(true)),
            Keyword::FALSE => return constant(Value::Boolean(false)),
            Keyword::NOT => {
                let expr = Box::new(parser.parse_subexpr(power::NOT)?);
                return Ok(Expr::UnaryOp { op: UnaryOperator::Not, expr });
            }
            Keyword::CASE => return parser.parse_case_expr(),
            Keyword::EXISTS if opens(parser) => return parser.parse_exists_expr(false),
            Keyword::BINARY => return binary(parser),
            Keyword::INTERVAL => return interval(parser),
            Keyword::MATCH if opens(parser) => return parser.parse_match_against(),
            Keyword::CAST if called => return parser.parse_cast_expr(CastKind::Cast),
            Keyword::CONVERT if opens(parser) => return convert(parser),
            Keyword::CHAR if opens(parser) => return char_function(parser, word, span),
            Keyword::EXTRACT if called => return extract(parser),
            Keyword::POSITION if called => return position(parser),
            Keyword::SUBSTRING | Keyword::SUBSTR if called => {
                return substring(parser, word, span);
            }
            Keyword::TRIM if called => return trim(parser),
            _ => {}
        }
        if let Some(literal) = introduced(parser, &word, span)? {
            return Ok(literal);
        }
    }
    let name = name(parser, word.into_ident(span))?;
    if opens(parser) {
        return parser.parse_function(ObjectName::from(name));
    }
    let mut parts = name;
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => Ok(Expr::Identifier(only)),
        (Some(last), false) => {
            parts.push(last);
            Ok(Expr::CompoundIdentifier(parts))
        }
        (None, _) => unexpected(parser, TokenWithSpan::wrap(Token::EOF)),
    }
}

/// A dotted name.
fn name(parser: &mut Parser<'_>, first: Ident) -> Result<Vec<Ident>, ParserError> {
    let mut parts = vec![first];
    while parser.consume_token(&Token::Period) {
        parts.push(parser.parse_identifier()?);
    }
    Ok(parts)
}

/// `_utf8mb4'x'`, and `DATE '2026-01-02'` and its kin.
fn introduced(
    parser: &mut Parser<'_>,
    word: &Word,
    span: sqlparser::tokenizer::Span,
) -> Result<Option<Expr>, ParserError> {
    let next = &parser.peek_token_ref().token;
    let string = matches!(next, Token::SingleQuotedString(_));
    let binary =
        matches!(next, Token::HexStringLiteral(_) | Token::SingleQuotedByteStringLiteral(_));
    if word.value.starts_with('_') && (string || binary) {
        let value = Box::new(parse(parser)?);
        return Ok(Some(Expr::Prefixed { prefix: word.clone().into_ident(span), value }));
    }
    let data_type = match word.keyword {
        Keyword::DATE => DataType::Date,
        Keyword::TIME => DataType::Time(None, TimezoneInfo::None),
        Keyword::TIMESTAMP => DataType::Timestamp(None, TimezoneInfo::None),
        _ => return Ok(None),
    };
    if !string {
        return Ok(None);
    }
    let value = parser.parse_value()?;
    Ok(Some(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })))
}

/// `BINARY x`, which binds tighter than any operator between operands.
fn binary(parser: &mut Parser<'_>) -> Parsed {
    Ok(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(parser.parse_subexpr(power::UNARY)?),
        data_type: DataType::Binary(None),
        format: None,
    })
}

fn unit(parser: &mut Parser<'_>) -> Result<DateTimeField, ParserError> {
    parser.parse_identifier().map(DateTimeField::Custom)
}

/// `INTERVAL expr unit`, or the function INTERVAL with two arguments or more.
///
/// What is in parentheses is read once: trying one form and then the other would double the work at
/// every level.
fn interval(parser: &mut Parser<'_>) -> Parsed {
    let value = if opens(parser) && !is_query(parser) {
        parser.expect_token(&Token::LParen)?;
        let mut items = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        match (items.pop(), items.is_empty()) {
            (Some(only), true) => rest_of(parser, Expr::Nested(Box::new(only)))?,
            (last, _) => {
                items.extend(last);
                return Ok(call(Ident::new(INTERVAL_INDEX), items));
            }
        }
    } else {
        parser.parse_expr()?
    };
    Ok(Expr::Interval(Interval {
        value: Box::new(value),
        leading_field: Some(unit(parser)?),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// `(SELECT`
fn is_query(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word)
        if word.quote_style.is_none() && matches!(word.keyword, Keyword::SELECT | Keyword::WITH))
}

/// The operators behind an operand that was read already.
fn rest_of(parser: &mut Parser<'_>, mut expr: Expr) -> Parsed {
    loop {
        match parser.get_next_precedence()? {
            0 => return Ok(expr),
            precedence => expr = parser.parse_infix(expr, precedence)?,
        }
    }
}

fn call(name: Ident, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}

/// `CONVERT(x USING cs)` and `CONVERT(x, type)`.
fn convert(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    let (data_type, charset) = if parser.parse_keyword(Keyword::USING) {
        (None, Some(parser.parse_object_name(false)?))
    } else {
        parser.expect_token(&Token::Comma)?;
        (Some(parser.parse_data_type()?), None)
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Convert {
        is_try: false,
        expr,
        data_type,
        charset,
        target_before_value: false,
        styles: Vec::new(),
    })
}

/// `CHAR(n, … [USING cs])`.
fn char_function(parser: &mut Parser<'_>, word: Word, span: sqlparser::tokenizer::Span) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let args = parser.parse_comma_separated(Parser::parse_expr)?;
    let charset = if parser.parse_keyword(Keyword::USING) {
        Some(parser.parse_object_name(false)?)
    } else {
        None
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Convert {
        is_try: false,
        expr: Box::new(Expr::Identifier(word.into_ident(span))),
        data_type: None,
        charset,
        target_before_value: true,
        styles: args,
    })
}

fn extract(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let field = unit(parser)?;
    parser.expect_keyword_is(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Extract { field, syntax: ExtractSyntax::From, expr })
}

fn position(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    // A `bit_expr`: IN is the separator, not the operator.
    let expr = Box::new(parser.parse_subexpr(power::PREDICATE)?);
    parser.expect_keyword_is(Keyword::IN)?;
    let r#in = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Position { expr, r#in })
}

/// `SUBSTRING(x FROM a FOR b)`, or the ordinary call.
fn substring(parser: &mut Parser<'_>, word: Word, span: sqlparser::tokenizer::Span) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let expr = parser.parse_expr()?;
    if !parser.parse_keyword(Keyword::FROM) {
        let mut args = vec![expr];
        while parser.consume_token(&Token::Comma) {
            args.push(parser.parse_expr()?);
        }
        parser.expect_token(&Token::RParen)?;
        return Ok(call(word.into_ident(span), args));
    }
    let substring_from = Some(Box::new(parser.parse_expr()?));
    let substring_for = if parser.parse_keyword(Keyword::FOR) {
        Some(Box::new(parser.parse_expr()?))
    } else {
        None
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Substring {
        expr: Box::new(expr),
        substring_from,
        substring_for,
        special: false,
        shorthand: false,
    })
}

/// `TRIM([BOTH | LEADING | TRAILING] [x] FROM y)`, `TRIM(x FROM y)` or `TRIM(y)`.
fn trim(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let trim_where = if parser.parse_keyword(Keyword::BOTH) {
        Some(TrimWhereField::Both)
    } else if parser.parse_keyword(Keyword::LEADING) {
        Some(TrimWhereField::Leading)
    } else if parser.parse_keyword(Keyword::TRAILING) {
        Some(TrimWhereField::Trailing)
    } else {
        None
    };
    let mut trim_what = None;
    let expr = if trim_where.is_some() && parser.parse_keyword(Keyword::FROM) {
        parser.parse_expr()?
    } else {
        let first = parser.parse_expr()?;
        if parser.parse_keyword(Keyword::FROM) {
            trim_what = Some(Box::new(first));
            parser.parse_expr()?
        } else if trim_where.is_some() {
            return parser.expected("FROM", parser.peek_token());
        } else {
            first
        }
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { trim_where, trim_what, expr: Box::new(expr), trim_characters: None })
}
