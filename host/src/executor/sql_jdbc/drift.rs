//! After `CREATE TABLE IF NOT EXISTS` met something of that name: whether it is the table.
//!
//! The server does nothing then and calls it success, with a note (1050, `ER_TABLE_EXISTS_ERROR`).
//! Any warning makes us look, since a server may count notes without keeping them. What is compared is a reduced
//! post-condition: that the object is a base table and has every column that the statement defines.
//! Types, keys and further columns are not compared: servers print them in too many ways to refuse a
//! step for it.
//!
//! The text is the policy's print of one statement. It is scanned once from left to right, without
//! recursion; a text that is not in that form is compared by the object's kind alone.

use std::collections::BTreeSet;
use std::fmt;

use mysql_async::prelude::Queryable as _;

use crate::policy::{Access, Statement};
use crate::target::TargetConnection;

/// How an object differs from the table that a statement defines or writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// It is a view, or another object that is no base table.
    NotATable,
    /// Its engine has no transactions: what a payload writes to it could not be undone.
    NotTransactional,
    /// It lacks columns of the definition.
    ColumnsMissing {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATable => f.write_str("it is no table"),
            Self::NotTransactional => f.write_str("its engine has no transactions"),
            Self::ColumnsMissing { count: 1 } => f.write_str("it lacks a column"),
            Self::ColumnsMissing { count } => write!(f, "it lacks {count} columns"),
        }
    }
}

/// Compares what is there with what the statement defines.
pub(super) async fn found(
    connection: &mut TargetConnection,
    statement: &Statement,
) -> Result<Option<Drift>, mysql_async::Error> {
    let named = |access| {
        let mut tables = statement.tables.iter().filter(|table| table.access == access);
        tables.next().map(|table| table.name.as_str())
    };
    let Some(created) = named(Access::Create) else {
        return Ok(None);
    };
    let Some(present) = Object::read(connection, created).await? else {
        // Dropped meanwhile, by somebody else.
        return Ok(Some(Drift::NotATable));
    };
    if !present.is_table {
        return Ok(Some(Drift::NotATable));
    }
    let defined = match defined(&statement.text) {
        Defined::Columns(columns) => columns,
        Defined::Like => match named(Access::Read) {
            Some(model) => {
                Object::read(connection, model).await?.map_or_else(BTreeSet::new, |it| it.columns)
            }
            None => BTreeSet::new(),
        },
        Defined::Unknown => BTreeSet::new(),
    };
    let count = defined.difference(&present.columns).count();
    Ok((count > 0).then_some(Drift::ColumnsMissing { count }))
}

/// What the catalog has under a name; column names in lowercase, as servers compare them.
struct Object {
    is_table: bool,
    columns: BTreeSet<String>,
}

impl Object {
    async fn read(
        connection: &mut TargetConnection,
        name: &str,
    ) -> Result<Option<Self>, mysql_async::Error> {
        let folds = connection.settings().get("lower_case_table_names");
        let name = match folds.map(String::as_str) {
            None | Some("0") => name.to_owned(),
            Some(_) => name.to_lowercase(),
        };
        let query = "SELECT t.TABLE_TYPE, c.COLUMN_NAME FROM information_schema.TABLES t \
                     LEFT JOIN information_schema.COLUMNS c \
                     ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME \
                     WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = ?";
        let rows: Vec<(String, Option<String>)> = connection.conn().exec(query, (name,)).await?;
        let Some((kind, _)) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(Self {
            // MariaDB names the kinds of tables it versions by system time and its sequences apart.
            is_table: kind == "BASE TABLE" || kind == "SYSTEM VERSIONED",
            columns: rows.into_iter().filter_map(|(_, name)| Some(name?.to_lowercase())).collect(),
        }))
    }
}

/// What a text defines.
#[derive(Debug, PartialEq, Eq)]
enum Defined {
    /// These columns, in lowercase.
    Columns(BTreeSet<String>),
    /// Another table's columns.
    Like,
    /// It cannot be told.
    Unknown,
}

/// The columns: the names in backticks that open an item of the outer list.
fn defined(text: &str) -> Defined {
    // The policy prints neither; with them a literal's end would depend on the session.
    if text.contains(['"', '\\']) {
        return Defined::Unknown;
    }
    let mut columns = BTreeSet::new();
    let (mut depth, mut opens_item) = (0_u32, false);
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let (_, after) = rest.split_at(char.len_utf8());
        match char {
            '`' | '\'' => {
                let Some((quoted, behind)) = quoted(after, char) else {
                    return Defined::Unknown;
                };
                if char == '`' && depth == 1 && opens_item {
                    columns.insert(quoted.to_lowercase());
                }
                opens_item = false;
                rest = behind;
                continue;
            }
            '(' => {
                depth = depth.saturating_add(1);
                opens_item = depth == 1;
            }
            ')' => depth = depth.saturating_sub(1),
            ',' => opens_item = true,
            _ if char.is_whitespace() => {}
            'L' if depth == 0 && rest.starts_with("LIKE ") => return Defined::Like,
            _ => opens_item = false,
        }
        rest = after;
    }
    if columns.is_empty() { Defined::Unknown } else { Defined::Columns(columns) }
}

/// What stands before the closing quote, a doubled one being the quote itself, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once(quote)?;
        inside.push_str(before);
        match after.strip_prefix(quote) {
            Some(behind) => {
                inside.push(quote);
                rest = behind;
            }
            None => return Some((inside, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Vec<String> {
        match defined(text) {
            Defined::Columns(columns) => columns.into_iter().collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_are_told_from_keys_and_literals() {
        let text = "CREATE TABLE IF NOT EXISTS `c`.`t` (`Id` INT NOT NULL PRIMARY KEY, \
                    `w` VARCHAR(40) DEFAULT 'a,`b`(''', `c` DECIMAL(10, 2), KEY `k` (`id`, `w`), \
                    CONSTRAINT `x` FOREIGN KEY (`id`) REFERENCES `c`.`other` (`id`), \
                    `e` ENUM('(', ',')) ENGINE = InnoDB COMMENT = ', `z`'";
        assert_eq!(columns(text), ["c", "e", "id", "w"]);
    }

    #[test]
    fn what_has_no_list_or_an_unknown_form_defines_no_columns() {
        let text = "CREATE TABLE IF NOT EXISTS `c`.`t` LIKE `c`.`u`";
        assert_eq!(defined(text), Defined::Like);
        for text in ["", "CREATE TABLE t (id INT)", "CREATE TABLE `t` (`a` INT DEFAULT '\\'')", "`"]
        {
            assert_eq!(defined(text), Defined::Unknown, "{text}");
        }
    }
}
