//! One execution: its receipt, its delivery and what its payload said.

use std::sync::Arc;

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::badge::{Badge, meaning};
use super::decision::DecisionView;
use super::executions::direction;
use super::frame::{Frame, LastError, Moment, Prose, Trouble, render, wrong};
use super::link;
use super::observer::Observer;
use crate::ids::{Direction, StepKey};
use crate::ledger::{Receipt, Standing};
use crate::outbox::{ListedStep, Status};

#[derive(Template)]
#[template(path = "execution.html")]
struct ExecutionPage {
    frame: Frame,
    execution: Details,
}

/// Everything about one execution.
#[derive(Debug)]
pub(super) struct Details {
    pub(super) key: String,
    /// Its own page.
    pub(super) link: String,
    /// Over the list, with a way back to it.
    pub(super) is_dialog: bool,
    pub(super) back: String,
    pub(super) is_unknown: bool,
    pub(super) troubles: Vec<Trouble>,
    pub(super) receipt: Option<ReceiptView>,
    pub(super) step: Option<StepView>,
    pub(super) decision: Option<DecisionView>,
}

#[derive(Debug)]
pub(super) struct ReceiptView {
    id: u64,
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    pub(super) meaning: &'static str,
    pub(super) advice: Option<Prose>,
    pub(super) warnings: Vec<String>,
    pub(super) error: Option<LastError>,
    pub(super) executor: String,
    pub(super) external_receipt: Option<String>,
    pub(super) plugin: String,
    pub(super) version: String,
    pub(super) environment: String,
    pub(super) direction: String,
    pub(super) counterpart: Option<Other>,
    pub(super) counterpart_is: &'static str,
    pub(super) attempts: u32,
    pub(super) done: u32,
    pub(super) statements: u32,
    pub(super) created: Moment,
    pub(super) updated: Moment,
    pub(super) completed: Option<Moment>,
    pub(super) lease: Moment,
    pub(super) lease_is: &'static str,
    pub(super) session: Option<u64>,
    pub(super) content_hash: String,
    pub(super) policy_digest: Option<String>,
    pub(super) decision_digest: Option<String>,
}

/// Another step.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) key: String,
    pub(super) link: String,
}

#[derive(Debug)]
pub(super) struct StepView {
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) glyph: &'static str,
    /// Whether its plan stands still until a person has looked.
    pub(super) stands_still: bool,
    pub(super) advice: Option<Prose>,
    pub(super) executor: String,
    pub(super) external_receipt: Option<String>,
    pub(super) plan: String,
    /// From 1.
    pub(super) position: u32,
    pub(super) release: String,
    pub(super) contribution: String,
    pub(super) direction: String,
    pub(super) attempts: u32,
    pub(super) failures: u32,
    pub(super) lost: u32,
    /// Of a step that waits for its time.
    pub(super) due: Option<Moment>,
    pub(super) created: Moment,
    pub(super) updated: Moment,
    pub(super) error: Option<LastError>,
}

/// What `/execution` may be asked.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    key: String,
}

/// `/executions/{key}`
pub(super) async fn page(
    State(observer): State<Arc<Observer>>,
    key: Result<Path<String>, PathRejection>,
) -> Response {
    shown(&observer, key.ok().map(|Path(key)| key)).await
}

/// `/execution?key=…`, for the keys that a path cannot hold.
pub(super) async fn page_by_query(
    State(observer): State<Arc<Observer>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    shown(&observer, asked.ok().map(|Query(asked)| asked.key)).await
}

/// The page of a step; of a key that cannot be read as well, which is no step's.
async fn shown(observer: &Observer, key: Option<String>) -> Response {
    let Some(key) = key.and_then(|key| key.parse::<StepKey>().ok()) else {
        let message = "This is no step's key: use 1 to 128 of A-Z a-z 0-9 . _ : -";
        return wrong(StatusCode::BAD_REQUEST, "No such step", message);
    };
    let execution = details(observer, &key).await;
    let status = match &execution {
        Details { is_unknown: true, .. } => StatusCode::NOT_FOUND,
        Details { receipt: None, step: None, .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let frame = Frame::new(observer.environment(), "executions");
    render(status, &ExecutionPage { frame, execution })
}

/// Reads an execution on both sides. A side that cannot be read is said, and hides nothing of the
/// other.
pub(super) async fn details(observer: &Observer, key: &StepKey) -> Details {
    let step = async { if observer.has_control() { observer.step(key).await } else { Ok(None) } };
    let receipt =
        async { if observer.is_disabled() { Ok(None) } else { observer.receipt(key).await } };
    let (receipt, step) = tokio::join!(receipt, step);
    let mut troubles = Vec::new();
    let mut kept = |trouble: Trouble| troubles.push(trouble);
    let receipt = receipt.unwrap_or_else(|trouble| {
        kept(trouble);
        None
    });
    let step = step.unwrap_or_else(|trouble| {
        kept(trouble);
        None
    });
    let decision = match &receipt {
        Some(receipt) => Some(DecisionView::new(observer.redecided(receipt).await, receipt)),
        None => None,
    };
    Details {
        key: key.to_string(),
        link: link::to_execution(key),
        is_dialog: false,
        back: String::new(),
        is_unknown: receipt.is_none() && step.is_none() && troubles.is_empty(),
        troubles,
        receipt: receipt.as_ref().map(ReceiptView::new),
        step: step.as_ref().map(StepView::new),
        decision,
    }
}

impl Details {
    /// Shown over the list; closing leads back to it.
    pub(super) fn as_dialog(&mut self, back: String) {
        self.is_dialog = true;
        self.back = back;
    }

    /// Whether its plan waits for a person.
    pub(super) fn stands_still(&self) -> bool {
        self.step.as_ref().is_some_and(|step| step.stands_still)
    }

    /// The number of its receipt.
    pub(super) fn receipt_id(&self) -> Option<u64> {
        self.receipt.as_ref().map(|receipt| receipt.id)
    }
}

impl ReceiptView {
    fn new(receipt: &Receipt) -> Self {
        let Badge { class, glyph } = Badge::from(receipt.standing);
        let mut warnings = Vec::new();
        if let Some(column) = receipt.contradiction {
            warnings.push(format!(
                "Edited by hand: {column} contradicts the rest of the row. The step is refused \
                 until the row is as a write of the ledger leaves it."
            ));
        }
        if receipt.lease_implausible {
            warnings.push(
                "The lease ends further ahead than any lease is long: the server's clock went back."
                    .to_owned(),
            );
        }
        let identity = &receipt.identity;
        Self {
            id: receipt.id,
            state: receipt.standing.words(),
            class,
            glyph,
            meaning: meaning(receipt.standing),
            advice: receipt.advice().map(|advice| Prose::of(&advice)),
            warnings,
            error: LastError::of(receipt.last_error_code.as_deref(), receipt.last_error.as_deref()),
            executor: receipt.executor.to_string(),
            external_receipt: receipt.external_receipt.as_ref().map(ToString::to_string),
            plugin: identity.release.code.to_string(),
            version: identity.release.version.to_string(),
            environment: identity.environment.to_string(),
            direction: direction(identity.direction),
            counterpart: receipt
                .counterpart
                .as_ref()
                .map(|key| Other { key: key.to_string(), link: link::to_execution(key) }),
            counterpart_is: match identity.direction {
                Direction::Forward => "Taken back by",
                Direction::Compensate => "Takes back",
            },
            attempts: receipt.execution_count,
            done: receipt.statements_done,
            statements: receipt.statement_count,
            created: Moment::of(receipt.created_at.as_str()),
            updated: Moment::of(receipt.updated_at.as_str()),
            completed: receipt.completed_at.as_ref().map(|time| Moment::of(time.as_str())),
            lease: Moment::of(receipt.lease_deadline.as_str()),
            lease_is: match receipt.standing {
                Standing::Running => "Lease until",
                _ => "Lease was until",
            },
            session: receipt.session_id,
            content_hash: identity.content_hash.to_string(),
            policy_digest: receipt.policy_digest.as_ref().map(ToString::to_string),
            decision_digest: receipt.decision_digest.as_ref().map(ToString::to_string),
        }
    }
}

impl StepView {
    fn new(step: &ListedStep) -> Self {
        let Badge { class, glyph } = Badge::from(step);
        let is_over = matches!(step.status, Status::Applied | Status::Superseded);
        let error = LastError::of(step.last_error_code.as_deref(), step.last_error.as_deref());
        Self {
            state: step.words(),
            class,
            glyph,
            stands_still: step.status == Status::NeedsAttention,
            advice: step.advice().map(|advice| Prose::of(&advice)),
            executor: step.executor.to_string(),
            external_receipt: step.external_receipt.clone(),
            plan: step.plan.to_string(),
            position: step.position.saturating_add(1),
            release: step.release.to_string(),
            contribution: step.contribution_key.to_string(),
            direction: direction(step.direction),
            attempts: step.attempt_count,
            failures: step.failure_count,
            lost: step.lost_count,
            due: (step.status == Status::Pending).then(|| Moment::of(&step.not_before)),
            created: Moment::of(&step.created_at),
            updated: Moment::of(&step.updated_at),
            error: error.filter(|_| !is_over),
        }
    }
}
