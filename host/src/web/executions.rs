//! The executions, page by page: the receipts of the target's ledger.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::badge::Badge;
use super::execution::{Details, details};
use super::frame::{Choice, Frame, LastError, Moment, Trouble, render, wrong};
use super::link::Link;
use super::observer::Observer;
use crate::ids::{Direction, StepKey};
use crate::ledger::{Filter, Page, Receipt, Standing, UnreadableRow};
use crate::text::visible;

/// What may be asked, each as it was written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    state: Option<String>,
    plugin: Option<String>,
    environment: Option<String>,
    direction: Option<String>,
    before: Option<String>,
    open: Option<String>,
}

#[derive(Template)]
#[template(path = "executions.html")]
struct ExecutionsPage {
    frame: Frame,
    form: Form,
    trouble: Option<Trouble>,
    /// On the first page of all executions.
    unsettled: Option<Vec<Row>>,
    rows: Option<Vec<Row>>,
    unreadable: Vec<UnreadableRow>,
    nothing: &'static str,
    newest: Option<String>,
    older: Option<String>,
    dialog: Option<Details>,
}

/// The filter as it was written, with what is wrong with it.
struct Form {
    states: Vec<Choice>,
    plugin: String,
    environment: String,
    directions: Vec<Choice>,
    is_filtered: bool,
    state_problem: Option<String>,
    plugin_problem: Option<String>,
    environment_problem: Option<String>,
    direction_problem: Option<String>,
    page_problem: Option<String>,
}

struct Row {
    id: u64,
    /// Whether the row is the one that a link to its place means: a receipt is on a page twice when
    /// it needs attention.
    has_anchor: bool,
    key: String,
    link: String,
    state: &'static str,
    class: &'static str,
    glyph: &'static str,
    is_contradictory: bool,
    error: Option<LastError>,
    release: String,
    direction: String,
    done: u32,
    statements: u32,
    attempts: u32,
    updated: Moment,
}

/// `/executions`
pub(super) async fn page(
    State(observer): State<Arc<Observer>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = asked else {
        let message = "Each part of a filter can be given once. Start again from all executions.";
        return wrong(StatusCode::BAD_REQUEST, "This filter cannot be read", message);
    };
    let (wanted, form) = read(&asked);
    let Some(wanted) = wanted else {
        return render(StatusCode::BAD_REQUEST, &unanswered(&observer, form));
    };
    if observer.is_disabled() {
        let nothing = "The SQL target is disabled, so there is no ledger to read. Dry runs are in \
                       the outbox.";
        let page = unanswered(&observer, form);
        return render(StatusCode::OK, &ExecutionsPage { rows: Some(Vec::new()), nothing, ..page });
    }
    let is_first = wanted.before.is_none() && !form.is_filtered;
    let reading = observer.executions(&wanted.filter, wanted.before, is_first);
    let (read, dialog) = tokio::join!(reading, opened(&observer, &asked, wanted.open.as_ref()));
    let link = |receipt: &Receipt| asked.link().with("open", receipt.key.as_str()).to_string();
    let page = match read {
        Err(trouble) => {
            ExecutionsPage { trouble: Some(trouble), dialog, ..unanswered(&observer, form) }
        }
        Ok((Page { receipts, next, unreadable }, unsettled)) => ExecutionsPage {
            frame: Frame::new(observer.environment(), "executions"),
            trouble: None,
            unsettled: unsettled
                .map(|page| page.receipts)
                .filter(|receipts| !receipts.is_empty())
                .map(|receipts| receipts.iter().map(|it| Row::new(it, link(it), false)).collect()),
            rows: Some(receipts.iter().map(|it| Row::new(it, link(it), true)).collect()),
            unreadable,
            nothing: match (form.is_filtered, wanted.before) {
                (_, Some(_)) => "No older executions.",
                (true, None) => "No execution matches this filter.",
                (false, None) => {
                    "No execution yet: the first claimed step makes the first receipt. Steps that \
                     wait are in the outbox."
                }
            },
            newest: wanted.before.map(|_| asked.link().without_before().to_string()),
            older: next.map(|id| asked.link().with("before", &id.to_string()).to_string()),
            dialog,
            form,
        },
    };
    render(StatusCode::OK, &page)
}

/// The page without executions.
fn unanswered(observer: &Observer, form: Form) -> ExecutionsPage {
    ExecutionsPage {
        frame: Frame::new(observer.environment(), "executions"),
        form,
        trouble: None,
        unsettled: None,
        rows: None,
        unreadable: Vec::new(),
        nothing: "",
        newest: None,
        older: None,
        dialog: None,
    }
}

/// The execution that is open over the list, and where closing it leads: to its row.
async fn opened(observer: &Observer, asked: &Asked, key: Option<&StepKey>) -> Option<Details> {
    let mut execution = details(observer, key?).await;
    let place = execution.receipt_id().map_or_else(String::new, |id| format!("#r{id}"));
    execution.as_dialog(format!("{}{place}", asked.link()));
    Some(execution)
}

/// A filter that can be asked for.
struct Wanted {
    filter: Filter,
    before: Option<u64>,
    open: Option<StepKey>,
}

/// Reads every part, and keeps what was written whatever is wrong with it.
fn read(asked: &Asked) -> (Option<Wanted>, Form) {
    let standing = parsed(asked.state.as_deref());
    let plugin = parsed(asked.plugin.as_deref());
    let environment = parsed(asked.environment.as_deref());
    let direction = parsed(asked.direction.as_deref());
    let before = parsed::<u64>(asked.before.as_deref());
    let open = parsed::<StepKey>(asked.open.as_deref());
    let written = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let chosen_state = standing.as_ref().ok().copied().flatten();
    let chosen_direction: Option<Direction> = direction.as_ref().ok().copied().flatten();
    let page_problem = match (&before, &open) {
        (Err(_), _) => Some("A page starts below a receipt's number: follow the links.".to_owned()),
        (_, Err(problem)) => Some(problem.clone()),
        _ => None,
    };
    let filters = [&asked.state, &asked.plugin, &asked.environment, &asked.direction];
    let form = Form {
        states: Standing::ALL
            .iter()
            .map(|state| Choice {
                word: state.as_str(),
                label: state.words(),
                is_chosen: chosen_state == Some(*state),
            })
            .collect(),
        plugin: written(&asked.plugin),
        environment: written(&asked.environment),
        directions: [(Direction::Forward, "forward"), (Direction::Compensate, "compensate")]
            .map(|(direction, label)| Choice {
                word: direction.as_str(),
                label,
                is_chosen: chosen_direction == Some(direction),
            })
            .into(),
        is_filtered: filters.iter().any(|text| !written(text).is_empty()),
        state_problem: standing.as_ref().err().cloned(),
        plugin_problem: plugin.as_ref().err().cloned(),
        environment_problem: environment.as_ref().err().cloned(),
        direction_problem: direction.as_ref().err().cloned(),
        page_problem,
    };
    let wanted = (|| {
        let (plugin, environment) = (plugin.ok()?, environment.ok()?);
        let filter =
            Filter { environment, plugin, direction: direction.ok()?, standing: standing.ok()? };
        Some(Wanted { filter, before: before.ok()?, open: open.ok()? })
    })();
    (wanted, form)
}

/// A part of the filter: nothing when it is empty.
fn parsed<T: std::str::FromStr<Err: ToString>>(text: Option<&str>) -> Result<Option<T>, String> {
    match text.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|error: T::Err| visible(&error.to_string())),
    }
}

impl Asked {
    /// The same page, without an open execution.
    fn link(&self) -> Link {
        let mut link = Link::to("/executions");
        for (name, text) in [
            ("state", &self.state),
            ("plugin", &self.plugin),
            ("environment", &self.environment),
            ("direction", &self.direction),
            ("before", &self.before),
        ] {
            link = link.with(name, text.as_deref().unwrap_or_default().trim());
        }
        link
    }
}

impl Row {
    fn new(receipt: &Receipt, link: String, has_anchor: bool) -> Self {
        let Badge { class, glyph } = Badge::from(receipt.standing);
        let is_done = matches!(
            receipt.standing,
            Standing::Succeeded | Standing::NotApplicable | Standing::Pruned
        );
        let error =
            LastError::of(receipt.last_error_code.as_deref(), receipt.last_error.as_deref());
        Self {
            id: receipt.id,
            has_anchor,
            key: receipt.key.to_string(),
            link,
            state: receipt.standing.words(),
            class,
            glyph,
            is_contradictory: receipt.contradiction.is_some(),
            // What went wrong before a success is in the details.
            error: error.filter(|_| !is_done),
            release: receipt.identity.release.to_string(),
            direction: direction(receipt.identity.direction),
            done: receipt.statements_done,
            statements: receipt.statement_count,
            attempts: receipt.execution_count,
            updated: Moment::of(receipt.updated_at.as_str()),
        }
    }
}

/// A direction in a sentence's letters.
pub(super) fn direction(direction: Direction) -> String {
    direction.as_str().to_ascii_lowercase()
}
