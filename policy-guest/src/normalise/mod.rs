//! Prints what runs.
//!
//! One statement at a time, from the model alone: every table qualified with the catalog, every name
//! in backticks, parentheses wherever operators nest, strings written so that their bytes depend on
//! nothing the payload could change. There is no other way from a payload to a server.

mod expression;
mod query;
mod table;

use crate::model::{Delete, DropTable, Insert, Rows, Statement, Target, Update};
use crate::names::{Name, TableName};

/// Prints a statement for one catalog.
pub(crate) fn normalise(statement: &Statement, catalog: &str) -> String {
    let mut printer = Printer { catalog, out: String::with_capacity(256) };
    match statement {
        Statement::CreateTable(create) => printer.create_table(create),
        Statement::DropTable(drop) => printer.drop_table(drop),
        Statement::Insert(insert) => printer.insert(insert),
        Statement::Delete(delete) => printer.delete(delete),
    }
    printer.out
}

struct Printer<'a> {
    catalog: &'a str,
    out: String,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A name in backticks. The names a model can hold have none inside; doubling them keeps that
    /// from being what safety rests on.
    fn quoted(&mut self, name: &str) {
        self.out.push('`');
        for (at, part) in name.split('`').enumerate() {
            if at > 0 {
                self.put("``");
            }
            self.put(part);
        }
        self.out.push('`');
    }

    fn name(&mut self, name: &Name) {
        self.quoted(name.as_str());
    }

    fn table(&mut self, table: &TableName) {
        self.quoted(self.catalog);
        self.put(".");
        self.quoted(table.as_str());
    }

    fn list<T>(&mut self, items: &[T], mut print: impl FnMut(&mut Self, &T)) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            print(self, item);
        }
    }

    fn parenthesised<T>(&mut self, items: &[T], print: impl FnMut(&mut Self, &T)) {
        self.put("(");
        self.list(items, print);
        self.put(")");
    }

    fn drop_table(&mut self, drop: &DropTable) {
        self.put("DROP TABLE IF EXISTS ");
        self.list(&drop.tables, Self::table);
    }

    fn insert(&mut self, insert: &Insert) {
        self.put(if insert.ignore { "INSERT IGNORE INTO " } else { "INSERT INTO " });
        self.table(&insert.table);
        if let Some(columns) = &insert.columns {
            self.put(" ");
            self.parenthesised(columns, Self::name);
        }
        match &insert.rows {
            Rows::Values(rows) => {
                self.put(" VALUES ");
                self.list(rows, |printer, row| printer.parenthesised(row, Self::expr));
            }
            Rows::Set(assignments) => {
                self.put(" SET ");
                self.list(assignments, |printer, (name, value)| {
                    printer.name(name);
                    printer.put(" = ");
                    printer.expr(value);
                });
            }
            Rows::Query(query) => {
                self.put(" ");
                self.query(query);
            }
        }
        if !insert.on_duplicate.is_empty() {
            self.put(" ON DUPLICATE KEY UPDATE ");
            self.list(&insert.on_duplicate, |printer, (name, update)| {
                printer.name(name);
                printer.put(" = ");
                match update {
                    Update::Same(column) => printer.column(column),
                    Update::Value(value) => printer.expr(value),
                }
            });
        }
    }

    fn delete(&mut self, delete: &Delete) {
        let condition = match delete {
            Delete::Single { table, alias, condition } => {
                self.put("DELETE FROM ");
                self.table(table);
                if let Some(alias) = alias {
                    self.put(" AS ");
                    self.name(alias);
                }
                condition
            }
            Delete::Multi { targets, from, condition } => {
                self.put("DELETE ");
                self.list(targets, |printer, target| match target {
                    Target::Table(table) => printer.table(table),
                    Target::Alias(alias) => printer.name(alias),
                });
                self.put(" FROM ");
                self.tables(from);
                condition
            }
        };
        self.put(" WHERE ");
        self.expr(condition);
    }
}
