//! Data types, by the manual's "Data Types" and the grammar of CAST.
//!
//! A type is read as a name of one or more words, what stands in its parentheses and the attributes
//! that belong to it, and travels as `DataType::Custom`: the name, then one modifier per number,
//! string handle and attribute, in the author's order.

use sqlparser::ast::{DataType, Ident, ObjectName, TypeModifier};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Spellings of more than one word, longest first, and the name they stand for.
const PHRASES: &[(&[&str], &str)] = &[
    (&["NATIONAL", "CHARACTER", "VARYING"], "NATIONAL VARCHAR"),
    (&["NATIONAL", "CHAR", "VARYING"], "NATIONAL VARCHAR"),
    (&["LONG", "CHARACTER", "VARYING"], "MEDIUMTEXT"),
    (&["LONG", "CHAR", "VARYING"], "MEDIUMTEXT"),
    (&["NATIONAL", "VARCHARACTER"], "NATIONAL VARCHAR"),
    (&["NATIONAL", "VARCHAR"], "NATIONAL VARCHAR"),
    (&["NATIONAL", "CHARACTER"], "NATIONAL CHAR"),
    (&["NATIONAL", "CHAR"], "NATIONAL CHAR"),
    (&["NCHAR", "VARCHARACTER"], "NATIONAL VARCHAR"),
    (&["NCHAR", "VARCHAR"], "NATIONAL VARCHAR"),
    (&["NCHAR", "VARYING"], "NATIONAL VARCHAR"),
    (&["CHARACTER", "VARYING"], "VARCHAR"),
    (&["CHAR", "VARYING"], "VARCHAR"),
    (&["DOUBLE", "PRECISION"], "DOUBLE"),
    (&["LONG", "VARCHARACTER"], "MEDIUMTEXT"),
    (&["LONG", "VARCHAR"], "MEDIUMTEXT"),
    (&["LONG", "VARBINARY"], "MEDIUMBLOB"),
    (&["SIGNED", "INTEGER"], "SIGNED"),
    (&["SIGNED", "INT"], "SIGNED"),
    (&["UNSIGNED", "INTEGER"], "UNSIGNED"),
    (&["UNSIGNED", "INT"], "UNSIGNED"),
    (&["LONG"], "MEDIUMTEXT"),
];

/// Parses a type with the attributes that belong to it.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<DataType, ParserError> {
    let token = parser.peek_token();
    let name = match phrase(parser) {
        Some(name) => name.to_owned(),
        None => match parser.next_token().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => return parser.expected("a data type", token),
        },
    };
    let mut modifiers = Vec::new();
    if parser.consume_token(&Token::LParen) {
        modifiers = parser.parse_comma_separated(argument)?;
        parser.expect_token(&Token::RParen)?;
    }
    while let Some(attribute) = attribute(parser)? {
        modifiers.push(attribute);
    }
    let name = Ident::with_span(token.span, name);
    Ok(DataType::Custom(ObjectName::from(vec![name]), modifiers))
}

fn phrase(parser: &mut Parser<'_>) -> Option<&'static str> {
    let (words, name) = PHRASES.iter().find(|(words, _)| {
        words.iter().enumerate().all(|(ahead, word)| word_is(parser, ahead, word))
    })?;
    for _ in *words {
        parser.advance_token();
    }
    Some(name)
}

fn word_is(parser: &Parser<'_>, ahead: usize, expected: &str) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn argument(parser: &mut Parser<'_>) -> Result<TypeModifier, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::Number(digits, long) => Ok(TypeModifier::Number(digits, long)),
        Token::SingleQuotedString(handle) => Ok(TypeModifier::String(handle)),
        _ => parser.expected("a number or a string", token),
    }
}

/// Words that stand for a character set. Manual: "The CHAR and VARCHAR Types". The old ones are
/// refused by name, see `convert::types`: MySQL warns of them, so another spelling is no longer
/// the same statement.
const NAMED_SETS: &[(&str, &str)] =
    &[("BYTE", "CHARSET binary"), ("ASCII", "ASCII"), ("UNICODE", "UNICODE")];

/// UNSIGNED, SIGNED, ZEROFILL, BINARY and the ways to name a character set, which travel as
/// `CHARSET x` in one identifier.
fn attribute(parser: &mut Parser<'_>) -> Result<Option<TypeModifier>, ParserError> {
    for keyword in [Keyword::UNSIGNED, Keyword::SIGNED, Keyword::ZEROFILL, Keyword::BINARY] {
        if parser.parse_keyword(keyword) {
            return Ok(Some(TypeModifier::Identifier(Ident::new(format!("{keyword:?}")))));
        }
    }
    if parser.parse_keyword(Keyword::CHARSET)
        || parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET])
        || parser.parse_keywords(&[Keyword::CHAR, Keyword::SET])
    {
        let name = parser.parse_identifier()?;
        let attribute = Ident::with_span(name.span, format!("CHARSET {}", name.value));
        return Ok(Some(TypeModifier::Identifier(attribute)));
    }
    for (word, attribute) in NAMED_SETS {
        if word_is(parser, 0, word) {
            let attribute = Ident::with_span(parser.next_token().span, *attribute);
            return Ok(Some(TypeModifier::Identifier(attribute)));
        }
    }
    Ok(None)
}
