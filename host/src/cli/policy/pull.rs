//! `tollgate policy pull`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{PINS_FILE, PolicyPin, PolicyStore};
use tollgate::registry::{Place, Pulled, Registry};
use tollgate::signature::SIGNATURE_SUFFIX;

use super::super::configuration::block_on;
use super::super::replace::replace;
use super::super::sandbox::{KeyArguments, RuntimeArguments};
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;
use super::component_file::Target;

/// Fetch a component from an OCI registry, if it is the one that is expected
///
/// What is expected is the digest of `--digest`, or that of the pin when the destination's pins.toml
/// has one of the same name and version. With neither, the digest is printed for you to compare and
/// to pin. With a key the component has to be signed by it; the signature is kept beside it.
///
/// The component is checked as the host checks it before it decides, and nothing is written before
/// all of that holds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy pull registry.example/policies/mysql-repeatable-subset:1.0.0 --to policies \\
      --digest sha256:5c4865bba00783bfc987e36b921c7cc9580caf6e79f6c566cdb376f6fbc35816
  tollgate policy pull registry.example/policies/p:1.1.0 --to next.wasm --verify-key policy.pub

Exit code 2 when the registry cannot be reached or has no policy there, 4 when it is another component
than is expected, is not signed as it has to be, or other bytes are at the destination.")]
pub(super) struct Pull {
    /// From where: HOST[:PORT]/REPOSITORY:TAG, or with @sha256:… of the manifest
    #[arg(value_name = "PLACE")]
    place: String,
    /// Digest that the component has to have
    #[arg(long, value_name = "sha256:…")]
    digest: Option<Digest>,
    /// Directory for NAME-VERSION.wasm, or a file
    #[arg(long, value_name = "PATH", default_value = ".")]
    to: PathBuf,
    #[command(flatten)]
    key: KeyArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
    /// How to print what was pulled; JSON as in docs/schema/policy-pull.schema.json
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    name: &'a str,
    version: String,
    digest: Digest,
    /// What the digest was compared with.
    expected_by: Vec<Expectation>,
    manifest_digest: Digest,
    path: String,
    pinned_to: Vec<&'a ExecutorCode>,
    /// The key that signed it; null when none was asked for.
    key_id: Option<String>,
    #[serde(skip)]
    executors: &'a [ExecutorCode],
}

/// What said which bytes to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Expectation {
    /// `--digest`
    Argument,
    /// The destination's pin.
    Pin,
}

impl Run for Pull {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let key = self.key.read()?;
        let registry = Registry::new(self.place.parse::<Place>()?)?;
        let runtime = self.runtime.start()?;
        let pulled = block_on(registry.pull(self.digest, key.as_ref()))??;
        let Pulled { component, digest, manifest, signature } = &pulled;
        let policy = runtime.load_unpinned(component)?;
        let pin = policy.pin();

        let target = self.target(pin);
        let pins = pins_beside(target.path())?;
        let same: Vec<&PolicyPin> = pins
            .iter()
            .flat_map(PolicyStore::pins)
            .filter(|it| it.name == pin.name && it.version == pin.version)
            .collect();
        if let Some(other) = same.iter().find(|it| it.sha256 != *digest) {
            return Err(not_the_pinned(&self.place, other, *digest));
        }
        target.refuse_other_bytes(component)?;
        target.write(component)?;
        if let Some(signature) = signature {
            replace(&signature_of(target.path()), signature.as_str().as_bytes())?;
        }

        let mut expected_by = Vec::new();
        expected_by.extend(self.digest.map(|_| Expectation::Argument));
        expected_by.extend((!same.is_empty()).then_some(Expectation::Pin));
        let line = Line {
            name: &pin.name,
            version: pin.version.to_string(),
            digest: *digest,
            expected_by,
            manifest_digest: *manifest,
            path: target.path().display().to_string(),
            pinned_to: same.iter().map(|pin| &pin.executor).collect(),
            key_id: key.map(|key| key.id()),
            executors: &policy.description().executor_codes,
        };
        output::print(&match self.format {
            Format::Human => human(&line),
            Format::Json => output::json_line(&line),
        })?;
        Ok(Exit::Done)
    }
}

impl Pull {
    fn target(&self, pin: &PolicyPin) -> Target {
        let names_a_folder = self.to.to_string_lossy().ends_with('/');
        if self.to.is_dir() || names_a_folder {
            Target::new(&self.to, &pin.file)
        } else {
            Target::at(self.to.clone())
        }
    }
}

/// The pins of the folder that a component is put into.
fn pins_beside(component: &Path) -> Result<Option<PolicyStore>, Failure> {
    let folder = component.parent().unwrap_or(Path::new("."));
    if folder.join(PINS_FILE).exists() { Ok(Some(PolicyStore::open(folder)?)) } else { Ok(None) }
}

fn not_the_pinned(place: &str, pin: &PolicyPin, found: Digest) -> Failure {
    let PolicyPin { executor, name, version, sha256, .. } = pin;
    let message = format!(
        "`{place}` is {name} {version} with the digest {found}, `{executor}` is pinned to {sha256}"
    );
    Failure::new(Exit::PinMismatch, message)
        .with_help("a published version never changes: find out which of the two is the right one")
}

/// Where a component's signature lies.
pub(super) fn signature_of(component: &Path) -> PathBuf {
    let mut path = component.as_os_str().to_owned();
    path.push(SIGNATURE_SUFFIX);
    path.into()
}

fn human(line: &Line<'_>) -> String {
    let Line { name, version, digest, expected_by, path, pinned_to, key_id, executors, .. } = line;
    let mut text = format!("{name} {version}\n  {digest}\n  written to {path}\n");
    if let Some(key) = key_id {
        let _ = writeln!(text, "  signed by the key {key}");
    }
    if expected_by.is_empty() {
        text.push_str(
            "  nothing said which bytes to expect: compare the digest with the one its author names\n",
        );
    }
    match (pinned_to.as_slice(), executors.first()) {
        ([], Some(executor)) => {
            let _ = writeln!(
                text,
                "  not pinned yet: tollgate policy pin {executor} {path} --store DIR"
            );
        }
        (codes, _) => {
            let codes: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let _ = writeln!(text, "  pinned to {}", codes.join(", "));
        }
    }
    text
}
