//! Does a DELETE's condition select rows?
//!
//! In every alternative of the condition there has to be a comparison of a column with something
//! other than itself, or a sub-query that reads a table. NOT is followed inwards, so that
//! `NOT (id = 1 OR …)` is read as the conjunction it is.

use std::collections::BTreeSet;

use crate::model::{
    Arm, Binary, Column, Derived, Expr, JoinCondition, Literal, Query, SelectItem, Source,
    TableRef, Test, Unary,
};
use crate::names::Name;
use crate::pattern;
use crate::reads;
use crate::subject::{subject, subject_of_equality};

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
    !reads::reads_column(expr)
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
                let equality = matches!(operator, Binary::Equal | Binary::NullSafeEqual);
                differs(first, right, if equality { subject_of_equality } else { subject })
            }
            _ => false,
        },
        Expr::Is { expr, negated, test } => match test {
            Test::Null | Test::Unknown => matches!(**expr, Expr::Column(_)) && *negated != truth,
            Test::True | Test::False if matches!(**expr, Expr::Column(_)) => true,
            Test::True => selects(expr, truth != *negated),
            Test::False => selects(expr, truth == *negated),
        },
        Expr::InList { expr, negated, items } => {
            let differing = |item| differs(expr, item, subject_of_equality);
            if *negated == truth {
                items.iter().any(differing)
            } else {
                items.iter().all(differing)
            }
        }
        Expr::InQuery { expr, query, .. } | Expr::Quantified { expr, query, .. } => {
            !subject(expr).is_empty() && selects_rows(query)
        }
        Expr::Exists(query) => reads_table(query) && (truth || has_condition(query)),
        Expr::Between { expr, low, high, .. } => {
            differs(expr, low, subject) && differs(expr, high, subject)
        }
        Expr::Like { expr, pattern, .. } => {
            !subject(expr).is_empty() && pattern_of(pattern).is_some_and(pattern::like_selects)
        }
        Expr::Regexp { expr, pattern, .. } => {
            !subject(expr).is_empty() && pattern_of(pattern).is_some_and(pattern::regexp_selects)
        }
        _ => false,
    }
}

/// The text of a pattern that is a literal.
fn pattern_of(pattern: &Expr) -> Option<&str> {
    match pattern {
        Expr::Literal(Literal::String(text)) => Some(&text.value),
        Expr::Literal(Literal::National(text)) => Some(text),
        Expr::Unary(Unary::Binary, expr) | Expr::Collate(expr, _) => pattern_of(expr),
        _ => None,
    }
}

/// Is one side about a column that the other does not read?
fn differs(left: &Expr, right: &Expr, of: for<'a> fn(&'a Expr) -> Vec<&'a Column>) -> bool {
    let about = |side: &Expr, other: &Expr| {
        let constant_query = matches!(other, Expr::Subquery(query) if !selects_rows(query));
        !constant_query
            && of(side)
                .into_iter()
                .any(|column| !reads::mentions(other, &|known| same(column, known)))
    };
    about(left, right) || about(right, left)
}

/// May they be the same column? Without a qualifier a name may stand for any table's.
fn same(one: &Column, other: &Column) -> bool {
    one.name.same_column(&other.name)
        && match (&one.qualifier, &other.qualifier) {
            (Some(one), Some(other)) => one.as_str().eq_ignore_ascii_case(other.as_str()),
            _ => true,
        }
}

/// Which of the joined tables stand in a comparison with something else. A target of a multi-table
/// DELETE that stands in none loses all of its rows to a condition on another table.
#[derive(Default)]
pub(crate) struct Compared<'a> {
    /// Something is compared that may be of any table.
    any: bool,
    tables: BTreeSet<&'a str>,
}

impl<'a> Compared<'a> {
    pub(crate) fn of(from: &'a [TableRef], condition: &'a Expr) -> Self {
        let mut compared = Self::default();
        compared.see(condition);
        for join in from.iter().flat_map(|table| &table.joins) {
            match &join.condition {
                JoinCondition::On(expr) => compared.see(expr),
                JoinCondition::Using(_) => compared.any = true,
                JoinCondition::None => {}
            }
        }
        compared
    }

    pub(crate) fn binds(&self, target: &Name) -> bool {
        self.any || self.tables.contains(target.as_str())
    }

    fn see(&mut self, condition: &'a Expr) {
        match condition {
            Expr::Not(expr) => self.see(expr),
            Expr::Chain(first, rest) => match rest.first() {
                Some((Binary::And | Binary::Or | Binary::Xor, _)) => {
                    self.see(first);
                    for (_, expr) in rest {
                        self.see(expr);
                    }
                }
                Some((operator, right)) if operator.compares() => {
                    self.columns(subject_of_equality(first));
                    self.columns(subject_of_equality(right));
                }
                _ => {}
            },
            Expr::Is { expr, .. }
            | Expr::InList { expr, .. }
            | Expr::InQuery { expr, .. }
            | Expr::Quantified { expr, .. }
            | Expr::Between { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::Regexp { expr, .. } => self.columns(subject(expr)),
            Expr::Exists(_) => self.any = true,
            _ => {}
        }
    }

    fn columns(&mut self, columns: Vec<&'a Column>) {
        for column in columns {
            match &column.qualifier {
                Some(table) => {
                    self.tables.insert(table.as_str());
                }
                None => self.any = true,
            }
        }
    }
}

/// Does the query give rows of a table, rather than of the row that is judged?
fn selects_rows(query: &Query) -> bool {
    reads_table(query)
        && std::iter::once(&query.first).chain(query.unions.iter().map(|(_, arm)| arm)).all(|arm| {
            match arm {
                Arm::Select(select) => select.items.iter().all(|item| match item {
                    SelectItem::Expr(expr, _) => {
                        !reads::mentions(expr, &|column| is_outer(column, &select.from))
                    }
                    SelectItem::All | SelectItem::AllOf(..) => true,
                }),
                Arm::Query(query) => selects_rows(query),
            }
        })
}

/// Is the column qualified with something that is not among the tables read here?
fn is_outer(column: &Column, from: &Source) -> bool {
    let Some(qualifier) = &column.qualifier else {
        return false;
    };
    let Source::Tables(tables) = from else {
        return true;
    };
    !tables.iter().any(|table| names(table, qualifier))
}

fn names(table: &TableRef, qualifier: &Name) -> bool {
    std::iter::once(&table.table).chain(table.joins.iter().map(|join| &join.table)).any(|derived| {
        match derived {
            Derived::Table { alias: Some(alias), .. } | Derived::Query { alias, .. } => {
                alias == qualifier
            }
            Derived::Table { name, alias: None } => name.as_str() == qualifier.as_str(),
            Derived::Joined(inner) => names(inner, qualifier),
        }
    })
}

/// Does the query ask something of its rows? That none of them exists is no condition otherwise.
fn has_condition(query: &Query) -> bool {
    matches!(&query.first, Arm::Select(select) if select.condition.as_ref().is_some_and(|condition| {
        !has_constant_comparison(condition) && reads::mentions(condition, &|_| true)
    }))
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
