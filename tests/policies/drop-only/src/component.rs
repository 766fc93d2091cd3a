//! The component: wit/policy.wit on the one side, the rules on the other.

use exports::tollgate::policy::gate;

use crate::{DropTable, Finding, Place};

wit_bindgen::generate!({ world: "policy", path: "../../../wit" });

struct Component;

export!(Component);

impl gate::Guest for Component {
    fn describe() -> gate::Description {
        gate::Description {
            name: crate::NAME.into(),
            version: crate::VERSION.into(),
            executor_codes: vec!["sql-jdbc:v1".into()],
            // Nothing this policy prints depends on the session; the host wants to know all the same.
            session: gate::Session {
                sql_mode: vec!["NO_ENGINE_SUBSTITUTION".into(), "STRICT_TRANS_TABLES".into()],
                character_set: "utf8mb4".into(),
                time_zone: "+00:00".into(),
            },
            limits: gate::Limits {
                payload_bytes_max: crate::PAYLOAD_BYTES_MAX,
                statement_count_max: crate::STATEMENT_COUNT_MAX,
                operator_count_max: 0,
                join_count_max: 0,
                nesting_max: 0,
                // There are no more tokens than bytes.
                token_count_max: crate::PAYLOAD_BYTES_MAX,
            },
        }
    }

    fn decide(request: gate::Request) -> gate::Decision {
        let protected: Vec<&str> = request.protected_tables.iter().map(String::as_str).collect();
        let place = Place { catalog: &request.catalog, protected_tables: &protected };
        match crate::decide(&request.payload, place) {
            Ok(statements) => gate::Decision::Allow(gate::Allowance {
                statements: (0..).zip(statements).map(|it| allowed(it, &request.catalog)).collect(),
                advisories: Vec::new(),
            }),
            Err(findings) => gate::Decision::Deny(findings.into_iter().map(found).collect()),
        }
    }
}

fn allowed((index, statement): (u32, DropTable), catalog: &str) -> gate::Statement {
    let text = statement.text(catalog);
    let table =
        |name| gate::TableAccess { catalog: catalog.to_owned(), name, access: gate::Access::Drop };
    gate::Statement {
        index,
        operation: gate::Operation::DropTable,
        text,
        span: span(&statement.span),
        tables: statement.tables.into_iter().map(table).collect(),
    }
}

fn found(finding: Finding) -> gate::Diagnostic {
    gate::Diagnostic {
        code: finding.code.into(),
        severity: gate::Severity::Error,
        message: finding.message,
        help: finding.help.map(Into::into),
        statement: finding.statement.map(narrow),
        span: finding.span.as_ref().map(span),
        fix: finding
            .insertion
            .map(|(at, text)| gate::Edit { span: span(&(at..at)), replacement: text.into() }),
    }
}

fn span(span: &crate::Span) -> gate::Span {
    gate::Span { start: narrow(span.start), end: narrow(span.end) }
}

/// Payloads are smaller than 4 GiB here: so is the memory.
fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
