//! A collector: takes spans as OpenTelemetry's exporters send them, over HTTP on the loopback.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;

/// A span as it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// The trace it belongs to.
    pub trace: Vec<u8>,
    /// Itself.
    pub id: Vec<u8>,
    /// The span it lies in; empty for the first one of a trace.
    pub parent: Vec<u8>,
    /// Its fields, each as text.
    pub fields: BTreeMap<String, String>,
    /// Events of it.
    pub event_count: usize,
    /// What its status says, when that is an error.
    pub error: Option<String>,
    /// Who sent it: the resource's fields.
    pub sender: BTreeMap<String, String>,
}

/// What arrived so far, and where it arrives.
#[derive(Debug)]
pub struct Collector {
    endpoint: String,
    arrived: Arc<Mutex<Arrived>>,
}

#[derive(Debug, Default)]
struct Arrived {
    paths: Vec<String>,
    spans: Vec<Received>,
    bytes: Vec<u8>,
}

impl Default for Collector {
    fn default() -> Self {
        Self::start()
    }
}

impl Collector {
    /// Starts one, which ends with the test.
    ///
    /// # Panics
    ///
    /// When nothing can be listened on.
    pub fn start() -> Self {
        Self::answering(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
        )
    }

    /// One that sends whoever asks to another.
    pub fn redirecting_to(endpoint: &str) -> Self {
        Self::answering(format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {endpoint}/v1/traces\r\nContent-Length: 0\r\n\r\n"
        ))
    }

    fn answering(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let kept = Arc::clone(&arrived);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), answer.clone());
                thread::spawn(move || while take(&stream, &kept, &answer).is_some() {});
            }
        });
        Self { endpoint, arrived }
    }

    /// For `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The spans so far, in the order in which they arrived.
    pub fn spans(&self) -> Vec<Received> {
        self.kept().spans.clone()
    }

    /// Those of this name.
    pub fn named(&self, name: &str) -> Vec<Received> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }

    /// The paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        self.kept().paths.clone()
    }

    /// Everything that arrived about spans, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept().bytes).into_owned()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Arrived> {
        self.arrived.lock().expect("nobody panics with the spans")
    }
}

/// Takes one request and gives it this answer; nothing when there is none any more.
fn take(stream: &TcpStream, kept: &Mutex<Arrived>, answer: &str) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    let request = ExportTraceServiceRequest::decode(&*body).expect("spans in protobuf");
    let mut kept = kept.lock().expect("nobody panics with the spans");
    kept.paths.extend(head.split(' ').nth(1).map(str::to_owned));
    kept.bytes.extend(body);
    kept.spans.extend(received(request));
    drop(kept);
    (&*stream).write_all(answer.as_bytes()).ok()
}

fn received(request: ExportTraceServiceRequest) -> Vec<Received> {
    let mut all = Vec::new();
    for group in request.resource_spans {
        let sender = fields(group.resource.unwrap_or_default().attributes);
        for span in group.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let status = span.status.unwrap_or_default();
            all.push(Received {
                name: span.name,
                trace: span.trace_id,
                id: span.span_id,
                parent: span.parent_span_id,
                fields: fields(span.attributes),
                event_count: span.events.len(),
                // 2 is an error, by OpenTelemetry's trace.proto.
                error: (status.code == 2).then_some(status.message),
                sender: sender.clone(),
            });
        }
    }
    all
}

fn fields(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let field = |it: KeyValue| (it.key, text(it.value.and_then(|value| value.value)));
    attributes.into_iter().map(field).collect()
}
