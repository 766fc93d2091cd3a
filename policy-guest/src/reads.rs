//! What an expression reads.
//!
//! ON DUPLICATE KEY UPDATE may set a column to what the row brings, not to what the row holds:
//! `n = n + 1` gives another result at every delivery.

use crate::model::{Column, Expr, Order};

/// Is a stored column read, or a table by a sub-query, anywhere in it?
pub(crate) fn reads_column(expr: &Expr) -> bool {
    holds(expr, &|expr| matches!(expr, Expr::Column(_)) || is_query(expr))
}

/// Is a table read by a sub-query anywhere in it?
pub(crate) fn reads_table(expr: &Expr) -> bool {
    holds(expr, &is_query)
}

/// Is such a column read anywhere in it, sub-queries not entered?
pub(crate) fn mentions(expr: &Expr, such: &dyn Fn(&Column) -> bool) -> bool {
    holds(expr, &|expr| matches!(expr, Expr::Column(column) if such(column)))
}

fn is_query(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InQuery { .. } | Expr::Quantified { .. } | Expr::Exists(_) | Expr::Subquery(_)
    )
}

/// Is there an expression of that kind in it? Sub-queries are not entered.
fn holds(expr: &Expr, kind: &dyn Fn(&Expr) -> bool) -> bool {
    let within = |expr: &Expr| holds(expr, kind);
    let any = |items: &[Expr]| items.iter().any(within);
    let maybe = |expr: Option<&Expr>| expr.is_some_and(within);
    if kind(expr) {
        return true;
    }
    match expr {
        Expr::Column(_)
        | Expr::Exists(_)
        | Expr::Subquery(_)
        | Expr::Literal(_)
        | Expr::Default
        | Expr::DefaultOf(_)
        | Expr::Inserted(_) => false,
        Expr::InQuery { expr, .. } | Expr::Quantified { expr, .. } => within(expr),
        Expr::Unary(_, expr)
        | Expr::Not(expr)
        | Expr::Is { expr, .. }
        | Expr::Cast(expr, _)
        | Expr::ConvertUsing(expr, _)
        | Expr::Collate(expr, _)
        | Expr::Interval(expr, _)
        | Expr::Extract(_, expr) => within(expr),
        Expr::Chain(first, rest) => within(first) || rest.iter().any(|(_, expr)| within(expr)),
        Expr::InList { expr, items, .. } => within(expr) || any(items),
        Expr::Between { expr, low, high, .. } => within(expr) || within(low) || within(high),
        Expr::Like { expr, pattern, escape, .. } => {
            within(expr) || within(pattern) || maybe(escape.as_deref())
        }
        Expr::Regexp { expr, pattern, .. } => within(expr) || within(pattern),
        Expr::Row(items)
        | Expr::Call(_, items)
        | Expr::CharUsing(items, _)
        | Expr::IntervalIndex(items)
        | Expr::UnitCall(_, _, items) => any(items),
        Expr::Case { operand, branches, otherwise } => {
            maybe(operand.as_deref())
                || branches.iter().any(|branch| within(&branch.when) || within(&branch.then))
                || maybe(otherwise.as_deref())
        }
        Expr::Aggregate(aggregate) => {
            any(&aggregate.args) || aggregate.order.iter().any(|Order { expr, .. }| within(expr))
        }
        Expr::Position(needle, haystack) => within(needle) || within(haystack),
        Expr::Substring { expr, from, length } => {
            within(expr) || within(from) || maybe(length.as_deref())
        }
        Expr::Trim { what, expr, .. } => within(expr) || maybe(what.as_deref()),
    }
}
