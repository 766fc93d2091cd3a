//! `tollgate policy pull`

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{PINS_FILE, PolicyPin, PolicyStore};
use tollgate::registry::{Made, Place, Pulled, Registry, RegistryError};

use super::super::configuration::block_on;
use super::super::output::quoted;
use super::super::sandbox::{KeyArguments, RuntimeArguments, refused};
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;
use super::component_file::Target;
use super::place_name;
use super::store_lock::StoreLock;

/// Fetch a component from an OCI registry, if it is the one that is expected
///
/// What is expected is the digest of `--digest`, or that of the pin when the destination's pins.toml
/// has one of the same name and version. With neither, the digest is printed for you to compare and
/// to pin. With a key the component has to be signed by it; the signature is kept beside it. A tag that
/// leads to an older version than the destination's pins have is not followed.
///
/// Digest, signature and pins are compared before anything of the component is compiled. Then it is
/// checked as the host checks it before it decides, and nothing is written before all of that holds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy pull registry.example/policies/mysql-repeatable-subset:1.0.0 --to policies \\
      --digest sha256:5c4865bba00783bfc987e36b921c7cc9580caf6e79f6c566cdb376f6fbc35816
  tollgate policy pull registry.example/policies/p:1.1.0 --to next.wasm --verify-key policy.pub

Exit code 2 when the registry cannot be reached or has no policy there, 4 when it is another component
than is expected, is not signed as it has to be, is older than what is pinned, or other bytes are at the destination.")]
pub(super) struct Pull {
    /// From where: HOST[:PORT]/REPOSITORY:TAG, or with @sha256:… of the manifest
    #[arg(value_name = "PLACE")]
    place: String,
    /// Digest that the component has to have
    #[arg(long, value_name = "sha256:…")]
    digest: Option<Digest>,
    /// Directory for NAME-VERSION.wasm, which is made when it is not there, or a file whose name ends in
    /// .wasm
    #[arg(long, value_name = "PATH", default_value = ".")]
    to: PathBuf,
    /// Take an older version than the destination's pins have, too
    #[arg(long)]
    allow_older: bool,
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
    /// The compiler that made it, as its publisher says; null when it is not said.
    compiler: Option<&'a str>,
    /// The compiler's flags, as its publisher says.
    flags: &'a [String],
    /// What of the place's name is not that of the policy.
    warnings: Vec<String>,
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
        let place: Place = self.place.parse()?;
        self.check_destination()?;
        let registry = Registry::new(place.clone())?;
        let pulled = block_on(registry.pull(self.digest, key.as_ref()))??;
        let Pulled { component, digest, manifest, signature, subject, made } = &pulled;
        self.check_claims(made, &pulled)?;

        let policy = self.runtime.start()?.load_unpinned(component);
        let policy = policy.map_err(refused(&self.place))?;
        let pin = policy.pin();
        if let Some(subject) = subject {
            let place = place.of_signature(*digest);
            subject
                .check(&pin.name, &pin.version)
                .map_err(|source| RegistryError::Signature { place, source })?;
        }

        let target = self.target(pin);
        let _lock = StoreLock::take(folder_of(target.path()))?;
        // As they are now that nobody else changes them.
        let pins = self.pins()?;
        let same: Vec<&PolicyPin> = pins
            .iter()
            .flat_map(PolicyStore::pins)
            .filter(|it| it.name == pin.name && it.version == pin.version)
            .collect();
        if let Some(other) = same.iter().find(|it| it.sha256 != *digest) {
            return Err(not_the_pinned(&self.place, other, *digest));
        }
        self.refuse_older(&place, pin, pins.as_ref())?;
        target.write(component)?;
        if let Some(signature) = signature {
            target.write_signature(signature, component, key.as_ref())?;
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
            compiler: made.compiler.as_deref(),
            flags: &made.flags,
            warnings: place_name::differences(&place, pin),
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
    /// A name that is neither that of a file nor of a component is that of a folder.
    fn names_a_folder(&self) -> bool {
        let is_component = self.to.extension().is_some_and(|extension| extension == "wasm");
        self.to.is_dir() || !(self.to.is_file() || is_component)
    }

    fn target(&self, pin: &PolicyPin) -> Target {
        if self.names_a_folder() {
            Target::new(&self.to, &pin.file)
        } else {
            Target::at(self.to.clone())
        }
    }

    /// Fails when nothing can be put there, before anything is fetched.
    fn check_destination(&self) -> Result<(), Failure> {
        let is_link = fs::symlink_metadata(&self.to).is_ok_and(|found| found.is_symlink());
        if is_link && !self.to.exists() {
            let message = format!("`{}` is a link to what is not there", self.to.display());
            return Err(Failure::usage(message).with_help("remove the link, or name another path"));
        }
        Ok(())
    }

    /// The pins of the folder that the component is put into.
    fn pins(&self) -> Result<Option<PolicyStore>, Failure> {
        let folder = if self.names_a_folder() { &self.to } else { folder_of(&self.to) };
        if folder.join(PINS_FILE).exists() {
            Ok(Some(PolicyStore::open(folder)?))
        } else {
            Ok(None)
        }
    }

    /// Compares with pins and files what can be compared before anything is compiled: what the artifact
    /// says of itself. When that is not true it is found out later.
    fn check_claims(&self, made: &Made, pulled: &Pulled) -> Result<(), Failure> {
        if !self.names_a_folder() {
            Target::at(self.to.clone()).refuse_other_bytes(&pulled.component)?;
        }
        let (Some(name), Some(version)) = (&made.name, &made.version) else { return Ok(()) };
        let pins = self.pins()?;
        let mut pins = pins.iter().flat_map(PolicyStore::pins);
        let other = pins.find(|pin| {
            pin.name == *name && pin.version == *version && pin.sha256 != pulled.digest
        });
        match other {
            Some(pin) => Err(not_the_pinned(&self.place, pin, pulled.digest)),
            None => Ok(()),
        }
    }

    /// A tag may be moved back to what was given up, and a signature of that is still good. Whoever names
    /// the bytes knows which they are.
    fn refuse_older(
        &self,
        place: &Place,
        pin: &PolicyPin,
        pins: Option<&PolicyStore>,
    ) -> Result<(), Failure> {
        let mut pins = pins.into_iter().flat_map(PolicyStore::pins);
        let newer = pins.find(|it| it.name == pin.name && it.version > pin.version);
        let Some(newer) =
            newer.filter(|_| place.tag().is_some() && self.digest.is_none() && !self.allow_older)
        else {
            return Ok(());
        };
        let message = format!(
            "`{}` is {} {}, older than the {} that `{}` is pinned to",
            self.place, pin.name, pin.version, newer.version, newer.executor
        );
        Err(Failure::new(Exit::PinMismatch, message).with_help(format!(
            "find out who moved the tag; to have it all the same, add --digest {} or --allow-older",
            pin.sha256
        )))
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn not_the_pinned(place: &str, pin: &PolicyPin, found: Digest) -> Failure {
    let PolicyPin { executor, name, version, sha256, .. } = pin;
    let message = format!(
        "`{place}` is {name} {version} with the digest {found}, `{executor}` is pinned to {sha256}"
    );
    Failure::new(Exit::PinMismatch, message)
        .with_help("a published version never changes: find out which of the two is the right one")
}

fn human(line: &Line<'_>) -> String {
    let Line { name, version, digest, expected_by, path, key_id, warnings, .. } = line;
    let mut text = format!("{name} {version}\n  {digest}\n  written to {path}\n");
    if let Some(key) = key_id {
        let _ = writeln!(text, "  signed by the key {key}");
    }
    for warning in warnings {
        let _ = writeln!(text, "  note: {warning}");
    }
    if expected_by.is_empty() {
        text.push_str(
            "  nothing said which bytes to expect: compare the digest with the one its author names\n",
        );
    }
    text + &next(line)
}

/// The command that pins it, with what its publisher says made it, or what it is pinned to already.
fn next(line: &Line<'_>) -> String {
    let Line { path, pinned_to, executors, compiler, flags, .. } = line;
    let [] = pinned_to.as_slice() else {
        let codes: Vec<&str> = pinned_to.iter().map(|code| code.as_str()).collect();
        return format!("  pinned to {}\n", codes.join(", "));
    };
    let Some(executor) = executors.first() else { return String::new() };
    let mut text = format!("  not pinned yet: tollgate policy pin {executor} {}", quoted(path));
    if let Some(compiler) = compiler {
        let _ = write!(text, " --compiler {}", quoted(compiler));
    }
    for flag in *flags {
        let _ = write!(text, " --flag {}", quoted(flag));
    }
    text + " --store DIR\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_publisher_says_becomes_a_command() {
        assert_eq!(quoted("p-1.0.0.wasm"), "p-1.0.0.wasm");
        assert_eq!(quoted("rustc 1.95.0; rm"), "'rustc 1.95.0; rm'");
        assert_eq!(quoted("a'$(rm)'b"), r"'a'\''$(rm)'\''b'");
        assert_eq!(quoted(""), "''");
    }
}
