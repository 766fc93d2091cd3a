//! The status page: its routes, and what each of them is held to.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};

use super::frame::wrong;
use super::observer::Observer;
use super::ready::Reason;
use super::security::{Exposure, guard};
use super::{assets, execution, executions, metrics, outbox, ready, status};

/// The page, its status as JSON, and probes: every route reads.
///
/// `/healthz` answers 200 while the process runs. `/readyz` answers 200 when there is something to
/// show: the target is ready or disabled; else 503 with what is missing, in a worker's words. Every answer
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
        .route("/readyz", get(ready_or_not))
        .route("/metrics", get(metrics::of_servers))
        .fallback(async || {
            wrong(StatusCode::NOT_FOUND, "Not found", "There is nothing at this address.")
        })
        .with_state(Arc::new(observer))
        .layer(middleware::from_fn_with_state(exposure, guard))
}

async fn ready_or_not(State(observer): State<Arc<Observer>>) -> Response {
    let status = observer.status().await;
    ready::answer(Reason::of_status(status, observer.is_broken()))
}
