//! `DELETE … WHERE`, from one table or from joined ones.

use sqlparser::ast::{Delete as AstDelete, FromTable, ObjectName, TableFactor, TableWithJoins};

use crate::context::Context;
use crate::convert::refuse_present;
use crate::decision::{Access, Span, TableAccess};
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;
use crate::model::{Delete, Derived, Expr, JoinCondition, TableRef, Target};
use crate::names::{Name, TableName, object_span};
use crate::selective;

/// Tables a DELETE may take rows from, and read: servers join no more (manual: "Limits on Joins").
const TARGET_COUNT_MAX: usize = 61;

impl Context<'_> {
    pub(super) fn delete(&mut self, delete: AstDelete) -> Option<Delete> {
        let AstDelete {
            delete_token,
            optimizer_hints,
            tables,
            from,
            on_cluster,
            using,
            selection,
            returning,
            output,
            order_by,
            limit,
            settings,
        } = delete;
        let span = span_of(delete_token.0.span);
        let plain = refuse_present!(self, &code::DELETE_FORM, span,
            optimizer_hints => "optimizer hint",
            on_cluster => "ON CLUSTER",
            output => "OUTPUT",
            settings => "SETTINGS",
        );
        let plain = plain
            .and(refuse_present!(self, &code::RETURNING, span, returning => "RETURNING"))
            .and(refuse_present!(self, &code::DELETE_ORDER, span,
                order_by => "DELETE with ORDER BY",
                limit => "DELETE with LIMIT",
            ));
        let FromTable::WithFromKeyword(from) = from else {
            return self.refuse_code(&code::DELETE_FORM, span);
        };
        let condition_span =
            selection.as_ref().and_then(|expr| span_of(sqlparser::ast::Spanned::span(expr)));
        let condition = match selection {
            None => self.refuse_code(&code::DELETE_ALL, span),
            Some(expr) => self.expr(expr),
        };
        let condition = condition.and_then(|expr| self.selective(expr, condition_span.or(span)));
        let delete = match (tables.is_empty(), using) {
            (true, None) => self.single(from, condition, span),
            (true, Some(using)) => self
                .targets_listed(from, span)
                .and_then(|targets| self.multi(targets, using, condition, span)),
            (false, None) => self.multi(tables, from, condition, span),
            (false, Some(_)) => self.refuse_code(&code::DELETE_FORM, span),
        };
        plain?;
        delete
    }

    /// In every alternative, something selects rows.
    fn selective(&mut self, condition: Expr, span: Option<Span>) -> Option<Expr> {
        if selective::has_constant_comparison(&condition) {
            return self.refuse_code(&code::CONSTANT_CONDITION, span);
        }
        if !selective::is_selective(&condition) {
            return self.refuse_code(&code::DELETE_CONDITION, span);
        }
        Some(condition)
    }

    fn single(
        &mut self,
        from: Vec<TableWithJoins>,
        condition: Option<Expr>,
        span: Option<Span>,
    ) -> Option<Delete> {
        // `DELETE FROM ONLY t` would read as the alias `t` of a table `ONLY`.
        let implied = |table: &TableWithJoins| matches!(&table.relation, TableFactor::Table { alias: Some(alias), .. } if !alias.explicit);
        if from.iter().any(implied) {
            let finding = Finding::new(&code::DELETE_FORM)
                .message("alias without AS in a DELETE from one table")
                .near(span);
            return self.refuse(finding);
        }
        let Ok([only]) = <[TableWithJoins; 1]>::try_from(from) else {
            return self.refuse(several_tables(span));
        };
        let TableRef { table: Derived::Table { name, alias }, joins } =
            self.table_ref(only, Access::Write)?
        else {
            return self.refuse(several_tables(span));
        };
        if !joins.is_empty() {
            return self.refuse(several_tables(span));
        }
        Some(Delete::Single { table: name, alias, condition: condition? })
    }

    /// DELETE FROM a, b USING …: the tables before USING are names, nothing else.
    fn targets_listed(
        &mut self,
        from: Vec<TableWithJoins>,
        span: Option<Span>,
    ) -> Option<Vec<ObjectName>> {
        self.every(from, |context, table| match table {
            TableWithJoins {
                relation:
                    TableFactor::Table {
                        name,
                        alias: None,
                        args: None,
                        with_hints,
                        version: None,
                        with_ordinality: false,
                        partitions,
                        json_path: None,
                        sample: None,
                        index_directives,
                        inheritance: None,
                    },
                joins,
            } if joins.is_empty()
                && with_hints.is_empty()
                && partitions.is_empty()
                && index_directives.is_empty() =>
            {
                Some(name)
            }
            _ => context.refuse_code(&code::DELETE_FORM, span),
        })
    }

    fn multi(
        &mut self,
        targets: Vec<ObjectName>,
        from: Vec<TableWithJoins>,
        condition: Option<Expr>,
        span: Option<Span>,
    ) -> Option<Delete> {
        let from = self.tables(from)?;
        if self.star_targets && matches!(from.as_slice(), [only] if only.joins.is_empty()) {
            return self.refuse(
                Finding::new(&code::DELETE_FORM)
                    .message("`.*` after the only table of a DELETE: write DELETE FROM table")
                    .near(span),
            );
        }
        let constant = from.iter().flat_map(|table| &table.joins).any(|join| {
            matches!(&join.condition, JoinCondition::On(expr)
                if selective::has_constant_comparison(expr))
        });
        if constant {
            return self.refuse_code(&code::CONSTANT_CONDITION, span);
        }
        if targets.len() > TARGET_COUNT_MAX {
            let message = format!("DELETE from more than {TARGET_COUNT_MAX} tables");
            return self.refuse(Finding::new(&code::DELETE_FORM).message(message).near(span));
        }
        let condition = condition?;
        let compared = selective::Compared::of(&from, &condition);
        let targets = self.every(targets, |context, name| context.target(name, &from, &compared));
        drop(compared);
        Some(Delete::Multi { targets: targets?, from, condition })
    }

    /// A target names a joined table, or the alias of one.
    fn target(
        &mut self,
        name: ObjectName,
        from: &[TableRef],
        compared: &selective::Compared<'_>,
    ) -> Option<Target> {
        let span = object_span(&name);
        let mut parts = self.idents(name, span)?;
        let last = parts.pop()?;
        let qualified = match parts.as_slice() {
            [] => false,
            [catalog] => {
                self.check_catalog(&catalog.clone(), &last.value, span)?;
                true
            }
            _ => return self.refuse_code(&code::CATALOG, span),
        };
        let name = self.alias(last)?;
        let found = find(&name, qualified, from);
        let Some((table, aliased)) = found else {
            let finding = Finding::new(&code::DELETE_FORM)
                .message(format!("`{}` is not among the joined tables", name.as_str()))
                .near(span);
            return self.refuse(finding);
        };
        if !compared.binds(&name) {
            let finding = Finding::new(&code::DELETE_CONDITION)
                .message(format!("nothing is compared with a column of `{}`", name.as_str()))
                .near(span);
            return self.refuse(finding);
        }
        self.writes(&table);
        Some(if aliased { Target::Alias(name) } else { Target::Table(table) })
    }

    fn writes(&mut self, table: &TableName) {
        self.tables.push(TableAccess {
            catalog: self.catalog.to_owned(),
            name: table.as_str().to_owned(),
            access: Access::Write,
        });
    }
}

fn several_tables(span: Option<Span>) -> Finding {
    Finding::new(&code::DELETE_FORM)
        .message("DELETE FROM joined tables without saying from which")
        .near(span)
}

/// The joined table a target stands for, and whether by alias. Aliases and table names are
/// compared byte for byte, as servers do where names depend on case.
fn find(name: &Name, qualified: bool, from: &[TableRef]) -> Option<(TableName, bool)> {
    from.iter().find_map(|table| {
        std::iter::once(&table.table).chain(table.joins.iter().map(|join| &join.table)).find_map(
            |derived| match derived {
                Derived::Table { name: table, alias: Some(alias) } => {
                    (!qualified && alias == name).then(|| (table.clone(), true))
                }
                Derived::Table { name: table, alias: None } => {
                    (table.as_str() == name.as_str()).then(|| (table.clone(), false))
                }
                Derived::Query { .. } => None,
                Derived::Joined(inner) => find(name, qualified, std::slice::from_ref(inner)),
            },
        )
    })
}
