//! Names that may appear in a statement, checked once and then carried as types.
//!
//! Catalog, tables and columns are plain ASCII: no spelling that a server maps to another table
//! (`#mysql50#…`, U+0130 under a case-folding server), no dot inside quotes, nothing that misleads a
//! reviewer. Names of indexes and constraints may be wider; nothing is looked up by them.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::context::Context;
use crate::decision::{Access, Span, TableAccess};
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;

/// Characters of an identifier (manual: "Identifier Length Limits").
const NAME_CHARACTERS_MAX: usize = 64;

/// Tables with this prefix belong to the host, now and in later versions of it.
const RESERVED_PREFIX: &str = "factory_plugin_";

/// A table of the allowed catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName(String);

/// A column or an alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

/// An index or a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WideName(String);

macro_rules! as_str {
    ($($name:ident)*) => {$(
        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}
as_str!(TableName Name WideName);

impl Name {
    /// Are they the same column to every server? Column names never depend on case
    /// (manual: "Identifier Case Sensitivity").
    pub(crate) fn same_column(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// Letters, digits, `_` and `$`, not only digits, at most 64.
pub(crate) fn is_plain(text: &str) -> bool {
    (1..=NAME_CHARACTERS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
        && !text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Letters and digits of the basic plane, and marks that need no escape.
fn is_wide(text: &str) -> bool {
    let carried = |c: char| {
        u32::from(c) <= 0xffff && (c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | ' '))
    };
    (1..=NAME_CHARACTERS_MAX).contains(&text.chars().count())
        && text.chars().all(carried)
        && text.trim() == text
}

/// `seq_1_to_9` and `seq_1_to_9_step_2` are tables of MariaDB's SEQUENCE engine.
fn is_virtual(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.strip_prefix("seq_").is_some_and(|rest| rest.contains("_to_"))
}

/// A reserved word cannot be a name without backticks, unless a dot stands before it.
fn reserved(ident: &Ident) -> bool {
    ident.quote_style.is_none() && is_reserved(&ident.value)
}

/// Is it a word that every supported server reserves, in any case?
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED_WORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

impl Context<'_> {
    /// A column, an alias or a table's own name, where no dot stands before it.
    pub(crate) fn name(&mut self, ident: Ident) -> Option<Name> {
        if reserved(&ident) {
            let span = span_of(ident.span);
            let mut finding = Finding::new(&code::RESERVED)
                .message(format!("reserved word `{}` used as a name", ident.value))
                .near(span);
            if let Some(span) = span {
                finding = finding.replace(span, format!("`{}`", ident.value));
            }
            return self.refuse(finding);
        }
        self.name_after_dot(ident)
    }

    /// A name after a dot, where every word is one.
    pub(crate) fn name_after_dot(&mut self, ident: Ident) -> Option<Name> {
        if is_plain(&ident.value) {
            return Some(Name(ident.value));
        }
        let finding = Finding::new(&code::NAME)
            .message(format!(
                "name `{}` has characters or a length that policy v1 does not carry",
                shortened(&ident.value)
            ))
            .near(span_of(ident.span));
        self.refuse(finding)
    }

    /// An alias: a name that must not pass for one of the host's tables.
    pub(crate) fn alias(&mut self, ident: Ident) -> Option<Name> {
        let span = span_of(ident.span);
        let name = self.name(ident)?;
        self.check_unprotected(name.as_str(), span)?;
        Some(name)
    }

    /// An index or a constraint.
    pub(crate) fn wide_name(&mut self, ident: Ident) -> Option<WideName> {
        if reserved(&ident) || !is_wide(&ident.value) {
            let finding = Finding::new(&code::NAME)
                .message(format!(
                    "index or constraint cannot be called `{}`",
                    shortened(&ident.value)
                ))
                .help("use letters, digits, `_`, `$`, `-`, and backticks round a reserved word")
                .near(span_of(ident.span));
            return self.refuse(finding);
        }
        Some(WideName(ident.value))
    }

    /// A table of the allowed catalog, recorded with what the statement does to it.
    pub(crate) fn table(&mut self, name: ObjectName, access: Access) -> Option<TableName> {
        let span = object_span(&name);
        let (name, name_span) = match <[Ident; 1]>::try_from(self.idents(name, span)?) {
            Ok([table]) => {
                let span = span_of(table.span);
                (self.name(table)?, span)
            }
            Err(parts) => {
                let Ok([catalog, table]) = <[Ident; 2]>::try_from(parts) else {
                    let finding = Finding::new(&code::CATALOG)
                        .message("table name with more than a catalog before it")
                        .near(span);
                    return self.refuse(finding);
                };
                self.check_catalog(&catalog, &table.value, span)?;
                let span = span_of(table.span);
                (self.name_after_dot(table)?, span)
            }
        };
        self.check_unprotected(name.as_str(), name_span)?;
        if is_virtual(name.as_str()) {
            return self.refuse(
                Finding::new(&code::VIRTUAL)
                    .message(format!("`{}` is a generated sequence on some servers", name.as_str()))
                    .near(name_span),
            );
        }
        self.tables.push(TableAccess {
            catalog: self.catalog.to_owned(),
            name: name.0.clone(),
            access,
        });
        Some(TableName(name.0))
    }

    /// The identifiers of a dotted name.
    pub(crate) fn idents(&mut self, name: ObjectName, span: Option<Span>) -> Option<Vec<Ident>> {
        let ObjectName(parts) = name;
        let idents: Option<Vec<Ident>> = parts
            .into_iter()
            .map(|part| match part {
                ObjectNamePart::Identifier(ident) => Some(ident),
                ObjectNamePart::Function(_) => None,
            })
            .collect();
        idents.or_else(|| self.refuse(Finding::new(&code::NAME).near(span)))
    }

    /// The qualifier is the allowed catalog, byte for byte: under `lower_case_table_names=0` a
    /// different case is a different catalog.
    pub(crate) fn check_catalog(
        &mut self,
        catalog: &Ident,
        table: &str,
        span: Option<Span>,
    ) -> Option<()> {
        if catalog.value == self.catalog {
            return Some(());
        }
        let finding = Finding::new(&code::CATALOG)
            .message(format!(
                "table `{}.{}` is outside the allowed catalog `{}`",
                shortened(&catalog.value),
                shortened(table),
                self.catalog
            ))
            .near(span);
        self.refuse(finding)
    }

    fn check_unprotected(&mut self, name: &str, span: Option<Span>) -> Option<()> {
        let protected = self.protected_tables.iter().any(|table| table.eq_ignore_ascii_case(name))
            || name
                .get(..RESERVED_PREFIX.len())
                .is_some_and(|prefix| prefix.eq_ignore_ascii_case(RESERVED_PREFIX));
        if protected {
            let finding = Finding::new(&code::PROTECTED)
                .message(format!("table `{name}` belongs to the host"))
                .near(span);
            return self.refuse(finding);
        }
        Some(())
    }
}

/// From the first to the last part of a dotted name.
pub(crate) fn object_span(name: &ObjectName) -> Option<Span> {
    let spans = name.0.iter().filter_map(|part| match part {
        ObjectNamePart::Identifier(ident) => span_of(ident.span),
        ObjectNamePart::Function(_) => None,
    });
    spans.reduce(|first, last| Span { start: first.start, end: last.end })
}

/// A name for a message: short enough to read, and without control characters.
pub(crate) fn shortened(text: &str) -> String {
    let mut short: String = text
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .take(NAME_CHARACTERS_MAX)
        .collect();
    if text.chars().nth(NAME_CHARACTERS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// Words that MySQL 5.6, MySQL 9 and MariaDB 10.11 all reserve (manual: "Keywords and Reserved
/// Words"), sorted. A word that only some of them reserve is a name to the others and is printed in
/// backticks, so it is not refused.
#[rustfmt::skip]
const RESERVED_WORDS: &[&str] = &[
    "ACCESSIBLE", "ADD", "ALL", "ALTER", "ANALYZE", "AND", "AS", "ASC", "ASENSITIVE", "BEFORE",
    "BETWEEN", "BIGINT", "BINARY", "BLOB", "BOTH", "BY", "CALL", "CASCADE", "CASE", "CHANGE", "CHAR",
    "CHARACTER", "CHECK", "COLLATE", "COLUMN", "CONDITION", "CONSTRAINT", "CONTINUE", "CONVERT",
    "CREATE", "CROSS", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "CURSOR",
    "DATABASE", "DATABASES", "DAY_HOUR", "DAY_MICROSECOND", "DAY_MINUTE", "DAY_SECOND", "DEC",
    "DECIMAL", "DECLARE", "DEFAULT", "DELAYED", "DELETE", "DESC", "DESCRIBE", "DETERMINISTIC",
    "DISTINCT", "DISTINCTROW", "DIV", "DOUBLE", "DROP", "DUAL", "EACH", "ELSE", "ELSEIF", "ENCLOSED",
    "ESCAPED", "EXISTS", "EXIT", "EXPLAIN", "FALSE", "FETCH", "FLOAT", "FLOAT4", "FLOAT8", "FOR",
    "FORCE", "FOREIGN", "FROM", "FULLTEXT", "GRANT", "GROUP", "HAVING", "HIGH_PRIORITY",
    "HOUR_MICROSECOND", "HOUR_MINUTE", "HOUR_SECOND", "IF", "IGNORE", "IN", "INDEX", "INFILE",
    "INNER", "INOUT", "INSENSITIVE", "INSERT", "INT", "INT1", "INT2", "INT3", "INT4", "INT8",
    "INTEGER", "INTERVAL", "INTO", "IS", "ITERATE", "JOIN", "KEY", "KEYS", "KILL", "LEADING",
    "LEAVE", "LEFT", "LIKE", "LIMIT", "LINEAR", "LINES", "LOAD", "LOCALTIME", "LOCALTIMESTAMP",
    "LOCK", "LONG", "LONGBLOB", "LONGTEXT", "LOOP", "LOW_PRIORITY", "MATCH", "MAXVALUE",
    "MEDIUMBLOB", "MEDIUMINT", "MEDIUMTEXT", "MIDDLEINT", "MINUTE_MICROSECOND", "MINUTE_SECOND",
    "MOD", "MODIFIES", "NATURAL", "NOT", "NO_WRITE_TO_BINLOG", "NULL", "NUMERIC", "ON", "OPTIMIZE",
    "OPTION", "OPTIONALLY", "OR", "ORDER", "OUT", "OUTER", "OUTFILE", "PARTITION", "PRECISION",
    "PRIMARY", "PROCEDURE", "PURGE", "RANGE", "READ", "READS", "READ_WRITE", "REAL", "REFERENCES",
    "REGEXP", "RELEASE", "RENAME", "REPEAT", "REPLACE", "REQUIRE", "RESIGNAL", "RESTRICT", "RETURN",
    "REVOKE", "RIGHT", "RLIKE", "SCHEMA", "SCHEMAS", "SECOND_MICROSECOND", "SELECT", "SENSITIVE",
    "SEPARATOR", "SET", "SHOW", "SIGNAL", "SMALLINT", "SPATIAL", "SPECIFIC", "SQL", "SQLEXCEPTION",
    "SQLSTATE", "SQLWARNING", "SQL_BIG_RESULT", "SQL_CALC_FOUND_ROWS", "SQL_SMALL_RESULT", "SSL",
    "STARTING", "STRAIGHT_JOIN", "TABLE", "TERMINATED", "THEN", "TINYBLOB", "TINYINT", "TINYTEXT",
    "TO", "TRAILING", "TRIGGER", "TRUE", "UNDO", "UNION", "UNIQUE", "UNLOCK", "UNSIGNED", "UPDATE",
    "USAGE", "USE", "USING", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "VALUES", "VARBINARY",
    "VARCHAR", "VARCHARACTER", "VARYING", "WHEN", "WHERE", "WHILE", "WITH", "WRITE", "XOR",
    "YEAR_MONTH", "ZEROFILL",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_words_are_sorted() {
        assert!(RESERVED_WORDS.is_sorted());
    }

    #[test]
    fn a_plain_name_cannot_be_another_tables_spelling() {
        for name in ["t", "2fa", "a$b", "_", &"a".repeat(64)] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", "1", "42", "#sql-x", "#mysql50#t", "a.b", "a b", "é", "İ", &"a".repeat(65)]
        {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn a_wide_name_needs_no_escape() {
        assert!(is_wide("имя-1") && is_wide("fk a.b"));
        for name in ["", " a", "a ", "a`b", "a/b", "a\\b", "a\0", "😀", &"a".repeat(65)] {
            assert!(!is_wide(name), "{name}");
        }
    }

    #[test]
    fn sequences_are_recognised_in_any_case() {
        assert!(is_virtual("SEQ_1_TO_9") && is_virtual("seq_1_to_9_step_2"));
        assert!(!is_virtual("sequence_to") && !is_virtual("seq_a"));
    }
}
