//! Who we are to a registry, as `docker login` recorded it.

use std::path::PathBuf;

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

use super::place::Place;

/// Docker's configuration is there and cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// It is no configuration of docker's.
    #[error("`{}` cannot be read", .0.display())]
    Unreadable(PathBuf),
    /// Its entry for the registry contradicts itself.
    #[error("the entry of `{0}` in docker's configuration cannot be used")]
    Entry(String),
    /// A helper program failed; what it said may be secret.
    #[error("docker's credential helper `{0}` failed")]
    Helper(String),
    /// A token that only docker itself can turn into another one.
    #[error("docker's configuration has an identity token for `{0}`, which is not supported")]
    IdentityToken(String),
}

/// What `docker login` recorded for the registry; without a record, nobody in particular.
pub(super) fn of(place: &Place) -> Result<RegistryAuth, CredentialsError> {
    let Some(path) = config_file().filter(|path| path.exists()) else {
        return Ok(RegistryAuth::Anonymous);
    };
    let name = place.credentials_name();
    match docker_credential::get_credential(name) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => {
            Err(CredentialsError::IdentityToken(name.to_owned()))
        }
        Err(error) => refused(error, name, path),
    }
}

fn refused(
    error: CredentialRetrievalError,
    name: &str,
    path: PathBuf,
) -> Result<RegistryAuth, CredentialsError> {
    use CredentialRetrievalError as Refused;

    match error {
        Refused::NoCredentialConfigured | Refused::ConfigNotFound => Ok(RegistryAuth::Anonymous),
        // What helpers print when they know no such registry, as docker understands it.
        Refused::HelperFailure { stdout, .. } if stdout.contains("credentials not found") => {
            Ok(RegistryAuth::Anonymous)
        }
        Refused::ConfigReadError => Err(CredentialsError::Unreadable(path)),
        Refused::HelperFailure { helper, .. } => Err(CredentialsError::Helper(helper)),
        Refused::HelperCommunicationError | Refused::MalformedHelperResponse => {
            Err(CredentialsError::Helper(name.to_owned()))
        }
        Refused::CredentialDecodingError | Refused::CredentialMismatchError => {
            Err(CredentialsError::Entry(name.to_owned()))
        }
    }
}

/// Where docker keeps its configuration.
fn config_file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder =
        folder.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker")));
    folder.map(|folder| folder.join("config.json"))
}
