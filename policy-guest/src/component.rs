//! The only file that knows wit-bindgen: converts between wit/policy.wit and `decision`.

use exports::tollgate::policy::gate as wire;

use crate::decision;

wit_bindgen::generate!({ world: "policy", path: "../wit" });

struct Component;

export!(Component);

impl wire::Guest for Component {
    fn describe() -> wire::Description {
        let description = crate::describe();
        wire::Description {
            name: description.name.into(),
            version: description.version.into(),
            executor_codes: owned(description.executor_codes),
            session: wire::Session {
                sql_mode: owned(description.session.sql_mode),
                character_set: description.session.character_set.into(),
                time_zone: description.session.time_zone.into(),
            },
            limits: wire::Limits {
                payload_bytes_max: description.limits.payload_bytes_max,
                statement_count_max: description.limits.statement_count_max,
                operator_count_max: description.limits.operator_count_max,
                join_count_max: description.limits.join_count_max,
                nesting_max: description.limits.nesting_max,
                token_count_max: description.limits.token_count_max,
            },
        }
    }

    fn decide(request: wire::Request) -> wire::Decision {
        let protected_tables: Vec<&str> =
            request.protected_tables.iter().map(String::as_str).collect();
        crate::decide(&decision::Request {
            payload: &request.payload,
            catalog: &request.catalog,
            protected_tables: &protected_tables,
        })
        .into()
    }
}

fn owned(items: &[&str]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

impl From<decision::Decision> for wire::Decision {
    fn from(decision: decision::Decision) -> Self {
        match decision {
            decision::Decision::Allow(allowance) => Self::Allow(wire::Allowance {
                statements: allowance.statements.into_iter().map(Into::into).collect(),
                advisories: allowance.advisories.into_iter().map(Into::into).collect(),
            }),
            decision::Decision::Deny(diagnostics) => {
                Self::Deny(diagnostics.into_iter().map(Into::into).collect())
            }
        }
    }
}

impl From<decision::Statement> for wire::Statement {
    fn from(statement: decision::Statement) -> Self {
        Self {
            index: statement.index,
            operation: match statement.operation {
                decision::Operation::CreateTable => wire::Operation::CreateTable,
                decision::Operation::DropTable => wire::Operation::DropTable,
                decision::Operation::Insert => wire::Operation::Insert,
                decision::Operation::Delete => wire::Operation::Delete,
            },
            text: statement.text,
            tables: statement.tables.into_iter().map(Into::into).collect(),
            span: statement.span.into(),
        }
    }
}

impl From<decision::TableAccess> for wire::TableAccess {
    fn from(table: decision::TableAccess) -> Self {
        Self {
            catalog: table.catalog,
            name: table.name,
            access: match table.access {
                decision::Access::Create => wire::Access::Create,
                decision::Access::Drop => wire::Access::Drop,
                decision::Access::Write => wire::Access::Write,
                decision::Access::Read => wire::Access::Read,
            },
        }
    }
}

impl From<decision::Diagnostic> for wire::Diagnostic {
    fn from(diagnostic: decision::Diagnostic) -> Self {
        Self {
            code: diagnostic.code.into(),
            severity: match diagnostic.severity {
                decision::Severity::Error => wire::Severity::Error,
                decision::Severity::Advisory => wire::Severity::Advisory,
            },
            message: diagnostic.message,
            help: diagnostic.help,
            statement: diagnostic.statement,
            span: diagnostic.span.map(Into::into),
            fix: diagnostic
                .fix
                .map(|edit| wire::Edit { span: edit.span.into(), replacement: edit.replacement }),
        }
    }
}

impl From<decision::Span> for wire::Span {
    fn from(span: decision::Span) -> Self {
        Self { start: span.start, end: span.end }
    }
}
