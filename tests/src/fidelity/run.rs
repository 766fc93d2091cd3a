//! Running a text in a pinned session and keeping what the server said.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Row};

use super::RAW_CATALOG;
use crate::corpus::CATALOG;

/// "Query was empty": what follows the last delimiter of a payload was a comment.
const EMPTY_QUERY: u16 = 1065;
/// "… is deprecated and will be removed in a future release."
const DEPRECATED: u16 = 1287;
/// Spellings that the policy replaces by the one the server asks for.
const NEW_SPELLINGS: &[&str] = &["'&&' is deprecated"];
/// What `NOW()` is in every session, so that the sides cannot differ by a second: 2024-02-29
/// 12:34:56 UTC.
const TIMESTAMP: u32 = 1_709_210_096;

/// What a statement reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    affected_rows: u64,
    last_insert_id: Option<u64>,
    warning_count: u16,
}

impl Effect {
    const NOTHING: Self = Self { affected_rows: 0, last_insert_id: None, warning_count: 0 };
}

/// A line of `SHOW WARNINGS`: level, code and message.
pub(super) type Warning = (String, u16, String);

/// What ended a run.
#[derive(Debug)]
pub(super) struct Failure {
    /// The statement that failed, from 0.
    pub(super) statement: usize,
    /// The server's error code; nothing when the connection broke.
    pub(super) code: Option<u16>,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn at(&self) -> (usize, Option<u16>) {
        (self.statement, self.code)
    }

    pub(super) fn told(failure: Option<&Self>) -> String {
        failure.map_or_else(
            || "was accepted".to_owned(),
            |failure| {
                format!("was refused at statement {}: {}", failure.statement, failure.message)
            },
        )
    }
}

/// What came of running a text.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) effects: Vec<Effect>,
    pub(super) failure: Option<Failure>,
    /// Of the last statement; nothing when the server no longer has them.
    pub(super) warnings: Option<Vec<Warning>>,
}

impl Run {
    /// The run without warnings that say no more than that the author's spelling is old, where the
    /// normalised text has the new spelling. The count of the last statement follows.
    fn without_spelling_warnings(mut self) -> Self {
        if let (Some(warnings), Some(last)) = (&mut self.warnings, self.effects.last_mut()) {
            let before = warnings.len();
            warnings.retain(|(_, code, message)| {
                *code != DEPRECATED || !NEW_SPELLINGS.iter().any(|old| message.starts_with(old))
            });
            let dropped = u16::try_from(before - warnings.len()).unwrap_or(u16::MAX);
            last.warning_count = last.warning_count.saturating_sub(dropped);
        }
        self
    }

    /// The warnings as they would read in the other catalog.
    pub(super) fn mapped_warnings(&self) -> Option<Vec<Warning>> {
        let warnings = self.warnings.as_ref()?;
        Some(
            warnings
                .iter()
                .map(|(level, code, text)| {
                    (level.clone(), *code, text.replace(RAW_CATALOG, CATALOG))
                })
                .collect(),
        )
    }
}

/// A session as the policy asks for it, in a catalog.
pub(super) async fn pinned(mut conn: Conn, catalog: &str) -> Conn {
    let session = tollgate_policy::describe().session;
    let statements = [
        format!("SET NAMES {}", session.character_set),
        format!("SET SESSION sql_mode = '{}'", session.sql_mode.join(",")),
        format!("SET SESSION time_zone = '{}'", session.time_zone),
        format!("SET SESSION timestamp = {TIMESTAMP}"),
        format!("USE `{catalog}`"),
    ];
    for statement in statements {
        conn.query_drop(&statement).await.unwrap_or_else(|error| panic!("`{statement}`: {error}"));
    }
    conn
}

/// Runs a whole payload as its author's tool would: in one packet, cut by the server.
///
/// A comment after the last of its `statement_count` statements is an error on some servers and a
/// statement that does nothing on others; either way it is not the payload's, and the warnings of
/// what ran before are gone by then.
pub(super) async fn run_raw(conn: &mut Conn, text: &str, statement_count: usize) -> Run {
    let mut run = Run::default();
    let result = run_text(conn, text, &mut run.effects).await;
    let mut run = finish(conn, run, result).await;
    if run.effects.len() == statement_count + 1 && run.effects.last() == Some(&Effect::NOTHING) {
        run.effects.pop();
        run.warnings = None;
    }
    run.without_spelling_warnings()
}

/// Runs statements one a packet, up to the first that fails.
pub(super) async fn run_statements(conn: &mut Conn, statements: &[String]) -> Run {
    let mut run = Run::default();
    let mut result = Ok(());
    for (index, statement) in statements.iter().enumerate() {
        result = run_text(conn, statement, &mut run.effects).await;
        if result.is_err() {
            break;
        }
        assert_eq!(run.effects.len(), index + 1, "one text ran as several statements: {statement}");
    }
    finish(conn, run, result).await
}

async fn run_text(conn: &mut Conn, text: &str, effects: &mut Vec<Effect>) -> Result<(), Error> {
    let mut result = conn.query_iter(text).await?;
    while result.columns().is_some() {
        effects.push(Effect {
            affected_rows: result.affected_rows(),
            last_insert_id: result.last_insert_id(),
            warning_count: result.warnings(),
        });
        result.collect::<Row>().await?;
    }
    // An error of a later statement waits here.
    result.drop_result().await
}

async fn finish(conn: &mut Conn, mut run: Run, result: Result<(), Error>) -> Run {
    let failure = result.err().map(|error| Failure {
        statement: run.effects.len(),
        code: match &error {
            Error::Server(error) => Some(error.code),
            _ => None,
        },
        message: error.to_string(),
    });
    match failure {
        Some(Failure { code: Some(EMPTY_QUERY), statement, .. }) if statement > 0 => {}
        Some(failure) => run.failure = Some(failure),
        None => run.warnings = conn.query("SHOW WARNINGS").await.ok(),
    }
    run
}
