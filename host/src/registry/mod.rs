//! Policies in OCI registries: a component as an artifact with one layer, and its signature beside it.
//!
//! The form is the one that WebAssembly tools share: a configuration of type
//! `application/vnd.wasm.config.v0+json` and one layer of type `application/wasm`, so any of them can
//! fetch a policy, and a policy that another tool pushed can be pulled. What is trusted is the digest
//! of the layer's bytes, which is what `pins.toml` pins, and never the registry or a tag.
//!
//! A signature is an artifact of its own under the tag `sha256-<hex of the component>.minisig`, which
//! any registry can keep; it names the policy's manifest as its subject, for registries that list
//! referrers.
//!
//! Plain HTTP is spoken with `localhost`, 127.0.0.0/8 and `[::1]` and with nobody else, wherever a registry
//! redirects to. No more is read of any answer than it may have. Passwords come from docker's
//! configuration and are never printed, nor is what a registry says about them.

mod artifact;
mod connection;
mod credentials;
mod discreet;
mod error;
mod http;
mod login;
mod place;
mod problem;
mod publish;
mod pull;

use std::time::Duration;

pub use artifact::Made;
pub use connection::Registry;
pub use credentials::CredentialsError;
pub use error::RegistryError;
pub use place::{Place, PlaceError};
pub use publish::{Artifact, Published};
pub use pull::Pulled;

/// Attempts of one request. What is tried again are broken connections and answers 429 and 5xx.
pub const ATTEMPTS_MAX: u32 = 5;
/// The wait before the second attempt; each further one is twice as long.
pub const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How long a connection may take to be established.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a registry may be silent in the midst of an answer.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long publishing or pulling may take, all attempts together.
pub const BUDGET: Duration = Duration::from_mins(5);
/// Redirects that are followed for one request. Registries need one, to where blobs are kept.
pub const REDIRECTS_MAX: usize = 5;
/// Bytes of a manifest, at most. One of a policy has half a kilobyte; 4 MiB is what registries accept.
pub const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Bytes of an error or of a token, at most. Tokens of large registries have a few kilobytes.
pub const ANSWER_BYTES_MAX: u64 = 64 << 10;
