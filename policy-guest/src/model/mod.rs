//! What policy v1 allows, as types that can hold nothing else.
//!
//! The parser's AST is converted into this model (`statements`, `convert`), and both the decision
//! and the normalised text are made from it. There are no spans here: the same statement written
//! twice is equal, which is how printed text is checked to read back as what was understood.

mod expression;
mod query;
mod table;

pub(crate) use expression::{
    Aggregate, Binary, Branch, Column, Expr, Literal, Quantifier, Test, Text, TrimSide, Unary,
};
pub(crate) use query::{
    Arm, Derived, Join, JoinCondition, JoinKind, Limit, Order, Query, Select, SelectItem, Source,
    TableRef, Union,
};
pub(crate) use table::{
    Attribute, ColumnDef, CreateTable, Default, Element, ForeignKey, Index, IndexColumn, IndexKind,
    IndexOption, ReferentialAction, TableBody, TableOption, Type, TypeArguments, TypeAttribute,
};

use crate::names::{Name, TableName};

/// A statement of one of the four kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    CreateTable(CreateTable),
    DropTable(DropTable),
    Insert(Insert),
    Delete(Delete),
}

/// `DROP TABLE IF EXISTS`. RESTRICT and CASCADE do nothing in MySQL and are not carried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DropTable {
    pub(crate) tables: Vec<TableName>,
}

/// `INSERT IGNORE`, or `INSERT … ON DUPLICATE KEY UPDATE`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    pub(crate) ignore: bool,
    pub(crate) table: TableName,
    /// None where the author gave no list.
    pub(crate) columns: Option<Vec<Name>>,
    pub(crate) rows: Rows,
    pub(crate) on_duplicate: Vec<(Name, Update)>,
}

/// Where an INSERT's rows come from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rows {
    Values(Vec<Vec<Expr>>),
    Set(Vec<(Name, Expr)>),
    Query(Box<Query>),
}

/// What ON DUPLICATE KEY UPDATE may set a column to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// The column itself: nothing changes.
    Same(Column),
    /// An expression that reads no stored column.
    Value(Expr),
}

/// `DELETE … WHERE`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delete {
    /// From one table.
    Single { table: TableName, alias: Option<Name>, condition: Expr },
    /// From some of the tables that are joined.
    Multi { targets: Vec<Target>, from: Vec<TableRef>, condition: Expr },
}

/// A table of a multi-table DELETE that loses rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    Table(TableName),
    Alias(Name),
}
