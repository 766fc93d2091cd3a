//! Table options.

use sqlparser::ast::{
    CommentDef, CreateTableOptions, Expr as Ast, NamedParenthesizedList, ObjectName, SqlOption,
    Value, ValueWithSpan,
};

use crate::charset::Collation;
use crate::context::Context;
use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::model::TableOption;

/// Options with a number, by the name the parser gives them.
const NUMBERS: &[&str] = &[
    "AUTO_INCREMENT",
    "AVG_ROW_LENGTH",
    "CHECKSUM",
    "DELAY_KEY_WRITE",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
];

/// Options with a number or one of a few words.
const WORDS: &[(&str, &[&str])] = &[
    ("ROW_FORMAT", &["DEFAULT", "DYNAMIC", "COMPRESSED", "REDUNDANT", "COMPACT"]),
    ("PACK_KEYS", &["0", "1", "DEFAULT"]),
    ("STATS_AUTO_RECALC", &["0", "1", "DEFAULT"]),
    ("STATS_PERSISTENT", &["0", "1", "DEFAULT"]),
];

impl Context<'_> {
    pub(super) fn table_options(
        &mut self,
        options: CreateTableOptions,
        span: Option<Span>,
    ) -> Option<Vec<TableOption>> {
        match options {
            CreateTableOptions::None => Some(Vec::new()),
            CreateTableOptions::Plain(options) => {
                self.every(options, |context, option| context.table_option(option, span))
            }
            CreateTableOptions::With(_)
            | CreateTableOptions::Options(_)
            | CreateTableOptions::TableProperties(_) => self.refuse_code(&code::TABLE_OPTION, span),
        }
    }

    fn table_option(&mut self, option: SqlOption, span: Option<Span>) -> Option<TableOption> {
        match option {
            SqlOption::Comment(CommentDef::WithEq(handle) | CommentDef::WithoutEq(handle)) => {
                self.single_string(&handle).map(TableOption::Comment)
            }
            SqlOption::NamedParenthesizedList(NamedParenthesizedList {
                key,
                name: Some(engine),
                values,
            }) if key.value == "ENGINE" && values.is_empty() => {
                if engine.value.eq_ignore_ascii_case("InnoDB") {
                    return Some(TableOption::InnoDb);
                }
                let engine = crate::names::shortened(&engine.value);
                let finding = Finding::new(&code::ENGINE)
                    .message(format!("storage engine `{engine}`"))
                    .near(span);
                self.refuse(finding)
            }
            SqlOption::KeyValue { key, value } => self.key_value(&key, value, span),
            SqlOption::Clustered(_)
            | SqlOption::Ident(_)
            | SqlOption::Partition { .. }
            | SqlOption::TableSpace(_)
            | SqlOption::NamedParenthesizedList(_) => self.refuse_code(&code::TABLE_OPTION, span),
        }
    }

    fn key_value(
        &mut self,
        key: &ObjectName,
        value: Ast,
        span: Option<Span>,
    ) -> Option<TableOption> {
        let key = key.to_string().to_ascii_uppercase();
        let Some(value) = word(value) else {
            return self.refuse_option(&key, span);
        };
        match key.strip_prefix("DEFAULT ").unwrap_or(&key) {
            "CHARSET" | "CHARACTER SET" => self.charset(&value, span).map(TableOption::Charset),
            "COLLATE" => match Collation::new(&value) {
                Some(collation) => Some(TableOption::Collate(collation)),
                None => self.refuse_code(&code::CHARACTER_SET, span),
            },
            name => {
                if let Some(known) = NUMBERS.iter().find(|known| **known == name)
                    && value.bytes().all(|byte| byte.is_ascii_digit())
                {
                    return Some(TableOption::Plain(known, value));
                }
                let value = value.to_ascii_uppercase();
                match WORDS
                    .iter()
                    .find(|(known, values)| *known == name && values.contains(&value.as_str()))
                {
                    Some((known, _)) => Some(TableOption::Plain(known, value)),
                    None => self.refuse_option(&key, span),
                }
            }
        }
    }

    fn refuse_option<T>(&mut self, key: &str, span: Option<Span>) -> Option<T> {
        let finding = Finding::new(&code::TABLE_OPTION)
            .message(format!("table option `{key}` with this value"))
            .near(span);
        self.refuse(finding)
    }
}

/// A number or a word.
fn word(value: Ast) -> Option<String> {
    match value {
        Ast::Identifier(ident) => Some(ident.value),
        Ast::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(digits),
        _ => None,
    }
}
