//! Sending spans: in batches, by a thread of their own, which nothing waits for but a clean end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::trace::{Status, TracerProvider as _};
use opentelemetry::{KeyValue, Value};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{Layer, Registry};

use super::settings::{Unusable, judge};

/// What programs are called that nobody names.
const SERVICE: &str = "tollgate";

/// How long the end of the process waits for the last spans: long enough for a collector that is
/// there, short beside what service managers wait.
const END_BUDGET: Duration = Duration::from_secs(2);

/// Where spans go until the process ends.
#[derive(Debug, Default)]
pub(in crate::cli) struct Collector {
    provider: Option<SdkTracerProvider>,
    /// What keeps spans from being sent.
    unusable: Option<Unusable>,
}

/// The variables of how long an export may take, in milliseconds; the first that is set counts.
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];

/// What OpenTelemetry gives an export that no variable is about.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// A client that goes where it is told and nowhere else: an endpoint that redirects would have the
/// headers, which hold the collector's credentials, sent to a host that nobody named.
fn client() -> reqwest::blocking::Client {
    let named = TIMEOUTS.iter().find_map(|name| std::env::var(name).ok()?.trim().parse().ok());
    let timeout = named.map_or(TIMEOUT_DEFAULT, Duration::from_millis);
    // It has a runtime of its own, which may not begin within another.
    let built = std::thread::spawn(move || {
        let none = reqwest::redirect::Policy::none();
        reqwest::blocking::Client::builder().redirect(none).timeout(timeout).build().ok()
    });
    built.join().ok().flatten().unwrap_or_default()
}

impl Collector {
    /// Prepares to send spans, when an endpoint is set. Nothing is connected yet.
    pub(in crate::cli) fn from_environment()
    -> (Self, Option<Box<dyn Layer<Registry> + Send + Sync>>) {
        let Some(variable) = super::endpoint() else {
            return (Self::default(), None);
        };
        if let Err(unusable) = judge(variable) {
            return (Self { provider: None, unusable: Some(unusable) }, None);
        }
        // The client asks for a provider of TLS that the process has.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client())
            .build();
        // The error itself quotes the endpoint.
        let Ok(exporter) = exporter else {
            let unusable = Some(Unusable::no_url(variable));
            return (Self { provider: None, unusable }, None);
        };
        let provider = SdkTracerProvider::builder()
            .with_resource(resource())
            .with_batch_exporter(Told { exporter, is_away: AtomicBool::new(false) })
            .build();
        // Our spans alone, and no events: those are the log's.
        let ours = filter_fn(|it| it.is_span() && it.target().starts_with("tollgate"))
            .with_max_level_hint(LevelFilter::DEBUG);
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer(SERVICE))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(ours)
            .boxed();
        (Self { provider: Some(provider), unusable: None }, Some(layer))
    }

    /// Says once what keeps spans from being sent.
    pub(in crate::cli) fn say(&self) {
        if let Some(Unusable { variable, problem, help }) = self.unusable {
            tracing::warn!(variable, help, "no spans are sent: {problem}");
        }
    }

    /// Sends what is not sent yet, within [`END_BUDGET`]. Whatever comes of it, the work is done.
    pub(in crate::cli) fn end(self) {
        let Some(provider) = self.provider else { return };
        if provider.shutdown_with_timeout(END_BUDGET).is_err() {
            tracing::warn!(
                budget_s = END_BUDGET.as_secs(),
                "the last spans may be lost: the collector did not take them in time"
            );
        }
    }
}

/// Who sends: OpenTelemetry's variables say more, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
fn resource() -> Resource {
    let says = |variable: &str, what: &str| {
        std::env::var(variable).is_ok_and(|value| !value.is_empty() && value.contains(what))
    };
    let builder = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("process.pid", i64::from(std::process::id())),
    ]);
    let is_named =
        says("OTEL_SERVICE_NAME", "") || says("OTEL_RESOURCE_ATTRIBUTES", "service.name=");
    if is_named { builder } else { builder.with_service_name(SERVICE) }.build()
}

/// Says when a collector takes no spans, and when it does again.
#[derive(Debug)]
struct Told<E> {
    exporter: E,
    is_away: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Told<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        for span in &mut batch {
            mark(span);
        }
        let sent = self.exporter.export(batch).await;
        let was_away = self.is_away.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !was_away => tracing::warn!(
                %error,
                "spans cannot be sent to the collector: they are dropped, and work goes on"
            ),
            Ok(()) if was_away => tracing::info!("the collector takes spans again"),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// A span with a code ended otherwise than it was to: collectors show that by its status. So did an
/// answer that says that we failed; one that says that the request was wrong did not (OpenTelemetry's
/// semantic conventions, "HTTP spans", "Status").
fn mark(span: &mut SpanData) {
    let value = |name: &str| {
        let found = span.attributes.iter().find(|it| it.key.as_str() == name)?;
        Some(&found.value)
    };
    let code = value("code").map(Value::as_str).filter(|code| !code.is_empty());
    if let Some(code) = code {
        span.status = Status::error(code.into_owned());
    } else if matches!(value("status"), Some(Value::I64(500..))) {
        span.status = Status::error("");
    }
}
