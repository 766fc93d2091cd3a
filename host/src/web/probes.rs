//! A worker's probes, for whoever starts, watches and replaces it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};

use super::ready::Reason;
use super::security::{Exposure, guard_probes, plain};
use super::{metrics, ready};
use crate::worker::Readiness;

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
        .route("/readyz", get(ready_or_not::<F>))
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

async fn ready_or_not<F>(State(readiness): State<F>) -> Response
where
    F: Fn() -> Readiness + Clone + Send + Sync + 'static,
{
    ready::answer(Reason::of_worker(&readiness()))
}
