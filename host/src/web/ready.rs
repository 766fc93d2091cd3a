//! The answer of `/readyz`, of a worker and of the page: one shape, one vocabulary.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::executor::{Missing, RegistryStatus, SqlTargetState};
use crate::target::Side;
use crate::worker::{NotReady, Readiness, by_side, reason_words};

/// The code of a configuration with problems: its causes are variables.
const CONFIGURATION: (&str, &str) =
    ("configuration-broken", "the configuration has problems: nothing is read");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ready: bool,
    reasons: Vec<Reason>,
}

/// Why it is not ready.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reason {
    code: &'static str,
    message: &'static str,
    /// Absent of a drain, and of the page, which remembers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_seconds: Option<u64>,
    /// What is wrong, as a status names it; absent of a drain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Missing>,
}

impl Reason {
    fn new((code, message): (&'static str, &'static str), causes: Vec<Missing>) -> Option<Self> {
        (!causes.is_empty()).then_some(Self { code, message, for_seconds: None, causes })
    }

    /// Of a worker.
    pub(super) fn of_worker(readiness: &Readiness) -> Vec<Self> {
        let reason = |reason: &NotReady| Self {
            code: reason.code(),
            message: reason.message(),
            for_seconds: reason.lasting().map(|time| time.as_secs()),
            causes: reason.causes().to_vec(),
        };
        readiness.reasons().iter().map(reason).collect()
    }

    /// Of the page: what is missing of the target, by the side that lacks it.
    pub(super) fn of_status(status: RegistryStatus, is_broken: bool) -> Vec<Self> {
        let SqlTargetState::Incomplete { missing } = status.sql_target else { return Vec::new() };
        if is_broken {
            return Self::new(CONFIGURATION, missing).into_iter().collect();
        }
        let (target, control) = by_side(missing);
        let of = |side, causes: Vec<Missing>| Self::new(reason_words(side, &causes), causes);
        [of(Side::Control, control), of(Side::Target, target)].into_iter().flatten().collect()
    }
}

/// 200 when nothing speaks against it, else 503 with the reasons, as
/// `docs/schema/readyz.schema.json` describes.
pub(super) fn answer(reasons: Vec<Reason>) -> Response {
    let ready = reasons.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Answer { ready, reasons })).into_response()
}
