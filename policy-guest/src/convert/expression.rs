//! Expressions.

use sqlparser::ast::{
    BinaryOperator, CastKind, DateTimeField, Expr as Ast, ExtractSyntax, Ident, InTarget, Interval,
    ObjectName, Spanned, TrimWhereField, TypedString, UnaryOperator,
};

use super::refuse_present;
use crate::context::Context;
use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::functions::{Function, NILADIC, Unit};
use crate::lexer::span_of;
use crate::model::{Binary, Branch, Column, Expr, Literal, Quantifier, Test, TrimSide, Unary};

/// Binding levels of what is not an operator between two operands; see [`Binary::level`].
mod level {
    /// Below every operator.
    pub(super) const NOTHING: u8 = 0;
    pub(super) const NOT: u8 = 4;
    pub(super) const COMPARISON: u8 = 5;
    pub(super) const PREDICATE: u8 = 6;
    /// Above every predicate: what MySQL's grammar calls a `bit_expr`.
    pub(super) const BIT_EXPR: u8 = 7;
    pub(super) const UNARY: u8 = 13;
    pub(super) const OPERAND: u8 = 14;
}

/// How tightly an unparenthesised expression holds together.
fn binding(expr: &Ast) -> u8 {
    match expr {
        // To servers what follows the `+` reaches as far as it can.
        Ast::BinaryOp { left, .. } if matches!(**left, Ast::Interval(_)) => level::NOTHING,
        Ast::BinaryOp { op, .. } => binary(op).map_or(level::NOT, Binary::level),
        Ast::UnaryOp { op: UnaryOperator::Not, .. } => level::NOT,
        Ast::UnaryOp { .. } | Ast::Cast { kind: CastKind::DoubleColon, .. } => level::UNARY,
        Ast::IsFalse(_)
        | Ast::IsNotFalse(_)
        | Ast::IsTrue(_)
        | Ast::IsNotTrue(_)
        | Ast::IsNull(_)
        | Ast::IsNotNull(_)
        | Ast::IsUnknown(_)
        | Ast::IsNotUnknown(_)
        | Ast::AnyOp { .. }
        | Ast::AllOp { .. } => level::COMPARISON,
        Ast::In { .. } | Ast::Between { .. } | Ast::Like { .. } | Ast::RLike { .. } => {
            level::PREDICATE
        }
        _ => level::OPERAND,
    }
}

const fn binary(op: &BinaryOperator) -> Option<Binary> {
    Some(match op {
        BinaryOperator::Or => Binary::Or,
        BinaryOperator::Xor => Binary::Xor,
        BinaryOperator::And => Binary::And,
        BinaryOperator::Eq => Binary::Equal,
        BinaryOperator::Spaceship => Binary::NullSafeEqual,
        BinaryOperator::NotEq => Binary::NotEqual,
        BinaryOperator::Lt => Binary::Less,
        BinaryOperator::LtEq => Binary::LessOrEqual,
        BinaryOperator::Gt => Binary::Greater,
        BinaryOperator::GtEq => Binary::GreaterOrEqual,
        BinaryOperator::BitwiseOr => Binary::BitOr,
        BinaryOperator::BitwiseAnd => Binary::BitAnd,
        BinaryOperator::PGBitwiseShiftLeft => Binary::ShiftLeft,
        BinaryOperator::PGBitwiseShiftRight => Binary::ShiftRight,
        BinaryOperator::Plus => Binary::Add,
        BinaryOperator::Minus => Binary::Subtract,
        BinaryOperator::Multiply => Binary::Multiply,
        BinaryOperator::Divide => Binary::Divide,
        // See parse: what DIV travels as.
        BinaryOperator::StringConcat => Binary::IntegerDivide,
        BinaryOperator::Modulo => Binary::Modulo,
        BinaryOperator::BitwiseXor => Binary::BitXor,
        _ => return None,
    })
}

/// Where an expression stands, as far as the parser recorded it.
fn place(expr: &Ast) -> Option<Span> {
    span_of(expr.span())
}

impl Context<'_> {
    /// Converts an expression.
    pub(crate) fn expr(&mut self, expr: Ast) -> Option<Expr> {
        match expr {
            Ast::Nested(inner) => self.nested(*inner),
            Ast::Value(value) => self.value(value),
            Ast::Prefixed { prefix, value } => self.introduced(&prefix, *value),
            Ast::TypedString(typed) => self.typed_string(typed),
            Ast::Identifier(ident) => self.bare_name(ident),
            Ast::CompoundIdentifier(parts) => self.column(parts).map(Expr::Column),
            Ast::BinaryOp { left, op: BinaryOperator::Plus, right }
                if matches!(*left, Ast::Interval(_)) && binding(&right) == level::OPERAND =>
            {
                self.interval_first(*left, *right)
            }
            Ast::BinaryOp { .. } => self.chain(expr),
            Ast::UnaryOp { op, expr } => self.unary(op, *expr),
            Ast::Function(function) => self.function(function),
            Ast::Subquery(query) => self.subquery(*query).map(Box::new).map(Expr::Subquery),
            Ast::Exists { subquery, negated } => {
                let exists = Expr::Exists(Box::new(self.subquery(*subquery)?));
                Some(if negated { Expr::Not(Box::new(exists)) } else { exists })
            }
            Ast::Tuple(items) => self.every(items, Self::expr).map(Expr::Row),
            Ast::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                let operand = self.maybe(operand, |context, expr| context.boxed(*expr));
                let branches = self.every(conditions, |context, branch| {
                    let (when, then) =
                        (context.expr(branch.condition), context.expr(branch.result));
                    Some(Branch { when: when?, then: then? })
                });
                let otherwise = self.maybe(else_result, |context, expr| context.boxed(*expr));
                Some(Expr::Case { operand: operand?, branches: branches?, otherwise: otherwise? })
            }
            Ast::Collate { expr, collation } => {
                let expr = self.operand(*expr, level::OPERAND);
                let collation = self.collation(collation);
                Some(Expr::Collate(Box::new(expr?), collation?))
            }
            // Its reach is the rest of the expression to servers; see `chain` for where it may stand.
            Ast::Interval(interval) => {
                let finding = Finding::new(&code::GROUPING)
                    .message("INTERVAL stands behind `+` or `-`, or before `+` and one operand")
                    .near(place(&interval.value));
                self.refuse(finding)
            }
            other => self.predicate(other),
        }
    }

    /// Tests, comparisons with a set, and calls with a syntax of their own.
    fn predicate(&mut self, expr: Ast) -> Option<Expr> {
        match expr {
            Ast::IsNull(expr) => self.is(*expr, false, Test::Null),
            Ast::IsNotNull(expr) => self.is(*expr, true, Test::Null),
            Ast::IsTrue(expr) => self.is(*expr, false, Test::True),
            Ast::IsNotTrue(expr) => self.is(*expr, true, Test::True),
            Ast::IsFalse(expr) => self.is(*expr, false, Test::False),
            Ast::IsNotFalse(expr) => self.is(*expr, true, Test::False),
            Ast::IsUnknown(expr) => self.is(*expr, false, Test::Unknown),
            Ast::IsNotUnknown(expr) => self.is(*expr, true, Test::Unknown),
            Ast::In { expr, target, negated, global: false } => {
                let expr = self.operand(*expr, level::BIT_EXPR).map(Box::new);
                self.membership(expr, target, negated)
            }
            Ast::Between { expr, negated, low, high } => {
                let expr = self.operand(*expr, level::BIT_EXPR);
                let low = self.operand(*low, level::BIT_EXPR);
                let high = self.operand(*high, level::BIT_EXPR);
                Some(Expr::Between {
                    expr: Box::new(expr?),
                    negated,
                    low: Box::new(low?),
                    high: Box::new(high?),
                })
            }
            Ast::Like { negated, any: false, expr, pattern, escape_char } => {
                let expr = self.operand(*expr, level::BIT_EXPR);
                let pattern = self.operand(*pattern, level::UNARY);
                let escape = self.maybe(escape_char, |context, escape| {
                    context.operand(*escape, level::UNARY).map(Box::new)
                });
                Some(Expr::Like {
                    expr: Box::new(expr?),
                    negated,
                    pattern: Box::new(pattern?),
                    escape: escape?,
                })
            }
            Ast::RLike { negated, expr, pattern, regexp: _ } => {
                let expr = self.operand(*expr, level::BIT_EXPR);
                let pattern = self.operand(*pattern, level::BIT_EXPR);
                Some(Expr::Regexp { expr: Box::new(expr?), negated, pattern: Box::new(pattern?) })
            }
            Ast::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(*left, &compare_op, Quantifier::Any, *right)
            }
            Ast::AllOp { left, compare_op, right } => {
                self.quantified(*left, &compare_op, Quantifier::All, *right)
            }
            other => self.special_call(other),
        }
    }

    /// Calls whose arguments are not separated by commas alone.
    fn special_call(&mut self, expr: Ast) -> Option<Expr> {
        match expr {
            Ast::Cast { kind: CastKind::DoubleColon, expr, data_type: _, format: None } => {
                let expr = self.operand(*expr, level::UNARY)?;
                Some(Expr::Unary(Unary::Binary, Box::new(expr)))
            }
            Ast::Cast { kind: CastKind::Cast, expr, data_type, format: None } => {
                let (expr, target) = (self.boxed(*expr), self.cast_type(data_type));
                Some(Expr::Cast(expr?, target?))
            }
            Ast::Convert {
                is_try: false,
                expr,
                data_type,
                charset,
                target_before_value,
                styles,
            } => {
                match (target_before_value, data_type, charset) {
                    // See parse: the form that carries CHAR(… USING cs).
                    (true, None, charset) => {
                        let args = self.every(styles, Self::expr);
                        let charset = self.maybe(charset, Self::charset_named);
                        Some(Expr::CharUsing(args?, charset?))
                    }
                    (false, Some(data_type), None) => {
                        let (expr, target) = (self.boxed(*expr), self.cast_type(data_type));
                        Some(Expr::Cast(expr?, target?))
                    }
                    (false, None, Some(charset)) => {
                        let (expr, charset) = (self.boxed(*expr), self.charset_named(charset));
                        Some(Expr::ConvertUsing(expr?, charset?))
                    }
                    _ => self.refuse_code(&code::EXPRESSION, None),
                }
            }
            Ast::Extract { field, syntax: ExtractSyntax::From, expr } => {
                let (unit, expr) = (self.unit_of(field), self.boxed(*expr));
                Some(Expr::Extract(unit?, expr?))
            }
            Ast::Position { expr, r#in } => {
                let (needle, haystack) = (self.operand(*expr, level::BIT_EXPR), self.boxed(*r#in));
                Some(Expr::Position(Box::new(needle?), haystack?))
            }
            Ast::Substring {
                expr,
                substring_from,
                substring_for,
                special: false,
                shorthand: false,
            } => {
                let expr = self.boxed(*expr);
                let from = self.maybe(substring_from, |context, from| context.boxed(*from));
                let length = self.maybe(substring_for, |context, length| context.boxed(*length));
                Some(Expr::Substring { expr: expr?, from: from??, length: length? })
            }
            Ast::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let side = trim_where.map(|side| match side {
                    TrimWhereField::Both => TrimSide::Both,
                    TrimWhereField::Leading => TrimSide::Leading,
                    TrimWhereField::Trailing => TrimSide::Trailing,
                });
                let what = self.maybe(trim_what, |context, what| context.boxed(*what));
                let expr = self.boxed(*expr);
                Some(Expr::Trim { side, what: what?, expr: expr? })
            }
            other => {
                let finding = Finding::new(&code::EXPRESSION).near(place(&other));
                self.refuse(finding)
            }
        }
    }

    pub(crate) fn boxed(&mut self, expr: Ast) -> Option<Box<Expr>> {
        self.expr(expr).map(Box::new)
    }

    /// An operand that has to hold together at least so tightly, or stand in parentheses.
    fn operand(&mut self, expr: Ast, least: u8) -> Option<Expr> {
        if binding(&expr) < least {
            let finding = Finding::new(&code::GROUPING).near(place(&expr));
            self.findings.push(finding);
            self.expr(expr);
            return None;
        }
        self.expr(expr)
    }

    /// Operators between two operands. The spine to the left may be a thousand long, so it is walked
    /// rather than recursed, one chain per precedence level.
    fn chain(&mut self, expr: Ast) -> Option<Expr> {
        let mut links = Vec::new();
        let mut first = expr;
        while let Ast::BinaryOp { left, op, right } = first {
            links.push((op, right));
            first = *left;
        }
        let first_binding = binding(&first);
        let mut converted = self.expr(first);
        let mut current: Option<(u8, Vec<(Binary, Expr)>)> = None;
        let mut left_binding = first_binding;
        let mut complete = true;
        for (op, right) in links.into_iter().rev() {
            let Some(operator) = binary(&op) else {
                let finding = Finding::new(&code::EXPRESSION)
                    .message(format!("operator `{op}` is not one policy v1 runs"))
                    .near(place(&right));
                self.findings.push(finding);
                complete = false;
                continue;
            };
            let level = operator.level();
            // A test on the left of a comparison (`a IS NULL = b`) groups differently.
            let least = if level == level::COMPARISON
                && left_binding == level::COMPARISON
                && current.as_ref().is_none_or(|(current, _)| *current != level)
            {
                level::PREDICATE
            } else {
                level
            };
            if left_binding < least {
                self.findings.push(Finding::new(&code::GROUPING).near(place(&right)));
                complete = false;
            }
            let right = match *right {
                Ast::Interval(interval) if matches!(operator, Binary::Add | Binary::Subtract) => {
                    self.interval(interval)
                }
                right => self.operand(right, level + 1),
            };
            let (Some(right), Some(_)) = (right, converted.as_ref()) else {
                complete = false;
                continue;
            };
            match &mut current {
                Some((at, tail)) if *at == level => tail.push((operator, right)),
                _ => {
                    let head = converted.take()?;
                    converted = Some(match current.take() {
                        Some((_, tail)) => Expr::Chain(Box::new(head), tail),
                        None => head,
                    });
                    current = Some((level, vec![(operator, right)]));
                }
            }
            left_binding = level;
        }
        let head = converted?;
        complete.then_some(match current {
            Some((_, tail)) => Expr::Chain(Box::new(head), tail),
            None => head,
        })
    }

    /// `INTERVAL 1 DAY + a` is `a + INTERVAL 1 DAY` (manual: "Temporal Intervals").
    fn interval_first(&mut self, interval: Ast, right: Ast) -> Option<Expr> {
        let right = self.boxed(right);
        let interval = match interval {
            Ast::Interval(interval) => self.interval(interval),
            other => self.expr(other),
        };
        Some(Expr::Chain(right?, vec![(Binary::Add, interval?)]))
    }

    fn unary(&mut self, op: UnaryOperator, expr: Ast) -> Option<Expr> {
        let op = match op {
            UnaryOperator::Not => {
                return self.operand(expr, level::NOT).map(Box::new).map(Expr::Not);
            }
            UnaryOperator::Plus => Unary::Plus,
            UnaryOperator::Minus => Unary::Minus,
            UnaryOperator::BitwiseNot => Unary::BitNot,
            UnaryOperator::BangNot => Unary::Bang,
            _ => return self.refuse_code(&code::EXPRESSION, place(&expr)),
        };
        let expr = self.operand(expr, level::UNARY)?;
        Some(Expr::Unary(op, Box::new(expr)))
    }

    fn is(&mut self, expr: Ast, negated: bool, test: Test) -> Option<Expr> {
        let expr = Box::new(self.operand(expr, level::PREDICATE)?);
        Some(Expr::Is { expr, negated, test })
    }

    fn membership(
        &mut self,
        expr: Option<Box<Expr>>,
        target: InTarget,
        negated: bool,
    ) -> Option<Expr> {
        match target {
            InTarget::List(items) => {
                let items = self.unfolded_items(items);
                Some(Expr::InList { expr: expr?, negated, items: items? })
            }
            InTarget::Subquery(query) => {
                let query = self.subquery(*query).map(Box::new);
                Some(Expr::InQuery { expr: expr?, negated, query: query? })
            }
            _ => self.refuse_code(&code::EXPRESSION, None),
        }
    }

    fn quantified(
        &mut self,
        left: Ast,
        operator: &BinaryOperator,
        quantifier: Quantifier,
        right: Ast,
    ) -> Option<Expr> {
        let span = place(&right);
        let expr = self.operand(left, level::COMPARISON).map(Box::new);
        let operator = binary(operator).filter(|operator| operator.compares());
        let (Some(operator), Ast::Subquery(query)) = (operator, right) else {
            return self.refuse_code(&code::EXPRESSION, span);
        };
        let query = Box::new(self.subquery(*query)?);
        Some(Expr::Quantified { expr: expr?, operator, quantifier, query })
    }

    /// A word without qualifier: DEFAULT, a clock, or a column.
    fn bare_name(&mut self, ident: Ident) -> Option<Expr> {
        let span = span_of(ident.span);
        if ident.quote_style.is_none() {
            let word = ident.value.to_ascii_uppercase();
            if word == "DEFAULT" {
                return Some(Expr::Default);
            }
            if NILADIC.contains(&word.as_str())
                && let Some(function) = Function::named(&word)
            {
                self.advise_time(span);
                return Some(Expr::Call(function, Vec::new()));
            }
            if matches!(word.as_str(), "CURRENT_USER" | "CURRENT_ROLE") {
                let finding = Finding::new(&code::FUNCTION)
                    .message(format!("`{word}` reads the session"))
                    .near(span);
                return self.refuse(finding);
            }
        }
        let name = self.name(ident)?;
        Some(Expr::Column(Column { in_catalog: false, qualifier: None, name }))
    }

    pub(crate) fn advise_time(&mut self, span: Option<Span>) {
        let finding = Finding::new(&code::TIME_FUNCTION).near(span);
        self.findings.push(match (self.on_duplicate, self.in_row_value) {
            (true, _) => finding.help(
                "the row is written at every delivery: fine for a column that says when that was",
            ),
            (false, true) => finding,
            (false, false) => finding.help("a constant is repeatable"),
        });
    }

    /// `column`, `table.column` or `catalog.table.column`.
    pub(crate) fn column(&mut self, parts: Vec<Ident>) -> Option<Column> {
        let span = parts.first().and_then(|part| span_of(part.span));
        match <[Ident; 1]>::try_from(parts) {
            Ok([name]) => {
                let name = self.name(name)?;
                Some(Column { in_catalog: false, qualifier: None, name })
            }
            Err(parts) => match <[Ident; 2]>::try_from(parts) {
                Ok([table, name]) => {
                    let (table, name) = (self.alias(table), self.name_after_dot(name));
                    Some(Column { in_catalog: false, qualifier: Some(table?), name: name? })
                }
                Err(parts) => {
                    let Ok([catalog, table, name]) = <[Ident; 3]>::try_from(parts) else {
                        return self.refuse_code(&code::NAME, span);
                    };
                    self.check_catalog(&catalog, &table.value, span)?;
                    let (table, name) = (self.alias(table), self.name_after_dot(name));
                    Some(Column { in_catalog: true, qualifier: Some(table?), name: name? })
                }
            },
        }
    }

    fn typed_string(&mut self, typed: TypedString) -> Option<Expr> {
        let TypedString { data_type, value, uses_odbc_syntax: _ } = typed;
        let sqlparser::ast::Value::SingleQuotedString(handle) = value.value else {
            return self.refuse_code(&code::EXPRESSION, span_of(value.span));
        };
        let text = self.single_string(&handle)?;
        Some(Expr::Literal(match data_type {
            sqlparser::ast::DataType::Date => Literal::Date(text),
            sqlparser::ast::DataType::Time(..) => Literal::Time(text),
            _ => Literal::Timestamp(text),
        }))
    }

    pub(crate) fn interval(&mut self, interval: Interval) -> Option<Expr> {
        let Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let span = place(&value);
        refuse_present!(self, &code::EXPRESSION, span,
            leading_precision => "INTERVAL with a precision",
            last_field => "INTERVAL with two units",
            fractional_seconds_precision => "INTERVAL with a precision",
        )?;
        let value = self.boxed(*value);
        let Some(field) = leading_field else {
            return self.refuse_code(&code::EXPRESSION, span);
        };
        let unit = self.unit_of(field);
        Some(Expr::Interval(value?, unit?))
    }

    fn unit_of(&mut self, field: DateTimeField) -> Option<Unit> {
        let DateTimeField::Custom(ident) = field else {
            return self.refuse_code(&code::EXPRESSION, None);
        };
        self.unit(&ident)
    }

    pub(crate) fn unit(&mut self, ident: &Ident) -> Option<Unit> {
        let unit = Unit::named(&ident.value).filter(|_| ident.quote_style.is_none());
        unit.or_else(|| {
            let finding = Finding::new(&code::EXPRESSION)
                .message(format!(
                    "`{}` is not a unit of time",
                    crate::names::shortened(&ident.value)
                ))
                .near(span_of(ident.span));
            self.refuse(finding)
        })
    }

    fn charset_named(&mut self, name: ObjectName) -> Option<crate::charset::Charset> {
        let span = crate::names::object_span(&name);
        let parts = self.idents(name, span)?;
        match parts.as_slice() {
            [only] => self.charset(&only.value, span),
            _ => self.refuse_code(&code::CHARACTER_SET, span),
        }
    }

    pub(crate) fn collation(&mut self, name: ObjectName) -> Option<crate::charset::Collation> {
        let span = crate::names::object_span(&name);
        let parts = self.idents(name, span)?;
        let collation = match parts.as_slice() {
            [only] => crate::charset::Collation::new(&only.value),
            _ => None,
        };
        collation.or_else(|| self.refuse_code(&code::CHARACTER_SET, span))
    }
}
