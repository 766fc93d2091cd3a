//! What the policy says about a payload: findings while it reads, diagnostics when it answers.

pub mod code;

use crate::decision::{Diagnostic, Edit, Severity, Span};

/// A documented kind of finding. Its `id` is stable and never reused.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// Kebab-case name.
    pub id: &'static str,
    /// Whether a payload that shows it is denied.
    pub severity: Severity,
    /// The default message: lowercase, no full stop.
    pub message: &'static str,
    /// What to write instead.
    pub help: &'static str,
    /// A payload that shows it.
    pub bad: &'static str,
    /// The same intent, written so that it is allowed.
    pub good: &'static str,
}

/// A finding in the making.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    code: &'static Code,
    message: Option<String>,
    help: Option<String>,
    pub(crate) span: Option<Span>,
    pub(crate) statement: Option<u32>,
    fix: Option<Edit>,
}

impl Finding {
    pub(crate) const fn new(code: &'static Code) -> Self {
        Self { code, message: None, help: None, span: None, statement: None, fix: None }
    }

    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) const fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Where it is, if that is known.
    pub(crate) const fn near(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }

    pub(crate) fn replace(mut self, span: Span, replacement: impl Into<String>) -> Self {
        self.fix = Some(Edit { span, replacement: replacement.into() });
        self
    }

    pub(crate) fn insert(self, at: u32, text: impl Into<String>) -> Self {
        self.replace(Span { start: at, end: at }, text)
    }

    #[cfg(test)]
    pub(crate) const fn code(&self) -> &'static str {
        self.code.id
    }

    /// Ids are unique, and comparing the prose of a code as well costs thousands of instructions.
    pub(crate) fn is(&self, code: &Code) -> bool {
        self.code.id == code.id
    }

    pub(crate) fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}

impl From<Finding> for Diagnostic {
    fn from(finding: Finding) -> Self {
        Self {
            code: finding.code.id,
            severity: finding.code.severity,
            message: finding.message.unwrap_or_else(|| finding.code.message.to_owned()),
            help: Some(finding.help.unwrap_or_else(|| finding.code.help.to_owned())),
            statement: finding.statement,
            span: finding.span,
            fix: finding.fix,
        }
    }
}
