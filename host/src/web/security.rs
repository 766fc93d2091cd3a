//! What every answer and every request is held to, whatever the route.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::error::Elapsed;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::frame::wrong;
use crate::spans;

/// How long an answer may take, whatever is away: longer than anything a page reads may, and shorter
/// than browsers and monitors wait.
pub(super) const ANSWER_BUDGET: Duration = Duration::from_secs(10);

/// No script at all, nothing from elsewhere, in nobody's frame.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// This machine alone. A request that names another host comes from a page elsewhere whose name
    /// was made to lead here (DNS rebinding), and is refused.
    Loopback,
    /// Other machines too, under any name.
    Remote,
}

/// The method as a span names it: of any other word, that it is another.
fn method(request: &Request) -> &'static str {
    match *request.method() {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "_OTHER",
    }
}

/// The route as a span names it, and never what a client wrote: that could be anything.
fn route(request: &Request) -> &str {
    request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str)
}

/// Holds a request to the rules, bounds its answer and adds what every answer carries.
pub(super) async fn guard(
    State(exposure): State<Exposure>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let span = tracing::debug_span!(
        "request",
        method = method(&request),
        path = route(&request),
        status = Empty,
    );
    let mut response = match refusal(exposure, &request) {
        Some(refused) => refused,
        None => match answer(next, request).instrument(span.clone()).await {
            Ok(response) => response,
            Err(_) => wrong(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too slow",
                "The answer was not there in time. The servers may be away: `tollgate doctor`.",
            ),
        },
    };
    spans::note(&span, "status", response.status().as_u16());
    span.in_scope(|| {
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(status = response.status().as_u16(), took_ms, "answered");
    });
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is shown is of this moment; files that are named by their content say otherwise.
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn answer(next: Next, request: Request) -> Result<Response, Elapsed> {
    tokio::time::timeout(ANSWER_BUDGET, next.run(request)).await
}

fn refusal(exposure: Exposure, request: &Request) -> Option<Response> {
    if exposure == Exposure::Loopback && !names_loopback(request.headers()) {
        let message = "This page answers on this machine alone: ask for it as localhost or \
                       127.0.0.1.";
        return Some(wrong(StatusCode::MISDIRECTED_REQUEST, "Another host", message));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let message = "This page reads and never writes: GET and HEAD are all it knows.";
        let refused = wrong(StatusCode::METHOD_NOT_ALLOWED, "Nothing to write", message);
        return Some(([(header::ALLOW, "GET, HEAD")], refused).into_response());
    }
    None
}

/// Whether the request's one Host header names this machine's loopback, on any port: a tunnel has
/// a port of its own.
fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        let named = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            names_loopback(&headers)
        };
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8645", "[::1]:8645"] {
            assert!(named(&[host]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "evil.example:localhost",
            "127.0.0.2",
            "",
        ] {
            assert!(!named(&[host]), "{host}");
        }
        assert!(!named(&[]) && !named(&["localhost", "evil.example"]));
    }
}
