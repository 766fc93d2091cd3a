//! Expressions and literals.

use super::Printer;
use crate::charset::Charset;
use crate::model::{Aggregate, Binary, Column, Expr, Literal, Quantifier, Test, TrimSide, Unary};

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Column(column) => self.column(column),
            Expr::Default => self.put("DEFAULT"),
            Expr::DefaultOf(column) => self.wrapped("DEFAULT", |printer| printer.column(column)),
            Expr::Inserted(name) => self.wrapped("VALUES", |printer| printer.name(name)),
            Expr::Unary(op, expr) => self.prefixed(unary_text(*op), expr),
            Expr::Not(expr) => self.prefixed("NOT ", expr),
            Expr::Chain(first, rest) => {
                self.operand(first);
                for (operator, expr) in rest {
                    self.put(" ");
                    self.put(operator_text(*operator));
                    self.put(" ");
                    self.operand(expr);
                }
            }
            Expr::Row(items) => self.parenthesised(items, Self::expr),
            Expr::Exists(query) => self.wrapped("EXISTS ", |printer| printer.query(query)),
            Expr::Subquery(query) => self.wrapped("", |printer| printer.query(query)),
            Expr::Case { operand, branches, otherwise } => {
                self.put("CASE");
                if let Some(operand) = operand {
                    self.put(" ");
                    self.expr(operand);
                }
                for branch in branches {
                    self.put(" WHEN ");
                    self.expr(&branch.when);
                    self.put(" THEN ");
                    self.expr(&branch.then);
                }
                if let Some(otherwise) = otherwise {
                    self.put(" ELSE ");
                    self.expr(otherwise);
                }
                self.put(" END");
            }
            Expr::Collate(expr, collation) => {
                self.operand(expr);
                self.put(" COLLATE ");
                self.put(collation.as_str());
            }
            Expr::Interval(value, unit) => {
                self.put("INTERVAL ");
                self.operand(value);
                self.put(" ");
                self.put(unit.as_str());
            }
            Expr::Is { .. }
            | Expr::InList { .. }
            | Expr::InQuery { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Regexp { .. }
            | Expr::Quantified { .. } => self.predicate(expr),
            Expr::Call(..)
            | Expr::Aggregate(_)
            | Expr::Cast(..)
            | Expr::ConvertUsing(..)
            | Expr::CharUsing(..)
            | Expr::IntervalIndex(_)
            | Expr::UnitCall(..)
            | Expr::Extract(..)
            | Expr::Position(..)
            | Expr::Substring { .. }
            | Expr::Trim { .. } => self.call(expr),
        }
    }

    fn predicate(&mut self, expr: &Expr) {
        let not = |negated: bool| if negated { " NOT" } else { "" };
        match expr {
            Expr::Is { expr, negated, test } => {
                self.operand(expr);
                self.put(" IS");
                self.put(not(*negated));
                self.put(match test {
                    Test::Null => " NULL",
                    Test::True => " TRUE",
                    Test::False => " FALSE",
                    Test::Unknown => " UNKNOWN",
                });
            }
            Expr::InList { expr, negated, items } => {
                self.operand(expr);
                self.put(not(*negated));
                self.put(" IN ");
                self.parenthesised(items, Self::expr);
            }
            Expr::InQuery { expr, negated, query } => {
                self.operand(expr);
                self.put(not(*negated));
                self.wrapped(" IN ", |printer| printer.query(query));
            }
            Expr::Between { expr, negated, low, high } => {
                self.operand(expr);
                self.put(not(*negated));
                self.put(" BETWEEN ");
                self.operand(low);
                self.put(" AND ");
                self.operand(high);
            }
            Expr::Like { expr, negated, pattern, escape } => {
                self.operand(expr);
                self.put(not(*negated));
                self.put(" LIKE ");
                self.operand(pattern);
                if let Some(escape) = escape {
                    self.put(" ESCAPE ");
                    self.operand(escape);
                }
            }
            Expr::Regexp { expr, negated, pattern } => {
                self.operand(expr);
                self.put(not(*negated));
                self.put(" REGEXP ");
                self.operand(pattern);
            }
            Expr::Quantified { expr, operator, quantifier, query } => {
                self.operand(expr);
                self.put(" ");
                self.put(operator_text(*operator));
                self.wrapped(
                    match quantifier {
                        Quantifier::Any => " ANY ",
                        Quantifier::All => " ALL ",
                    },
                    |printer| printer.query(query),
                );
            }
            other => self.expr(other),
        }
    }

    fn call(&mut self, expr: &Expr) {
        match expr {
            Expr::Call(function, args) => {
                self.put(function.name);
                self.parenthesised(args, Self::expr);
            }
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Cast(expr, target) => self.wrapped("CAST", |printer| {
                printer.expr(expr);
                printer.put(" AS ");
                printer.data_type(target);
            }),
            Expr::ConvertUsing(expr, charset) => self.wrapped("CONVERT", |printer| {
                printer.expr(expr);
                printer.using(*charset);
            }),
            Expr::CharUsing(args, charset) => self.wrapped("CHAR", |printer| {
                printer.list(args, Self::expr);
                if let Some(charset) = charset {
                    printer.using(*charset);
                }
            }),
            Expr::IntervalIndex(items) => {
                self.put("INTERVAL");
                self.parenthesised(items, Self::expr);
            }
            Expr::UnitCall(function, unit, args) => self.wrapped(function.name, |printer| {
                printer.put(unit.as_str());
                for arg in args {
                    printer.put(", ");
                    printer.expr(arg);
                }
            }),
            Expr::Extract(unit, expr) => self.wrapped("EXTRACT", |printer| {
                printer.put(unit.as_str());
                printer.put(" FROM ");
                printer.expr(expr);
            }),
            Expr::Position(needle, haystack) => self.wrapped("POSITION", |printer| {
                printer.operand(needle);
                printer.put(" IN ");
                printer.operand(haystack);
            }),
            Expr::Substring { expr, from, length } => self.wrapped("SUBSTRING", |printer| {
                printer.expr(expr);
                printer.put(" FROM ");
                printer.expr(from);
                if let Some(length) = length {
                    printer.put(" FOR ");
                    printer.expr(length);
                }
            }),
            Expr::Trim { side, what, expr } => self.wrapped("TRIM", |printer| {
                if let Some(side) = side {
                    printer.put(match side {
                        TrimSide::Both => "BOTH ",
                        TrimSide::Leading => "LEADING ",
                        TrimSide::Trailing => "TRAILING ",
                    });
                }
                if let Some(what) = what {
                    printer.expr(what);
                    printer.put(" ");
                }
                if side.is_some() || what.is_some() {
                    printer.put("FROM ");
                }
                printer.expr(expr);
            }),
            other => self.expr(other),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let Aggregate { function, distinct, args, order, separator } = aggregate;
        self.wrapped(function.name, |printer| {
            if *distinct {
                printer.put("DISTINCT ");
            }
            if args.is_empty() {
                printer.put("*");
            }
            printer.list(args, Self::expr);
            printer.order_by(order);
            if let Some(separator) = separator {
                printer.put(" SEPARATOR ");
                printer.string(separator);
            }
        });
    }

    /// A name and something in parentheses.
    pub(super) fn wrapped(&mut self, name: &str, print: impl FnOnce(&mut Self)) {
        self.put(name);
        self.put("(");
        print(self);
        self.put(")");
    }

    fn using(&mut self, charset: Charset) {
        self.put(" USING ");
        self.put(charset.as_str());
    }

    /// An operand: in parentheses when it is itself an operation.
    fn operand(&mut self, expr: &Expr) {
        let operation = matches!(
            expr,
            Expr::Unary(..)
                | Expr::Not(_)
                | Expr::Chain(..)
                | Expr::Collate(..)
                | Expr::Is { .. }
                | Expr::InList { .. }
                | Expr::InQuery { .. }
                | Expr::Between { .. }
                | Expr::Like { .. }
                | Expr::Regexp { .. }
                | Expr::Quantified { .. }
        );
        if operation {
            self.wrapped("", |printer| printer.expr(expr));
        } else {
            self.expr(expr);
        }
    }

    fn prefixed(&mut self, operator: &str, expr: &Expr) {
        self.put(operator);
        self.operand(expr);
    }

    pub(super) fn column(&mut self, column: &Column) {
        if let Some(qualifier) = &column.qualifier {
            if column.in_catalog {
                self.quoted(self.catalog);
                self.put(".");
            }
            self.name(qualifier);
            self.put(".");
        }
        self.name(&column.name);
    }

    pub(super) fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.put("NULL"),
            Literal::True => self.put("TRUE"),
            Literal::False => self.put("FALSE"),
            Literal::Number(digits) => self.put(digits),
            Literal::String(text) => {
                self.introducer(text.introducer);
                self.string(&text.value);
            }
            Literal::National(text) => {
                self.put("N");
                self.string(text);
            }
            Literal::Hex { introducer, digits } => self.digits(*introducer, "X'", digits, "'"),
            Literal::HexNumber { introducer, digits } => self.digits(*introducer, "0x", digits, ""),
            Literal::Bit { introducer, digits } => self.digits(*introducer, "b'", digits, "'"),
            Literal::BitNumber { introducer, digits } => self.digits(*introducer, "0b", digits, ""),
            Literal::Date(text) => self.typed("DATE ", text),
            Literal::Time(text) => self.typed("TIME ", text),
            Literal::Timestamp(text) => self.typed("TIMESTAMP ", text),
        }
    }

    fn introducer(&mut self, charset: Option<Charset>) {
        if let Some(charset) = charset {
            self.put("_");
            self.put(charset.as_str());
            self.put(" ");
        }
    }

    fn digits(&mut self, introducer: Option<Charset>, before: &str, digits: &str, after: &str) {
        self.introducer(introducer);
        self.put(before);
        self.put(digits);
        self.put(after);
    }

    fn typed(&mut self, name: &str, text: &str) {
        self.put(name);
        self.string(text);
    }

    /// A string in single quotes, by the manual's "Special Character Escape Sequences". The session
    /// has no `NO_BACKSLASH_ESCAPES` (it is pinned and read back), so a backslash escapes.
    pub(super) fn string(&mut self, text: &str) {
        self.out.push('\'');
        let mut rest = text;
        while let Some(at) = rest.find(['\'', '\\', '\0', '\n', '\r', '\u{1a}']) {
            let (plain, special) = rest.split_at(at);
            self.put(plain);
            let mut characters = special.chars();
            self.put(match characters.next() {
                Some('\'') => "''",
                Some('\\') => "\\\\",
                Some('\0') => "\\0",
                Some('\n') => "\\n",
                Some('\r') => "\\r",
                _ => "\\Z",
            });
            rest = characters.as_str();
        }
        self.put(rest);
        self.out.push('\'');
    }
}

const fn unary_text(operator: Unary) -> &'static str {
    match operator {
        Unary::Plus => "+",
        Unary::Minus => "-",
        Unary::BitNot => "~",
        Unary::Bang => "!",
        Unary::Binary => "BINARY ",
    }
}

const fn operator_text(operator: Binary) -> &'static str {
    match operator {
        Binary::Or => "OR",
        Binary::Xor => "XOR",
        Binary::And => "AND",
        Binary::Equal => "=",
        Binary::NullSafeEqual => "<=>",
        Binary::NotEqual => "<>",
        Binary::Less => "<",
        Binary::LessOrEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterOrEqual => ">=",
        Binary::BitOr => "|",
        Binary::BitAnd => "&",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::IntegerDivide => "DIV",
        Binary::Modulo => "%",
        Binary::BitXor => "^",
    }
}
