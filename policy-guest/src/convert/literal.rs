//! Literals.

use sqlparser::ast::{Ident, Value, ValueWithSpan};

use crate::charset::Charset;
use crate::context::Context;
use crate::decision::Span;
use crate::diagnostics::{Finding, code};
use crate::lexer::{self, LiteralKind, span_of};
use crate::model::{Expr, Literal, Text};
use crate::smuggled;

impl Context<'_> {
    pub(crate) fn value(&mut self, value: ValueWithSpan) -> Option<Expr> {
        self.literal(value).map(Expr::Literal)
    }

    /// A literal without introducer.
    pub(crate) fn literal(&mut self, value: ValueWithSpan) -> Option<Literal> {
        let ValueWithSpan { value, span } = value;
        match value {
            Value::Null => Some(Literal::Null),
            Value::Boolean(true) => Some(Literal::True),
            Value::Boolean(false) => Some(Literal::False),
            Value::Number(digits, false) => Some(Literal::Number(digits)),
            Value::SingleQuotedString(handle)
            | Value::NationalStringLiteral(handle)
            | Value::HexStringLiteral(handle)
            | Value::SingleQuotedByteStringLiteral(handle) => self.written(&handle, None),
            // No token of ours becomes one of these.
            Value::Number(_, true)
            | Value::DollarQuotedString(_)
            | Value::TripleSingleQuotedString(_)
            | Value::TripleDoubleQuotedString(_)
            | Value::EscapedStringLiteral(_)
            | Value::UnicodeStringLiteral(_)
            | Value::DoubleQuotedByteStringLiteral(_)
            | Value::TripleSingleQuotedByteStringLiteral(_)
            | Value::TripleDoubleQuotedByteStringLiteral(_)
            | Value::SingleQuotedRawStringLiteral(_)
            | Value::DoubleQuotedRawStringLiteral(_)
            | Value::TripleSingleQuotedRawStringLiteral(_)
            | Value::TripleDoubleQuotedRawStringLiteral(_)
            | Value::QuoteDelimitedStringLiteral(_)
            | Value::NationalQuoteDelimitedStringLiteral(_)
            | Value::DoubleQuotedString(_)
            | Value::Placeholder(_) => self.refuse_code(&code::EXPRESSION, span_of(span)),
        }
    }

    /// The literal a handle stands for.
    fn resolve(&mut self, handle: &str) -> Option<&lexer::Literal> {
        let literals = self.literals;
        let literal = handle.parse::<usize>().ok().and_then(|at| literals.get(at));
        if literal.is_none() {
            self.findings.push(Finding::new(&code::EXPRESSION));
        }
        literal
    }

    fn written(&mut self, handle: &str, introducer: Option<Charset>) -> Option<Literal> {
        let literal = self.resolve(handle)?;
        let (kind, span, digits) = (literal.kind, literal.span, literal.text.clone());
        Some(match kind {
            LiteralKind::String => {
                self.check_text(&digits, span)?;
                Literal::String(Text { introducer, value: digits })
            }
            LiteralKind::National => {
                self.check_text(&digits, span)?;
                Literal::National(digits)
            }
            LiteralKind::Hex => Literal::Hex { introducer, digits },
            LiteralKind::HexNumber => Literal::HexNumber { introducer, digits },
            LiteralKind::Bit => Literal::Bit { introducer, digits },
            LiteralKind::BitNumber => Literal::BitNumber { introducer, digits },
        })
    }

    /// `_utf8mb4'x'`
    pub(crate) fn introduced(
        &mut self,
        prefix: &Ident,
        value: sqlparser::ast::Expr,
    ) -> Option<Expr> {
        let span = span_of(prefix.span);
        let named = prefix.value.strip_prefix('_').and_then(Charset::introduced);
        let Some(charset) = named else {
            let finding = Finding::new(&code::CHARACTER_SET)
                .message(format!("literal in the character set `{}`", prefix.value))
                .near(span);
            return self.refuse(finding);
        };
        let sqlparser::ast::Expr::Value(ValueWithSpan { value, .. }) = value else {
            return self.refuse_code(&code::EXPRESSION, span);
        };
        match value {
            Value::SingleQuotedString(handle)
            | Value::HexStringLiteral(handle)
            | Value::SingleQuotedByteStringLiteral(handle) => {
                self.written(&handle, Some(charset)).map(Expr::Literal)
            }
            _ => self.refuse_code(&code::EXPRESSION, span),
        }
    }

    /// A string where the server takes exactly one token: a comment, a member of ENUM, an alias.
    /// Is it several strings, one behind the other?
    pub(crate) fn is_adjacent_string(&self, value: &Value) -> bool {
        let (Value::SingleQuotedString(handle) | Value::NationalStringLiteral(handle)) = value
        else {
            return false;
        };
        let literal = handle.parse::<usize>().ok().and_then(|at| self.literals.get(at));
        literal.is_some_and(|literal| literal.adjacent)
    }

    pub(crate) fn single_string(&mut self, handle: &str) -> Option<String> {
        let literal = self.resolve(handle)?;
        let (kind, adjacent, span) = (literal.kind, literal.adjacent, literal.span);
        let text = literal.text.clone();
        if kind != LiteralKind::String {
            return self.refuse_code(&code::EXPRESSION, Some(span));
        }
        if adjacent {
            return self.refuse_code(&code::ADJACENT, Some(span));
        }
        self.check_text(&text, span)?;
        Some(text)
    }

    /// Outside row values, text that becomes SQL when its quotes are misread is refused: the policy
    /// does not misread them, but a person, a log viewer or a later tool may.
    fn check_text(&mut self, text: &str, span: Span) -> Option<()> {
        if !self.in_row_value && smuggled::reads_as_sql(text) {
            return self.refuse_code(&code::SMUGGLED, Some(span));
        }
        Some(())
    }
}
