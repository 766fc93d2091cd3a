//! Whatever the bytes: an answer that keeps its contract (wit/policy.wit), and is no larger than
//! what was asked.

use std::str;

use tollgate_policy::diagnostics::code;
use tollgate_policy::{Decision, Diagnostic, LIMITS, Severity, Span, Statement};

use super::{CATALOG, Violation, decide, ensure};

/// A name of one letter is printed with the catalog and six quotes and dots; nothing that is written
/// grows more, whatever it is.
const GROWTH_MAX: usize = 32;

/// Diagnostics the policy lists, and the one that says there are more.
const DIAGNOSTICS_MAX: usize = 501;

/// The answer is well-formed, its places are in the payload, and its size is bounded.
pub fn decided(payload: &[u8]) -> Result<(), Violation> {
    let answer = Answer { payload };
    match decide(payload) {
        Decision::Allow(allowance) => {
            answer.diagnostics(&allowance.advisories)?;
            let errors = allowance.advisories.iter().any(is_error);
            ensure(!errors, || "an error among the advisories of an allow".into())?;
            answer.statements(&allowance.statements)
        }
        Decision::Deny(diagnostics) => {
            answer.diagnostics(&diagnostics)?;
            ensure(diagnostics.iter().any(is_error), || "denied without an error".into())
        }
    }
}

fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
}

struct Answer<'a> {
    payload: &'a [u8],
}

impl Answer<'_> {
    fn statements(&self, statements: &[Statement]) -> Result<(), Violation> {
        let count = statements.len();
        let allowed = 1..=LIMITS.statement_count_max as usize;
        ensure(allowed.contains(&count), || format!("allowed with {count} statements"))?;
        let printed: usize = statements.iter().map(|statement| statement.text.len()).sum();
        ensure(printed <= GROWTH_MAX * self.payload.len(), || {
            format!("{printed} bytes printed of {}", self.payload.len())
        })?;
        let mut end = 0;
        for (at, statement) in statements.iter().enumerate() {
            ensure(statement.index as usize == at, || format!("statement {at} has another index"))?;
            self.place(statement.span)?;
            ensure(statement.span.start >= end, || format!("statement {at} overlaps another"))?;
            end = statement.span.end;
            ensure(!statement.tables.is_empty(), || format!("statement {at} names no table"))?;
            let elsewhere = statement.tables.iter().any(|table| table.catalog != CATALOG);
            ensure(!elsewhere, || format!("statement {at} names another catalog"))?;
            let sorted = statement.tables.is_sorted_by(|one, other| one < other);
            ensure(sorted, || format!("the tables of statement {at} are not sorted"))?;
        }
        Ok(())
    }

    fn diagnostics(&self, diagnostics: &[Diagnostic]) -> Result<(), Violation> {
        let count = diagnostics.len();
        ensure(count <= DIAGNOSTICS_MAX, || format!("{count} diagnostics"))?;
        for diagnostic in diagnostics {
            let known = code::ALL.iter().any(|code| code.id == diagnostic.code);
            ensure(known, || format!("unknown code `{}`", diagnostic.code))?;
            ensure(!diagnostic.message.is_empty(), || format!("`{}` is silent", diagnostic.code))?;
            let fix = diagnostic.fix.as_ref().map(|edit| edit.span);
            for span in [diagnostic.span, fix].into_iter().flatten() {
                self.place(span).map_err(|place| format!("`{}`: {place}", diagnostic.code))?;
            }
        }
        Ok(())
    }

    /// A place is in the payload and cuts no character in two.
    fn place(&self, span: Span) -> Result<(), Violation> {
        let (start, end) = (span.start as usize, span.end as usize);
        let cut = self.payload.get(start..end);
        ensure(cut.is_some(), || format!("{start}..{end} is not a part of the payload"))?;
        let whole = str::from_utf8(self.payload).is_err()
            || cut.map(str::from_utf8).is_some_and(|cut| cut.is_ok());
        ensure(whole, || format!("{start}..{end} cuts a character in two"))
    }
}
