//! Queries and joined tables.

use super::Printer;
use crate::model::{
    Arm, Derived, Join, JoinCondition, JoinKind, Order, Query, Select, SelectItem, Source,
    TableRef, Union,
};

impl Printer<'_> {
    pub(super) fn query(&mut self, query: &Query) {
        let Query { first, unions, order, limit } = query;
        self.arm(first);
        for (union, arm) in unions {
            self.put(match union {
                Union::All => " UNION ALL ",
                Union::Distinct => " UNION ",
            });
            self.arm(arm);
        }
        self.order_by(order);
        if let Some(limit) = limit {
            self.put(" LIMIT ");
            self.put(&limit.rows);
            if let Some(offset) = &limit.offset {
                self.put(" OFFSET ");
                self.put(offset);
            }
        }
    }

    fn arm(&mut self, arm: &Arm) {
        match arm {
            Arm::Select(select) => self.select(select),
            Arm::Query(query) => self.wrapped("", |printer| printer.query(query)),
        }
    }

    fn select(&mut self, select: &Select) {
        let Select { distinct, items, from, condition, group, rollup, having } = select;
        self.put(if *distinct { "SELECT DISTINCT " } else { "SELECT " });
        self.list(items, |printer, item| match item {
            SelectItem::Expr(expr, alias) => {
                printer.expr(expr);
                if let Some(alias) = alias {
                    printer.put(" AS ");
                    printer.name(alias);
                }
            }
            SelectItem::All => printer.put("*"),
            SelectItem::AllOf(in_catalog, table) => {
                if *in_catalog {
                    printer.quoted(printer.catalog);
                    printer.put(".");
                }
                printer.name(table);
                printer.put(".*");
            }
        });
        match from {
            Source::Nothing => {}
            Source::Dual => self.put(" FROM DUAL"),
            Source::Tables(tables) => {
                self.put(" FROM ");
                self.tables(tables);
            }
        }
        if let Some(condition) = condition {
            self.put(" WHERE ");
            self.expr(condition);
        }
        if !group.is_empty() {
            self.put(" GROUP BY ");
            self.list(group, Self::expr);
            if *rollup {
                self.put(" WITH ROLLUP");
            }
        }
        if let Some(having) = having {
            self.put(" HAVING ");
            self.expr(having);
        }
    }

    pub(super) fn order_by(&mut self, order: &[Order]) {
        if !order.is_empty() {
            self.put(" ORDER BY ");
            self.list(order, |printer, Order { expr, descending }| {
                printer.expr(expr);
                if *descending {
                    printer.put(" DESC");
                }
            });
        }
    }

    pub(super) fn tables(&mut self, tables: &[TableRef]) {
        self.list(tables, Self::table_ref);
    }

    fn table_ref(&mut self, table: &TableRef) {
        self.derived(&table.table);
        for Join { kind, table, condition } in &table.joins {
            self.put(match kind {
                JoinKind::Inner => " INNER JOIN ",
                JoinKind::Left => " LEFT JOIN ",
                JoinKind::Right => " RIGHT JOIN ",
                JoinKind::Cross => " CROSS JOIN ",
            });
            self.derived(table);
            match condition {
                JoinCondition::On(expr) => self.wrapped(" ON ", |printer| printer.expr(expr)),
                JoinCondition::Using(columns) => {
                    self.put(" USING ");
                    self.parenthesised(columns, Self::name);
                }
                JoinCondition::None => {}
            }
        }
    }

    fn derived(&mut self, derived: &Derived) {
        match derived {
            Derived::Table { name, alias } => {
                self.table(name);
                if let Some(alias) = alias {
                    self.put(" AS ");
                    self.name(alias);
                }
            }
            Derived::Query { query, alias } => {
                self.wrapped("", |printer| printer.query(query));
                self.put(" AS ");
                self.name(alias);
            }
            Derived::Joined(table) => self.wrapped("", |printer| printer.table_ref(table)),
        }
    }
}
