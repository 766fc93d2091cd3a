//! A collector: takes spans as OpenTelemetry's exporters send them, over HTTP on the loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;

use crate::authority::Authority;

/// What it answers to spans that it took.
const TAKEN: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";

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
    /// Those of them that arrived as whole numbers.
    pub numbers: BTreeSet<String>,
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
    /// What speaks TLS for it.
    tls: Option<Child>,
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
        Self::answering(TAKEN.to_owned())
    }

    /// One behind TLS, with the authority's certificate: `openssl s_server`, which takes one connection
    /// after the other and hands on what comes through it.
    ///
    /// # Panics
    ///
    /// When `openssl` is not installed.
    pub fn over_tls(authority: &Authority) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let mut tls = Command::new("openssl")
            .args(["s_server", "-quiet", "-accept", &address.to_string(), "-cert"])
            .arg(authority.path("server.pem"))
            .arg("-key")
            .arg(authority.path("server.key"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed");
        wait_until_listened_on(address.port());
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let kept = Arc::clone(&arrived);
        let (mut to, from) =
            (tls.stdin.take().expect("a pipe"), tls.stdout.take().expect("a pipe"));
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            while take(&mut from, &mut to, &kept, TAKEN).is_some() {}
        });
        Self { endpoint: format!("https://{address}"), arrived, tls: Some(tls) }
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
                thread::spawn(move || {
                    let (mut from, mut to) = (BufReader::new(&stream), &stream);
                    while take(&mut from, &mut to, &kept, &answer).is_some() {}
                });
            }
        });
        Self { endpoint, arrived, tls: None }
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

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            let _ = tls.kill();
            let _ = tls.wait();
        }
    }
}

/// Waits for a listener: proc(5), `/proc/net/tcp`. A connection would be one that it serves.
fn wait_until_listened_on(port: u16) {
    let (local, begun) = (format!(":{port:04X}"), Instant::now());
    let is_it = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[1].ends_with(&local) && columns[3] == "0A"
    };
    while !std::fs::read_to_string("/proc/net/tcp").unwrap().lines().skip(1).any(is_it) {
        assert!(begun.elapsed() < Duration::from_secs(20), "nobody listens on {port}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Takes one request and gives it this answer; nothing when there is none any more.
fn take(
    reader: &mut impl BufRead,
    to: &mut impl Write,
    kept: &Mutex<Arrived>,
    answer: &str,
) -> Option<()> {
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
    to.write_all(answer.as_bytes()).ok()?;
    to.flush().ok()
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
                numbers: numbers(&span.attributes),
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

fn numbers(attributes: &[KeyValue]) -> BTreeSet<String> {
    let is_number = |it: &&KeyValue| {
        let value = it.value.as_ref().and_then(|it| it.value.as_ref());
        matches!(value, Some(Value::IntValue(_)))
    };
    attributes.iter().filter(is_number).map(|it| it.key.clone()).collect()
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
