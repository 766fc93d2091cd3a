//! What every answer and every request is held to, whatever the route.

use std::net::IpAddr;
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

/// Holds a request for the page to the rules, bounds its answer and adds what every answer carries.
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
        Some(refused) => refused.answer(wrong),
        None => match answer(next, request).instrument(span.clone()).await {
            Ok(response) => response,
            Err(_) => wrong(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too slow",
                "The answer was not there in time. The servers may be away: `tollgate doctor`.",
            ),
        },
    };
    spans::count(&span, "status", response.status().as_u16());
    span.in_scope(|| {
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(status = response.status().as_u16(), took_ms, "answered");
    });
    dress(response.headers_mut());
    response
}

/// The same of a worker's probes, which programs read: in plain text, and without a span, since they
/// are asked every few seconds for as long as the worker runs.
pub(super) async fn guard_probes(
    State(exposure): State<Exposure>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(exposure, &request) {
        Some(refused) => refused.answer(plain),
        None => answer(next, request).await.unwrap_or_else(|_| {
            plain(StatusCode::SERVICE_UNAVAILABLE, "Too slow", "The answer was not there in time.")
        }),
    };
    dress(response.headers_mut());
    response
}

/// Says in plain text what is wrong with a request.
pub(super) fn plain(status: StatusCode, title: &str, message: &str) -> Response {
    (status, format!("{title}. {message}\n")).into_response()
}

/// Adds what every answer carries.
fn dress(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is shown is of this moment; files that are named by their content say otherwise.
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

async fn answer(next: Next, request: Request) -> Result<Response, Elapsed> {
    tokio::time::timeout(ANSWER_BUDGET, next.run(request)).await
}

/// Why a request is not answered, whatever it asks for.
struct Refused {
    status: StatusCode,
    title: &'static str,
    message: &'static str,
}

impl Refused {
    /// As the site that was asked says what is wrong.
    fn answer(self, say: fn(StatusCode, &str, &str) -> Response) -> Response {
        let mut response = say(self.status, self.title, self.message);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

fn refusal(exposure: Exposure, request: &Request) -> Option<Refused> {
    if exposure == Exposure::Loopback && !names_loopback(request.headers()) {
        return Some(Refused {
            status: StatusCode::MISDIRECTED_REQUEST,
            title: "Another host",
            message: "This machine alone is answered: ask for it as localhost or by a loopback \
                      address such as 127.0.0.1.",
        });
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some(Refused {
            status: StatusCode::METHOD_NOT_ALLOWED,
            title: "Nothing to write",
            message: "Everything here is read and nothing is written: GET and HEAD are all there is.",
        });
    }
    None
}

/// Whether the request's one Host header names this machine's loopback, on any port: a tunnel has
/// a port of its own. An address cannot be made to lead elsewhere, as a name can, so every loopback
/// address will do: it is the one that is listened on, or a tunnel's.
fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address: Option<IpAddr> = match name.strip_prefix('[') {
        // RFC 3986, section 3.2.2: brackets are IPv6's, and only IPv6's.
        Some(rest) => rest.strip_suffix(']').and_then(|it| Some(IpAddr::V6(it.parse().ok()?))),
        None => name.parse().ok().map(IpAddr::V4),
    };
    name.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|it| it.to_canonical().is_loopback())
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
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.0.0.1:8645",
            "127.0.0.2:8645",
            "127.255.255.254",
            "[::1]",
            "[::1]:8645",
            "[0:0:0:0:0:0:0:1]:8645",
            "[::ffff:127.0.0.1]:8645",
        ] {
            assert!(named(&[host]), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "evil.example:localhost",
            "127.0.0.2.evil.example",
            "128.0.0.1",
            "0.0.0.0",
            "10.0.0.1:8645",
            "[::2]",
            "[::1",
            "[127.0.0.1]",
            "::1",
            "127.1",
            "",
        ] {
            assert!(!named(&[host]), "{host}");
        }
        assert!(!named(&[]) && !named(&["localhost", "evil.example"]));
    }
}
