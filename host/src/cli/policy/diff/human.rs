//! Counts, and a few examples of each kind.

use tollgate::audit::{Answers, Compared, Difference};
use tollgate::policy::{
    Decision, Diagnostic, LineIndex, NoDecision, Outcome, PolicyPin, Statement,
};

use super::{Tally, output};
use std::fmt::Write as _;

/// Characters of a statement that an example shows.
const TEXT_SHOWN_MAX: usize = 300;

/// A payload that the policies differ on.
pub(super) fn example(compared: &Compared) -> String {
    let path = output::visible_line(&compared.path.to_string_lossy());
    let mut text = format!("  {path}\n");
    let mut line = |title: &str, content: &str| {
        let _ = writeln!(text, "    {title:<7}{}", output::visible_line(content));
    };
    match &compared.answers {
        Err(error) => line("error", &error.to_string()),
        Ok(Answers { before, after }) => {
            for (title, answer) in [("before", before), ("after", after)] {
                line(title, &told(answer, compared, before, after));
            }
        }
    }
    text
}

/// What one policy says: of what runs the first statement that is not the same, of findings the
/// first.
fn told(
    answer: &Result<Decision, NoDecision>,
    compared: &Compared,
    before: &Result<Decision, NoDecision>,
    after: &Result<Decision, NoDecision>,
) -> String {
    let decision = match answer {
        Ok(decision) => decision,
        Err(error) => return format!("no decision: {error}"),
    };
    let index = first_other(statements(before), statements(after));
    let mut told = match decision.outcome() {
        Outcome::Allow { statements, .. } => match statements.get(index) {
            Some(statement) => format!("runs    {}", shortened(&statement.text)),
            None => format!("runs    {} statements", statements.len()),
        },
        Outcome::Deny { .. } => "denies".to_owned(),
    };
    if compared.difference() == Difference::CodesChanged || !decision.outcome().is_allow() {
        let lines = LineIndex::new(&compared.payload);
        let diagnostics = decision.outcome().diagnostics();
        if let Some(first) = diagnostics.first() {
            let _ = write!(told, "  {}", finding(first, &lines));
        }
        if diagnostics.len() > 1 {
            let _ = write!(told, " (and {} more)", diagnostics.len() - 1);
        }
    }
    told
}

fn statements(answer: &Result<Decision, NoDecision>) -> &[Statement] {
    match answer.as_ref().map(Decision::outcome) {
        Ok(Outcome::Allow { statements, .. }) => statements,
        _ => &[],
    }
}

/// The index of the first statement that two lists do not share.
fn first_other(before: &[Statement], after: &[Statement]) -> usize {
    before.iter().zip(after).take_while(|(one, other)| one.text == other.text).count()
}

fn finding(diagnostic: &Diagnostic, lines: &LineIndex<'_>) -> String {
    let Diagnostic { code, message, span, .. } = diagnostic;
    match span.map(|span| lines.span(span).start) {
        Some(start) => format!("{}:{} {code}: {message}", start.line, start.column),
        None => format!("{code}: {message}"),
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(TEXT_SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// What there is to say once everything is decided.
pub(super) fn closing((before, after): &(PolicyPin, PolicyPin), tally: &Tally) -> String {
    let mut text = String::new();
    for (title, pin) in [("before", before), ("after", after)] {
        let PolicyPin { name, version, sha256, .. } = pin;
        let _ = writeln!(text, "{title:<8}{name} {version}, {sha256}");
    }
    let _ = writeln!(text, "{:<8}{}", "corpus", counted(tally.payloads()));
    for kind in &tally.kinds {
        let _ = writeln!(text, "{:>8}  {}", kind.count, title(kind.difference));
    }
    for kind in tally.kinds.iter().filter(|kind| !kind.examples.is_empty()) {
        let _ = writeln!(text, "\n{}:", title(kind.difference));
        for example in &kind.examples {
            text.push_str(example);
        }
        let shown = u64::try_from(kind.examples.len()).unwrap_or(u64::MAX);
        if shown < kind.count {
            let _ = writeln!(text, "  … and {} more", kind.count - shown);
        }
    }
    text
}

const fn title(difference: Difference) -> &'static str {
    match difference {
        Difference::DenyToAllow => "denied before, allowed after",
        Difference::Error => "without a decision",
        Difference::AllowToDeny => "allowed before, denied after",
        Difference::TextChanged => "allowed by both, something else runs",
        Difference::CodesChanged => "the same decision with other codes",
        Difference::Same => "the same",
    }
}

fn counted(payloads: u64) -> String {
    if payloads == 1 { "1 payload".into() } else { format!("{payloads} payloads") }
}
