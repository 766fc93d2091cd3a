//! Logging in as registries want it: with the password in every request, or with a token for it.

use oci_client::secrets::RegistryAuth;
use reqwest::header::WWW_AUTHENTICATE;
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use url::Url;

use super::ANSWER_BYTES_MAX;
use super::http::{self, Http, Read};
use super::problem::Problem;

/// What is to be done in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Pull,
    Push,
}

impl Purpose {
    const fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// How a request shows who we are.
#[derive(Clone, Default)]
pub(super) enum Proof {
    /// Not at all.
    #[default]
    None,
    /// By login and password.
    Password,
    /// By a token that a password, or nothing, was given for.
    Token(String),
}

impl Proof {
    pub(super) fn on(&self, request: RequestBuilder, auth: &RegistryAuth) -> RequestBuilder {
        match (self, auth) {
            (Self::Token(token), _) => request.bearer_auth(token),
            (Self::Password, RegistryAuth::Basic(login, password)) => {
                request.basic_auth(login, Some(password))
            }
            _ => request,
        }
    }
}

/// Asks a registry what it wants, and gets it. Without credentials it lets everyone in or no one.
pub(super) async fn log_in(
    http: &Http,
    registry: Url,
    repository: &str,
    auth: &RegistryAuth,
    purpose: Purpose,
) -> Result<Proof, Problem> {
    let (_, headers) = http::status_of(http.request(Method::GET, registry)?).await?;
    let Some(wanted) = headers.get(WWW_AUTHENTICATE).and_then(|it| it.to_str().ok()) else {
        return Ok(Proof::None);
    };
    let Some(challenge) = Challenge::parse(wanted) else {
        return Ok(if matches!(auth, RegistryAuth::Basic(..)) {
            Proof::Password
        } else {
            Proof::None
        });
    };
    let scope = format!("repository:{repository}:{}", purpose.actions());
    challenge.token(http, auth, &scope).await.map(Proof::Token)
}

/// Where a token is given, as a registry's `WWW-Authenticate` says.
#[derive(Debug, PartialEq, Eq)]
struct Challenge {
    realm: Url,
    service: Option<String>,
}

/// What a token comes in: of the two names either will do.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Challenge {
    /// Reads `Bearer realm="…",service="…"`; `None` for any other scheme.
    fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        while let Some((name, value)) = rest.split_once('=') {
            let (value, after) = match value.trim_start().strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => value.split_once(',').unwrap_or((value, "")),
            };
            match name.trim_matches([' ', ',']).to_ascii_lowercase().as_str() {
                "realm" => realm = value.parse().ok(),
                "service" => service = Some(value.to_owned()),
                _ => {}
            }
            rest = after;
        }
        Some(Self { realm: realm?, service })
    }

    async fn token(
        &self,
        http: &Http,
        auth: &RegistryAuth,
        scope: &str,
    ) -> Result<String, Problem> {
        let mut url = self.realm.clone();
        url.query_pairs_mut().append_pair("scope", scope);
        if let Some(service) = &self.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let request = Proof::Password.on(http.request(Method::GET, url)?, auth);
        let answer = match http::send(request, Read::Whole(ANSWER_BYTES_MAX)).await {
            Ok(answer) => answer,
            // Whatever the reason, it gives no token to us.
            Err(Problem::Refused(_) | Problem::NotFound) => return Err(Problem::Unauthorized),
            Err(problem) => return Err(problem),
        };
        // What cannot be read may be a token all the same, and is not told.
        let unreadable = || Problem::Refused("an answer that has no token in it".into());
        let token: Token = serde_json::from_slice(&answer.body).map_err(|_| unreadable())?;
        token.token.or(token.access_token).ok_or_else(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_however_it_is_written() {
        let expected = Challenge {
            realm: "https://a.example/t".parse().unwrap(),
            service: Some("s,x".into()),
        };
        for header in [
            r#"Bearer realm="https://a.example/t",service="s,x""#,
            r#"bearer service="s,x", scope="repository:a:pull", realm="https://a.example/t""#,
            r#"Bearer  realm=https://a.example/t,service="s,x""#,
        ] {
            assert_eq!(Challenge::parse(header).as_ref(), Some(&expected), "{header}");
        }
        for header in ["Basic realm=\"x\"", "Bearer", "Bearer realm=\"", "Bearer service=\"s\"", ""]
        {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
    }
}
