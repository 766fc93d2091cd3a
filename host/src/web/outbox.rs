//! The outbox, page by page: what is enqueued and what came of it, whoever the executor is.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::badge::Badge;
use super::executions::direction;
use super::frame::{Choice, Frame, LastError, Moment, Trouble, render, wrong};
use super::link::Link;
use super::observer::Observer;
use crate::outbox::{ListedStep, Status};
use crate::text::visible;

/// What may be asked, each as it was written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    state: Option<String>,
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "outbox.html")]
struct OutboxPage {
    frame: Frame,
    form: Form,
    trouble: Option<Trouble>,
    rows: Option<Vec<Row>>,
    nothing: &'static str,
    newest: Option<String>,
    older: Option<String>,
}

struct Form {
    states: Vec<Choice>,
    is_filtered: bool,
    state_problem: Option<String>,
    page_problem: Option<&'static str>,
}

struct Row {
    key: String,
    state: &'static str,
    class: &'static str,
    glyph: &'static str,
    error: Option<LastError>,
    plan: String,
    executor: String,
    direction: String,
    attempts: u32,
    updated: Moment,
}

/// `/outbox`
pub(super) async fn page(
    State(observer): State<Arc<Observer>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = asked else {
        let message = "Each part of a filter can be given once. Start again from the whole outbox.";
        return wrong(StatusCode::BAD_REQUEST, "This filter cannot be read", message);
    };
    let written = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let (state, before) = (written(&asked.state), written(&asked.before));
    let status = if state.is_empty() { Ok(None) } else { state.parse::<Status>().map(Some) };
    let start = if before.is_empty() { Ok(None) } else { before.parse::<u64>().map(Some) };
    let chosen = status.as_ref().ok().copied().flatten();
    let form = Form {
        states: Status::ALL
            .iter()
            .map(|status| Choice {
                word: status.as_str(),
                label: status.words(),
                is_chosen: chosen == Some(*status),
            })
            .collect(),
        is_filtered: !state.is_empty(),
        state_problem: status
            .as_ref()
            .err()
            .map(|_| format!("`{}` is not a state: choose one of the list", visible(&cut(&state)))),
        page_problem: start
            .as_ref()
            .err()
            .map(|_| "A page starts below a step's number: follow the links."),
    };
    let page = OutboxPage {
        frame: Frame::new(observer.environment(), "outbox"),
        trouble: None,
        rows: None,
        nothing: match (form.is_filtered, &start) {
            (_, Ok(Some(_))) => "No older steps.",
            (true, _) => "No step is in this state.",
            (false, _) => "Nothing is enqueued: `tollgate submit` enqueues a plan.",
        },
        newest: None,
        older: None,
        form,
    };
    let (Ok(status), Ok(start)) = (status, start) else {
        return render(StatusCode::BAD_REQUEST, &page);
    };
    if observer.is_disabled() && !observer.has_control() {
        let nothing = "No control catalog is configured, so there is no outbox to read.";
        return render(StatusCode::OK, &OutboxPage { rows: Some(Vec::new()), nothing, ..page });
    }
    let link = Link::to("/outbox").with("state", &state);
    let page = match observer.steps(status, start).await {
        Err(trouble) => OutboxPage { trouble: Some(trouble), ..page },
        Ok((steps, next)) => OutboxPage {
            rows: Some(steps.iter().map(Row::new).collect()),
            newest: start.map(|_| link.to_string()),
            older: next.map(|id| link.with("before", &id.to_string()).to_string()),
            ..page
        },
    };
    render(StatusCode::OK, &page)
}

/// Enough of a text to recognise it.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

impl Row {
    fn new(step: &ListedStep) -> Self {
        let Badge { class, glyph } = Badge::from(step.status);
        let is_over = matches!(step.status, Status::Applied | Status::Superseded);
        let error = LastError::of(step.last_error_code.as_deref(), step.last_error.as_deref());
        Self {
            key: step.step_key.to_string(),
            state: step.status.words(),
            class,
            glyph,
            error: error.filter(|_| !is_over),
            plan: step.plan.to_string(),
            executor: step.executor.to_string(),
            direction: direction(step.direction),
            attempts: step.attempt_count,
            updated: Moment::of(&step.updated_at),
        }
    }
}
