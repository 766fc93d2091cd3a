//! `tollgate receipts export`

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tollgate::audit::LEDGER_EXPORT_VERSION;
use tollgate::config::SqlTargetConfig;
use tollgate::ids::Catalog;
use tollgate::ledger::{Filter, Ledger, Page, Receipt};
use tollgate::target::{SessionContract, Target, TargetConnection};

use super::super::{Exit, Failure, output, payloads};

/// Receipts that are read and held at once. Their payloads are held one at a time.
const PAGE_SIZE: u32 = 100;

/// Print every receipt with its payload, so that all decisions can be made again offline
///
/// One object a line, the youngest first: the receipt, the catalog it was decided for, and the
/// payload, which is found in the releases by the receipt's content hash. Feed it to `tollgate check
/// --ledger-export`. Receipts that are written while it runs may be missing; none is there twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate receipts export --releases plugins > ledger.jsonl
  tollgate check --ledger-export ledger.jsonl

Exit codes:
  0  every receipt is exported with its payload
  1  some have `payload: null` and say why in `missing`; or the target is not ready
  2  usage or configuration")]
pub(super) struct Export {
    /// Folder with the installed releases, each at <plugin code>/<version>
    #[arg(long, value_name = "DIR", env = "TOLLGATE_RELEASES")]
    releases: PathBuf,
}

/// A line, as docs/schema/ledger-export.schema.json describes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    version: u32,
    catalog: &'a Catalog,
    #[serde(flatten)]
    receipt: &'a Receipt,
    payload: Option<&'a str>,
    missing: Option<String>,
}

impl Export {
    pub(super) async fn run(&self, config: &SqlTargetConfig) -> Result<Exit, Failure> {
        if !self.releases.is_dir() {
            let message = format!("`{}` is no folder", self.releases.display());
            return Err(Failure::usage(message).with_help("name the folder of the releases"));
        }
        let ledger = super::ledger(config);
        let mut connection = Target::new(config).open(&SessionContract::default()).await?;
        let exported = self.pages(&ledger, &mut connection, &config.catalog).await;
        connection.close().await;
        exported
    }

    async fn pages(
        &self,
        ledger: &Ledger,
        connection: &mut TargetConnection,
        catalog: &Catalog,
    ) -> Result<Exit, Failure> {
        let (mut before, mut missing, mut left_out) = (None, 0_u64, 0_u64);
        loop {
            let page = ledger.list(connection, &Filter::default(), before, PAGE_SIZE).await?;
            let Page { receipts, next, unreadable } = page;
            // Nothing of them can be exported; the exit code says that the export is not whole.
            super::tell_unreadable(&unreadable)?;
            left_out += unreadable.len() as u64;
            for receipt in &receipts {
                missing += u64::from(!self.export(catalog, receipt)?);
            }
            before = next;
            if before.is_none() {
                break;
            }
        }
        if missing > 0 {
            // Not among the receipts: a reader of standard output takes every line as one.
            writeln!(io::stderr(), "{missing} receipt(s) without a payload: `missing` says why")?;
        }
        Ok(if missing + left_out == 0 { Exit::Done } else { Exit::NOT_READY })
    }

    /// Prints one; whether it has its payload.
    fn export(&self, catalog: &Catalog, receipt: &Receipt) -> io::Result<bool> {
        let identity = &receipt.identity;
        let found = payloads::find(
            &self.releases,
            &identity.release,
            identity.direction,
            identity.content_hash,
        );
        let found = found.map_err(|missing| missing.to_string());
        // What ran was UTF-8; a digest that names something else was edited in.
        let text = found.as_ref().map_err(Clone::clone).and_then(|payload| {
            std::str::from_utf8(payload.bytes()).map_err(|_| "the payload is not UTF-8".to_owned())
        });
        output::print(&output::json_line(&Line {
            version: LEDGER_EXPORT_VERSION,
            catalog,
            receipt,
            payload: text.as_deref().ok(),
            missing: text.as_ref().err().cloned(),
        }))?;
        Ok(text.is_ok())
    }
}
