//! What every page has: its frame, moments, long texts and what went wrong.

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::assets;
use crate::clock::utc_now;
use crate::ids::EnvironmentCode;
use crate::ledger::UnreadableRow;
use crate::outbox::UnreadableStep;
use crate::text::{visible, with_causes};

/// Characters of a text that are shown at once; the rest is a click away.
const HEAD_CHARS_MAX: usize = 240;

/// What surrounds a page's own content.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) environment: Option<String>,
    pub(super) section: &'static str,
    pub(super) style: &'static str,
    pub(super) icon: &'static str,
    pub(super) version: &'static str,
    pub(super) read_at: String,
}

impl Frame {
    /// The frame of a page of this section of the navigation.
    pub(super) fn new(environment: Option<&EnvironmentCode>, section: &'static str) -> Self {
        Self {
            environment: environment.map(ToString::to_string),
            section,
            style: assets::style_path(),
            icon: assets::icon_path(),
            version: env!("CARGO_PKG_VERSION"),
            read_at: utc_now(),
        }
    }
}

/// A moment of a database's clock, as the page shows it.
#[derive(Debug)]
pub(super) struct Moment {
    /// For programs.
    pub(super) iso: String,
    /// To the second, where the column says that it is UTC.
    pub(super) shown: String,
    /// To the second, with its zone.
    pub(super) zoned: String,
    /// To the millisecond, with its zone.
    pub(super) exact: String,
}

impl Moment {
    /// Of a text such as `2026-01-31T09:30:00.000000Z`; another text is shown as it is.
    pub(super) fn of(time: &str) -> Self {
        let (seconds, fraction) = time.split_once('.').unwrap_or((time, "Z"));
        let shown = seconds.replacen('T', " ", 1);
        let fraction: String = fraction.chars().take(3).filter(char::is_ascii_digit).collect();
        let exact = match fraction.as_str() {
            "" => format!("{shown}Z"),
            fraction => format!("{shown}.{fraction}Z"),
        };
        let zoned = format!("{}Z", shown.trim_end_matches('Z'));
        Self { iso: time.to_owned(), shown, zoned, exact }
    }
}

/// A text of any length and any content: cut, with a way to see the rest.
#[derive(Debug)]
pub(super) struct Long {
    pub(super) head: String,
    /// The whole text, when the head is not all of it.
    pub(super) rest: Option<String>,
}

impl Long {
    pub(super) fn of(text: &str) -> Self {
        let text = visible(text);
        if text.chars().nth(HEAD_CHARS_MAX).is_none() {
            return Self { head: text, rest: None };
        }
        Self { head: text.chars().take(HEAD_CHARS_MAX).collect(), rest: Some(text) }
    }
}

/// A sentence with commands and names in backticks, as messages and help texts have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prose {
    pub(super) parts: Vec<Part>,
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) text: String,
    /// Whether it stood between backticks.
    pub(super) is_code: bool,
}

impl Prose {
    pub(super) fn of(text: &str) -> Self {
        let text = visible(text);
        if !text.matches('`').count().is_multiple_of(2) {
            return Self { parts: vec![Part { text, is_code: false }] };
        }
        let parts = text.split('`').enumerate();
        let parts = parts.map(|(at, text)| Part { text: text.to_owned(), is_code: at % 2 == 1 });
        Self { parts: parts.filter(|part| !part.text.is_empty()).collect() }
    }
}

/// The last error of a row.
#[derive(Debug)]
pub(super) struct LastError {
    pub(super) code: Option<String>,
    pub(super) text: Long,
}

impl LastError {
    /// Nothing when there was none.
    pub(super) fn of(code: Option<&str>, text: Option<&str>) -> Option<Self> {
        if code.is_none() && text.is_none() {
            return None;
        }
        Some(Self { code: code.map(visible), text: Long::of(text.unwrap_or_default()) })
    }
}

/// Something that could not be read, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// What could not be done, in the page's own words.
    pub(super) what: &'static str,
    /// Stable and kebab-case.
    pub(super) code: String,
    pub(super) message: Prose,
    pub(super) help: Prose,
}

impl Trouble {
    /// Of an error, with what caused it.
    pub(super) fn of(
        what: &'static str,
        error: &dyn std::error::Error,
        code: &str,
        help: &str,
    ) -> Self {
        Self::new(what, code, &with_causes(error), help)
    }

    /// Of words.
    pub(super) fn new(what: &'static str, code: &str, message: &str, help: &str) -> Self {
        let (message, help) = (Prose::of(message), Prose::of(help));
        Self { what, code: code.to_owned(), message, help }
    }

    /// Of a row of the outbox that needs a person and does not read.
    pub(super) fn of_step(row: &UnreadableStep) -> Self {
        let UnreadableStep { id, step_key, column, .. } = row;
        Self::of_row("A step cannot be read", "outbox-unreadable", (*id, step_key, column))
    }

    /// Of a row of the ledger that is not settled and does not read.
    pub(super) fn of_receipt(row: &UnreadableRow) -> Self {
        let UnreadableRow { id, key, column } = row;
        let key = key.as_deref().unwrap_or("?");
        Self::of_row("A receipt cannot be read", "ledger-unreadable", (*id, key, column))
    }

    /// The key may be anything: it is shown as a literal, with what is not visible escaped.
    fn of_row(what: &'static str, code: &str, (id, key, column): (u64, &str, &str)) -> Self {
        let message = format!("row {id}, {key:?}: its `{column}` is not as this version writes it");
        Self::new(what, code, &message, "restore the row from a backup")
    }
}

/// A page that says what is wrong with a request.
#[derive(Template)]
#[template(path = "wrong.html")]
struct Wrong<'a> {
    frame: Frame,
    title: &'a str,
    message: &'a str,
}

/// Answers with a page that says what is wrong with the request.
pub(super) fn wrong(status: StatusCode, title: &str, message: &str) -> Response {
    render(status, &Wrong { frame: Frame::new(None, ""), title, message })
}

/// Answers with a page.
pub(super) fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            (StatusCode::INTERNAL_SERVER_ERROR, "the page could not be rendered\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_keeps_its_zone() {
        let moment = Moment::of("2026-01-31T09:30:00.123456Z");
        assert_eq!(moment.iso, "2026-01-31T09:30:00.123456Z");
        assert_eq!(moment.shown, "2026-01-31 09:30:00");
        assert_eq!(moment.zoned, "2026-01-31 09:30:00Z");
        assert_eq!(moment.exact, "2026-01-31 09:30:00.123Z");
        assert_eq!(Moment::of("never").shown, "never");
    }

    #[test]
    fn what_stands_in_backticks_is_code() {
        let part = |text: &str, is_code| Part { text: text.to_owned(), is_code };
        let parts = [part("run ", false), part("tollgate doctor", true)];
        assert_eq!(Prose::of("run `tollgate doctor`").parts, parts);
        assert_eq!(Prose::of("odd ` one").parts, [part("odd ` one", false)]);
        assert_eq!(Prose::of("").parts, []);
    }

    #[test]
    fn a_long_text_is_cut_and_all_of_it_is_kept() {
        let short = Long::of("a\u{202e}b");
        assert_eq!((short.head.as_str(), short.rest), ("a<U+202E>b", None));
        let long = Long::of(&"é".repeat(10_000));
        assert_eq!(long.head.chars().count(), HEAD_CHARS_MAX);
        assert_eq!(long.rest.map(|rest| rest.chars().count()), Some(10_000));
    }
}
