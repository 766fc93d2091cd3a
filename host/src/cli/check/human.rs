//! For people: one line a payload, and every finding with the text it is about underlined.

use std::fmt;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};
use tollgate::audit::{Agreement, Contradiction, ReceiptField, Undecided};
use tollgate::policy::{Diagnostic, LineIndex, Outcome, Severity, Span};

use super::super::output::{self, visible, visible_line};
use super::fix::Repair;
use super::report::{Renderer, Report, Summary, Written};
use super::summary::Receipts;

/// Characters of a source line that are shown around the underlined text, at most, on each side:
/// dumps have lines of a megabyte.
const EXCERPT_CHARACTERS: usize = 60;

pub(super) struct Human {
    handler: GraphicalReportHandler,
    is_terminal: bool,
}

impl Human {
    pub(super) fn new() -> Self {
        let styles =
            if output::stdout_has_colour() { ThemeStyles::ansi() } else { ThemeStyles::none() };
        let theme = GraphicalTheme { characters: ThemeCharacters::unicode(), styles };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
        Self { handler, is_terminal: io::stdout().is_terminal() }
    }
}

impl Renderer for Human {
    fn render(&self, report: &Report<'_>) -> Written {
        let mut text = String::new();
        let path = visible_line(&report.path);
        match &report.audited.result {
            Ok(decision) => {
                let diagnostics = decision.outcome().diagnostics();
                let _ = match decision.outcome() {
                    Outcome::Allow { statements, .. } => {
                        let count = counted(statements.len(), "statement");
                        writeln!(text, "allowed  {path}  ({count})")
                    }
                    Outcome::Deny { .. } => {
                        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
                        let count = counted(errors.count(), "problem");
                        writeln!(text, "denied   {path}  ({count})")
                    }
                };
                text.push_str(&self.findings(&path, &report.lines, diagnostics));
            }
            // As it should be: a tombstone is no reason to do anything.
            Err(Undecided::Pruned) if report.recorded == Some(&Agreement::Pruned) => {
                let _ = writeln!(text, "pruned   {path}  (its receipt names no decision any more)");
            }
            Err(error) => undecided(&mut text, &path, error),
        }
        if let Some(Agreement::Differs(found)) = report.recorded {
            for contradiction in found {
                let Contradiction { field, recorded, found } = contradiction;
                let [recorded, found] = [recorded, found].map(|it| visible_line(it));
                let _ = writeln!(
                    text,
                    "differs  {path}  {}\n  recorded {recorded}\n  found    {found}",
                    told(*field)
                );
            }
        }
        if let Some(repair) = report.repair {
            self.repair(&mut text, repair);
        }
        text.into()
    }

    fn end(&self, summary: &Summary) -> String {
        let Summary { files, allowed, denied, undecided, receipts, .. } = summary;
        if let Some(receipts) = receipts {
            return counts(*files, receipts);
        }
        if *files < 2 {
            return String::new();
        }
        let mut text =
            format!("\n{}: {allowed} allowed, {denied} denied", counted(*files, "payload"));
        if *undecided > 0 {
            let _ = write!(text, ", {undecided} without a decision");
        }
        text.push('\n');
        text
    }
}

/// Why there is no decision. What an export says about it stands within a line of ours.
fn undecided(text: &mut String, path: &str, error: &Undecided) {
    let _ = writeln!(text, "no decision  {path}\n  {}", visible_line(&error.to_string()));
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let _ = writeln!(text, "  because: {}", visible_line(&error.to_string()));
        cause = error.source();
    }
    let _ = writeln!(text, "  help: {}", error.help());
}

/// What a receipt has that is not so.
const fn told(field: ReceiptField) -> &'static str {
    match field {
        ReceiptField::Key => "its key is there twice",
        ReceiptField::ContentHash => "its receipt has another content hash",
        ReceiptField::DecisionDigest => "its receipt has another decision digest",
        ReceiptField::StatementCount => "its receipt has another number of statements",
        ReceiptField::Status => "its receipt's status contradicts what else is known",
        ReceiptField::ExternalReceipt => "its receipt has another external receipt",
        ReceiptField::CompletedAt => "its receipt's time of completion contradicts its status",
        ReceiptField::Contradiction => {
            "its row was edited by hand: a column contradicts the others"
        }
    }
}

/// The last line of a ledger's export: what is said of it when one line is read.
fn counts(lines: usize, receipts: &Receipts) -> String {
    let Receipts { agree, differ, unknown, pruned, damaged, bad_lines, complete } = receipts;
    let count = u64::try_from(lines).unwrap_or(u64::MAX).saturating_sub(*bad_lines);
    let mut text = if lines > 0 { "\n".to_owned() } else { String::new() };
    let _ = write!(text, "{}: ", counted(usize::try_from(count).unwrap_or(lines), "receipt"));
    let _ = write!(text, "{agree} agree, {differ} differ, {unknown} unknown, {pruned} pruned");
    if *damaged > 0 {
        let _ = write!(text, ", {damaged} damaged");
    }
    if *bad_lines > 0 {
        let _ =
            write!(text, "; {}", counted(usize::try_from(*bad_lines).unwrap_or(lines), "bad line"));
    }
    text.push_str(if *complete { "\n" } else { "; the export is not complete\n" });
    text
}

impl Human {
    /// Every finding, with the text it is about underlined. `path` is safe to print.
    pub(super) fn findings(
        &self,
        path: &str,
        lines: &LineIndex<'_>,
        diagnostics: &[Diagnostic],
    ) -> String {
        let mut text = String::new();
        for diagnostic in diagnostics {
            text.push('\n');
            let shown = Shown::new(diagnostic, path, lines);
            // Writing to a string does not fail.
            let _ = self.handler.render_report(&mut text, &shown);
        }
        text
    }

    fn repair(&self, text: &mut String, repair: &Repair) {
        let Repair { edits, diff, allowed, written, write_error } = repair;
        text.push('\n');
        text.push_str(&if self.is_terminal { visible(diff) } else { diff.clone() });
        let edits = counted(*edits, "edit");
        let rest = if *allowed { "the payload is allowed" } else { "it is still denied" };
        let _ = match (written, write_error) {
            (_, Some(error)) => writeln!(text, "\n{edits} not written: {error}"),
            (true, None) => writeln!(text, "\n{edits} written; {rest}"),
            (false, None) => {
                writeln!(text, "\nwith {edits} {rest}; `--fix --write` writes them")
            }
        };
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A diagnostic as miette shows it.
#[derive(Debug)]
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
}

impl<'a> Shown<'a> {
    fn new(diagnostic: &'a Diagnostic, path: &str, lines: &LineIndex<'_>) -> Self {
        Self {
            diagnostic,
            message: visible_line(&diagnostic.message),
            help: diagnostic.help.as_deref().map(visible),
            excerpt: diagnostic.span.and_then(|span| Excerpt::new(path, lines, span)),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(&self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Advisory => miette::Severity::Advice,
        })
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let underlined = self.excerpt.as_ref()?.underlined;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, underlined))))
    }
}

/// The line a finding is on, cut to what fits and made safe to print, with the place it comes from.
/// Of a finding over several lines it has the first.
#[derive(Debug)]
struct Excerpt {
    path: String,
    text: String,
    /// Within `text`.
    underlined: SourceSpan,
    /// From 0, as miette counts.
    line: usize,
    /// From 0, in characters of the payload.
    column: usize,
}

impl Excerpt {
    fn new(path: &str, lines: &LineIndex<'_>, span: Span) -> Option<Self> {
        let place = lines.position(span.start);
        let (line_start, line) = lines.line(place.line)?;
        let start = (span.start as usize).checked_sub(line_start)?.min(line.len());
        let end = (span.end as usize).checked_sub(line_start)?.clamp(start, line.len());
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(line.get(range).unwrap_or_default()).into_owned()
        };
        let before = cut_front(&visible(&text(0..start)));
        let inside = cut_back(&visible(&text(start..end)), 2 * EXCERPT_CHARACTERS);
        let after = cut_back(&visible(&text(end..line.len())), EXCERPT_CHARACTERS);
        let underlined = (before.len(), inside.len()).into();
        let mut text = format!("{before}{inside}{after}");
        if inside.is_empty() && after.is_empty() {
            // Something to point at where the line ends.
            text.push(' ');
        }
        Some(Self {
            path: path.to_owned(),
            text,
            underlined,
            line: place.line.saturating_sub(1) as usize,
            column: place.column.saturating_sub(1) as usize,
        })
    }
}

fn cut_front(text: &str) -> String {
    let surplus = text.chars().count().saturating_sub(EXCERPT_CHARACTERS);
    if surplus == 0 {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(surplus)).collect()
}

fn cut_back(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters).chain(std::iter::once('…')).collect()
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        _span: &SourceSpan,
        _lines_before: usize,
        _lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        Ok(Box::new(MietteSpanContents::new_named(
            self.path.clone(),
            self.text.as_bytes(),
            (0, self.text.len()).into(),
            self.line,
            self.column,
            1,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(payload: &str, needle: &str) -> String {
        let start = u32::try_from(payload.find(needle).unwrap()).unwrap();
        let span = Span { start, end: start + u32::try_from(needle.len()).unwrap() };
        let diagnostic = Diagnostic {
            code: "some-code".into(),
            severity: Severity::Error,
            message: "the message".into(),
            help: Some("the help".into()),
            statement: None,
            span: Some(span),
            fix: None,
        };
        let lines = LineIndex::new(payload.as_bytes());
        let mut text = String::new();
        let theme = GraphicalTheme::none();
        GraphicalReportHandler::new_themed(theme)
            .with_width(100)
            .render_report(&mut text, &Shown::new(&diagnostic, "a.sql", &lines))
            .unwrap();
        text
    }

    /// The underline of the excerpt starts under the text it is about, in terminal cells.
    fn underlines(text: &str, needle: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.contains(needle) && line.contains('|')).unwrap();
        let cells = |text: &str| text.chars().map(|c| if c > '\u{2e80}' { 2 } else { 1 }).sum();
        let column: usize = cells(lines[at].split(needle).next().unwrap());
        let under = lines[at + 1];
        assert_eq!(under.find(['-', '^']), Some(column), "{text}");
    }

    #[test]
    fn the_place_and_the_underline_are_right() {
        let text = shown("-- x\n\nDELETE FROM t;\n", "FROM");
        assert!(text.contains("a.sql:3:8"), "{text}");
        underlines(&text, "FROM");
    }

    #[test]
    fn multibyte_text_before_it_moves_neither() {
        let text = shown("SELECT 'äö名前😀', BAD", "BAD");
        assert!(text.contains("a.sql:1:17"), "{text}");
        underlines(&text, "BAD");
    }

    #[test]
    fn a_tab_is_one_character_and_several_cells() {
        let text = shown("\tx\tBAD\t", "BAD");
        assert!(text.contains("a.sql:1:4"), "{text}");
        underlines(&text, "BAD");
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut() {
        let payload = format!("INSERT {} BAD {}", "x, ".repeat(300_000), "y".repeat(300_000));
        let text = shown(&payload, "BAD");
        assert!(text.len() < 2_000, "{}", text.len());
        assert!(text.contains(&format!("a.sql:1:{}", payload.find("BAD").unwrap() + 1)), "{text}");
        underlines(&text, "BAD");
    }

    #[test]
    fn the_first_line_of_a_long_finding_is_shown() {
        let text = shown("CREATE TABLE t (\n  id int\n);", "TABLE t (\n  id int\n)");
        assert!(text.contains("CREATE TABLE t (") && !text.contains("id int"), "{text}");
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert!(!shown("DELETE \x1b[2J BAD", "BAD").contains('\x1b'));
    }

    #[test]
    fn the_end_of_a_payload_can_be_pointed_at() {
        let lines = LineIndex::new(b"x\n");
        let excerpt = Excerpt::new("a.sql", &lines, Span { start: 2, end: 2 }).unwrap();
        assert_eq!((excerpt.line, excerpt.column), (1, 0));
    }
}
