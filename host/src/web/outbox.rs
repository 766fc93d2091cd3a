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
use super::filter::{self, Field, Filter, Pager};
use super::frame::{Frame, LastError, Moment, Prose, Trouble, render, wrong};
use super::link;
use super::observer::Observer;
use super::status::{Item, of_step};
use crate::outbox::{ListedStep, Status};
use crate::paging::{Place, Slice};

/// What may be asked, each as it was written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    state: Option<String>,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Template)]
#[template(path = "outbox.html")]
struct OutboxPage {
    frame: Frame,
    form: Filter,
    trouble: Option<Trouble>,
    /// On the first page of all steps.
    attention: Option<Vec<Item>>,
    rows: Option<Vec<Row>>,
    nothing: &'static str,
    pager: Option<Pager>,
}

struct Row {
    key: String,
    link: String,
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
    let choices: Vec<_> = Status::ALL.iter().map(|it| (*it, it.as_str(), it.words())).collect();
    let (field, status) = Field::choice("state", "State", asked.state.as_deref(), &choices);
    let place = filter::place(asked.before.as_deref(), asked.after.as_deref());
    let problem = place.as_ref().err().map(|problem| Prose::of(problem));
    let form = Filter { action: "/outbox", fields: vec![field], problem };
    let link = form.link();
    let page = OutboxPage {
        frame: Frame::new(observer.environment(), "outbox"),
        trouble: None,
        attention: None,
        rows: None,
        nothing: match &place {
            Ok(Place::Below(_)) => "No older steps.",
            Ok(Place::Above(_)) => "No newer steps.",
            _ if form.is_set() => "No step is in this state.",
            _ => "Nothing is enqueued: `tollgate submit` enqueues a plan.",
        },
        pager: None,
        form,
    };
    let (Ok(status), Ok(place)) = (status, place) else {
        return render(StatusCode::BAD_REQUEST, &page);
    };
    if observer.is_disabled() && !observer.has_control() {
        let nothing = "No control catalog is configured, so there is no outbox to read.";
        return render(StatusCode::OK, &OutboxPage { rows: Some(Vec::new()), nothing, ..page });
    }
    let is_first = place == Place::Newest && status.is_none();
    let page = match observer.steps(status, place, is_first).await {
        Err(trouble) => OutboxPage { trouble: Some(trouble), ..page },
        Ok((Slice { items, newer, older }, attention)) => OutboxPage {
            attention: Some(attention.steps.iter().map(of_step).collect())
                .filter(|items: &Vec<Item>| !items.is_empty()),
            rows: Some(items.iter().map(Row::new).collect()),
            pager: Some(Pager::new("Pages of steps", &link, place, newer, older)),
            ..page
        },
    };
    render(StatusCode::OK, &page)
}

impl Row {
    fn new(step: &ListedStep) -> Self {
        let Badge { class, glyph } = Badge::from(step);
        let is_over = matches!(step.status, Status::Applied | Status::Superseded);
        let error = LastError::of(step.last_error_code.as_deref(), step.last_error.as_deref());
        Self {
            key: step.step_key.to_string(),
            link: link::to_execution(&step.step_key),
            state: step.words(),
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
