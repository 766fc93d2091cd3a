//! `tollgate evidence export`

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use tollgate::audit;
use tollgate::config::SqlTargetConfig;
use tollgate::evidence::{EVIDENCE_FORMAT, EvidenceBundle, Exhibit, ExportError, RecordedReceipt};
use tollgate::ids::{Catalog, EnvironmentCode, ExecutorCode, StepKey};
use tollgate::policy::PolicyRuntime;
use tollgate::target::{SessionContract, Target};

use super::super::configuration;
use super::super::payloads;
use super::super::receipts;
use super::super::releases::is_folder;
use super::super::replace::{Place, Replaces, Written, replace};
use super::super::sandbox::{self, FilePin, LoadedPolicy, RuntimeArguments, StoreArguments};
use super::super::{Exit, Failure, Global, Run, output};

/// The catalog a payload is decided for when none is said, as of `tollgate check`.
const DEFAULT_CATALOG: &str = "plugin_preview";

/// Write everything about one decision into one file
///
/// With a step key: about the step as the target's ledger has it, with its receipt. The payload is
/// found in the releases by the receipt's content hash, the policy in the store by the receipt's
/// policy digest, and the decision made now has to be the recorded one. Without a step key: about a
/// payload as the policy decides now, allowed or denied.
///
/// The file is a tar archive, and the same facts give the same bytes. Note its digest, which is
/// printed, where the file is not: docs/evidence.md.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate evidence export --payload tiers.sql --catalog ruoyi_plugin_preview --to tiers.evidence.tar
  tollgate evidence export loyalty-1.0.0:1 --releases plugins --to loyalty.evidence.tar
  tollgate evidence export order-7:1 --payload forward.sql --policy old.wasm --to order.evidence.tar

Exit codes:
  0  written; a denied payload is evidence as well
  1  the target is not ready, no receipt has the key, or the receipt was pruned
  2  usage or configuration, a file that cannot be read or written included
  3  the policy could not decide
  4  payload or policy are not there, or not those the receipt names; the decision is another")]
pub(super) struct Export {
    /// Step whose receipt goes into the bundle
    #[arg(value_name = "STEP_KEY")]
    key: Option<StepKey>,
    /// File with the payload; with a step key, instead of looking in the releases
    #[arg(long, value_name = "FILE", required_unless_present = "key", conflicts_with = "releases")]
    payload: Option<PathBuf>,
    /// Folder with the installed releases, each at <plugin code>/<version>; without it and a payload,
    /// that of `TOLLGATE_RELEASES`
    #[arg(long, value_name = "DIR", requires = "key")]
    releases: Option<PathBuf>,
    /// Catalog the payload is meant for [default: that of `tollgate check`; of a step, the target's]
    #[arg(long, env = "FACTORY_PLUGIN_SQL_TARGET_ALLOWED_CATALOG")]
    catalog: Option<Catalog>,
    /// Environment the payload is meant for; of a step, the receipt says it
    #[arg(long, value_name = "CODE", conflicts_with = "key")]
    environment: Option<EnvironmentCode>,
    /// Executor code whose pinned policy decides; of a step, the receipt says which
    #[arg(long, value_name = "CODE", default_value = "sql-jdbc:v1", conflicts_with = "key")]
    executor: ExecutorCode,
    /// Component that decides, when it is not in the store
    #[arg(long, value_name = "FILE", conflicts_with = "executor")]
    policy: Option<PathBuf>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Take the place of a file that is there, unless it is one that the command reads
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// What a bundle is about, before anything is decided.
struct Subject {
    payload: Vec<u8>,
    catalog: Catalog,
    receipt: Option<RecordedReceipt>,
}

impl Run for Export {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        self.check_place()?;
        let subject = match &self.key {
            Some(key) => self.step(global, key)?,
            None => self.payload()?,
        };
        let runtime = self.runtime.start()?;
        let LoadedPolicy { policy, component } = self.load(&runtime, subject.receipt.as_ref())?;
        let bundle = EvidenceBundle::export(&Exhibit {
            policy: &policy,
            component: &component,
            payload: &subject.payload,
            catalog: &subject.catalog,
            environment: self.environment.as_ref(),
            receipt: subject.receipt.as_ref(),
        })?;
        replace(&self.to, bundle.as_bytes()).map_err(|error| {
            Failure::usage(format!("`{}` cannot be written: {error}", self.to.display()))
                .with_help("check the folder and its permissions")
        })?;
        let to = output::visible_line(&self.to.display().to_string());
        output::print(&format!(
            "{}  {to}\nnote this digest where the file is not; next: `tollgate evidence verify {}`\n",
            bundle.digest(),
            output::quoted(&to),
        ))?;
        Ok(Exit::Done)
    }
}

/// A bundle, as its first member tells.
const BUNDLE: Written = Written {
    name: "evidence bundle",
    begins: |bytes| {
        let manifest = bytes.get(512..1024).unwrap_or_default();
        let format = format!("\"format\":\"{EVIDENCE_FORMAT}\"");
        manifest.windows(format.len()).any(|window| window == format.as_bytes())
    },
};

impl Export {
    /// Where a step's payload is looked for, unless it is given.
    fn releases(&self) -> Option<PathBuf> {
        if self.payload.is_some() || self.key.is_none() {
            return None;
        }
        let named = self.releases.clone();
        named.or_else(|| std::env::var_os("TOLLGATE_RELEASES").map(PathBuf::from))
    }

    /// Nothing that goes into the bundle may be lost for it.
    fn check_place(&self) -> Result<(), Failure> {
        let releases = self.releases();
        let files = [&self.payload, &self.policy].into_iter().flatten();
        let folders = [releases.as_deref(), self.store.folder()].into_iter().flatten();
        let inputs: Vec<&Path> = files.map(PathBuf::as_path).chain(folders).collect();
        let replaces = if self.force { Replaces::Anything(BUNDLE) } else { Replaces::Nothing };
        Place { option: "--to", path: &self.to, replaces }.check(&inputs)
    }

    fn payload(&self) -> Result<Subject, Failure> {
        let catalog = match &self.catalog {
            Some(catalog) => catalog.clone(),
            None => DEFAULT_CATALOG.parse().map_err(Failure::usage)?,
        };
        let path = self.payload.as_deref().unwrap_or(Path::new("-"));
        Ok(Subject { payload: read_payload(path)?, catalog, receipt: None })
    }

    fn step(&self, global: &Global, key: &StepKey) -> Result<Subject, Failure> {
        let releases = self.releases();
        if self.payload.is_none() && releases.is_none() {
            return Err(Failure::usage("the payload of the step is nowhere to be found")
                .with_help("add `--releases DIR`, or `--payload FILE`"));
        }
        if let Some(releases) = &releases {
            is_folder(
                releases,
                "name the folder that holds each release at <plugin code>/<version>",
            )?;
        }
        let config = configuration::read(global)?;
        let target = configuration::sql_target(&config)?;
        if let Some(catalog) = self.catalog.as_ref().filter(|it| **it != target.catalog) {
            let message = format!("the ledger is in catalog `{}`, not `{catalog}`", target.catalog);
            return Err(Failure::usage(message).with_help("leave `--catalog` out"));
        }
        let receipt = configuration::block_on(recorded(target, key))??;
        let payload = match (&self.payload, &releases) {
            (Some(path), _) => read_payload(path)?,
            (None, releases) => {
                let releases = releases.as_deref().unwrap_or(Path::new("."));
                let (release, hash) = (&receipt.release, receipt.content_hash);
                payloads::find(releases, release, receipt.direction, hash)
                    .map_err(|missing| {
                        Failure::new(Exit::PinMismatch, format!("step `{key}`: {missing}"))
                            .with_help(missing.help())
                    })?
                    .bytes()
                    .to_vec()
            }
        };
        Ok(Subject { payload, catalog: target.catalog.clone(), receipt: Some(receipt) })
    }

    fn load(
        &self,
        runtime: &PolicyRuntime,
        receipt: Option<&RecordedReceipt>,
    ) -> Result<LoadedPolicy, Failure> {
        let store = self.store.open()?;
        if let Some(path) = &self.policy {
            return sandbox::load_file(runtime, &store, path, FilePin::OfStore);
        }
        let Some(receipt) = receipt else {
            return sandbox::load_with_bytes(runtime, &store, store.pin(&self.executor)?);
        };
        let digest = receipt.policy_digest.ok_or(ExportError::Pruned)?;
        sandbox::load_by_digest(runtime, &store, digest)?.ok_or_else(|| {
            let message = format!("the receipt names policy {digest}, which the store has not");
            Failure::new(Exit::PinMismatch, message)
                .with_help("name its file: `--policy FILE`, or its store: `--store DIR`")
        })
    }
}

/// The receipt of a step, as the ledger has it now.
async fn recorded(target: &SqlTargetConfig, key: &StepKey) -> Result<RecordedReceipt, Failure> {
    let reading = Target::new(target).read_only();
    let mut connection = reading.open(&SessionContract::default()).await?;
    let receipt = receipts::ledger(target).read(&mut connection, key).await;
    connection.close().await;
    match receipt? {
        Some(receipt) => Ok(RecordedReceipt::from(&receipt)),
        None => Err(receipts::unknown(key)),
    }
}

fn read_payload(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = fs::File::open(path)
        .map_err(|error| Failure::usage(format!("`{}` cannot be read: {error}", path.display())))?;
    audit::read_payload(file).map_err(|error| {
        let help = error.help();
        Failure::usage(format!("`{}`: {error}", path.display())).with_help(help)
    })
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let exit = match &error {
            error if error.is_mismatch() => Exit::PinMismatch,
            ExportError::NoDecision(_) => Exit::NoDecision,
            ExportError::Pruned => Exit::NOT_READY,
            _ => Exit::Usage,
        };
        let help = error.help();
        Self::new(exit, error).with_help(help)
    }
}
