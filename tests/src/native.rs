//! The answers of the policy's library in the words the host has for a component's, so that both can
//! be compared field by field.

use tollgate::policy::{
    Access, Diagnostic, Edit, Operation, Outcome, Severity, Span, Statement, TableAccess,
};
use tollgate_policy as native;

/// What the host would read if a component gave this answer.
pub fn outcome(decision: native::Decision) -> Outcome {
    match decision {
        native::Decision::Allow(native::Allowance { statements, advisories }) => Outcome::Allow {
            statements: statements.into_iter().map(statement).collect(),
            advisories: advisories.into_iter().map(diagnostic).collect(),
        },
        native::Decision::Deny(diagnostics) => {
            Outcome::Deny { diagnostics: diagnostics.into_iter().map(diagnostic).collect() }
        }
    }
}

fn statement(statement: native::Statement) -> Statement {
    let native::Statement { index, operation, text, tables, span: place } = statement;
    let operation = match operation {
        native::Operation::CreateTable => Operation::CreateTable,
        native::Operation::DropTable => Operation::DropTable,
        native::Operation::Insert => Operation::Insert,
        native::Operation::Delete => Operation::Delete,
    };
    let tables = tables.into_iter().map(table).collect();
    Statement { index, operation, text, tables, span: span(place) }
}

fn table(table: native::TableAccess) -> TableAccess {
    let native::TableAccess { catalog, name, access } = table;
    let access = match access {
        native::Access::Create => Access::Create,
        native::Access::Drop => Access::Drop,
        native::Access::Write => Access::Write,
        native::Access::Read => Access::Read,
    };
    TableAccess { catalog, name, access }
}

fn diagnostic(diagnostic: native::Diagnostic) -> Diagnostic {
    let native::Diagnostic { code, severity, message, help, statement, span: place, fix } =
        diagnostic;
    let severity = match severity {
        native::Severity::Error => Severity::Error,
        native::Severity::Advisory => Severity::Advisory,
    };
    let fix = fix
        .map(|native::Edit { span: place, replacement }| Edit { span: span(place), replacement });
    Diagnostic { code: code.into(), severity, message, help, statement, span: place.map(span), fix }
}

fn span(native::Span { start, end }: native::Span) -> Span {
    Span { start, end }
}
