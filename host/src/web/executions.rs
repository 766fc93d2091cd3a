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
use super::filter::{self, Field, Filter, Pager};
use super::frame::{Frame, LastError, Moment, Prose, Trouble, render, wrong};
use super::link::Link;
use super::observer::Observer;
use crate::ids::{Direction, StepKey};
use crate::ledger::{self, Receipt, Standing, UnreadableRow};
use crate::paging::Place;

/// What may be asked, each as it was written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    state: Option<String>,
    plugin: Option<String>,
    environment: Option<String>,
    direction: Option<String>,
    before: Option<String>,
    after: Option<String>,
    open: Option<String>,
}

#[derive(Template)]
#[template(path = "executions.html")]
struct ExecutionsPage {
    frame: Frame,
    form: Filter,
    trouble: Option<Trouble>,
    /// On the first page of all executions.
    unsettled: Option<Vec<Row>>,
    rows: Option<Vec<Row>>,
    unreadable: Vec<UnreadableRow>,
    nothing: &'static str,
    pager: Option<Pager>,
    dialog: Option<Details>,
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
    let is_first = wanted.place == Place::Newest && !form.is_set();
    let here = filter::at(form.link(), wanted.place);
    let reading = observer.executions(&wanted.filter, wanted.place, is_first);
    let opened = opened(&observer, wanted.open.as_ref(), &here);
    let (read, dialog) = tokio::join!(reading, opened);
    let link = |receipt: &Receipt| here.clone().with("open", receipt.key.as_str()).to_string();
    let page = match read {
        Err(trouble) => {
            ExecutionsPage { trouble: Some(trouble), dialog, ..unanswered(&observer, form) }
        }
        Ok((page, unsettled)) => ExecutionsPage {
            frame: Frame::new(observer.environment(), "executions"),
            trouble: None,
            unsettled: unsettled
                .map(|page| page.receipts)
                .filter(|receipts| !receipts.is_empty())
                .map(|receipts| receipts.iter().map(|it| Row::new(it, link(it), false)).collect()),
            rows: Some(page.receipts.iter().map(|it| Row::new(it, link(it), true)).collect()),
            unreadable: page.unreadable,
            nothing: nothing(&form, wanted.place),
            pager: Some(Pager::new(
                "Pages of executions",
                &form.link(),
                wanted.place,
                page.newer,
                page.next,
            )),
            dialog,
            form,
        },
    };
    render(StatusCode::OK, &page)
}

/// What a page without executions says.
fn nothing(form: &Filter, place: Place) -> &'static str {
    match place {
        Place::Below(_) => "No older executions.",
        Place::Above(_) => "No newer executions.",
        Place::Newest if form.is_set() => "No execution matches this filter.",
        Place::Newest => {
            "No execution yet: the first claimed step makes the first receipt. Steps that wait are \
             in the outbox."
        }
    }
}

/// The page without executions.
fn unanswered(observer: &Observer, form: Filter) -> ExecutionsPage {
    ExecutionsPage {
        frame: Frame::new(observer.environment(), "executions"),
        form,
        trouble: None,
        unsettled: None,
        rows: None,
        unreadable: Vec::new(),
        nothing: "",
        pager: None,
        dialog: None,
    }
}

/// The execution that is open over the list, and where closing it leads: to its row.
async fn opened(observer: &Observer, key: Option<&StepKey>, here: &Link) -> Option<Details> {
    let mut execution = details(observer, key?).await;
    let place = execution.receipt_id().map_or_else(String::new, |id| format!("#r{id}"));
    execution.as_dialog(format!("{here}{place}"));
    Some(execution)
}

/// A filter that can be asked for.
struct Wanted {
    filter: ledger::Filter,
    place: Place,
    open: Option<StepKey>,
}

/// Reads every part, and keeps what was written whatever is wrong with it.
fn read(asked: &Asked) -> (Option<Wanted>, Filter) {
    let standings: Vec<_> = Standing::ALL.iter().map(|it| (*it, it.as_str(), it.words())).collect();
    let directions = [(Direction::Forward, "forward"), (Direction::Compensate, "compensate")]
        .map(|(direction, label)| (direction, direction.as_str(), label));
    let (state, standing) = Field::choice("state", "State", asked.state.as_deref(), &standings);
    let (plugin_field, plugin) = Field::text("plugin", "Plugin", asked.plugin.as_deref());
    let (environment_field, environment) =
        Field::text("environment", "Environment", asked.environment.as_deref());
    let (direction_field, direction) =
        Field::choice("direction", "Direction", asked.direction.as_deref(), &directions);
    let place = filter::place(asked.before.as_deref(), asked.after.as_deref());
    let open = filter::parsed::<StepKey>(asked.open.as_deref());
    let form = Filter {
        action: "/executions",
        fields: vec![state, plugin_field, environment_field, direction_field],
        problem: place.as_ref().err().or(open.as_ref().err()).map(|problem| Prose::of(problem)),
    };
    let wanted = (|| {
        let filter = ledger::Filter {
            environment: environment.ok()?,
            plugin: plugin.ok()?,
            direction: direction.ok()?,
            standing: standing.ok()?,
        };
        Some(Wanted { filter, place: place.ok()?, open: open.ok()? })
    })();
    (wanted, form)
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
