//! How faults are written: `complete=crash@2;statement=pause:/path/file;commit=error-after%10`.

use std::path::PathBuf;
use std::time::Duration;

use super::Point;

/// A fault that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It is not `point=action`.
    #[error("`{0}` is not `point=action`")]
    Form(String),
    /// There is no such point.
    #[error("`{name}` is no fault point: one of {points}", points = points())]
    Point {
        /// What was written.
        name: String,
    },
    /// There is no such action.
    #[error(
        "`{0}` is no action: crash, error-before, error-after, panic:WORDS, pause:FILE or pause:N ms"
    )]
    Action(String),
    /// Nothing is sent there, so no answer can be lost.
    #[error("`{0}` is no write: it can only crash, panic or pause")]
    NoWrite(String),
    /// When to fire cannot be read.
    #[error("`{0}` is no hit: N, N.. or a chance in percent")]
    Hit(String),
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// The process dies as by SIGKILL, nothing sent.
    Crash,
    /// Nothing is sent; the caller sees a lost connection.
    ErrorBefore,
    /// Sent and answered; the caller sees a lost connection.
    ErrorAfter,
    /// Panics, with these words put together at run time, as a bug's are.
    Panic(String),
    /// Waits, then goes on, until the file is there.
    PauseUntil(PathBuf),
    /// Waits, then goes on.
    PauseFor(Duration),
}

impl Action {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::ErrorBefore => "error-before",
            Self::ErrorAfter => "error-after",
            Self::Panic(_) => "panic",
            Self::PauseUntil(_) | Self::PauseFor(_) => "pause",
        }
    }
}

/// Which times the point is reached, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    /// That time alone.
    Nth(u64),
    /// That time and every later one.
    From(u64),
    /// So many of a hundred times, by the seed.
    Chance(u64),
}

/// One fault.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) point: Point,
    pub(super) action: Action,
    pub(super) hit: Hit,
}

/// The faults of a text, separated by `;`.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, SpecError> {
    text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(rule).collect()
}

fn rule(text: &str) -> Result<Rule, SpecError> {
    let (name, rest) = text.split_once('=').ok_or_else(|| SpecError::Form(text.to_owned()))?;
    let point = Point::ALL.iter().copied().find(|point| point.name() == name);
    let point = point.ok_or_else(|| SpecError::Point { name: name.to_owned() })?;
    let (action, hit) = match rest.rsplit_once(['@', '%']) {
        None => (rest, Hit::Nth(1)),
        Some((action, number)) => (action, hit(number, rest.contains('%'))?),
    };
    let action = self::action(action)?;
    let loses = matches!(action, Action::ErrorBefore | Action::ErrorAfter);
    if loses && point == Point::Ack {
        return Err(SpecError::NoWrite(name.to_owned()));
    }
    Ok(Rule { point, action, hit })
}

fn hit(text: &str, is_chance: bool) -> Result<Hit, SpecError> {
    let wrong = || SpecError::Hit(text.to_owned());
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let hit = match text.strip_suffix("..") {
        Some(first) if !is_chance => Hit::From(number(first)?),
        Some(_) => return Err(wrong()),
        None if is_chance => Hit::Chance(number(text)?),
        None => Hit::Nth(number(text)?),
    };
    match hit {
        Hit::Nth(0) | Hit::From(0) | Hit::Chance(101..) => Err(wrong()),
        hit => Ok(hit),
    }
}

fn action(text: &str) -> Result<Action, SpecError> {
    let wrong = || SpecError::Action(text.to_owned());
    Ok(match text.split_once(':') {
        None => match text {
            "crash" => Action::Crash,
            "error-before" => Action::ErrorBefore,
            "error-after" => Action::ErrorAfter,
            _ => return Err(wrong()),
        },
        Some(("panic", words)) => Action::Panic(words.to_owned()),
        Some(("pause", until)) if until.starts_with('/') => Action::PauseUntil(until.into()),
        Some(("pause", time)) => {
            let number = time.strip_suffix("ms").unwrap_or(time).trim();
            Action::PauseFor(Duration::from_millis(number.parse().map_err(|_| wrong())?))
        }
        Some(_) => return Err(wrong()),
    })
}

fn points() -> String {
    Point::ALL.iter().map(|point| point.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Rule {
        parse(text).unwrap_or_else(|error| panic!("{error}")).remove(0)
    }

    #[test]
    fn every_form_is_read() {
        for (text, action, hit) in [
            ("complete=crash", Action::Crash, Hit::Nth(1)),
            ("complete=error-before@2", Action::ErrorBefore, Hit::Nth(2)),
            ("complete=error-after@3..", Action::ErrorAfter, Hit::From(3)),
            ("complete=error-after%10", Action::ErrorAfter, Hit::Chance(10)),
            ("complete=panic:a word", Action::Panic("a word".to_owned()), Hit::Nth(1)),
            ("complete=pause:250", Action::PauseFor(Duration::from_millis(250)), Hit::Nth(1)),
            ("complete=pause:9ms@4", Action::PauseFor(Duration::from_millis(9)), Hit::Nth(4)),
            ("complete=pause:/a@b/c@1", Action::PauseUntil("/a@b/c".into()), Hit::Nth(1)),
        ] {
            let rule = read(text);
            assert!(rule.point == Point::Complete, "{text}");
            assert_eq!((rule.action, rule.hit), (action, hit), "{text}");
        }
        assert_eq!(parse(" complete=crash ; ack=crash; ").map(|rules| rules.len()), Ok(2));
    }

    #[test]
    fn whatever_else_is_refused_by_name() {
        for text in [
            "complete",
            "compleet=crash",
            "complete=explode",
            "complete=pause",
            "complete=pause:soon",
            "complete=crash@0",
            "complete=crash@first",
            "complete=crash%101",
            "complete=crash%1..",
            "ack=error-after",
        ] {
            let error = parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains('`'), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_kebab_case_and_different() {
        let mut names: Vec<_> = Point::ALL.iter().map(|point| point.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b == b'-' || b.is_ascii_lowercase())));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
