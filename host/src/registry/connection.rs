//! Talking to one registry: to whom, as whom, how often and for how long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oci_client::secrets::RegistryAuth;
use reqwest::{Method, RequestBuilder};
use url::Url;

use super::credentials;
use super::discreet::Discretion;
use super::error::RegistryError;
use super::http::{self, Answer, Http, Read};
use super::login::{self, Proof, Purpose};
use super::place::Place;
use super::problem::Problem;
use super::{ATTEMPTS_MAX, BUDGET, RETRY_PAUSE};
use crate::text::with_causes;

/// A registry, with what `docker login` recorded for it.
#[derive(Clone)]
pub struct Registry {
    pub(super) place: Place,
    http: Http,
    auth: Arc<RegistryAuth>,
    access: Arc<Mutex<Access>>,
    budget: Duration,
}

/// What was found out on the way, and has to be kept to oneself.
struct Access {
    proof: Proof,
    purpose: Purpose,
    discretion: Discretion,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("place", &self.place).finish_non_exhaustive()
    }
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
        let http = Http::new(place.registry(), place.is_loopback())
            .map_err(|error| RegistryError::Client(with_causes(&error)))?;
        let access = Access {
            proof: Proof::default(),
            purpose: Purpose::Pull,
            discretion: Discretion::of(&auth),
        };
        Ok(Self { place, http, auth, access: Arc::new(Mutex::new(access)), budget: BUDGET })
    }

    /// The same, with another bound than [`BUDGET`] on how long publishing or pulling may take.
    #[must_use]
    pub fn with_budget(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    /// The place.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Everything below, within the budget.
    pub(super) async fn within_budget<T>(
        &self,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(self.budget, work).await {
            Ok(done) => done,
            Err(_) => Err(RegistryError::Budget {
                registry: self.place.registry().to_owned(),
                seconds: self.budget.as_secs(),
            }),
        }
    }

    /// Logs in, when the registry wants it.
    pub(super) async fn log_in(&self, purpose: Purpose) -> Result<(), RegistryError> {
        let repository = self.place.repository();
        let url = Self::url(&self.place, "").map_err(|it| self.failure(&self.place, it))?;
        let proof = self
            .retrying(&self.place, || {
                login::log_in(&self.http, url.clone(), repository, &self.auth, purpose)
            })
            .await?;
        let mut access = self.access();
        if let Proof::Token(token) = &proof {
            access.discretion.add(token);
        }
        (access.proof, access.purpose) = (proof, purpose);
        Ok(())
    }

    /// What a token that the registry does not take any more was for.
    fn outlived(&self) -> Option<Purpose> {
        let access = self.access();
        matches!(access.proof, Proof::Token(_)).then_some(access.purpose)
    }

    /// The address of something of the registry's, after `/v2/`.
    fn url(place: &Place, path: &str) -> Result<Url, Problem> {
        let scheme = if place.is_loopback() { "http" } else { "https" };
        let text = format!("{scheme}://{}/v2/{path}", place.registry());
        text.parse().map_err(|_| Problem::Refused("no address of a registry".into()))
    }

    /// The address of something of a repository's.
    pub(super) fn of_repository(&self, place: &Place, path: &str) -> Result<Url, RegistryError> {
        Self::url(place, &format!("{}/{path}", place.repository()))
            .map_err(|problem| self.failure(place, problem))
    }

    /// Makes a request of the registry as often as it takes, within bounds. Tokens last for as little as
    /// a minute, so one that is not taken is replaced once.
    pub(super) async fn ask(
        &self,
        place: &Place,
        read: Read,
        request: (Method, &Url),
        prepare: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, RegistryError> {
        let asked = self.ask_with_this_proof(place, read, &request, &prepare).await;
        match (asked, self.outlived()) {
            (Err(RegistryError::Unauthorized { .. }), Some(purpose)) => {
                self.log_in(purpose).await?;
                self.ask_with_this_proof(place, read, &request, &prepare).await
            }
            (asked, _) => asked,
        }
    }

    async fn ask_with_this_proof(
        &self,
        place: &Place,
        read: Read,
        (method, url): &(Method, &Url),
        prepare: &impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, RegistryError> {
        self.retrying(place, || async {
            let request = prepare(self.http.request(method.clone(), Url::clone(url))?);
            // Where the registry has us go, nobody has to know who we are.
            let proof = if self.is_own(url) { self.access().proof.clone() } else { Proof::None };
            http::send(proof.on(request, &self.auth), read).await
        })
        .await
    }

    fn is_own(&self, url: &Url) -> bool {
        Self::url(&self.place, "").is_ok_and(|own| own.origin() == url.origin())
    }

    async fn retrying<T, F>(
        &self,
        place: &Place,
        request: impl Fn() -> F,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        let mut pause = RETRY_PAUSE;
        for attempt in 1.. {
            let problem = match request().await {
                Ok(answer) => return Ok(answer),
                Err(problem) => problem,
            };
            match problem {
                Problem::Silence(reason) | Problem::Failing(reason) if attempt < ATTEMPTS_MAX => {
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
        Err(self.failure(place, Problem::Silence("no attempt was made".into())))
    }

    fn failure(&self, place: &Place, problem: Problem) -> RegistryError {
        let (place, registry) = (place.clone(), place.registry().to_owned());
        match problem {
            Problem::Silence(reason) => {
                RegistryError::Unreachable { registry, reason: self.told(&reason) }
            }
            Problem::Failing(answer) => {
                RegistryError::Failing { registry, answer: self.told(&answer) }
            }
            Problem::NotFound => RegistryError::NotFound(place),
            Problem::Unauthorized => RegistryError::Unauthorized { registry },
            Problem::Refused(answer) => {
                RegistryError::Refused { registry, answer: self.told(&answer) }
            }
            Problem::TooLarge { bytes_max } => RegistryError::TooLarge { registry, bytes_max },
            Problem::PlainHttp(host) => {
                RegistryError::PlainHttp { registry, host: self.told(&host) }
            }
            Problem::NoTls => RegistryError::NoTls { registry },
        }
    }

    /// What a registry said, as it may be shown.
    pub(super) fn told(&self, answer: &str) -> String {
        self.access().discretion.told(answer)
    }

    fn access(&self) -> MutexGuard<'_, Access> {
        // Nothing panics while it holds the lock.
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
