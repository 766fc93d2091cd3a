//! What OpenTelemetry's variables say, judged before anything is sent: its own reading drops a header
//! that it does not understand without a word, and sends no login that stands in a URL.
//!
//! No value is ever quoted: an endpoint may hold a password, and headers hold a token.

use std::env;
use std::str::FromStr as _;

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

/// Headers of requests to the collector: the first one that is set counts, also when it is empty.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

/// A variable that keeps spans from being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unusable {
    pub(super) variable: &'static str,
    pub(super) problem: &'static str,
    pub(super) help: &'static str,
}

impl Unusable {
    /// An endpoint that leads nowhere.
    pub(super) const fn no_url(variable: &'static str) -> Self {
        Self {
            variable,
            problem: "the endpoint is no URL",
            help: "write it as `http://host:4318`, or `https://…`",
        }
    }
}

/// Judges the endpoint of this variable and the headers.
pub(super) fn judge(endpoint: &'static str) -> Result<(), Unusable> {
    if let Some(problem) = env::var(endpoint).ok().and_then(|it| of_endpoint(endpoint, &it)) {
        return Err(problem);
    }
    let headers = HEADERS.into_iter().find_map(|name| Some((name, env::var(name).ok()?)));
    match headers {
        Some((variable, value)) if !value.split(',').all(is_header) => Err(Unusable {
            variable,
            problem: "a header is not `name=value`",
            help: "write them as `name=value,…`, with `%2C` for a comma in a value",
        }),
        _ => Ok(()),
    }
}

fn of_endpoint(variable: &'static str, value: &str) -> Option<Unusable> {
    let url = match Url::parse(value.trim()) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => return Some(Unusable::no_url(variable)),
    };
    let has_login = !url.username().is_empty() || url.password().is_some();
    has_login.then_some(Unusable {
        variable,
        problem: "the endpoint holds a user or a password",
        help: "take it out of the URL: `OTEL_EXPORTER_OTLP_HEADERS=authorization=…` holds what a \
               collector asks for",
    })
}

/// Whether a part of a list of headers is one; none is needed between two commas or after the last.
fn is_header(part: &str) -> bool {
    if part.trim().is_empty() {
        return true;
    }
    part.split_once('=').is_some_and(|(name, value)| {
        let value = value.trim();
        HeaderName::from_str(name.trim()).is_ok()
            && !value.is_empty()
            && HeaderValue::from_str(value).is_ok()
            && !hides_a_control_character(value)
    })
}

/// Whether a value holds what no header may, percent-encoded: values are decoded before they are sent.
fn hides_a_control_character(value: &str) -> bool {
    let is_one = |part: &[u8]| {
        matches!(part, [b'%', b'0' | b'1', digit] if digit.is_ascii_hexdigit())
            || matches!(part, [b'%', b'7', b'f' | b'F'])
    };
    value.as_bytes().windows(3).any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        for part in ["authorization=Bearer%20x", " a = b=c== ", "", " "] {
            assert!(is_header(part), "{part}");
        }
        for part in ["token", "=token", "a=", "a b=c", "a=b\nc", "a=b%0Ac", "a=%7f"] {
            assert!(!is_header(part), "{part}");
        }
    }

    #[test]
    fn an_endpoint_is_a_url_without_a_login() {
        let problem = |value| of_endpoint("V", value).map(|it| it.problem);
        for value in ["http://127.0.0.1:4318", "https://c.example/otlp", " http://[::1]:4318/ "] {
            assert_eq!(problem(value), None, "{value}");
        }
        for value in ["localhost:4318", "c.example", "http://c d/", "grpc://c.example", "http://"] {
            assert_eq!(problem(value), Some("the endpoint is no URL"), "{value}");
        }
        for value in ["http://user@c.example", "https://u:p@c.example", "http://:p@c.example"] {
            let problem = problem(value).unwrap();
            assert!(problem.contains("a user or a password"), "{value}: {problem}");
        }
    }
}
