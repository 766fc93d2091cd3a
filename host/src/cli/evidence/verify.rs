//! `tollgate evidence verify`

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::evidence::{
    Difference, DifferenceKind, EvidenceBundle, EvidenceError, Sandbox, Summary, Verification,
};
use tollgate::ids::Catalog;
use tollgate::policy::{Backend, PolicyPin, PolicyRuntime, PolicyStore};
use tollgate::text::with_causes;

use super::super::output::{self, visible_line};
use super::super::sandbox::{RuntimeArguments, StoreArguments};
use super::super::{Exit, Failure, Global, Run};

/// Find everything in a bundle that is not as recorded
///
/// Needs the bundle and nothing else: no server, no configuration, no release, and no store unless
/// `--require-pinned` asks for one. Every digest is computed again, the policy is loaded from the bundle
/// and asked again in the sandbox, and every difference is listed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate evidence verify loyalty.evidence.tar
  tollgate evidence verify --engine both --require-pinned loyalty.evidence.tar
  tollgate evidence verify --json *.evidence.tar

Exit codes:
  0  everything is as recorded
  1  something is not
  2  usage, or a file that is no bundle
  3  the policy in the bundle could not be asked, or did not decide
  4  a digest is not that of what it names; with `--require-pinned`, or another policy is pinned")]
pub(super) struct Verify {
    /// Bundles
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// What executes the policy's code
    #[arg(long, value_enum, default_value_t)]
    engine: Engine,
    /// Let a policy that is not pinned in the store, or not byte for byte the store's file, count as a
    /// mismatch; with `--verify-key` it always does
    #[arg(long)]
    require_pinned: bool,
    /// One object a line; see docs/schema/evidence-verify.schema.json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Engine {
    /// The processor, by machine code that Cranelift makes
    #[default]
    Cranelift,
    /// Wasmtime's interpreter, many times slower
    Pulley,
    /// One after the other
    Both,
}

impl Engine {
    const fn backends(self) -> &'static [(&'static str, Backend)] {
        const CRANELIFT: (&str, Backend) = ("cranelift", Backend::Native);
        const PULLEY: (&str, Backend) = ("pulley", Backend::Pulley);
        match self {
            Self::Cranelift => &[CRANELIFT],
            Self::Pulley => &[PULLEY],
            Self::Both => &[CRANELIFT, PULLEY],
        }
    }
}

impl Run for Verify {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        // What is not signed is not pinned either, when someone has to have signed it.
        let opened =
            if self.requires_pinned() { self.store.open_vouched() } else { self.store.open() };
        let store = match opened {
            // A store that was named has to be one.
            Err(failure) if self.requires_pinned() || self.store.folder().is_some() => {
                return Err(failure);
            }
            opened => opened.ok(),
        };
        let runtimes: Vec<(&str, PolicyRuntime)> = self
            .engine
            .backends()
            .iter()
            .map(|&(name, backend)| Ok((name, self.runtime.start_on(backend)?)))
            .collect::<Result<_, Failure>>()?;
        let sandboxes: Vec<Sandbox<'_>> =
            runtimes.iter().map(|(engine, runtime)| Sandbox { engine, runtime }).collect();
        let mut exit = Exit::Done;
        for (at, path) in self.bundles.iter().enumerate() {
            let read = File::open(path).map_err(EvidenceError::Read).and_then(EvidenceBundle::read);
            let (text, found) = match read {
                Ok(bundle) => {
                    let verification = bundle.verify(&sandboxes);
                    let pin = self.pin_state(&bundle, &verification.summary, store.as_ref());
                    let report = Report::new(path, &verification, pin, self.requires_pinned());
                    (if self.json { report.json() } else { report.human() }, report.exit())
                }
                // Of many, one that is no bundle does not keep the others from being verified.
                Err(error) if self.json => (unreadable(path, &error), Exit::Usage),
                Err(error) => {
                    let help = error.help();
                    let error = Context { path: path.display().to_string(), source: error };
                    Failure::usage(error).with_help(help).report();
                    (String::new(), Exit::Usage)
                }
            };
            let separator = if at > 0 && !self.json && !text.is_empty() { "\n" } else { "" };
            output::print(&format!("{separator}{text}"))?;
            exit = exit.max(found);
        }
        Ok(exit)
    }
}

impl Verify {
    /// Whether it counts what the store says: a key that has to have signed is about what is pinned.
    const fn requires_pinned(&self) -> bool {
        self.require_pinned || self.store.has_key()
    }

    /// What the store says, if there is one: the file it has is looked at when it counts.
    fn pin_state(
        &self,
        bundle: &EvidenceBundle,
        summary: &Summary,
        store: Option<&PolicyStore>,
    ) -> PinState {
        let Some(store) = store else { return PinState::Unknown };
        let component = bundle.member("policy/component.wasm");
        // An absent or a damaged file, and one without the signature that is asked for, vouch for
        // nothing.
        match PinState::of(summary, store) {
            (PinState::Pinned, Some(pin)) if self.requires_pinned() => {
                let has_bytes = store.component(pin).is_ok_and(|bytes| Some(&*bytes) == component);
                if has_bytes { PinState::Pinned } else { PinState::OtherFile }
            }
            // Without a key pins.toml vouches for what it supersedes, whether its file is kept or not.
            (PinState::Superseded, _) if self.store.has_key() => {
                let signed = summary.policy_digest.map(|digest| store.component_with(digest));
                let is_signed =
                    matches!(signed, Some(Ok(Some(bytes))) if Some(&*bytes) == component);
                if is_signed { PinState::Superseded } else { PinState::SupersededUnsigned }
            }
            (state, _) => state,
        }
    }
}

/// Which bundle an error is about.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be verified")]
struct Context {
    path: String,
    source: EvidenceError,
}

/// What the store says about the policy of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PinState {
    /// This very component decides for the executor.
    Pinned,
    /// The component that decides now has taken its place.
    Superseded,
    /// The same, and the store has no file of it that the trusted key signed.
    SupersededUnsigned,
    /// Another component decides for the executor.
    PinnedOtherwise,
    /// Nothing is pinned to the executor here.
    NotPinned,
    /// It is pinned, and the store's file has other bytes, or cannot be read.
    OtherFile,
    /// There is no store that can be read.
    Unknown,
}

impl PinState {
    /// What the store's pins say, and the pin.
    fn of<'a>(summary: &Summary, store: &'a PolicyStore) -> (Self, Option<&'a PolicyPin>) {
        let pin = summary.executor.as_ref().and_then(|executor| store.pins().find(executor));
        let state = match (pin, summary.policy_digest) {
            (Some(pin), Some(digest)) if pin.sha256 == digest => Self::Pinned,
            (Some(pin), Some(digest)) if pin.supersedes.contains(&digest) => Self::Superseded,
            (Some(_), _) => Self::PinnedOtherwise,
            (None, _) => Self::NotPinned,
        };
        (state, pin)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Pinned => "pinned in this store",
            Self::Superseded => "superseded in this store by the policy that is pinned now",
            Self::SupersededUnsigned => {
                "superseded in this store, which has no file of it that the key signed"
            }
            Self::PinnedOtherwise => "in this store another policy is pinned",
            Self::NotPinned => "nothing is pinned to its executor in this store",
            Self::OtherFile => {
                "pinned in this store, whose file is not byte for byte this component"
            }
            Self::Unknown => "whether it is pinned is not known: the store cannot be read",
        }
    }
}

struct Report<'a> {
    path: String,
    verification: &'a Verification,
    pin: PinState,
    require_pinned: bool,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    bundle: &'a str,
    verified: bool,
    bundle_digest: Digest,
    #[serde(flatten)]
    summary: &'a Summary,
    pin: PinState,
    engines: &'a [String],
    differences: &'a [Difference],
    unproven: &'a [String],
}

/// The same of a file that is no bundle.
fn unreadable(path: &Path, error: &EvidenceError) -> String {
    output::json_line(&serde_json::json!({
        "bundle": path.display().to_string(),
        "verified": false,
        "error": with_causes(error),
    }))
}

impl<'a> Report<'a> {
    fn new(
        path: &Path,
        verification: &'a Verification,
        pin: PinState,
        require_pinned: bool,
    ) -> Self {
        Self { path: path.display().to_string(), verification, pin, require_pinned }
    }

    fn pin_counts(&self) -> bool {
        self.require_pinned && !matches!(self.pin, PinState::Pinned | PinState::Superseded)
    }

    fn verified(&self) -> bool {
        self.verification.holds() && !self.pin_counts()
    }

    fn exit(&self) -> Exit {
        let has = |kind| self.verification.has(kind);
        if self.pin_counts() || has(DifferenceKind::Digest) {
            Exit::PinMismatch
        } else if has(DifferenceKind::NoDecision) {
            Exit::NoDecision
        } else if self.verification.holds() {
            Exit::Done
        } else {
            Exit::Denied
        }
    }

    fn json(&self) -> String {
        let Verification { bundle_digest, summary, engines, differences, unproven } =
            self.verification;
        output::json_line(&Line {
            bundle: &self.path,
            verified: self.verified(),
            bundle_digest: *bundle_digest,
            summary,
            pin: self.pin,
            engines,
            differences,
            unproven,
        })
    }

    fn human(&self) -> String {
        let Verification { bundle_digest, summary, engines, differences, unproven } =
            self.verification;
        let word = if self.verified() { "verified" } else { "DIFFERS" };
        let mut text = format!("{word}  {}\n", visible_line(&self.path));
        // What a bundle says freely stands within a line of ours, and makes none of its own; the other
        // values were checked when they were read.
        let free = |value: Option<&String>| visible_line(value.map_or("unknown", String::as_str));
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<9} {value}");
        };
        line("bundle", bundle_digest.to_string());
        if let Some(key) = &summary.step_key {
            let status = summary.status.map_or("unknown", |status| status.as_str());
            let runs = match summary.execution_count {
                Some(0) => ", never run: there was nothing to take back".to_owned(),
                Some(count) if count > 1 => format!(", started {count} times"),
                _ => String::new(),
            };
            line("step", format!("{key}, {status}{runs}"));
        }
        let name = free(summary.policy_name.as_ref());
        let version = summary.policy_version.as_ref().map(|version| visible_line(version));
        let version = version.unwrap_or_default();
        line("policy", format!("{name} {version}, {}", optional(summary.policy_digest)));
        line("", self.pin.words().to_owned());
        line("payload", optional(summary.payload_digest));
        line("catalog", optional(summary.catalog.as_ref().map(Catalog::as_str)));
        let count = summary.statement_count.unwrap_or_default();
        let decision = summary.decision.unwrap_or("unknown");
        line("decision", format!("{decision}, {count} statement(s)"));
        if !summary.codes.is_empty() {
            line("", format!("findings: {}", visible_line(&summary.codes.join(", "))));
        }
        line("", optional(summary.decision_digest));
        line("again", again(engines, differences));
        line("made by", format!("Tollgate {}", free(summary.made_by.as_ref())));
        for difference in differences {
            let _ = writeln!(text, "  differs: {difference}");
        }
        if self.pin_counts() {
            let _ = writeln!(text, "  differs: {}", self.pin.words());
        }
        if differences.iter().any(|it| it.kind == DifferenceKind::Form) {
            text.push_str(FORM_HELP);
        }
        text.push_str("  not proven:\n");
        for unproven in unproven {
            let _ = writeln!(text, "    {}", visible_line(unproven));
        }
        text
    }
}

/// What to do about a bundle that is not in the form of its version.
const FORM_HELP: &str = "  help: take the file as it was exported, or export it again: the same facts \
    give the same bytes\n";

/// Which engines decided again, or why none did.
fn again(engines: &[String], differences: &[Difference]) -> String {
    if !engines.is_empty() {
        return format!("decided by {}", engines.join(", "));
    }
    let why = differences.iter().find(|it| it.kind == DifferenceKind::NoDecision);
    why.map_or_else(|| "not decided".to_owned(), |it| visible_line(&it.found))
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}
