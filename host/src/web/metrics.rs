//! `/metrics`: what this process counted, and what a look at the servers finds now.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::frame::Trouble;
use super::observer::{LedgerOverview, Observer, OutboxOverview};
use crate::executor::{RegistryStatus, SqlTargetState};
use crate::ledger::Standing;
use crate::metrics::{CONTENT_TYPE, list, metrics, register};
use crate::outbox::Status;
use crate::worker::Readiness;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Policy {
    name: String,
    version: String,
    digest: String,
}

/// A gauge of seconds.
type Seconds = Gauge<f64, AtomicU64>;

/// The page's: with the state of the target, the ledger and the outbox. A server that is away makes
/// its figures absent and `tollgate_source_up` 0, in bounded time.
pub(super) async fn of_servers(State(observer): State<Arc<Observer>>) -> Response {
    let outbox = async {
        if observer.has_control() { Some(observer.outbox_overview().await) } else { None }
    };
    let (status, outbox) = tokio::join!(observer.status(), outbox);
    let ledger = match status.sql_target {
        SqlTargetState::Ready { .. } => Some(observer.ledger_overview().await),
        // Looked at just now, and away: that is all there is to know.
        SqlTargetState::Incomplete { .. } => None,
        SqlTargetState::Disabled => None,
    };
    let mut registry = Registry::default();
    add_status(&mut registry, &status);
    let up = Family::<Source, Gauge>::default();
    if !matches!(status.sql_target, SqlTargetState::Disabled) {
        let is_up = matches!(ledger, Some(Ok(_)));
        up.get_or_create(&Source { source: "target" }).set(is_up.into());
    }
    if let Some(outbox) = &outbox {
        up.get_or_create(&Source { source: "control" }).set(outbox.is_ok().into());
    }
    register(&mut registry, &list::SOURCE_UP, up);
    add_ledger(&mut registry, ledger.as_ref());
    add_outbox(&mut registry, outbox.as_ref());
    answer(registry)
}

/// A worker's own.
pub(super) fn of_worker(readiness: &Readiness) -> Response {
    let mut registry = Registry::default();
    let ready = Gauge::<i64>::default();
    ready.set(readiness.is_ready().into());
    register(&mut registry, &list::WORKER_READY, ready);
    answer(registry)
}

fn answer(mut registry: Registry) -> Response {
    let build = Family::<Version, Gauge>::default();
    build.get_or_create(&Version { version: env!("CARGO_PKG_VERSION") }).set(1);
    register(&mut registry, &list::BUILD_INFO, build);
    match metrics().encode(&registry) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n")
                .into_response()
        }
    }
}

fn add_status(registry: &mut Registry, status: &RegistryStatus) {
    let target = Family::<StateLabel, Gauge>::default();
    for state in ["disabled", "incomplete", "ready"] {
        let is_it = status.sql_target.as_str() == state;
        target.get_or_create(&StateLabel { state }).set(is_it.into());
    }
    register(registry, &list::SQL_TARGET, target);
    if let Some(policy) = &status.policy {
        let info = Family::<Policy, Gauge>::default();
        let labels = Policy {
            name: policy.name.clone(),
            version: policy.version.to_string(),
            digest: policy.digest.to_string(),
        };
        info.get_or_create(&labels).set(1);
        register(registry, &list::POLICY_INFO, info);
    }
}

fn add_ledger(registry: &mut Registry, ledger: Option<&Result<LedgerOverview, Trouble>>) {
    let Some(Ok(ledger)) = ledger else { return };
    let executions = Family::<StateLabel, Gauge>::default();
    for standing in Standing::ALL {
        let count = ledger.counts.get(standing).copied().unwrap_or_default();
        let gauge = executions.get_or_create_owned(&StateLabel { state: standing.as_str() });
        gauge.set(whole(count));
    }
    register(registry, &list::EXECUTIONS, executions);
}

fn add_outbox(registry: &mut Registry, outbox: Option<&Result<OutboxOverview, Trouble>>) {
    let Some(Ok(outbox)) = outbox else { return };
    let steps = Family::<StatusLabel, Gauge>::default();
    for status in Status::ALL {
        let count = outbox.counts.get(status).copied().unwrap_or_default();
        let gauge = steps.get_or_create_owned(&StatusLabel { status: status.as_str() });
        gauge.set(whole(count));
    }
    register(registry, &list::OUTBOX_STEPS, steps);
    let oldest = Seconds::default();
    oldest.set(outbox.oldest_due.unwrap_or(Duration::ZERO).as_secs_f64());
    register(registry, &list::OUTBOX_OLDEST_DUE, oldest);
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
