//! The status page: its routes, and what each of them is held to.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde::Serialize;

use super::frame::wrong;
use super::observer::Observer;
use super::security::{Exposure, guard};
use super::{assets, execution, executions, metrics, outbox, status};
use crate::executor::SqlTargetState;

/// The page, its status as JSON, and probes: every route reads.
///
/// `/healthz` answers 200 while the process runs. `/readyz` answers 200 when there is something to
/// show: the target is ready or disabled; else 503 with the keys of what is missing. Every answer
/// comes within 10 seconds, whatever is away.
pub fn site(observer: Observer, exposure: Exposure) -> Router {
    Router::new()
        .route("/", get(status::page))
        .route("/api/status", get(status::json))
        .route("/executions", get(executions::page))
        .route("/executions/{key}", get(execution::page))
        .route("/execution", get(execution::page_by_query))
        .route("/outbox", get(outbox::page))
        .route("/assets/{name}", get(assets::asset))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::of_servers))
        .fallback(async || {
            wrong(StatusCode::NOT_FOUND, "Not found", "There is nothing at this address.")
        })
        .with_state(Arc::new(observer))
        .layer(middleware::from_fn_with_state(exposure, guard))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ready: bool,
    reasons: Vec<Reason>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reason {
    code: &'static str,
    message: String,
}

async fn ready(State(observer): State<Arc<Observer>>) -> Response {
    let reasons: Vec<Reason> = match observer.status().await.sql_target {
        SqlTargetState::Disabled | SqlTargetState::Ready { .. } => Vec::new(),
        SqlTargetState::Incomplete { missing } => missing
            .into_iter()
            .map(|missing| Reason {
                code: "target-incomplete",
                message: format!("{}: {}", missing.key, missing.message),
            })
            .collect(),
    };
    let ready = reasons.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Answer { ready, reasons })).into_response()
}
