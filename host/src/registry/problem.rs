//! An answer that is not the one that was hoped for, and whether another attempt may end otherwise.

use oci_client::errors::{OciEnvelope, OciErrorCode};
use reqwest::StatusCode;

/// What kind of failure it is. Nothing in it is fit to be shown as it is.
#[derive(Debug)]
pub(super) enum Problem {
    /// No answer came; worth another attempt.
    Silence(String),
    /// The registry answered that it cannot now; worth another attempt.
    Failing(String),
    /// Nothing is there.
    NotFound,
    /// The registry does not let us.
    Unauthorized,
    /// The registry refused.
    Refused(String),
    /// An answer has more than it may have.
    TooLarge { bytes_max: u64 },
    /// The way leads over plain HTTP to this host, which is not this machine.
    PlainHttp(String),
    /// The registry does not speak HTTPS.
    NoTls,
}

impl Problem {
    /// What an answer with another status than one of success means.
    pub(super) fn of_status(status: StatusCode, body: &[u8]) -> Self {
        let envelope: Option<OciEnvelope> = serde_json::from_slice(body).ok();
        let said = match &envelope {
            Some(envelope) => {
                let messages = envelope.errors.iter().map(|error| error.message.as_str());
                messages.collect::<Vec<_>>().join("; ")
            }
            None => String::from_utf8_lossy(body).into_owned(),
        };
        let answer = format!("{status} {said}");
        let has = |code: &[OciErrorCode]| {
            let errors = envelope.iter().flat_map(|envelope| &envelope.errors);
            errors.into_iter().any(|error| code.contains(&error.code))
        };
        match status.as_u16() {
            401 => Self::Unauthorized,
            429 | 500.. => Self::Failing(answer),
            _ if has(&[OciErrorCode::Toomanyrequests]) => Self::Failing(answer),
            _ if has(&[OciErrorCode::Unauthorized]) => Self::Unauthorized,
            404 => Self::NotFound,
            _ if has(&[
                OciErrorCode::ManifestUnknown,
                OciErrorCode::NameUnknown,
                OciErrorCode::NotFound,
            ]) =>
            {
                Self::NotFound
            }
            _ => Self::Refused(answer),
        }
    }
}
