//! Requests to a registry, of whose answers no more is read than they may have.
//!
//! Plain HTTP is spoken with this machine and with nobody else, wherever a registry redirects to, has us
//! log in or has us upload.

use reqwest::header::HeaderMap;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Method, Proxy, RequestBuilder, Response, StatusCode};
use url::{Host, Url};

use super::problem::Problem;
use super::{ANSWER_BYTES_MAX, CONNECT_TIMEOUT, READ_TIMEOUT, REDIRECTS_MAX};
use crate::text::with_causes;

/// Makes requests, and lets none go where it must not.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    is_local: bool,
}

/// An answer with a status of success.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// How much of an answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// Its headers.
    Headers,
    /// All of it, which is at most so much.
    Whole(u64),
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, thiserror::Error)]
enum NotFollowed {
    #[error("plain HTTP at `{0}`")]
    PlainHttp(String),
    #[error("it redirects more than {REDIRECTS_MAX} times")]
    TooMany,
}

impl Http {
    /// To speak to this registry, which is on this machine or is not.
    pub(super) fn new(registry: &str, is_local: bool) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::custom(move |attempt| redirected(attempt, is_local)))
            .no_proxy();
        let client = match https_proxy(registry) {
            Some(proxy) => client.proxy(Proxy::https(proxy)?),
            None => client,
        };
        Ok(Self { client: client.build()?, is_local })
    }

    /// A request, if it may be sent there at all.
    pub(super) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Problem> {
        match refused(&url, self.is_local) {
            Some(NotFollowed::PlainHttp(at)) => Err(Problem::PlainHttp(at)),
            _ => Ok(self.client.request(method, url)),
        }
    }
}

/// Sends a request; an answer with another status than one of success is a problem, told with what the
/// registry says about it.
pub(super) async fn send(request: RequestBuilder, read: Read) -> Result<Answer, Problem> {
    let mut response = request.send().await.map_err(unanswered)?;
    let status = response.status();
    tracing::debug!(url = %without_query(response.url()), status = status.as_u16(), "answered");
    if !status.is_success() {
        let body = match body(&mut response, ANSWER_BYTES_MAX).await {
            Ok(body) => body,
            // What a secret may be cut in two by is not told at all.
            Err(Problem::TooLarge { bytes_max }) => {
                format!("more than {bytes_max} bytes about why").into_bytes()
            }
            Err(_) => Vec::new(),
        };
        return Err(Problem::of_status(status, &body));
    }
    let body = match read {
        Read::Headers => Vec::new(),
        Read::Whole(bytes_max) => body(&mut response, bytes_max).await?,
    };
    Ok(Answer { headers: std::mem::take(response.headers_mut()), body })
}

/// The status of an answer to a request, whatever it is, with its headers.
pub(super) async fn status_of(request: RequestBuilder) -> Result<(StatusCode, HeaderMap), Problem> {
    let mut response = request.send().await.map_err(unanswered)?;
    Ok((response.status(), std::mem::take(response.headers_mut())))
}

async fn body(response: &mut Response, bytes_max: u64) -> Result<Vec<u8>, Problem> {
    let too_large = || Problem::TooLarge { bytes_max };
    if response.content_length().is_some_and(|bytes| bytes > bytes_max) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unanswered)? {
        if (body.len() + chunk.len()) as u64 > bytes_max {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Sent and not answered, or not answered in full.
fn unanswered(error: reqwest::Error) -> Problem {
    // An address may have a token in it.
    let error = error.without_url();
    let told = with_causes(&error);
    let mut causes = std::iter::successors(std::error::Error::source(&error), |it| it.source());
    match causes.find_map(|cause| cause.downcast_ref::<NotFollowed>()) {
        Some(NotFollowed::PlainHttp(at)) => Problem::PlainHttp(at.clone()),
        Some(NotFollowed::TooMany) => Problem::Refused(told),
        // What rustls says of an answer that is no TLS.
        None if told.contains("corrupt message") => Problem::NoTls,
        None => Problem::Silence(told),
    }
}

fn redirected(attempt: Attempt<'_>, is_local: bool) -> reqwest::redirect::Action {
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error(NotFollowed::TooMany);
    }
    match refused(attempt.url(), is_local) {
        Some(error) => attempt.error(error),
        None => attempt.follow(),
    }
}

/// Whether an address must not be asked: every other one than HTTPS, and this machine of a registry that
/// is on it. Another registry would have a login sent in the clear to whatever listens here.
fn refused(url: &Url, is_local: bool) -> Option<NotFollowed> {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => None,
        "http" if is_loopback && is_local => None,
        _ => Some(NotFollowed::PlainHttp(url.host_str().unwrap_or_default().to_owned())),
    }
}

/// An address as it may be logged.
fn without_query(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The proxy of `HTTPS_PROXY`, unless `NO_PROXY` names the registry or what it is part of.
fn https_proxy(registry: &str) -> Option<String> {
    let variable = |name: &str| {
        [name.to_owned(), name.to_lowercase()]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
            .filter(|value| !value.is_empty())
    };
    let host = registry.split(':').next().unwrap_or_default();
    let is_excepted = variable("NO_PROXY").is_some_and(|list| {
        list.split(',').map(str::trim).any(|entry| {
            let domain = entry.trim_start_matches('.');
            let parent = host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
            entry == "*" || (!domain.is_empty() && (host == domain || parent))
        })
    });
    if is_excepted { None } else { variable("HTTPS_PROXY").or_else(|| variable("ALL_PROXY")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        let of_elsewhere = |url: &str| refused(&url.parse().unwrap(), false).is_some();
        let refused = |url: &str| refused(&url.parse().unwrap(), true).is_some();
        for local in ["http://localhost:5000/", "http://127.8.9.1/", "http://[::1]:5000/v2/"] {
            assert!(!refused(local), "{local}");
            assert!(of_elsewhere(local), "a registry elsewhere sends nobody to {local}");
        }
        for elsewhere in [
            "http://registry.localhost/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://[::2]/",
            "http://[::ffff:10.0.0.1]/",
            "ftp://localhost/",
            "file:///etc/passwd",
        ] {
            assert!(refused(elsewhere), "{elsewhere}");
        }
        assert!(!refused("https://registry.example/"));
    }
}
