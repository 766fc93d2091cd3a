//! A SARIF 2.1.0 log (OASIS Standard, "Static Analysis Results Interchange Format"): the few of its
//! objects that a check has something to say for.
//!
//! Results are written as they come; what the policy could not decide is no result but a
//! notification of the invocation.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use tollgate::policy::{Diagnostic, LineIndex, Severity, Span};

use super::report::{Renderer, Report, Summary, Written};

pub(super) struct Sarif;

impl Renderer for Sarif {
    fn begin(&self) -> String {
        let driver = json!({
            "name": "tollgate",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
        });
        format!(
            "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\
             \"runs\":[{{\"tool\":{{\"driver\":{driver}}},\
             \"columnKind\":\"unicodeCodePoints\",\"results\":[\n"
        )
    }

    fn separator(&self) -> &'static str {
        ",\n"
    }

    fn render(&self, report: &Report<'_>) -> Written {
        let artifact = json!({ "uri": uri(&report.path) });
        match &report.audited.result {
            Ok(decision) => Written {
                items: decision
                    .outcome()
                    .diagnostics()
                    .iter()
                    .map(|diagnostic| result(diagnostic, &artifact, report).to_string())
                    .collect(),
                notifications: Vec::new(),
            },
            Err(error) => Written {
                items: Vec::new(),
                notifications: vec![
                    json!({
                        "level": "error",
                        "descriptor": { "id": format!("no-decision/{}", error.kind()) },
                        "message": { "text": error.to_string() },
                        "locations": [{ "physicalLocation": { "artifactLocation": artifact } }],
                    })
                    .to_string(),
                ],
            },
        }
    }

    fn end(&self, summary: &Summary) -> String {
        let decided = summary.notifications.is_empty();
        let notifications = summary.notifications.join(",\n");
        format!(
            "\n],\"invocations\":[{{\"executionSuccessful\":{decided},\
             \"toolExecutionNotifications\":[{notifications}]}}]}}]}}\n"
        )
    }
}

fn result(diagnostic: &Diagnostic, artifact: &Value, report: &Report<'_>) -> Value {
    let location = match diagnostic.span {
        Some(span) => json!({
            "artifactLocation": artifact,
            "region": Region::new(&report.lines, span),
        }),
        None => json!({ "artifactLocation": artifact }),
    };
    let text = match &diagnostic.help {
        Some(help) => format!("{}; {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let fixes: Vec<Value> = diagnostic
        .fix
        .iter()
        .map(|edit| {
            json!({ "artifactChanges": [{
            "artifactLocation": artifact,
            "replacements": [{
                "deletedRegion": Region::new(&report.lines, edit.span),
                "insertedContent": { "text": edit.replacement },
            }],
        }] })
        })
        .collect();
    json!({
        "ruleId": diagnostic.code,
        "level": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Advisory => "note",
        },
        "message": { "text": text },
        "locations": [{ "physicalLocation": location }],
        "fixes": fixes,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    start_column: u32,
    end_line: u32,
    end_column: u32,
    byte_offset: u32,
    byte_length: u32,
}

impl Region {
    fn new(lines: &LineIndex<'_>, span: Span) -> Self {
        let place = lines.span(span);
        Self {
            start_line: place.start.line,
            start_column: place.start.column,
            end_line: place.end.line,
            end_column: place.end.column,
            byte_offset: span.start,
            byte_length: span.end - span.start,
        }
    }
}

/// A path as a relative URI reference (RFC 3986, section 2.3 says which characters need no
/// escape).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a b/ä#1.sql"), "a%20b/%C3%A4%231.sql");
    }
}
