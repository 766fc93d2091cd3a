//! Data types.

use sqlparser::ast::{DataType, Ident, ObjectName, ObjectNamePart, TypeModifier};

use crate::charset::Charset;
use crate::context::Context;
use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;
use crate::model::{Type, TypeArguments, TypeAttribute};

/// What a type takes in its parentheses and after them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `(width)` and a sign.
    Integer,
    /// `(precision, scale)` and a sign.
    Decimal,
    /// `(length)` and a character set.
    Text,
    /// Members and a character set.
    Members,
    /// `(length)`
    Length,
    /// Nothing.
    Bare,
}

/// The types of a column. All supported servers have them, but for JSON, which MySQL 5.6 refuses.
/// SERIAL stands for `BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE`, to the server too.
#[rustfmt::skip]
const COLUMN_TYPES: &[(&str, Shape)] = &[
    ("BIGINT", Shape::Integer), ("INT", Shape::Integer), ("INT1", Shape::Integer),
    ("INT2", Shape::Integer), ("INT3", Shape::Integer), ("INT4", Shape::Integer),
    ("INT8", Shape::Integer), ("INTEGER", Shape::Integer), ("MEDIUMINT", Shape::Integer),
    ("MIDDLEINT", Shape::Integer), ("SMALLINT", Shape::Integer), ("TINYINT", Shape::Integer),
    ("DEC", Shape::Decimal), ("DECIMAL", Shape::Decimal), ("DOUBLE", Shape::Decimal),
    ("FIXED", Shape::Decimal), ("FLOAT", Shape::Decimal), ("FLOAT4", Shape::Decimal),
    ("FLOAT8", Shape::Decimal), ("NUMERIC", Shape::Decimal), ("REAL", Shape::Decimal),
    ("CHAR", Shape::Text), ("CHARACTER", Shape::Text), ("LONGTEXT", Shape::Text),
    ("MEDIUMTEXT", Shape::Text), ("TEXT", Shape::Text), ("TINYTEXT", Shape::Text),
    ("VARCHAR", Shape::Text), ("VARCHARACTER", Shape::Text),
    ("ENUM", Shape::Members), ("SET", Shape::Members),
    ("BINARY", Shape::Length), ("BIT", Shape::Length), ("BLOB", Shape::Length),
    ("DATETIME", Shape::Length), ("NATIONAL CHAR", Shape::Length),
    ("NATIONAL VARCHAR", Shape::Length), ("NCHAR", Shape::Length), ("NVARCHAR", Shape::Length),
    ("TIME", Shape::Length), ("TIMESTAMP", Shape::Length), ("VARBINARY", Shape::Length),
    ("YEAR", Shape::Length),
    ("BOOL", Shape::Bare), ("BOOLEAN", Shape::Bare), ("DATE", Shape::Bare), ("JSON", Shape::Bare),
    ("LONGBLOB", Shape::Bare), ("MEDIUMBLOB", Shape::Bare), ("SERIAL", Shape::Bare),
    ("TINYBLOB", Shape::Bare),
    ("GEOMETRY", Shape::Bare), ("GEOMETRYCOLLECTION", Shape::Bare), ("LINESTRING", Shape::Bare),
    ("MULTILINESTRING", Shape::Bare), ("MULTIPOINT", Shape::Bare), ("MULTIPOLYGON", Shape::Bare),
    ("POINT", Shape::Bare), ("POLYGON", Shape::Bare),
];

/// The types of CAST and CONVERT.
#[rustfmt::skip]
const CAST_TYPES: &[(&str, Shape)] = &[
    ("BINARY", Shape::Length), ("CHAR", Shape::Text), ("CHARACTER", Shape::Text),
    ("DATE", Shape::Bare), ("DATETIME", Shape::Length), ("DEC", Shape::Decimal),
    ("DECIMAL", Shape::Decimal), ("DOUBLE", Shape::Bare), ("FLOAT", Shape::Bare),
    ("JSON", Shape::Bare), ("NATIONAL CHAR", Shape::Length), ("NCHAR", Shape::Length),
    ("SIGNED", Shape::Bare), ("TIME", Shape::Length), ("UNSIGNED", Shape::Bare),
];

impl Context<'_> {
    pub(crate) fn column_type(&mut self, data_type: DataType) -> Option<Type> {
        self.data_type(data_type, COLUMN_TYPES)
    }

    pub(crate) fn cast_type(&mut self, data_type: DataType) -> Option<Type> {
        self.data_type(data_type, CAST_TYPES)
    }

    /// Every type the parser gives is `Custom`: `parse::types` reads them all.
    fn data_type(&mut self, data_type: DataType, known: &[(&'static str, Shape)]) -> Option<Type> {
        let DataType::Custom(ObjectName(parts), modifiers) = data_type else {
            return self.refuse_code(&code::COLUMN_TYPE, None);
        };
        let [ObjectNamePart::Identifier(ident)] = parts.as_slice() else {
            return self.refuse_code(&code::COLUMN_TYPE, None);
        };
        let span = span_of(ident.span);
        let Some(&(name, shape)) = known.iter().find(|(name, _)| *name == ident.value) else {
            let finding = Finding::new(&code::COLUMN_TYPE)
                .message(format!("type `{}` is not one policy v1 carries", ident.value))
                .near(span);
            return self.refuse(finding);
        };
        let mut numbers = Vec::new();
        let mut members = Vec::new();
        let mut attributes = Vec::new();
        for modifier in modifiers {
            match modifier {
                TypeModifier::Number(digits, _) => numbers.push(self.type_number(&digits, span)?),
                TypeModifier::String(handle) => members.push(self.single_string(&handle)?),
                TypeModifier::Identifier(ident) => attributes.push(self.type_attribute(&ident)?),
            }
        }
        let arguments = match (numbers.is_empty(), members.is_empty()) {
            (true, true) => TypeArguments::None,
            (false, true) => TypeArguments::Numbers(numbers),
            (true, false) => TypeArguments::Members(members),
            (false, false) => return self.refuse_code(&code::COLUMN_TYPE, span),
        };
        if !fits(shape, &arguments, &attributes) {
            let finding = Finding::new(&code::COLUMN_TYPE)
                .message(format!("type `{name}` with arguments or attributes it does not take"))
                .near(span);
            return self.refuse(finding);
        }
        Some(Type { name, arguments, attributes })
    }

    fn type_number(&mut self, digits: &str, span: Option<Span>) -> Option<u32> {
        match digits.parse::<u64>().ok().and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => self.refuse(
                Finding::new(&code::COLUMN_TYPE)
                    .message(format!("`{digits}` is not a length or precision"))
                    .near(span),
            ),
        }
    }

    fn type_attribute(&mut self, ident: &Ident) -> Option<TypeAttribute> {
        match ident.value.as_str() {
            "UNSIGNED" => Some(TypeAttribute::Unsigned),
            "SIGNED" => Some(TypeAttribute::Signed),
            "ZEROFILL" => Some(TypeAttribute::Zerofill),
            "BINARY" => Some(TypeAttribute::Binary),
            word @ ("ASCII" | "UNICODE") => {
                let set = if word == "ASCII" { "latin1" } else { "ucs2" };
                let finding = Finding::new(&code::CHARACTER_SET)
                    .message(format!("`{word}` is an old word: write CHARACTER SET {set}"))
                    .help("MySQL warns of it and will drop it")
                    .near(span_of(ident.span));
                self.refuse(finding)
            }
            other => {
                let name = other.strip_prefix("CHARSET ").unwrap_or(other);
                self.charset(name, span_of(ident.span)).map(TypeAttribute::Charset)
            }
        }
    }

    /// A character set by its name.
    pub(crate) fn charset(&mut self, name: &str, span: Option<Span>) -> Option<Charset> {
        Charset::stored(name).or_else(|| {
            let finding = Finding::new(&code::CHARACTER_SET)
                .message(format!(
                    "character set `{}` is not one policy v1 carries",
                    crate::names::shortened(name)
                ))
                .near(span);
            self.refuse(finding)
        })
    }
}

/// Does the type take these?
fn fits(shape: Shape, arguments: &TypeArguments, attributes: &[TypeAttribute]) -> bool {
    let numbers = match arguments {
        TypeArguments::None => 0,
        TypeArguments::Numbers(numbers) => numbers.len(),
        TypeArguments::Members(_) => {
            return shape == Shape::Members && attributes.iter().all(is_textual);
        }
    };
    match shape {
        Shape::Integer => numbers <= 1 && attributes.iter().all(is_numeric),
        Shape::Decimal => numbers <= 2 && attributes.iter().all(is_numeric),
        Shape::Text => numbers <= 1 && attributes.iter().all(is_textual),
        Shape::Length => {
            numbers <= 1 && attributes.iter().all(|attribute| *attribute == TypeAttribute::Binary)
        }
        Shape::Bare => numbers == 0 && attributes.is_empty(),
        Shape::Members => false,
    }
}

const fn is_numeric(attribute: &TypeAttribute) -> bool {
    matches!(attribute, TypeAttribute::Unsigned | TypeAttribute::Signed | TypeAttribute::Zerofill)
}

const fn is_textual(attribute: &TypeAttribute) -> bool {
    matches!(attribute, TypeAttribute::Binary | TypeAttribute::Charset(_))
}
