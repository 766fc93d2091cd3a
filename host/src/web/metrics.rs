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
use tokio::time::{Instant, timeout_at};

use super::observer::{LedgerOverview, Observer, OutboxOverview};
use crate::executor::{PolicyStatus, StatusReader};
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

/// How long the servers have to answer, together: half of what Prometheus waits by default
/// (`scrape_timeout` is 10 s), since figures that come too late are none.
const SCRAPE_BUDGET: Duration = Duration::from_secs(5);

/// The page's: with the state of the target, the ledger and the outbox, all read at once. A server that
/// is away, or does not answer in time, makes its figures absent and `tollgate_source_up` 0.
pub(super) async fn of_servers(State(observer): State<Arc<Observer>>) -> Response {
    let deadline = Instant::now() + SCRAPE_BUDGET;
    let (status, ledger, outbox) = tokio::join!(
        timeout_at(deadline, observer.status()),
        timeout_at(deadline, async {
            if observer.is_disabled() { None } else { Some(observer.ledger_overview().await) }
        }),
        timeout_at(deadline, async {
            if observer.has_control() { Some(observer.outbox_overview().await) } else { None }
        }),
    );
    let mut registry = Registry::default();
    match &status {
        Ok(status) => {
            add_target(&mut registry, status.sql_target.as_str());
            add_policy(&mut registry, status.policy.as_ref());
        }
        // As a status says it of a target that does not answer.
        Err(_) => {
            add_target(&mut registry, "incomplete");
            add_policy(&mut registry, observer.known().and_then(StatusReader::policy));
        }
    }
    // Under a configuration with problems nothing of either side is read.
    let up = Family::<Source, Gauge>::default();
    if !observer.is_disabled() {
        let is_up = matches!(ledger, Ok(Some(Ok(_))));
        up.get_or_create(&Source { source: "target" }).set(is_up.into());
    }
    if observer.has_control() || observer.is_broken() {
        let is_up = matches!(outbox, Ok(Some(Ok(_))));
        up.get_or_create(&Source { source: "control" }).set(is_up.into());
    }
    register(&mut registry, &list::SOURCE_UP, up);
    if let Ok(Some(Ok(ledger))) = &ledger {
        add_ledger(&mut registry, ledger);
    }
    if let Ok(Some(Ok(outbox))) = &outbox {
        add_outbox(&mut registry, outbox);
    }
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

fn add_target(registry: &mut Registry, now: &str) {
    let target = Family::<StateLabel, Gauge>::default();
    for state in ["disabled", "incomplete", "ready"] {
        target.get_or_create(&StateLabel { state }).set((now == state).into());
    }
    register(registry, &list::SQL_TARGET, target);
}

fn add_policy(registry: &mut Registry, policy: Option<&PolicyStatus>) {
    let Some(policy) = policy else { return };
    let info = Family::<Policy, Gauge>::default();
    let labels = Policy {
        name: policy.name.clone(),
        version: policy.version.to_string(),
        digest: policy.digest.to_string(),
    };
    info.get_or_create(&labels).set(1);
    register(registry, &list::POLICY_INFO, info);
}

fn add_ledger(registry: &mut Registry, ledger: &LedgerOverview) {
    let executions = Family::<StateLabel, Gauge>::default();
    for standing in Standing::ALL {
        let count = ledger.counts.by_standing.get(standing).copied().unwrap_or_default();
        let gauge = executions.get_or_create_owned(&StateLabel { state: standing.as_str() });
        gauge.set(whole(count));
    }
    register(registry, &list::EXECUTIONS, executions);
    let edited = Gauge::<i64>::default();
    edited.set(whole(ledger.counts.edited));
    register(registry, &list::EXECUTIONS_EDITED, edited);
}

fn add_outbox(registry: &mut Registry, outbox: &OutboxOverview) {
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
