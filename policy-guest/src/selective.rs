//! Does a DELETE's condition select rows?
//!
//! In every alternative of the condition there has to be a comparison of a column with something
//! other than itself, or a sub-query that reads a table. NOT is followed inwards, so that
//! `NOT (id = 1 OR …)` is read as the conjunction it is.

use crate::model::{
    Arm, Binary, Column, Derived, Expr, Literal, Query, Source, TableRef, Test, Unary,
};
use crate::pattern;

/// Is there something selective in every alternative?
pub(crate) fn is_selective(condition: &Expr) -> bool {
    selects(condition, true)
}

/// Is a comparison of constants among the conditions? It decides nothing, so it is either a
/// mistake or meant to be misread.
pub(crate) fn has_constant_comparison(condition: &Expr) -> bool {
    match condition {
        Expr::Not(expr) | Expr::Unary(Unary::Bang, expr) => has_constant_comparison(expr),
        Expr::Chain(first, rest) => match rest.first() {
            Some((Binary::And | Binary::Or | Binary::Xor, _)) => {
                has_constant_comparison(first)
                    || rest.iter().any(|(_, expr)| has_constant_comparison(expr))
            }
            Some((operator, _)) if operator.compares() => {
                is_constant(first) && rest.iter().all(|(_, expr)| is_constant(expr))
            }
            _ => false,
        },
        Expr::Between { expr, low, high, .. } => {
            is_constant(expr) && is_constant(low) && is_constant(high)
        }
        Expr::InList { expr, items, .. } => is_constant(expr) && items.iter().all(is_constant),
        Expr::Like { expr, pattern, .. } | Expr::Regexp { expr, pattern, .. } => {
            is_constant(expr) && is_constant(pattern)
        }
        _ => false,
    }
}

fn is_constant(expr: &Expr) -> bool {
    !crate::reads::reads_column(expr)
}

/// `truth` is false under an odd number of NOTs.
fn selects(condition: &Expr, truth: bool) -> bool {
    match condition {
        Expr::Not(expr) | Expr::Unary(Unary::Bang, expr) => selects(expr, !truth),
        Expr::Chain(first, rest) => match (rest.first(), truth) {
            (Some((Binary::And, _)), true) | (Some((Binary::Or, _)), false) => {
                selects(first, truth) || rest.iter().any(|(_, expr)| selects(expr, truth))
            }
            (Some((Binary::Or, _)), true) | (Some((Binary::And, _)), false) => {
                selects(first, truth) && rest.iter().all(|(_, expr)| selects(expr, truth))
            }
            (Some((Binary::Xor, _)), _) => {
                selects(first, truth) && rest.iter().all(|(_, expr)| selects(expr, truth))
            }
            (Some((operator, right)), _) if operator.compares() && rest.len() == 1 => {
                differs(first, right) && !always_holds(first, *operator, right)
            }
            _ => false,
        },
        Expr::Is { expr, negated, test } => match test {
            Test::Null | Test::Unknown => matches!(**expr, Expr::Column(_)) && *negated != truth,
            Test::True => selects(expr, truth != *negated),
            Test::False => selects(expr, truth == *negated),
        },
        Expr::InList { expr, negated, items } => {
            let differing = |item| differs(expr, item);
            if *negated == truth {
                items.iter().any(differing)
            } else {
                items.iter().all(differing)
            }
        }
        Expr::InQuery { query, .. } => reads_table(query),
        Expr::Quantified { expr, query, .. } => !columns(expr).is_empty() && reads_table(query),
        Expr::Exists(query) => reads_table(query),
        Expr::Between { expr, low, high, .. } => differs(expr, low) && differs(expr, high),
        Expr::Like { expr, pattern, .. } => {
            !columns(expr).is_empty() && pattern_of(pattern).is_some_and(pattern::like_selects)
        }
        Expr::Regexp { expr, pattern, .. } => {
            !columns(expr).is_empty() && pattern_of(pattern).is_some_and(pattern::regexp_selects)
        }
        _ => false,
    }
}

/// The text of a pattern that is a literal.
fn pattern_of(pattern: &Expr) -> Option<&str> {
    match pattern {
        Expr::Literal(Literal::String(text)) => Some(&text.value),
        Expr::Literal(Literal::National(text)) => Some(text),
        Expr::Unary(Unary::Binary, expr) | Expr::Collate(expr, _) | Expr::Cast(expr, _) => {
            pattern_of(expr)
        }
        _ => None,
    }
}

/// Does one side read a column the other does not?
fn differs(left: &Expr, right: &Expr) -> bool {
    let (left, right) = (columns(left), columns(right));
    let lacks = |those: &[&Column], these: &[&Column]| {
        these.iter().any(|column| !those.iter().any(|other| same(column, other)))
    };
    lacks(&right, &left) || lacks(&left, &right)
}

/// May they be the same column? Without a qualifier a name may stand for any table's.
fn same(one: &Column, other: &Column) -> bool {
    one.name.same_column(&other.name)
        && match (&one.qualifier, &other.qualifier) {
            (Some(one), Some(other)) => one.as_str().eq_ignore_ascii_case(other.as_str()),
            _ => true,
        }
}

/// The columns an expression's value depends on. Where a constant decides alone (`id * 0`,
/// `IF(1, 1, id)`), there are none.
fn columns(expr: &Expr) -> Vec<&Column> {
    let mut found = Vec::new();
    collect(expr, &mut found);
    found
}

fn collect<'a>(expr: &'a Expr, found: &mut Vec<&'a Column>) {
    match expr {
        Expr::Column(column) => found.push(column),
        Expr::Unary(_, expr)
        | Expr::Cast(expr, _)
        | Expr::ConvertUsing(expr, _)
        | Expr::Collate(expr, _)
        | Expr::Interval(expr, _)
        | Expr::Extract(_, expr)
        | Expr::Not(expr)
        | Expr::Is { expr, .. } => collect(expr, found),
        Expr::Chain(first, rest) => collect_chain(first, rest, found),
        Expr::Row(items)
        | Expr::CharUsing(items, _)
        | Expr::IntervalIndex(items)
        | Expr::UnitCall(_, _, items) => {
            for item in items {
                collect(item, found);
            }
        }
        Expr::Call(function, items) => {
            // The first argument decides IF, and COALESCE and IFNULL when it is a constant.
            let decided = matches!(function.name, "IF" | "IFNULL" | "COALESCE")
                && items.first().is_some_and(|first| columns(first).is_empty());
            if !decided {
                for item in items {
                    collect(item, found);
                }
            }
        }
        Expr::Case { operand, branches, otherwise } => {
            let tested = operand.as_deref().map(columns).unwrap_or_default();
            let decided = tested.is_empty()
                && branches.first().is_some_and(|branch| columns(&branch.when).is_empty());
            if !decided {
                found.extend(tested);
                for branch in branches {
                    collect(&branch.when, found);
                    collect(&branch.then, found);
                }
                if let Some(otherwise) = otherwise {
                    collect(otherwise, found);
                }
            }
        }
        Expr::Position(one, other) => {
            collect(one, found);
            collect(other, found);
        }
        Expr::Substring { expr, from, .. } => {
            collect(expr, found);
            collect(from, found);
        }
        Expr::Trim { expr, .. } => collect(expr, found),
        Expr::Literal(_)
        | Expr::Default
        | Expr::DefaultOf(_)
        | Expr::Inserted(_)
        | Expr::InList { .. }
        | Expr::InQuery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. }
        | Expr::Quantified { .. }
        | Expr::Exists(_)
        | Expr::Subquery(_)
        | Expr::Aggregate(_) => {}
    }
}

/// The operands of a chain, unless a zero among them decides alone.
fn collect_chain<'a>(first: &'a Expr, rest: &'a [(Binary, Expr)], found: &mut Vec<&'a Column>) {
    let annuls = rest.iter().any(|(operator, right)| {
        matches!(operator, Binary::Multiply | Binary::BitAnd) && (is_zero(right) || is_zero(first))
    });
    if !annuls {
        collect(first, found);
        for (_, expr) in rest {
            collect(expr, found);
        }
    }
}

fn is_zero(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Literal::Number(digits))
        if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')))
}

/// `LENGTH(name) >= 0` and its kin, whatever the column holds.
fn always_holds(left: &Expr, operator: Binary, right: &Expr) -> bool {
    let never_negative = |expr: &Expr| {
        matches!(expr, Expr::Call(function, _) if matches!(function.name,
            "LENGTH" | "CHAR_LENGTH" | "CHARACTER_LENGTH" | "OCTET_LENGTH" | "BIT_LENGTH" | "ABS"
            | "BIT_COUNT" | "CRC32" | "SQRT" | "EXP" | "ISNULL"))
    };
    let negative = |expr: &Expr| matches!(expr, Expr::Unary(Unary::Minus, _));
    match operator {
        Binary::GreaterOrEqual => never_negative(left) && (is_zero(right) || negative(right)),
        Binary::Greater | Binary::NotEqual => never_negative(left) && negative(right),
        Binary::LessOrEqual => never_negative(right) && (is_zero(left) || negative(left)),
        Binary::Less => never_negative(right) && negative(left),
        _ => false,
    }
}

/// Does the query read a table at all?
fn reads_table(query: &Query) -> bool {
    std::iter::once(&query.first).chain(query.unions.iter().map(|(_, arm)| arm)).all(
        |arm| match arm {
            Arm::Select(select) => match &select.from {
                Source::Nothing | Source::Dual => false,
                Source::Tables(tables) => tables.iter().any(holds_table),
            },
            Arm::Query(query) => reads_table(query),
        },
    )
}

fn holds_table(table: &TableRef) -> bool {
    std::iter::once(&table.table).chain(table.joins.iter().map(|join| &join.table)).any(|derived| {
        match derived {
            Derived::Table { .. } => true,
            Derived::Query { query, .. } => reads_table(query),
            Derived::Joined(inner) => holds_table(inner),
        }
    })
}
