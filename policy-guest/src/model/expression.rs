//! Expressions.

use super::Type;
use super::{Order, Query};
use crate::charset::{Charset, Collation};
use crate::functions::{Function, Unit};
use crate::names::Name;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Literal),
    Column(Column),
    /// `DEFAULT`, the column's own.
    Default,
    /// `DEFAULT(column)`
    DefaultOf(Column),
    /// `VALUES(column)`, the value that would have been inserted.
    Inserted(Name),
    Unary(Unary, Box<Expr>),
    Not(Box<Expr>),
    /// Operators of one precedence, grouped from the left.
    Chain(Box<Expr>, Vec<(Binary, Expr)>),
    Is {
        expr: Box<Expr>,
        negated: bool,
        test: Test,
    },
    InList {
        expr: Box<Expr>,
        negated: bool,
        items: Vec<Expr>,
    },
    InQuery {
        expr: Box<Expr>,
        negated: bool,
        query: Box<Query>,
    },
    Between {
        expr: Box<Expr>,
        negated: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    Like {
        expr: Box<Expr>,
        negated: bool,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
    },
    Regexp {
        expr: Box<Expr>,
        negated: bool,
        pattern: Box<Expr>,
    },
    Quantified {
        expr: Box<Expr>,
        operator: Binary,
        quantifier: Quantifier,
        query: Box<Query>,
    },
    Exists(Box<Query>),
    Subquery(Box<Query>),
    Row(Vec<Expr>),
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<Branch>,
        otherwise: Option<Box<Expr>>,
    },
    Call(&'static Function, Vec<Expr>),
    Aggregate(Box<Aggregate>),
    Cast(Box<Expr>, Type),
    ConvertUsing(Box<Expr>, Charset),
    CharUsing(Vec<Expr>, Option<Charset>),
    Collate(Box<Expr>, Collation),
    /// An operand of date arithmetic.
    Interval(Box<Expr>, Unit),
    /// `INTERVAL(n, a, b, …)`, the index function.
    IntervalIndex(Vec<Expr>),
    /// `TIMESTAMPDIFF` and `TIMESTAMPADD`.
    UnitCall(&'static Function, Unit, Vec<Expr>),
    Extract(Unit, Box<Expr>),
    Position(Box<Expr>, Box<Expr>),
    Substring {
        expr: Box<Expr>,
        from: Box<Expr>,
        length: Option<Box<Expr>>,
    },
    Trim {
        side: Option<TrimSide>,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
}

/// A literal, by the way it was written: servers tell `0x41` and `X'41'` apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Literal {
    Null,
    True,
    False,
    /// Digits, point and exponent as written.
    Number(String),
    String(Text),
    National(String),
    Hex {
        introducer: Option<Charset>,
        digits: String,
    },
    HexNumber {
        introducer: Option<Charset>,
        digits: String,
    },
    Bit {
        introducer: Option<Charset>,
        digits: String,
    },
    BitNumber {
        introducer: Option<Charset>,
        digits: String,
    },
    Date(String),
    Time(String),
    Timestamp(String),
}

/// A string's value and the character set its author said it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) introducer: Option<Charset>,
    pub(crate) value: String,
}

/// A column, qualified as far as the author did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// Qualified with the allowed catalog.
    pub(crate) in_catalog: bool,
    /// A table or an alias.
    pub(crate) qualifier: Option<Name>,
    pub(crate) name: Name,
}

/// Operators before their operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Plus,
    Minus,
    BitNot,
    /// `!`
    Bang,
    /// `BINARY`
    Binary,
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    Xor,
    And,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitXor,
}

impl Binary {
    /// How tightly it binds: the levels of the manual's "Operator Precedence", lowest first, as
    /// far as all supported servers agree.
    pub(crate) const fn level(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::Xor => 2,
            Self::And => 3,
            Self::Equal
            | Self::NullSafeEqual
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual => 5,
            Self::BitOr => 7,
            Self::BitAnd => 8,
            Self::ShiftLeft | Self::ShiftRight => 9,
            Self::Add | Self::Subtract => 10,
            Self::Multiply | Self::Divide | Self::IntegerDivide | Self::Modulo => 11,
            Self::BitXor => 12,
        }
    }

    /// Is it a comparison?
    pub(crate) const fn compares(self) -> bool {
        self.level() == 5
    }
}

/// What IS asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Null,
    True,
    False,
    Unknown,
}

/// `ANY` (or `SOME`) and `ALL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Any,
    All,
}

/// WHEN … THEN …
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Branch {
    pub(crate) when: Expr,
    pub(crate) then: Expr,
}

/// A function over the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) function: &'static Function,
    pub(crate) distinct: bool,
    /// Empty for `COUNT(*)`.
    pub(crate) args: Vec<Expr>,
    /// GROUP_CONCAT only.
    pub(crate) order: Vec<Order>,
    /// GROUP_CONCAT only.
    pub(crate) separator: Option<String>,
}

/// Which end TRIM works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrimSide {
    Both,
    Leading,
    Trailing,
}
