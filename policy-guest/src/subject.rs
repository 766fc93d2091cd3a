//! What a comparison is about: columns of a row, in a form that follows their value.
//!
//! A list of tricks that make a condition hold for every row cannot be complete, so this is a list
//! of forms that do not: a column, a column plus or times something, a function that carries its
//! argument's value. Anything else is about nothing.

use crate::model::{Binary, Column, Expr, Literal, Unary};

/// Functions whose value follows their first argument.
const CARRIERS: &[&str] = &[
    "COALESCE",
    "CONCAT",
    "DATE",
    "DATEDIFF",
    "DATE_ADD",
    "DATE_FORMAT",
    "DATE_SUB",
    "DAY",
    "HEX",
    "IFNULL",
    "JSON_EXTRACT",
    "JSON_UNQUOTE",
    "LAST_DAY",
    "LCASE",
    "LOWER",
    "LTRIM",
    "MD5",
    "MOD",
    "MONTH",
    "REPLACE",
    "REVERSE",
    "RTRIM",
    "SHA1",
    "SHA2",
    "SUBSTRING_INDEX",
    "TIME",
    "TO_DAYS",
    "UCASE",
    "UNIX_TIMESTAMP",
    "UPPER",
    "YEAR",
];

/// Functions whose value is never negative: they select by equality only.
const COUNTS: &[&str] = &["ABS", "BIT_COUNT", "CHARACTER_LENGTH", "CHAR_LENGTH", "LENGTH"];

/// The columns a side of a comparison is about; none when it is about nothing.
pub(crate) fn subject(expr: &Expr) -> Vec<&Column> {
    match expr {
        Expr::Column(column) => vec![column],
        Expr::Unary(Unary::Plus | Unary::Minus | Unary::Binary | Unary::BitNot, expr)
        | Expr::Collate(expr, _)
        | Expr::ConvertUsing(expr, _)
        | Expr::Extract(_, expr)
        | Expr::Trim { expr, .. } => subject(expr),
        // A length or a precision could cut the value away.
        Expr::Cast(expr, target) if target.arguments == crate::model::TypeArguments::None => {
            subject(expr)
        }
        Expr::Call(function, arguments) => match arguments.as_slice() {
            [first, ..] if CARRIERS.contains(&function.name) => subject(first),
            [first, length] if matches!(function.name, "LEFT" | "RIGHT") && is_whole(length) => {
                subject(first)
            }
            _ => Vec::new(),
        },
        Expr::UnitCall(_, _, arguments) => arguments.iter().flat_map(subject).collect(),
        Expr::Row(items) => {
            let subjects: Vec<_> = items.iter().map(subject).collect();
            if subjects.iter().any(Vec::is_empty) { Vec::new() } else { subjects.concat() }
        }
        Expr::Chain(first, rest) => sum(first, rest),
        Expr::Case { operand: Some(operand), branches, otherwise } => {
            // The results have to differ, or the column decides nothing.
            let mut results =
                branches.iter().map(|branch| &branch.then).chain(otherwise.as_deref());
            let literal = |expr: &Expr| matches!(expr, Expr::Literal(_));
            let first = results.next();
            let varies = results.any(|result| Some(result) != first && literal(result));
            let plain =
                branches.iter().all(|branch| literal(&branch.when) && literal(&branch.then));
            if varies && plain { subject(operand) } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// The same, for a comparison by equality: counts select there.
pub(crate) fn subject_of_equality(expr: &Expr) -> Vec<&Column> {
    match expr {
        Expr::Call(function, arguments) if COUNTS.contains(&function.name) => {
            arguments.first().map(subject).unwrap_or_default()
        }
        other => subject(other),
    }
}

/// A column, and other columns or constants that leave its value in place.
fn sum<'a>(first: &'a Expr, rest: &'a [(Binary, Expr)]) -> Vec<&'a Column> {
    let mut columns = subject(first);
    for (operator, operand) in rest {
        let carries = match operator {
            Binary::Add | Binary::Subtract => {
                is_whole(operand) || matches!(operand, Expr::Interval(..) | Expr::Column(_))
            }
            Binary::Multiply
            | Binary::Divide
            | Binary::IntegerDivide
            | Binary::Modulo
            | Binary::BitAnd => is_whole(operand),
            _ => false,
        };
        let again = matches!(operand, Expr::Column(column)
            if columns.iter().any(|known| known.name.same_column(&column.name)));
        if columns.is_empty() || !carries || again {
            return Vec::new();
        }
        if let Expr::Column(column) = operand {
            columns.push(column);
        }
    }
    columns
}

/// A number, with its sign, that is not zero however it is written.
fn is_whole(expr: &Expr) -> bool {
    match expr {
        Expr::Unary(Unary::Minus | Unary::Plus, expr) => is_whole(expr),
        Expr::Literal(Literal::Number(digits)) => {
            let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
            mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
        }
        _ => false,
    }
}
