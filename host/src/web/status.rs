//! The first page: can the target be used, and what needs a person.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::badge::Badge;
use super::executions::direction;
use super::frame::{Frame, LastError, Moment, Prose, Trouble, render};
use super::link;
use super::observer::{ATTENTION_MAX, LedgerOverview, Observer, OutboxOverview};
use crate::executor::{Missing, PolicyStatus, RegistryStatus, SqlTargetState};
use crate::ledger::{Receipt, Standing};
use crate::outbox::{ListedStep, NeedingAttention, Status};
use crate::text::visible;

/// Seconds after which a page that could not wait for the target asks again.
const AGAIN_SECONDS: &str = "2";

#[derive(Template)]
#[template(path = "status.html")]
struct StatusPage {
    frame: Frame,
    target: TargetView,
    attention: Attention,
    facts: Facts,
    counts: Counts,
}

struct TargetView {
    state: &'static str,
    class: &'static str,
    glyph: &'static str,
    meaning: &'static str,
    /// How old that is, when it is looked at again and that takes its time.
    age_seconds: Option<u64>,
    missing_title: &'static str,
    missing: Vec<MissingView>,
}

struct MissingView {
    key: String,
    message: Prose,
    help: Prose,
}

struct Facts {
    executor: String,
    /// Why it is not installed, when the target does not say so.
    executor_missing: Option<MissingView>,
    executors: Vec<String>,
    environment: Option<String>,
    catalog: Option<String>,
    policy: Option<PolicyStatus>,
}

struct Attention {
    shown: usize,
    /// Whether both sides were read, so that no item is good news.
    is_clear: bool,
    is_cut: bool,
    items: Vec<Item>,
    troubles: Vec<Trouble>,
    nothing: &'static str,
    /// What is not among the items because nobody looked.
    unread: &'static str,
}

/// Something that needs a person.
pub(super) struct Item {
    pub(super) key: String,
    pub(super) link: String,
    pub(super) state: String,
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    pub(super) release: String,
    pub(super) direction: String,
    pub(super) source: &'static str,
    pub(super) since: Moment,
    pub(super) error: Option<LastError>,
    pub(super) advice: Prose,
}

struct Counts {
    executions: Option<Vec<CountRow>>,
    executions_why: &'static str,
    outbox: Option<Vec<CountRow>>,
    outbox_why: &'static str,
}

struct CountRow {
    word: &'static str,
    state: &'static str,
    class: &'static str,
    glyph: &'static str,
    count: u64,
}

/// `/`
pub(super) async fn page(State(observer): State<Arc<Observer>>) -> Response {
    let (status, outbox) = tokio::join!(observer.status_soon(), outbox(&observer));
    let ledger = match status.as_ref().map(|status| &status.sql_target) {
        Some(SqlTargetState::Ready { .. }) => Some(observer.ledger_overview().await),
        _ => None,
    };
    let is_waiting = status.is_none();
    let (status, age) = match status {
        Some(status) => (Some(status), None),
        None => observer.last_missing().unzip(),
    };
    let page = StatusPage {
        frame: Frame::new(observer.environment(), "status"),
        target: TargetView::of(status.as_ref().map(|status| &status.sql_target)).aged(age),
        facts: facts(&observer, status.as_ref()),
        counts: Counts::of(ledger.as_ref(), outbox.as_ref(), status.as_ref(), observer.is_broken()),
        attention: Attention::of(ledger.as_ref(), outbox.as_ref()),
    };
    let mut response = render(StatusCode::OK, &page);
    if is_waiting {
        response.headers_mut().insert(header::REFRESH, HeaderValue::from_static(AGAIN_SECONDS));
    }
    response
}

/// `/api/status`: the same line as `tollgate status --json`.
pub(super) async fn json(State(observer): State<Arc<Observer>>) -> Response {
    Json(observer.status().await).into_response()
}

async fn outbox(observer: &Observer) -> Option<Result<OutboxOverview, Trouble>> {
    if observer.has_control() { Some(observer.outbox_overview().await) } else { None }
}

fn facts(observer: &Observer, status: Option<&RegistryStatus>) -> Facts {
    match (status, observer.known()) {
        (Some(status), _) => Facts {
            executor: status.executor.to_string(),
            executor_missing: status.executor_missing.as_ref().map(MissingView::of),
            executors: status.executors.iter().map(ToString::to_string).collect(),
            environment: status.environment.as_ref().map(ToString::to_string),
            catalog: status.catalog.as_ref().map(ToString::to_string),
            policy: status.policy.clone(),
        },
        (None, known) => Facts {
            executor: known.map(|known| known.executor().to_string()).unwrap_or_default(),
            executor_missing: None,
            executors: Vec::new(),
            environment: observer.environment().map(ToString::to_string),
            catalog: observer.catalog().map(ToString::to_string),
            policy: known.and_then(|known| known.policy().cloned()),
        },
    }
}

impl TargetView {
    /// Of a state; of none while the target is being verified.
    fn of(state: Option<&SqlTargetState>) -> Self {
        let (word, class, glyph, meaning) = match state {
            None => (
                "being verified",
                "waiting",
                "…",
                "The target has not answered yet. This page asks again by itself.",
            ),
            Some(SqlTargetState::Disabled) => (
                "disabled",
                "disabled",
                "–",
                "Not enabled: nothing of it is configured or looked at, and no SQL runs.",
            ),
            Some(SqlTargetState::Incomplete { .. }) => (
                "incomplete",
                "incomplete",
                "▲",
                "Enabled, and something is missing. No SQL step is started until it is there.",
            ),
            Some(SqlTargetState::Ready { .. }) => (
                "ready",
                "ready",
                "✓",
                "A connection was opened just now, every isolation check held, and the ledger has \
                 its shape.",
            ),
        };
        let (missing_title, missing) = match state {
            Some(SqlTargetState::Incomplete { missing }) => ("What is missing", missing.as_slice()),
            Some(SqlTargetState::Ready { warnings }) => ("Warnings", warnings.as_slice()),
            Some(SqlTargetState::Disabled) | None => ("", [].as_slice()),
        };
        let missing = missing.iter().map(MissingView::of).collect();
        Self { state: word, class, glyph, meaning, age_seconds: None, missing_title, missing }
    }

    /// The same, as it was found that long ago.
    fn aged(self, age: Option<Duration>) -> Self {
        Self { age_seconds: age.map(|age| age.as_secs()), ..self }
    }
}

impl MissingView {
    fn of(missing: &Missing) -> Self {
        Self {
            key: visible(&missing.key),
            message: Prose::of(&missing.message),
            help: Prose::of(&missing.help),
        }
    }
}

impl Counts {
    fn of(
        ledger: Option<&Result<LedgerOverview, Trouble>>,
        outbox: Option<&Result<OutboxOverview, Trouble>>,
        status: Option<&RegistryStatus>,
        is_broken: bool,
    ) -> Self {
        let executions = ledger.and_then(|ledger| ledger.as_ref().ok()).map(|ledger| {
            let rows = Standing::ALL.iter().filter_map(|standing| {
                let count = *ledger.counts.by_standing.get(standing)?;
                let Badge { class, glyph } = Badge::from(*standing);
                let (word, state) = (standing.as_str(), standing.words());
                Some(CountRow { word, state, class, glyph, count })
            });
            rows.collect()
        });
        let counted = outbox.and_then(|outbox| outbox.as_ref().ok()).map(|outbox| {
            // Attention first.
            let is_calm = |status: &&Status| **status != Status::NeedsAttention;
            let rest = Status::ALL.iter().filter(is_calm);
            let rows = [Status::NeedsAttention].iter().chain(rest).filter_map(|status| {
                let count = *outbox.counts.get(status)?;
                let Badge { class, glyph } = Badge::from(*status);
                let (word, state) = (status.as_str(), status.words());
                Some(CountRow { word, state, class, glyph, count })
            });
            rows.collect()
        });
        Self {
            executions,
            executions_why: match (ledger, status.map(|status| &status.sql_target)) {
                (None, _) if is_broken => "Not read: the configuration has problems.",
                (None, None) => "Not read yet: the SQL target is being verified.",
                (None, Some(SqlTargetState::Disabled)) => "Not read: the SQL target is disabled.",
                (None, Some(_)) => "Not read: the SQL target is not ready.",
                (Some(_), _) => "Not known: the executions could not be read.",
            },
            outbox: counted,
            outbox_why: match outbox {
                None if is_broken => "Not read: the configuration has problems.",
                None => "Not read: no control catalog is configured.",
                Some(_) => "Not known: the outbox could not be read.",
            },
        }
    }
}

impl Attention {
    fn of(
        ledger: Option<&Result<LedgerOverview, Trouble>>,
        outbox: Option<&Result<OutboxOverview, Trouble>>,
    ) -> Self {
        let mut items = Vec::new();
        let mut troubles = Vec::new();
        let mut seen = BTreeSet::new();
        let mut is_cut = false;
        let limit = usize::try_from(ATTENTION_MAX).unwrap_or(usize::MAX);
        match outbox {
            Some(Ok(outbox)) => {
                let NeedingAttention { steps, unreadable, .. } = &outbox.attention;
                is_cut |= steps.len() + unreadable.len() >= limit;
                for step in steps {
                    seen.insert(step.step_key.clone());
                    items.push(of_step(step));
                }
                troubles.extend(unreadable.iter().map(Trouble::of_step));
            }
            Some(Err(trouble)) => troubles.push(trouble.clone()),
            None => {}
        }
        match ledger {
            Some(Ok(ledger)) => {
                is_cut |= ledger.unsettled.receipts.len() >= limit;
                let others = ledger.unsettled.receipts.iter().filter(|it| !seen.contains(&it.key));
                items.extend(others.map(of_receipt));
                troubles.extend(ledger.unsettled.unreadable.iter().map(Trouble::of_receipt));
            }
            Some(Err(trouble)) => troubles.push(trouble.clone()),
            None => {}
        }
        let nothing = match (ledger, outbox) {
            (Some(_), Some(_)) => "Nothing needs attention.",
            (Some(_), None) => "No execution needs attention. There is no outbox to read.",
            (None, Some(_)) => "No step of the outbox needs attention. Executions were not read.",
            (None, None) => "Nothing was read.",
        };
        let unread = match (ledger, outbox) {
            (None, Some(_)) => "Executions were not read. ",
            (Some(_), None) => "There is no outbox to read. ",
            _ => "",
        };
        let shown = items.len();
        let is_clear = ledger.is_some() && outbox.is_some();
        Self { shown, is_clear, is_cut, items, troubles, nothing, unread }
    }
}

pub(super) fn of_step(step: &ListedStep) -> Item {
    let Badge { class, glyph } = Badge::from(step);
    Item {
        key: step.step_key.to_string(),
        link: link::to_execution(&step.step_key),
        state: step.words().to_owned(),
        class,
        glyph,
        release: step.release.to_string(),
        direction: direction(step.direction),
        source: "the plan stands still",
        since: Moment::of(&step.updated_at),
        error: LastError::of(step.last_error_code.as_deref(), step.last_error.as_deref()),
        advice: Prose::of(&step.advice().unwrap_or_default()),
    }
}

fn of_receipt(receipt: &Receipt) -> Item {
    let Badge { class, glyph } = Badge::from(receipt);
    Item {
        key: receipt.key.to_string(),
        link: link::to_execution(&receipt.key),
        state: match receipt.contradiction {
            Some(column) => format!("edited by hand: {column}"),
            None => receipt.standing.to_string(),
        },
        class,
        glyph,
        release: receipt.identity.release.to_string(),
        direction: direction(receipt.identity.direction),
        source: "on the target",
        since: Moment::of(receipt.updated_at.as_str()),
        error: LastError::of(receipt.last_error_code.as_deref(), receipt.last_error.as_deref()),
        advice: Prose::of(&receipt.advice().unwrap_or_default()),
    }
}
