//! From the guest's words to the model. A pinned component is trusted to judge SQL, not to keep its
//! interface's promises: whatever the host or an executor relies on is checked here, once.

use std::str::FromStr as _;

use semver::Version;

use crate::ids::ExecutorCode;

use super::bindings::gate;
use super::decision::{
    Access, Diagnostic, Edit, Operation, Outcome, Severity, Span, Statement, TableAccess,
};
use super::description::{Description, PayloadLimits, Session};
use super::error::NoDecision;

/// What the answer has to be consistent with.
pub(super) struct Asked<'a> {
    payload_len: usize,
    /// `None` when the payload is not UTF-8: then it has no characters to cut in two.
    text: Option<&'a str>,
    catalog: &'a str,
    protected_tables: &'a [&'a str],
}

type Checked<T> = Result<T, NoDecision>;

const fn malformed<T>(what: &'static str) -> Checked<T> {
    Err(NoDecision::Malformed { what })
}

pub(super) fn description(answer: gate::Description) -> Checked<Description> {
    let Ok(version) = Version::parse(&answer.version) else {
        return malformed("the version is not a semantic version");
    };
    let codes = answer.executor_codes.iter().map(|code| ExecutorCode::from_str(code));
    let Ok(executor_codes) = codes.collect() else {
        return malformed("an executor code is not one");
    };
    let session = answer.session;
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+:-".contains(&b))
    };
    if !session.sql_mode.iter().all(|mode| word(mode))
        || !word(&session.character_set)
        || !word(&session.time_zone)
    {
        return malformed("a session setting is not a plain word");
    }
    Ok(Description {
        name: answer.name,
        version,
        executor_codes,
        session: Session {
            sql_mode: session.sql_mode,
            character_set: session.character_set,
            time_zone: session.time_zone,
        },
        limits: PayloadLimits {
            payload_bytes_max: answer.limits.payload_bytes_max,
            statement_count_max: answer.limits.statement_count_max,
            operator_count_max: answer.limits.operator_count_max,
            join_count_max: answer.limits.join_count_max,
            nesting_max: answer.limits.nesting_max,
            token_count_max: answer.limits.token_count_max,
        },
    })
}

pub(super) fn outcome(answer: gate::Decision, asked: &Asked<'_>) -> Checked<Outcome> {
    match answer {
        gate::Decision::Allow(gate::Allowance { statements, advisories }) => {
            if statements.is_empty() {
                return malformed("an allow without statements");
            }
            let statements = (0_u32..)
                .zip(statements)
                .map(|(index, statement)| asked.statement(index, statement))
                .collect::<Checked<_>>()?;
            let advisories = asked.diagnostics(advisories)?;
            if advisories.iter().any(|advisory| advisory.severity == Severity::Error) {
                return malformed("an allow with an error");
            }
            Ok(Outcome::Allow { statements, advisories })
        }
        gate::Decision::Deny(diagnostics) => {
            let diagnostics = asked.diagnostics(diagnostics)?;
            if !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
                return malformed("a denial without an error");
            }
            Ok(Outcome::Deny { diagnostics })
        }
    }
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        payload: &'a [u8],
        catalog: &'a str,
        protected_tables: &'a [&'a str],
    ) -> Self {
        let text = std::str::from_utf8(payload).ok();
        Self { payload_len: payload.len(), text, catalog, protected_tables }
    }

    fn statement(&self, index: u32, statement: gate::Statement) -> Checked<Statement> {
        if statement.index != index {
            return malformed("statements out of order");
        }
        if statement.text.is_empty() || statement.tables.is_empty() {
            return malformed("a statement without text or tables");
        }
        Ok(Statement {
            index,
            operation: match statement.operation {
                gate::Operation::CreateTable => Operation::CreateTable,
                gate::Operation::DropTable => Operation::DropTable,
                gate::Operation::Insert => Operation::Insert,
                gate::Operation::Delete => Operation::Delete,
            },
            text: statement.text,
            tables: statement
                .tables
                .into_iter()
                .map(|table| self.table(table))
                .collect::<Checked<_>>()?,
            span: self.span(statement.span)?,
        })
    }

    fn table(&self, table: gate::TableAccess) -> Checked<TableAccess> {
        if table.catalog != self.catalog {
            return malformed("a table of another catalog was allowed");
        }
        if self.protected_tables.iter().any(|protected| table.name.eq_ignore_ascii_case(protected))
        {
            return malformed("a protected table was allowed");
        }
        Ok(TableAccess {
            catalog: table.catalog,
            name: table.name,
            access: match table.access {
                gate::Access::Create => Access::Create,
                gate::Access::Drop => Access::Drop,
                gate::Access::Write => Access::Write,
                gate::Access::Read => Access::Read,
            },
        })
    }

    fn diagnostics(&self, diagnostics: Vec<gate::Diagnostic>) -> Checked<Vec<Diagnostic>> {
        diagnostics.into_iter().map(|diagnostic| self.diagnostic(diagnostic)).collect()
    }

    fn diagnostic(&self, diagnostic: gate::Diagnostic) -> Checked<Diagnostic> {
        let kebab = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if diagnostic.code.is_empty() || !diagnostic.code.bytes().all(kebab) {
            return malformed("a diagnostic code is not kebab-case");
        }
        let fix = match diagnostic.fix {
            Some(edit) => Some(Edit { span: self.span(edit.span)?, replacement: edit.replacement }),
            None => None,
        };
        Ok(Diagnostic {
            code: diagnostic.code,
            severity: match diagnostic.severity {
                gate::Severity::Error => Severity::Error,
                gate::Severity::Advisory => Severity::Advisory,
            },
            message: diagnostic.message,
            help: diagnostic.help,
            statement: diagnostic.statement,
            span: diagnostic.span.map(|span| self.span(span)).transpose()?,
            fix,
        })
    }

    fn span(&self, span: gate::Span) -> Checked<Span> {
        let (start, end) = (span.start as usize, span.end as usize);
        if start > end || end > self.payload_len {
            return malformed("a span outside the payload");
        }
        let cuts = |text: &str| !(text.is_char_boundary(start) && text.is_char_boundary(end));
        if self.text.is_some_and(cuts) {
            return malformed("a span that cuts a character in two");
        }
        Ok(Span { start: span.start, end: span.end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &[u8] = "DELETE FROM é".as_bytes();

    fn asked() -> Asked<'static> {
        Asked::new(PAYLOAD, "plugin_preview", &["factory_plugin_target_receipt"])
    }

    fn statement(catalog: &str, table: &str) -> gate::Statement {
        gate::Statement {
            index: 0,
            operation: gate::Operation::Delete,
            text: "DELETE".into(),
            tables: vec![gate::TableAccess {
                catalog: catalog.into(),
                name: table.into(),
                access: gate::Access::Write,
            }],
            span: gate::Span { start: 0, end: 6 },
        }
    }

    fn error(code: &str, start: u32, end: u32) -> gate::Diagnostic {
        gate::Diagnostic {
            code: code.into(),
            severity: gate::Severity::Error,
            message: String::new(),
            help: None,
            statement: None,
            span: Some(gate::Span { start, end }),
            fix: None,
        }
    }

    fn allow(statements: Vec<gate::Statement>) -> gate::Decision {
        gate::Decision::Allow(gate::Allowance { statements, advisories: vec![] })
    }

    fn refused(answer: gate::Decision) {
        let shown = format!("{answer:?}");
        let result = outcome(answer, &asked());
        assert!(matches!(result, Err(NoDecision::Malformed { .. })), "{shown}: {result:?}");
    }

    #[test]
    fn answers_that_keep_the_contract_pass() {
        assert!(outcome(allow(vec![statement("plugin_preview", "t")]), &asked()).is_ok());
        assert!(outcome(gate::Decision::Deny(vec![error("no-rules", 12, 14)]), &asked()).is_ok());
    }

    #[test]
    fn an_allow_cannot_name_what_was_not_asked_for() {
        refused(allow(vec![]));
        refused(allow(vec![statement("host_core", "t")]));
        refused(allow(vec![statement("plugin_preview", "Factory_Plugin_Target_Receipt")]));
        let mut late = statement("plugin_preview", "t");
        late.index = 1;
        refused(allow(vec![late]));
    }

    #[test]
    fn an_outcome_cannot_contradict_itself() {
        refused(gate::Decision::Deny(vec![]));
        let mut advisory = error("no-rules", 0, 0);
        advisory.severity = gate::Severity::Advisory;
        refused(gate::Decision::Deny(vec![advisory]));
        refused(gate::Decision::Allow(gate::Allowance {
            statements: vec![statement("plugin_preview", "t")],
            advisories: vec![error("no-rules", 0, 0)],
        }));
    }

    #[test]
    fn a_span_lies_on_the_payload_s_characters() {
        for (start, end) in [(0, 15), (3, 2), (13, 14), (12, 13)] {
            refused(gate::Decision::Deny(vec![error("no-rules", start, end)]));
        }
    }

    #[test]
    fn a_code_is_kebab_case() {
        refused(gate::Decision::Deny(vec![error("No rules", 0, 0)]));
        refused(gate::Decision::Deny(vec![error("", 0, 0)]));
    }
}
