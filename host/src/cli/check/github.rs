//! GitHub workflow commands: each finding becomes an annotation of the line it is on.

use std::fmt::Write as _;

use tollgate::policy::Severity;

use super::report::{Renderer, Report, Written};

pub(super) struct Github;

impl Renderer for Github {
    fn render(&self, report: &Report<'_>) -> Written {
        let mut text = String::new();
        let file = property(&report.path);
        match &report.audited.result {
            Ok(decision) => {
                for diagnostic in decision.outcome().diagnostics() {
                    let command = match diagnostic.severity {
                        Severity::Error => "error",
                        Severity::Advisory => "notice",
                    };
                    let _ = write!(text, "::{command} file={file}");
                    if let Some(span) = diagnostic.span {
                        let span = report.lines.span(span);
                        let (start, end) = (span.start, span.end);
                        let _ = write!(text, ",line={},endLine={}", start.line, end.line);
                        // The runner takes columns for annotations of one line alone.
                        if start.line == end.line {
                            let _ = write!(text, ",col={},endColumn={}", start.column, end.column);
                        }
                    }
                    let mut words = diagnostic.message.clone();
                    if let Some(help) = &diagnostic.help {
                        words = format!("{words}\nhelp: {help}");
                    }
                    let title = property(&diagnostic.code);
                    let _ = writeln!(text, ",title={title}::{}", message(&words));
                }
            }
            Err(error) => {
                let words = message(&error.to_string());
                let _ = writeln!(text, "::error file={file},title=no decision::{words}");
            }
        }
        text.into()
    }
}

/// Escapes the text of a command.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_or_a_path_starts_another_command() {
        assert_eq!(message("100%\r\n::error::x"), "100%25%0D%0A::error::x");
        assert_eq!(property("a,b:c%"), "a%2Cb%3Ac%25");
    }
}
