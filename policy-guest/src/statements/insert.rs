//! `INSERT IGNORE` and `INSERT … ON DUPLICATE KEY UPDATE`.

use sqlparser::ast::{
    Assignment, AssignmentTarget, Expr as Ast, Ident, Insert as AstInsert, ObjectName, OnInsert,
    Query as AstQuery, SetExpr, TableObject, Values,
};

use crate::context::Context;
use crate::convert::refuse_present;
use crate::decision::{Access, Span};
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;
use crate::model::{Column, Insert, Rows, Update};
use crate::names::{Name, TableName, object_span};
use crate::reads;

impl Context<'_> {
    pub(super) fn insert(&mut self, insert: AstInsert) -> Option<Insert> {
        let AstInsert {
            insert_token,
            optimizer_hints,
            or,
            ignore,
            into: _,
            table,
            table_alias,
            columns,
            by_name,
            overwrite,
            source,
            assignments,
            partitioned,
            after_columns,
            overriding,
            has_table_keyword,
            on,
            returning,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        let span = span_of(insert_token.0.span);
        let plain = refuse_present!(self, &code::INSERT_FORM, span,
            optimizer_hints => "optimizer hint",
            or => "INSERT OR …",
            table_alias => "alias of the table that is written",
            by_name => "BY NAME",
            overwrite => "OVERWRITE",
            partitioned => "PARTITION selection",
            after_columns => "second column list",
            overriding => "OVERRIDING",
            has_table_keyword => "INSERT INTO TABLE",
            output => "OUTPUT",
            replace_into => "REPLACE",
            priority => "priority modifier",
            insert_alias => "row alias, which only MySQL 8.0.19 and later have: write VALUES(column)",
            settings => "SETTINGS",
            format_clause => "FORMAT",
            multi_table_insert_type => "multi-table INSERT",
            multi_table_into_clauses => "multi-table INSERT",
            multi_table_when_clauses => "multi-table INSERT",
            multi_table_else_clause => "multi-table INSERT",
        );
        let plain =
            plain.and(refuse_present!(self, &code::RETURNING, span, returning => "RETURNING"));
        self.in_row_value = true;
        let table = self.insert_target(table, span);
        let target = table.clone();
        let target = target.as_ref();
        let listed = !columns.is_empty();
        let columns = self.every(columns, |context, name| context.own_column(name, target));
        let rows = self.rows(source, assignments, target, span);
        let on_duplicate = self.on_duplicate(on, target, span);
        plain?;
        let (table, columns, rows, on_duplicate) = (table?, columns?, rows?, on_duplicate?);
        if !ignore && on_duplicate.is_empty() {
            return self.refuse_code(&code::INSERT_PLAIN, span);
        }
        Some(Insert { ignore, table, columns: listed.then_some(columns), rows, on_duplicate })
    }

    fn insert_target(&mut self, table: TableObject, span: Option<Span>) -> Option<TableName> {
        match table {
            TableObject::TableName(name) => self.table(name, Access::Write),
            TableObject::TableFunction(_) | TableObject::TableQuery(_) => {
                self.refuse_code(&code::INSERT_FORM, span)
            }
        }
    }

    /// A column of the table that is written, whatever it is qualified with.
    fn own_column(&mut self, name: ObjectName, table: Option<&TableName>) -> Option<Name> {
        let span = object_span(&name);
        let parts = self.idents(name, span)?;
        let column = self.column(parts)?;
        self.check_own(&column, table, span)?;
        Some(column.name)
    }

    fn check_own(
        &mut self,
        column: &Column,
        table: Option<&TableName>,
        span: Option<Span>,
    ) -> Option<()> {
        if let (Some(qualifier), Some(table)) = (&column.qualifier, table)
            && qualifier.as_str() != table.as_str()
        {
            let finding = Finding::new(&code::INSERT_FORM)
                .message(format!(
                    "column of `{}` where `{}` is written",
                    qualifier.as_str(),
                    table.as_str()
                ))
                .near(span);
            return self.refuse(finding);
        }
        Some(())
    }

    fn rows(
        &mut self,
        source: Option<Box<AstQuery>>,
        assignments: Vec<Assignment>,
        table: Option<&TableName>,
        span: Option<Span>,
    ) -> Option<Rows> {
        let Some(query) = source else {
            if assignments.is_empty() {
                return self.refuse_code(&code::INSERT_FORM, span);
            }
            let set = self.every(assignments, |context, assignment| {
                let Assignment { target, value } = assignment;
                let (name, value) = (context.assigned(target, table), context.expr(value));
                Some((name?, value?))
            });
            return set.map(Rows::Set);
        };
        match *query {
            AstQuery {
                with: None,
                body,
                order_by: None,
                limit_clause: None,
                fetch: None,
                locks,
                for_clause: None,
                settings: None,
                format_clause: None,
                pipe_operators,
            } if matches!(*body, SetExpr::Values(_))
                && locks.is_empty()
                && pipe_operators.is_empty() =>
            {
                let SetExpr::Values(values) = *body else {
                    return None;
                };
                self.values(values, span)
            }
            query => {
                let known = self.tables.len();
                let rows = self.query(query).map(Box::new).map(Rows::Query);
                if self.tables.len() > known {
                    self.findings.push(Finding::new(&code::INSERT_SELECT).near(span));
                }
                rows
            }
        }
    }

    fn values(&mut self, values: Values, span: Option<Span>) -> Option<Rows> {
        let Values { explicit_row, value_keyword: _, rows } = values;
        refuse_present!(self, &code::INSERT_FORM, span,
            explicit_row => "VALUES ROW(…), which only MySQL 8.0.19 and later have")?;
        let rows = self.every(rows, |context, row| context.unfolded_rows(row.content))?;
        Some(Rows::Values(rows.into_iter().flatten().collect()))
    }

    fn assigned(&mut self, target: AssignmentTarget, table: Option<&TableName>) -> Option<Name> {
        match target {
            AssignmentTarget::ColumnName(name) => self.own_column(name, table),
            AssignmentTarget::Tuple(names) => {
                self.refuse_code(&code::INSERT_FORM, names.first().and_then(object_span))
            }
        }
    }

    fn on_duplicate(
        &mut self,
        on: Option<OnInsert>,
        table: Option<&TableName>,
        span: Option<Span>,
    ) -> Option<Vec<(Name, Update)>> {
        match on {
            None => Some(Vec::new()),
            Some(OnInsert::OnConflict(_)) => self.refuse(
                Finding::new(&code::INSERT_FORM)
                    .message("ON CONFLICT: MySQL has ON DUPLICATE KEY UPDATE")
                    .near(span),
            ),
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => {
                self.on_duplicate = true;
                let updates = self
                    .every(assignments, |context, assignment| context.update(assignment, table));
                self.on_duplicate = false;
                updates
            }
            Some(_) => self.refuse_code(&code::INSERT_FORM, span),
        }
    }

    fn update(
        &mut self,
        assignment: Assignment,
        table: Option<&TableName>,
    ) -> Option<(Name, Update)> {
        let Assignment { target, value } = assignment;
        let span = match &target {
            AssignmentTarget::ColumnName(name) => object_span(name),
            AssignmentTarget::Tuple(_) => None,
        };
        let column = self.assigned(target, table);
        if let Some(own) = bare_column(&value)
            && let Some(column) = &column
        {
            let own = self.column(own)?;
            self.check_own(&own, table, span)?;
            if own.name.same_column(column) {
                return Some((column.clone(), Update::Same(own)));
            }
            return self.refuse_code(&code::UPDATE_VALUE, span);
        }
        let value = self.expr(value)?;
        if reads::reads_column(&value) {
            return self.refuse_code(&code::UPDATE_VALUE, span);
        }
        Some((column?, Update::Value(value)))
    }
}

/// `id = id`, the accepted no-op, reads a column but changes nothing.
fn bare_column(value: &Ast) -> Option<Vec<Ident>> {
    match value {
        Ast::Identifier(ident) => {
            let word = ident.value.to_ascii_uppercase();
            let special = ident.quote_style.is_none()
                && (word == "DEFAULT"
                    || word.starts_with("CURRENT_")
                    || crate::functions::NILADIC.contains(&word.as_str()));
            (!special).then(|| vec![ident.clone()])
        }
        Ast::CompoundIdentifier(parts) => Some(parts.clone()),
        _ => None,
    }
}
