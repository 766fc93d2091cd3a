//! Queries: the SELECT of an INSERT, sub-queries, and what a multi-table DELETE joins.

use super::Expr;
use crate::names::{Name, TableName};

/// A query expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    /// The first SELECT and those that UNION adds, grouped from the left.
    pub(crate) first: Arm,
    pub(crate) unions: Vec<(Union, Arm)>,
    pub(crate) order: Vec<Order>,
    pub(crate) limit: Option<Limit>,
}

/// An arm of a UNION: a SELECT, or a query in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arm {
    Select(Box<Select>),
    Query(Box<Query>),
}

/// UNION, with or without duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Union {
    All,
    Distinct,
}

/// A SELECT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub(crate) distinct: bool,
    pub(crate) items: Vec<SelectItem>,
    pub(crate) from: Source,
    pub(crate) condition: Option<Expr>,
    pub(crate) group: Vec<Expr>,
    pub(crate) rollup: bool,
    pub(crate) having: Option<Expr>,
}

/// What a SELECT reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Nothing,
    Dual,
    Tables(Vec<TableRef>),
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SelectItem {
    Expr(Expr, Option<Name>),
    /// `*`
    All,
    /// `t.*`; true when the catalog was named.
    AllOf(bool, Name),
}

/// A table and what is joined to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableRef {
    pub(crate) table: Derived,
    pub(crate) joins: Vec<Join>,
}

/// A table, or something that stands for one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Derived {
    Table { name: TableName, alias: Option<Name> },
    Query { query: Box<Query>, alias: Name },
    Joined(Box<TableRef>),
}

/// A join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) table: Derived,
    pub(crate) condition: JoinCondition,
}

/// How rows without a partner are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Cross,
}

/// What rows have to agree in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JoinCondition {
    On(Expr),
    Using(Vec<Name>),
    /// CROSS JOIN only.
    None,
}

/// ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Order {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
}

/// LIMIT, in rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) rows: String,
    pub(crate) offset: Option<String>,
}
