//! `tollgate policy publish`

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::policy::{PolicyPin, PolicyStore, read_component};
use tollgate::registry::{Artifact, Place, PlaceError, Published, Registry, RegistryError};
use tollgate::signature::{
    KeyError, PublicKey, SIGNATURE_BYTES_MAX, SecretKey, Signature, Subject,
};

use super::super::configuration::block_on;
use super::super::sandbox::{RuntimeArguments, key_failure, refused};
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;
use super::made;
use super::place_name;

/// Publish a component in an OCI registry, signed when a key is named
///
/// The component is checked as the host checks it before it decides. It becomes an artifact with one
/// layer of type `application/wasm`, which names compiler and flags as the pin beside the component does;
/// the same component gives the same artifact, and publishing it again changes nothing. A tag that leads
/// to something else is not moved.
///
/// User and password come from docker's configuration. Plain HTTP is spoken with loopback addresses
/// alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy publish mysql-repeatable-subset-1.0.0.wasm \\
      registry.example/policies/mysql-repeatable-subset:1.0.0 --sign-key ~/.minisign/minisign.key
  tollgate policy publish p.wasm localhost:5000/policies/p:1.0.0 --format json

Keys are minisign's: `minisign -G` makes a pair, `minisign -G -W` one without a password.

Exit code 2 when the registry cannot be reached or refuses, 4 when the tag or the signature's place is
taken by something else.")]
pub(super) struct Publish {
    /// Component to publish
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where: HOST[:PORT]/REPOSITORY:TAG
    #[arg(value_name = "PLACE")]
    place: String,
    /// Secret key (minisign) to sign it with
    #[arg(long, value_name = "KEYFILE")]
    sign_key: Option<PathBuf>,
    /// File with the password of the secret key [default: asked for on the terminal]
    #[arg(long, value_name = "FILE", env = "TOLLGATE_SIGN_PASSWORD_FILE")]
    sign_password_file: Option<PathBuf>,
    /// Move a tag away from what it leads to, and replace another signature
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    runtime: RuntimeArguments,
    /// How to print what was published; JSON as in docs/schema/policy-publish.schema.json
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    name: &'a str,
    version: String,
    /// Of the component: what is pinned.
    digest: Digest,
    /// The artifact by its manifest's digest.
    reference: String,
    manifest_digest: Digest,
    /// Whether the tag leads there only now.
    is_new: bool,
    signature: Option<SignatureObject>,
    /// What of the place's name is not that of the policy.
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignatureObject {
    reference: String,
    key_id: String,
}

impl Run for Publish {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let place: Place = self.place.parse()?;
        let component = read_component(&self.file)?;
        let policy = self.runtime.start()?.load_unpinned(&component);
        let policy = policy.map_err(refused(self.file.display()))?;
        let mut pin = policy.pin().clone();
        let store = made::store_of(&self.file);
        made::complete(&mut pin, &component, store.iter().flat_map(PolicyStore::pins));
        let signed = match &self.sign_key {
            Some(path) => Some(self.sign(path, &pin, &component)?),
            None => None,
        };
        let warnings = place_name::differences(&place, &pin);
        let registry = Registry::new(place)?;
        let artifact = Artifact {
            policy: &policy,
            pin: &pin,
            component: &component,
            signature: signed.as_ref().map(|(signature, key)| (signature, key)),
        };
        let published = block_on(registry.publish(&artifact, self.force))??;
        let line = line(&pin, &published, signed.map(|(_, key)| key.id()), warnings);
        output::print(&match self.format {
            Format::Human => human(&line, &self.place),
            Format::Json => output::json_line(&line),
        })?;
        Ok(Exit::Done)
    }
}

impl Publish {
    /// Signs the component. The comment that is signed with it says what it is.
    fn sign(
        &self,
        path: &Path,
        pin: &PolicyPin,
        component: &[u8],
    ) -> Result<(Signature, PublicKey), Failure> {
        let key = self.secret_key(path)?;
        let comment = Subject::comment(&pin.name, &pin.version, pin.sha256);
        let public = key.public_key()?;
        Ok((key.sign(component, &comment).map_err(Failure::usage)?, public))
    }

    fn secret_key(&self, path: &Path) -> Result<SecretKey, Failure> {
        let text = read_text(path)?;
        match SecretKey::parse(&text, None) {
            Err(KeyError::Encrypted) => {}
            key => return key.map_err(|error| key_failure(&error, Some(path))),
        }
        if let Some(path) = &self.sign_password_file {
            let password = read_text(path)?;
            let password = password.strip_suffix('\n').unwrap_or(&password);
            let password = password.strip_suffix('\r').unwrap_or(password);
            return Ok(SecretKey::parse(&text, Some(password.to_owned()))?);
        }
        if !io::stdin().is_terminal() {
            return Err(KeyError::Encrypted.into());
        }
        Ok(SecretKey::parse_with_prompt(&text)?)
    }
}

/// A key's or a password's file, which is small.
fn read_text(path: &Path) -> Result<String, Failure> {
    let refused = |error| {
        Failure::usage(format!("`{}` cannot be read: {error}", path.display()))
            .with_help("name a file that is there and that you may read")
    };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(refused)?;
    file.take(SIGNATURE_BYTES_MAX as u64).read_to_string(&mut text).map_err(refused)?;
    Ok(text)
}

fn line<'a>(
    pin: &'a PolicyPin,
    published: &Published,
    key: Option<String>,
    warnings: Vec<String>,
) -> Line<'a> {
    let Published { place, manifest, is_new, signature } = published;
    Line {
        name: &pin.name,
        version: pin.version.to_string(),
        digest: pin.sha256,
        reference: place.to_string(),
        manifest_digest: *manifest,
        is_new: *is_new,
        signature: signature
            .as_ref()
            .zip(key)
            .map(|(place, key_id)| SignatureObject { reference: place.to_string(), key_id }),
        warnings,
    }
}

fn human(line: &Line<'_>, place: &str) -> String {
    let Line { name, version, digest, reference, is_new, signature, warnings, .. } = line;
    let state = if *is_new { "" } else { "  the tag led there already\n" };
    let mut text = format!(
        "{name} {version} is published at {place}\n  component  {digest}\n  manifest   {reference}\n"
    );
    if let Some(SignatureObject { reference, key_id }) = signature {
        let _ = writeln!(text, "  signature  {reference}, key {key_id}");
    }
    for warning in warnings {
        let _ = writeln!(text, "  note: {warning}");
    }
    text + state
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        let help = error.help();
        Self::usage(error).with_help(help)
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        let exit = if error.is_mismatch() { Exit::PinMismatch } else { Exit::Usage };
        let help = error.help();
        Self::new(exit, error).with_help(help)
    }
}
