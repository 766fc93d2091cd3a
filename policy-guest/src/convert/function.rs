//! Function calls.

use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function as Call, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Value,
};

use super::refuse_present;
use crate::context::Context;
use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::functions::{Function, Kind};
use crate::lexer::span_of;
use crate::model::{Aggregate, Expr, Order};
use crate::parse::INTERVAL_INDEX;

/// A call's arguments, taken apart.
struct Arguments {
    distinct: bool,
    /// ALL, which an aggregate may be given and which changes nothing.
    all: bool,
    star: bool,
    exprs: Vec<Ast>,
    order: Vec<sqlparser::ast::OrderByExpr>,
    separator: Option<String>,
}

impl Context<'_> {
    pub(crate) fn function(&mut self, call: Call) -> Option<Expr> {
        let Call {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            within_group,
            filter,
            null_treatment,
            over,
        } = call;
        let span = crate::names::object_span(&name);
        let plain = refuse_present!(self, &code::FUNCTION_FORM, span,
            uses_odbc_syntax => "ODBC call",
            !matches!(parameters, FunctionArguments::None) => "function with parameters",
            within_group => "WITHIN GROUP",
            filter => "FILTER",
            null_treatment => "NULLS clause",
            over => "window function",
        );
        let ident = self.function_name(name, span)?;
        let arguments = self.arguments(args, span);
        plain?;
        let arguments = arguments?;
        match ident.value.to_ascii_uppercase().as_str() {
            INTERVAL_INDEX => self.every(arguments.exprs, Self::expr).map(Expr::IntervalIndex),
            "VALUES" => self.inserted_value(arguments, span),
            "DEFAULT" => self.default_of(arguments, span),
            "ROW" => self.row(arguments, span),
            name => match Function::named(name) {
                Some(function) => self.listed(function, &ident, arguments),
                None => {
                    let name = crate::names::shortened(&ident.value);
                    let finding = Finding::new(&code::FUNCTION)
                        .message(format!("function `{name}` is not on policy v1's list"))
                        .near(span);
                    self.refuse(finding)
                }
            },
        }
    }

    /// A function's name is one unquoted word: a quoted or qualified one may be a stored function.
    fn function_name(&mut self, name: ObjectName, span: Option<Span>) -> Option<Ident> {
        let ObjectName(mut parts) = name;
        match (parts.pop(), parts.is_empty()) {
            (Some(ObjectNamePart::Identifier(ident)), true) if ident.quote_style.is_none() => {
                Some(ident)
            }
            _ => self.refuse_code(&code::FUNCTION_FORM, span),
        }
    }

    fn arguments(&mut self, args: FunctionArguments, span: Option<Span>) -> Option<Arguments> {
        let FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) =
            args
        else {
            return self.refuse_code(&code::FUNCTION_FORM, span);
        };
        let mut arguments = Arguments {
            distinct: matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct)),
            all: matches!(duplicate_treatment, Some(DuplicateTreatment::All)),
            star: false,
            exprs: Vec::with_capacity(args.len()),
            order: Vec::new(),
            separator: None,
        };
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.exprs.push(expr),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => arguments.star = true,
                _ => return self.refuse_code(&code::FUNCTION_FORM, span),
            }
        }
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(order) => arguments.order = order,
                FunctionArgumentClause::Separator(value) => match value.value {
                    Value::SingleQuotedString(handle) => {
                        arguments.separator = Some(self.single_string(&handle)?);
                    }
                    _ => return self.refuse_code(&code::FUNCTION_FORM, span),
                },
                _ => return self.refuse_code(&code::FUNCTION_FORM, span),
            }
        }
        Some(arguments)
    }

    fn listed(
        &mut self,
        function: &'static Function,
        ident: &Ident,
        arguments: Arguments,
    ) -> Option<Expr> {
        let span = span_of(ident.span);
        self.check_call(function, &arguments, span)?;
        match function.kind {
            Kind::Aggregate => self.aggregate(function, arguments, span),
            Kind::Unit => self.unit_call(function, arguments, span),
            Kind::Time => {
                self.advise_clock(&arguments, function, span);
                self.every(arguments.exprs, Self::expr).map(|args| Expr::Call(function, args))
            }
            Kind::Pure
                if matches!(function.name, "ADDDATE" | "DATE_ADD" | "DATE_SUB" | "SUBDATE") =>
            {
                let args = self.every(arguments.exprs, |context, expr| match expr {
                    Ast::Interval(interval) => context.interval(interval),
                    expr => context.expr(expr),
                });
                args.map(|args| Expr::Call(function, args))
            }
            Kind::Pure => {
                self.every(arguments.exprs, Self::expr).map(|args| Expr::Call(function, args))
            }
        }
    }

    /// UNIX_TIMESTAMP of an argument does not read the clock.
    fn advise_clock(&mut self, arguments: &Arguments, function: &Function, span: Option<Span>) {
        if function.name != "UNIX_TIMESTAMP" || arguments.exprs.is_empty() {
            self.advise_time(span);
        }
    }

    fn check_call(
        &mut self,
        function: &Function,
        arguments: &Arguments,
        span: Option<Span>,
    ) -> Option<()> {
        let aggregate = function.kind == Kind::Aggregate;
        if function.is_adjacent() && !self.parenthesis_follows(span) {
            let finding = Finding::new(&code::FUNCTION_FORM)
                .message(format!("`{}` with a space before its parenthesis", function.name))
                .near(span);
            return self.refuse(finding);
        }
        let separated = arguments.separator.is_some() || !arguments.order.is_empty();
        let misused = (aggregate && !self.in_select)
            || (!aggregate && (arguments.distinct || arguments.all || arguments.star))
            || (arguments.star && (function.name != "COUNT" || arguments.distinct))
            || (separated && function.name != "GROUP_CONCAT");
        if misused {
            return self.refuse_code(&code::FUNCTION_FORM, span);
        }
        let count = if arguments.star { 1 } else { arguments.exprs.len() };
        if !function.takes(count) {
            let finding = Finding::new(&code::FUNCTION_FORM)
                .message(format!("`{}` does not take {count} arguments", function.name))
                .near(span);
            return self.refuse(finding);
        }
        Some(())
    }

    fn parenthesis_follows(&self, name: Option<Span>) -> bool {
        name.and_then(|name| self.source.as_bytes().get(name.end as usize)) == Some(&b'(')
    }

    fn aggregate(
        &mut self,
        function: &'static Function,
        arguments: Arguments,
        span: Option<Span>,
    ) -> Option<Expr> {
        if arguments.exprs.len() > 1 && !arguments.distinct && function.name == "COUNT" {
            return self.refuse_code(&code::FUNCTION_FORM, span);
        }
        let args = self.every(arguments.exprs, Self::expr);
        let order: Option<Vec<Order>> = self.every(arguments.order, Self::order);
        Some(Expr::Aggregate(Box::new(Aggregate {
            function,
            distinct: arguments.distinct,
            args: args?,
            order: order?,
            separator: arguments.separator,
        })))
    }

    /// TIMESTAMPDIFF(DAY, a, b): the first argument is a unit, not a column.
    fn unit_call(
        &mut self,
        function: &'static Function,
        arguments: Arguments,
        span: Option<Span>,
    ) -> Option<Expr> {
        let mut exprs = arguments.exprs.into_iter();
        let Some(Ast::Identifier(unit)) = exprs.next() else {
            return self.refuse_code(&code::FUNCTION_FORM, span);
        };
        let unit = self.unit(&unit);
        let args = self.every(exprs, Self::expr);
        Some(Expr::UnitCall(function, unit?, args?))
    }

    /// `VALUES(column)`
    fn inserted_value(&mut self, arguments: Arguments, span: Option<Span>) -> Option<Expr> {
        let mut parts = self.only_column(arguments, span)?;
        let name = parts.pop();
        match (name, self.on_duplicate) {
            (Some(name), true) => {
                let name =
                    if parts.is_empty() { self.name(name) } else { self.name_after_dot(name) };
                name.map(Expr::Inserted)
            }
            _ => self.refuse_code(&code::FUNCTION_FORM, span),
        }
    }

    /// `ROW(a, b)` is `(a, b)` (manual: "Row Subqueries").
    fn row(&mut self, arguments: Arguments, span: Option<Span>) -> Option<Expr> {
        let Arguments { distinct, all, star, exprs, order, separator } = arguments;
        if distinct || all || star || exprs.len() < 2 || !order.is_empty() || separator.is_some() {
            return self.refuse_code(&code::FUNCTION_FORM, span);
        }
        self.every(exprs, Self::expr).map(Expr::Row)
    }

    fn default_of(&mut self, arguments: Arguments, span: Option<Span>) -> Option<Expr> {
        let parts = self.only_column(arguments, span)?;
        self.column(parts).map(Expr::DefaultOf)
    }

    /// The one argument of a call, which has to be a column's name.
    fn only_column(&mut self, arguments: Arguments, span: Option<Span>) -> Option<Vec<Ident>> {
        let plain =
            !arguments.distinct && !arguments.all && !arguments.star && arguments.order.is_empty();
        match (<[Ast; 1]>::try_from(arguments.exprs), plain) {
            (Ok([Ast::Identifier(name)]), true) => Some(vec![name]),
            (Ok([Ast::CompoundIdentifier(parts)]), true) => Some(parts),
            _ => self.refuse_code(&code::FUNCTION_FORM, span),
        }
    }
}
