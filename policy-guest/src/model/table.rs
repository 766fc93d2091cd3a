//! Table definitions.

use super::{Expr, Literal};
use crate::charset::{Charset, Collation};
use crate::names::{Name, TableName, WideName};

/// `CREATE TABLE IF NOT EXISTS`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateTable {
    pub(crate) table: TableName,
    pub(crate) body: TableBody,
}

/// What the table looks like.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableBody {
    Like(TableName),
    Defined { columns: Vec<ColumnDef>, elements: Vec<Element>, options: Vec<TableOption> },
}

/// A column; its attributes in the author's order, which servers accept in any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnDef {
    pub(crate) name: Name,
    pub(crate) data_type: Type,
    pub(crate) attributes: Vec<Attribute>,
}

/// A data type: a name from the list in `types`, what stands in its parentheses, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) arguments: TypeArguments,
    pub(crate) attributes: Vec<TypeAttribute>,
}

/// What stands in a type's parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypeArguments {
    None,
    /// Length, precision and scale.
    Numbers(Vec<u32>),
    /// Members of ENUM and SET.
    Members(Vec<String>),
}

/// What may follow a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeAttribute {
    Unsigned,
    Signed,
    Zerofill,
    Binary,
    Charset(Charset),
}

/// An attribute of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Null,
    NotNull,
    Default(Default),
    /// ON UPDATE CURRENT_TIMESTAMP, with the digits of the fraction.
    OnUpdateNow(Option<u32>),
    AutoIncrement,
    PrimaryKey,
    Unique,
    Comment(String),
    Collate(Collation),
    References(ForeignKey),
    Check(Option<WideName>, Expr),
    Generated {
        expr: Expr,
        stored: Option<bool>,
    },
    /// SERIAL DEFAULT VALUE
    SerialDefault,
}

/// A column's default.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Default {
    Literal(Literal),
    /// A number with its sign.
    Signed(bool, String),
    /// CURRENT_TIMESTAMP, with the digits of the fraction.
    Now(Option<u32>),
    /// An expression in parentheses.
    Expr(Expr),
}

/// What a table has besides columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Element {
    Index(Index),
    ForeignKey {
        constraint: Option<WideName>,
        index: Option<WideName>,
        columns: Vec<Name>,
        key: ForeignKey,
    },
    Check {
        constraint: Option<WideName>,
        expr: Expr,
    },
}

/// An index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Index {
    pub(crate) kind: IndexKind,
    pub(crate) constraint: Option<WideName>,
    pub(crate) name: Option<WideName>,
    /// USING before the columns.
    pub(crate) using: Option<&'static str>,
    pub(crate) columns: Vec<IndexColumn>,
    pub(crate) options: Vec<IndexOption>,
}

/// What an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Primary,
    Unique,
    Plain,
    Fulltext,
    Spatial,
}

/// A column of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexColumn {
    pub(crate) name: Name,
    /// Characters or bytes of a prefix.
    pub(crate) prefix: Option<u32>,
    pub(crate) descending: Option<bool>,
}

/// What may follow an index's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexOption {
    Using(&'static str),
    Comment(String),
    /// Kilobytes.
    KeyBlockSize(u32),
}

/// What a foreign key points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) table: TableName,
    pub(crate) columns: Vec<Name>,
    pub(crate) on_delete: Option<ReferentialAction>,
    pub(crate) on_update: Option<ReferentialAction>,
}

/// What happens to rows that point at a changed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferentialAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// A table option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableOption {
    InnoDb,
    Charset(Charset),
    Collate(Collation),
    Comment(String),
    /// An option whose value is a number, or one of a few words.
    Plain(&'static str, String),
}
