//! Spans to an OpenTelemetry collector: OTLP over HTTP, in a program with the feature `otlp`.
//!
//! OpenTelemetry's own variables configure it, as in every other program beside it. Without an
//! endpoint nothing is sent and nothing is started.

// Compiled for tests beside the other one, which every build of the workspace has.
#[cfg(any(test, not(feature = "otlp")))]
mod absent;
#[cfg(feature = "otlp")]
mod exporting;
#[cfg(feature = "otlp")]
mod settings;

#[cfg(not(feature = "otlp"))]
pub(super) use absent::Collector;
#[cfg(feature = "otlp")]
pub(super) use exporting::Collector;

/// Where spans are sent to: the first one that is set, the second with `/v1/traces` behind it.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The variable that names an endpoint, if one does. Its value is never shown: it may hold a password.
fn endpoint() -> Option<&'static str> {
    let is_set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
    ENDPOINTS.into_iter().find(is_set)
}
