//! Queries and joined tables.

use sqlparser::ast::{
    Distinct, Expr as Ast, GroupByExpr, GroupByWithModifier, Ident, Join as AstJoin,
    JoinConstraint, JoinOperator, LimitClause, ObjectName, Offset, OffsetRows, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query as AstQuery, Select as AstSelect,
    SelectFlavor, SelectItem as AstItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
    SetQuantifier, TableAlias, TableFactor, TableWithJoins, Value, WildcardAdditionalOptions,
};

use super::refuse_present;
use crate::context::Context;
use crate::decision::{Access, Span};
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;
use crate::model::{
    Arm, Derived, Expr, Join, JoinCondition, JoinKind, Limit, Order, Query, Select, SelectItem,
    Source, TableRef, Union,
};
use crate::names::{Name, object_span};

impl Context<'_> {
    /// A query inside an expression or a FROM.
    pub(crate) fn subquery(&mut self, query: AstQuery) -> Option<Query> {
        let in_row_value = std::mem::replace(&mut self.in_row_value, false);
        let on_duplicate = std::mem::replace(&mut self.on_duplicate, false);
        let query = self.query(query);
        self.in_row_value = in_row_value;
        self.on_duplicate = on_duplicate;
        query
    }

    pub(crate) fn query(&mut self, query: AstQuery) -> Option<Query> {
        let AstQuery {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let span = with.as_ref().and_then(|with| span_of(with.with_token.0.span));
        let plain = refuse_present!(self, &code::SELECT_FORM, span,
            with => "common table expression: write a derived table",
            fetch => "FETCH",
            locks => "locking SELECT: a plain SELECT reads what it needs",
            for_clause => "FOR clause",
            settings => "SETTINGS",
            format_clause => "FORMAT",
            pipe_operators => "pipe operator",
        );
        let outer = std::mem::replace(&mut self.in_select, true);
        let arms = self.arms(*body);
        let order = self.maybe(order_by, Self::order_by).map(Option::unwrap_or_default);
        let limit = self.maybe(limit_clause, Self::limit);
        self.in_select = outer;
        plain?;
        let (first, unions) = arms?;
        Some(Query { first, unions, order: order?, limit: limit? })
    }

    /// The arms of a UNION; its spine to the left is walked, not recursed.
    fn arms(&mut self, body: SetExpr) -> Option<(Arm, Vec<(Union, Arm)>)> {
        let mut links = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            links.push((op, set_quantifier, *right));
            first = *left;
        }
        let first = self.arm(first);
        links.reverse();
        let unions = self.every(links, |context, (op, quantifier, right)| {
            let union = match (op, quantifier) {
                (SetOperator::Union, SetQuantifier::All) => Some(Union::All),
                (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => {
                    Some(Union::Distinct)
                }
                (op, _) => context.refuse(
                    Finding::new(&code::SELECT_FORM)
                        .message(format!("`{op}`: only UNION is carried")),
                ),
            };
            let arm = context.arm(right);
            Some((union?, arm?))
        });
        Some((first?, unions?))
    }

    fn arm(&mut self, body: SetExpr) -> Option<Arm> {
        match body {
            SetExpr::Select(select) => self.select(*select).map(Box::new).map(Arm::Select),
            SetExpr::Query(query) => self.query(*query).map(Box::new).map(Arm::Query),
            SetExpr::SetOperation { .. }
            | SetExpr::Values(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_)
            | SetExpr::Table(_) => self.refuse(
                Finding::new(&code::SELECT_FORM).message("something other than SELECT in a query"),
            ),
        }
    }

    fn select(&mut self, select: AstSelect) -> Option<Select> {
        let AstSelect {
            select_token,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify,
            value_table_mode,
            flavor,
        } = select;
        let span = span_of(select_token.0.span);
        let plain = refuse_present!(self, &code::SELECT_FORM, span,
            optimizer_hints => "optimizer hint",
            select_modifiers => "SELECT modifier",
            top => "TOP",
            top_before_distinct => "TOP",
            exclude => "EXCLUDE",
            into => "SELECT … INTO",
            lateral_views => "LATERAL VIEW",
            prewhere => "PREWHERE",
            connect_by => "CONNECT BY",
            cluster_by => "CLUSTER BY",
            distribute_by => "DISTRIBUTE BY",
            sort_by => "SORT BY",
            named_window => "WINDOW",
            qualify => "QUALIFY",
            window_before_qualify => "WINDOW",
            value_table_mode => "value table",
            !matches!(flavor, SelectFlavor::Standard) => "FROM before SELECT",
        );
        let distinct = match distinct {
            None | Some(Distinct::All) => Some(false),
            Some(Distinct::Distinct) => Some(true),
            Some(Distinct::On(_)) => self.refuse_code(&code::SELECT_FORM, span),
        };
        let from = self.source(from);
        let items = self.every(projection, Self::select_item);
        let in_row_value = std::mem::replace(&mut self.in_row_value, false);
        let condition = self.maybe(selection, Self::expr);
        let group = self.group_by(group_by, span);
        let having = self.maybe(having, Self::expr);
        self.in_row_value = in_row_value;
        plain?;
        let (group, rollup) = group?;
        Some(Select {
            distinct: distinct?,
            items: items?,
            from: from?,
            condition: condition?,
            group,
            rollup,
            having: having?,
        })
    }

    fn select_item(&mut self, item: AstItem) -> Option<SelectItem> {
        match item {
            AstItem::UnnamedExpr(expr) => self.unnamed_item(expr),
            AstItem::ExprWithAlias { expr, alias } => {
                let (expr, alias) = (self.expr(expr), self.column_alias(alias));
                Some(SelectItem::Expr(expr?, Some(alias?)))
            }
            AstItem::Wildcard(options) => {
                self.plain_wildcard(options)?;
                Some(SelectItem::All)
            }
            AstItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                self.plain_wildcard(options)?;
                let span = object_span(&name);
                let parts = self.idents(name, span)?;
                match <[Ident; 1]>::try_from(parts) {
                    Ok([table]) => self.alias(table).map(|table| SelectItem::AllOf(false, table)),
                    Err(parts) => {
                        let Ok([catalog, table]) = <[Ident; 2]>::try_from(parts) else {
                            return self.refuse_code(&code::NAME, span);
                        };
                        self.check_catalog(&catalog, &table.value, span)?;
                        self.alias(table).map(|table| SelectItem::AllOf(true, table))
                    }
                }
            }
            AstItem::ExprWithAliases { .. }
            | AstItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
                self.refuse_code(&code::SELECT_FORM, None)
            }
        }
    }

    /// A column without an alias is called what its author wrote, where that is a name at all.
    ///
    /// `CURRENT_DATE` is printed with parentheses, so it is given that name. Of strings that touch,
    /// MySQL takes the first as the name and MariaDB all of them.
    fn unnamed_item(&mut self, expr: Ast) -> Option<SelectItem> {
        let mut written = &expr;
        let mut bare = true;
        while let Ast::Nested(inner) = written {
            written = inner;
            bare = false;
        }
        let name = match written {
            // In parentheses it is called by its text with them, which is no name.
            Ast::Identifier(ident) if bare && ident.quote_style.is_none() => Some(ident.clone()),
            Ast::Value(value) if self.is_adjacent_string(&value.value) => {
                let finding = Finding::new(&code::SELECT_FORM)
                    .message("strings that touch, as a column without a name")
                    .help("give the column an alias, or write one string")
                    .near(span_of(value.span));
                return self.refuse(finding);
            }
            _ => None,
        };
        let expr = self.expr(expr)?;
        let alias = match (&expr, name) {
            (Expr::Call(..), Some(name)) => Some(self.name_after_dot(name)?),
            _ => None,
        };
        Some(SelectItem::Expr(expr, alias))
    }

    fn plain_wildcard(&mut self, options: WildcardAdditionalOptions) -> Option<()> {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        refuse_present!(self, &code::SELECT_FORM, span_of(wildcard_token.0.span),
            opt_ilike => "wildcard with ILIKE",
            opt_exclude => "wildcard with EXCLUDE",
            opt_except => "wildcard with EXCEPT",
            opt_replace => "wildcard with REPLACE",
            opt_rename => "wildcard with RENAME",
            opt_alias => "wildcard with an alias",
        )
    }

    /// A column alias may be written as a string; it then travels as a handle.
    fn column_alias(&mut self, alias: Ident) -> Option<Name> {
        if matches!(alias.quote_style, Some('\'' | '"')) {
            let value = self.single_string(&alias.value)?;
            return self.alias(Ident { value, quote_style: Some('`'), span: alias.span });
        }
        self.alias(alias)
    }

    fn source(&mut self, from: Vec<TableWithJoins>) -> Option<Source> {
        if from.is_empty() {
            return Some(Source::Nothing);
        }
        if let [TableWithJoins { relation: TableFactor::Table { name, alias: None, .. }, joins }] =
            from.as_slice()
            && joins.is_empty()
            && is_dual(name)
        {
            return Some(Source::Dual);
        }
        self.tables(from).map(Source::Tables)
    }

    /// Joined tables, all of which are read.
    pub(crate) fn tables(&mut self, from: Vec<TableWithJoins>) -> Option<Vec<TableRef>> {
        self.every(from, |context, table| context.table_ref(table, Access::Read))
    }

    /// A table and what is joined to it; `access` is what happens to the first of them.
    pub(crate) fn table_ref(&mut self, table: TableWithJoins, access: Access) -> Option<TableRef> {
        let TableWithJoins { relation, joins } = table;
        let table = self.factor(relation, access);
        let joins = self.every(joins, Self::join);
        Some(TableRef { table: table?, joins: joins? })
    }

    fn factor(&mut self, factor: TableFactor, access: Access) -> Option<Derived> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                let span = object_span(&name);
                let plain = refuse_present!(self, &code::SELECT_FORM, span,
                    args => "table function",
                    with_hints => "table hint",
                    version => "versioned table",
                    with_ordinality => "WITH ORDINALITY",
                    partitions => "PARTITION selection",
                    json_path => "path into a table",
                    sample => "TABLESAMPLE",
                    index_directives => "index hint",
                    inheritance => "ONLY",
                );
                let name = self.table(name, access);
                let alias = self.maybe(alias, |context, alias| context.table_alias(alias, span));
                plain?;
                Some(Derived::Table { name: name?, alias: alias? })
            }
            TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } => {
                let query = self.subquery(*subquery);
                let alias = self.table_alias(alias, None);
                Some(Derived::Query { query: Box::new(query?), alias: alias? })
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.table_ref(*table_with_joins, Access::Read).map(Box::new).map(Derived::Joined)
            }
            _ => {
                self.refuse(Finding::new(&code::SELECT_FORM).message(
                    "something other than a table, a join or a derived table with an alias",
                ))
            }
        }
    }

    fn table_alias(&mut self, alias: TableAlias, span: Option<Span>) -> Option<Name> {
        let TableAlias { explicit: _, name, columns, at } = alias;
        refuse_present!(self, &code::SELECT_FORM, span,
            columns => "alias with columns",
            at => "alias with AT",
        )?;
        self.alias(name)
    }

    fn join(&mut self, join: AstJoin) -> Option<Join> {
        let AstJoin { relation, global, join_operator } = join;
        let span = match &relation {
            TableFactor::Table { name, .. } => object_span(name),
            _ => None,
        };
        let plain = refuse_present!(self, &code::SELECT_FORM, span, global => "GLOBAL JOIN");
        let kind = match join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
                Some((JoinKind::Inner, constraint))
            }
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                Some((JoinKind::Left, constraint))
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                Some((JoinKind::Right, constraint))
            }
            JoinOperator::CrossJoin(constraint) => Some((JoinKind::Cross, constraint)),
            _ => self.refuse(
                Finding::new(&code::SELECT_FORM)
                    .message("join of another kind than INNER, LEFT, RIGHT and CROSS")
                    .near(span),
            ),
        };
        let table = self.factor(relation, Access::Read);
        let (kind, constraint) = kind?;
        let condition = self.join_condition(kind, constraint, span);
        plain?;
        Some(Join { kind, table: table?, condition: condition? })
    }

    fn join_condition(
        &mut self,
        kind: JoinKind,
        constraint: JoinConstraint,
        span: Option<Span>,
    ) -> Option<JoinCondition> {
        match (kind, constraint) {
            (JoinKind::Cross, JoinConstraint::None) => Some(JoinCondition::None),
            (JoinKind::Inner | JoinKind::Left | JoinKind::Right, JoinConstraint::On(expr)) => {
                let in_row_value = std::mem::replace(&mut self.in_row_value, false);
                let expr = self.expr(expr);
                self.in_row_value = in_row_value;
                expr.map(JoinCondition::On)
            }
            (JoinKind::Inner | JoinKind::Left | JoinKind::Right, JoinConstraint::Using(names)) => {
                let names = self.every(names, |context, name| {
                    let span = object_span(&name);
                    match <[Ident; 1]>::try_from(context.idents(name, span)?) {
                        Ok([column]) => context.name(column),
                        Err(_) => context.refuse_code(&code::JOIN_CONDITION, span),
                    }
                });
                names.map(JoinCondition::Using)
            }
            _ => self.refuse_code(&code::JOIN_CONDITION, span),
        }
    }

    fn group_by(&mut self, group: GroupByExpr, span: Option<Span>) -> Option<(Vec<Expr>, bool)> {
        let GroupByExpr::Expressions(exprs, modifiers) = group else {
            return self.refuse_code(&code::SELECT_FORM, span);
        };
        let exprs = self.every(exprs, Self::expr);
        let rollup = match modifiers.as_slice() {
            [] => Some(false),
            [GroupByWithModifier::Rollup] => Some(true),
            _ => self.refuse_code(&code::SELECT_FORM, span),
        };
        Some((exprs?, rollup?))
    }

    fn order_by(&mut self, order: OrderBy) -> Option<Vec<Order>> {
        let OrderBy { kind, interpolate } = order;
        let plain = refuse_present!(self, &code::SELECT_FORM, None, interpolate => "INTERPOLATE");
        let OrderByKind::Expressions(exprs) = kind else {
            return self.refuse_code(&code::SELECT_FORM, None);
        };
        let order = self.every(exprs, Self::order);
        plain?;
        order
    }

    pub(crate) fn order(&mut self, order: OrderByExpr) -> Option<Order> {
        let OrderByExpr { expr, options: OrderByOptions { sort, nulls_first }, with_fill } = order;
        let plain = refuse_present!(self, &code::SELECT_FORM, None,
            nulls_first => "NULLS FIRST or LAST",
            with_fill => "WITH FILL",
        );
        let descending = match sort {
            None | Some(OrderBySort::Asc) => Some(false),
            Some(OrderBySort::Desc) => Some(true),
            Some(OrderBySort::Using(_)) => self.refuse_code(&code::SELECT_FORM, None),
        };
        let expr = self.expr(expr);
        plain?;
        Some(Order { expr: expr?, descending: descending? })
    }

    fn limit(&mut self, clause: LimitClause) -> Option<Limit> {
        let (rows, offset) = match clause {
            LimitClause::LimitOffset { limit: Some(limit), offset, limit_by } => {
                refuse_present!(self, &code::SELECT_FORM, None, limit_by => "LIMIT … BY")?;
                match offset {
                    None => (limit, None),
                    Some(Offset { value, rows: OffsetRows::None }) => (limit, Some(value)),
                    Some(_) => return self.refuse_code(&code::SELECT_FORM, None),
                }
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (limit, Some(offset)),
            LimitClause::LimitOffset { limit: None, .. } => {
                return self.refuse_code(&code::SELECT_FORM, None);
            }
        };
        let rows = self.row_count(rows);
        let offset = self.maybe(offset, Self::row_count);
        Some(Limit { rows: rows?, offset: offset? })
    }

    fn row_count(&mut self, expr: Ast) -> Option<String> {
        if let Ast::Value(value) = expr
            && let Value::Number(digits, _) = value.value
            && digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some(digits);
        }
        self.refuse(
            Finding::new(&code::SELECT_FORM).message("LIMIT with something other than digits"),
        )
    }
}

/// `FROM DUAL` reads nothing; with backticks it is a table of that name.
fn is_dual(name: &ObjectName) -> bool {
    let [sqlparser::ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return false;
    };
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("DUAL")
}
