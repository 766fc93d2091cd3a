//! Talking to one registry: to whom, as whom, how often and for how long.

use std::sync::Arc;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{DigestError, OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, RegistryOperation};

use super::credentials;
use super::error::RegistryError;
use super::place::Place;
use super::{ATTEMPTS_MAX, BUDGET, CONNECT_TIMEOUT, READ_TIMEOUT, RETRY_PAUSE};
use crate::text::with_causes;

/// Characters of an answer that are shown.
const ANSWER_SHOWN_MAX: usize = 300;

/// Nobody listens at port 0: requests that go through it go nowhere.
const NOWHERE: &str = "http://127.0.0.1:0";

/// With whom plain HTTP is spoken.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// A registry, with what `docker login` recorded for it.
#[derive(Clone)]
pub struct Registry {
    pub(super) client: Client,
    pub(super) place: Place,
    auth: Arc<RegistryAuth>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("place", &self.place).finish_non_exhaustive()
    }
}

/// An answer that is not the one that was hoped for.
pub(super) enum Problem {
    /// Worth another attempt.
    Passing(String),
    NotFound,
    Unauthorized,
    Tampered {
        expected: String,
        found: String,
    },
    Refused(String),
}

impl Registry {
    /// Prepares to talk to the registry of this place. Nothing is connected to yet.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Credentials`] and [`RegistryError::Client`].
    pub fn new(place: Place) -> Result<Self, RegistryError> {
        let auth = Arc::new(credentials::of(&place)?);
        // The client asks for a provider that the process has; the first one that is installed stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let protocol =
            if place.is_loopback() { ClientProtocol::Http } else { ClientProtocol::Https };
        let proxy = https_proxy(place.registry());
        let config = ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("tollgate/", env!("CARGO_PKG_VERSION")),
            // A registry may redirect, name another place to upload to or to log in at. Plain HTTP that
            // is not for this machine is sent nowhere, so that no password and no byte goes that way.
            http_proxy: Some(NOWHERE.to_owned()),
            no_proxy: Some(LOOPBACK.to_owned()),
            https_proxy: proxy,
            // An index of images for several machines is no policy.
            platform_resolver: None,
            ..ClientConfig::default()
        };
        let client =
            Client::try_from(config).map_err(|error| RegistryError::Client(with_causes(&error)))?;
        Ok(Self { client, place, auth })
    }

    /// The place.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Everything below, within [`BUDGET`].
    pub(super) async fn within_budget<T>(
        &self,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(BUDGET, work).await {
            Ok(done) => done,
            Err(_) => Err(RegistryError::Budget {
                registry: self.place.registry().to_owned(),
                seconds: BUDGET.as_secs(),
            }),
        }
    }

    /// Logs in, when the registry wants it. Without credentials it lets everyone in or no one.
    pub(super) async fn log_in(&self, operation: RegistryOperation) -> Result<(), RegistryError> {
        let (client, reference) = (&self.client, self.place.reference());
        self.retrying(&self.place, || async {
            client.auth(reference, &self.auth, operation).await.map(drop)
        })
        .await
    }

    /// Credentials for requests that take them as an argument.
    pub(super) fn auth(&self) -> &RegistryAuth {
        &self.auth
    }

    /// Makes a request as often as it takes, within bounds.
    pub(super) async fn retrying<T, F>(
        &self,
        place: &Place,
        request: impl Fn() -> F,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, OciDistributionError>>,
    {
        let mut pause = RETRY_PAUSE;
        for attempt in 1.. {
            let problem = match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) => problem(error),
            };
            match problem {
                Problem::Passing(reason) if attempt < ATTEMPTS_MAX => {
                    tracing::warn!(
                        registry = place.registry(),
                        attempt,
                        reason = self.told(&reason),
                        "the registry is asked again"
                    );
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                problem => return Err(self.failure(place, problem)),
            }
        }
        Err(self.failure(place, Problem::Passing("no attempt was made".into())))
    }

    fn failure(&self, place: &Place, problem: Problem) -> RegistryError {
        let (place, registry) = (place.clone(), place.registry().to_owned());
        match problem {
            Problem::Passing(reason) => {
                RegistryError::Unreachable { registry, reason: self.told(&reason) }
            }
            Problem::NotFound => RegistryError::NotFound(place),
            Problem::Unauthorized => RegistryError::Unauthorized { registry },
            Problem::Tampered { expected, found } => {
                RegistryError::Tampered { place, expected: self.told(&expected), found }
            }
            Problem::Refused(answer) => {
                RegistryError::Refused { registry, answer: self.told(&answer) }
            }
        }
    }

    /// What a registry said, as it may be shown.
    fn told(&self, answer: &str) -> String {
        let mut answer = answer.to_owned();
        if let RegistryAuth::Basic(_, password) = self.auth()
            && !password.is_empty()
        {
            answer = answer.replace(password.as_str(), "…");
        }
        let shown = answer.chars().map(|it| if it.is_control() { ' ' } else { it });
        let shown: String = shown.take(ANSWER_SHOWN_MAX).collect();
        shown.trim().to_owned()
    }
}

/// What kind of failure it is, and whether another attempt may end otherwise.
fn problem(error: OciDistributionError) -> Problem {
    use OciDistributionError as Oci;

    match error {
        Oci::UnauthorizedError { .. } => Problem::Unauthorized,
        Oci::AuthenticationFailure(_) => Problem::Unauthorized,
        Oci::ImageManifestNotFoundError(_) => Problem::NotFound,
        Oci::DigestError(DigestError::VerificationError { expected, actual }) => {
            Problem::Tampered { expected, found: actual }
        }
        Oci::ServerError { code, message, .. } => of_status(code, &message),
        Oci::RegistryError { envelope, .. } => {
            let of = |code: &OciErrorCode| envelope.errors.iter().any(|it| it.code == *code);
            let missing =
                [OciErrorCode::ManifestUnknown, OciErrorCode::NameUnknown, OciErrorCode::NotFound];
            if of(&OciErrorCode::Toomanyrequests) {
                Problem::Passing(envelope.to_string())
            } else if of(&OciErrorCode::Unauthorized) {
                Problem::Unauthorized
            } else if missing.iter().any(of) {
                Problem::NotFound
            } else {
                Problem::Refused(envelope.to_string())
            }
        }
        Oci::RequestError(error) => match error.status() {
            Some(status) => of_status(status.as_u16(), &error.without_url().to_string()),
            // Sent and not answered, or not answered in full. An address may have a token in it.
            None => Problem::Passing(with_causes(&error.without_url())),
        },
        Oci::IoError(error) => Problem::Passing(error.to_string()),
        error => Problem::Refused(error.to_string()),
    }
}

fn of_status(code: u16, message: &str) -> Problem {
    let answer = format!("{code} {message}");
    match code {
        401 => Problem::Unauthorized,
        404 => Problem::NotFound,
        429 | 500.. => Problem::Passing(answer),
        _ => Problem::Refused(answer),
    }
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
