//! What is known while one statement is read.

use sqlparser::tokenizer::TokenWithSpan;

use crate::decision::{Span, TableAccess};
use crate::diagnostics::{Code, Finding};
use crate::lexer::Literal;

/// What conversion reads from and reports to.
///
/// A conversion returns `None` after it has reported why: absence and report go together, and
/// `decide` treats a statement that is absent without a report as refused all the same.
pub(crate) struct Context<'a> {
    pub(crate) catalog: &'a str,
    pub(crate) protected_tables: &'a [&'a str],
    pub(crate) source: &'a str,
    pub(crate) literals: &'a [Literal],
    /// Lists that `bulk` took past the parser.
    pub(crate) lists: Vec<Vec<TokenWithSpan>>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) tables: Vec<TableAccess>,
    /// A target of a DELETE was written `table.*`; `rewrite` took the star off.
    pub(crate) star_targets: bool,
    /// VALUES(column) may stand here.
    pub(crate) on_duplicate: bool,
    /// Strings are row values, in which any text is fine.
    pub(crate) in_row_value: bool,
    /// Aggregates may stand here.
    pub(crate) in_select: bool,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(
        catalog: &'a str,
        protected_tables: &'a [&'a str],
        source: &'a str,
        literals: &'a [Literal],
    ) -> Self {
        Self {
            catalog,
            protected_tables,
            source,
            literals,
            lists: Vec::new(),
            findings: Vec::new(),
            tables: Vec::new(),
            star_targets: false,
            on_duplicate: false,
            in_row_value: false,
            in_select: false,
        }
    }

    /// Reports, and stands for the part that was not converted.
    pub(crate) fn refuse<T>(&mut self, finding: Finding) -> Option<T> {
        self.findings.push(finding);
        None
    }

    /// Reports a code with its own message and help.
    pub(crate) fn refuse_code<T>(&mut self, code: &'static Code, span: Option<Span>) -> Option<T> {
        self.refuse(Finding::new(code).near(span))
    }

    /// Converts every item, so that all their problems are reported.
    pub(crate) fn every<T, U>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut convert: impl FnMut(&mut Self, T) -> Option<U>,
    ) -> Option<Vec<U>> {
        let items = items.into_iter();
        let mut converted = Vec::with_capacity(items.size_hint().0);
        let mut complete = true;
        for item in items {
            match convert(self, item) {
                Some(item) => converted.push(item),
                None => complete = false,
            }
        }
        complete.then_some(converted)
    }

    /// Converts what may be absent.
    #[expect(clippy::option_option, reason = "outer: converted or refused; inner: present or not")]
    pub(crate) fn maybe<T, U>(
        &mut self,
        item: Option<T>,
        convert: impl FnOnce(&mut Self, T) -> Option<U>,
    ) -> Option<Option<U>> {
        match item {
            None => Some(None),
            Some(item) => convert(self, item).map(Some),
        }
    }
}
