//! A worker's probes, for whoever starts, watches and replaces it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde::Serialize;

use super::metrics;
use super::security::{Exposure, guard_probes, plain};
use crate::executor::Missing;
use crate::worker::{NotReady, Readiness};

/// `/healthz`, `/readyz` and `/metrics` of a worker.
///
/// `/healthz` answers 200 while the process runs its tasks: a supervisor restarts on silence, and a
/// server that is away is no reason for a restart. `/readyz` answers 200 when the worker is
/// [ready](Readiness::is_ready), else 503; its body is one JSON object with the reasons, as
/// `docs/schema/readyz.schema.json` describes. `/metrics` is what this process
/// counted, as `docs/metrics.md` describes. None opens a connection, so all answer at once whatever is
/// away, and none has anything secret. Requests are held to the same rules as the page's.
pub fn probes<F>(readiness: F, exposure: Exposure) -> Router
where
    F: Fn() -> Readiness + Clone + Send + Sync + 'static,
{
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready::<F>))
        .route("/metrics", get(counted::<F>))
        .fallback(async || {
            plain(StatusCode::NOT_FOUND, "Not found", "There are /healthz, /readyz and /metrics.")
        })
        .with_state(readiness)
        .layer(middleware::from_fn_with_state(exposure, guard_probes))
}

async fn counted<F>(State(readiness): State<F>) -> Response
where
    F: Fn() -> Readiness + Clone + Send + Sync + 'static,
{
    metrics::of_worker(&readiness())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ready: bool,
    reasons: Vec<ReasonLine>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReasonLine {
    code: &'static str,
    message: &'static str,
    /// Absent of a drain.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_seconds: Option<u64>,
    /// What is wrong, as a status names it; absent of a drain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Missing>,
}

async fn ready<F>(State(readiness): State<F>) -> Response
where
    F: Fn() -> Readiness + Clone + Send + Sync + 'static,
{
    let now = readiness();
    let status = if now.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let reasons = now.reasons().iter().map(line).collect();
    (status, Json(Answer { ready: now.is_ready(), reasons })).into_response()
}

fn line(reason: &NotReady) -> ReasonLine {
    ReasonLine {
        code: reason.code(),
        message: reason.message(),
        for_seconds: reason.lasting().map(|time| time.as_secs()),
        causes: reason.causes().to_vec(),
    }
}
