//! `tollgate receipts export`

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tollgate::audit::{DamagedRow, ExportSum, LEDGER_EXPORT_VERSION};
use tollgate::config::SqlTargetConfig;
use tollgate::ids::Catalog;
use tollgate::ledger::{Filter, Ledger, Page, Receipt, UnreadableRow};
use tollgate::target::{SessionContract, Target, TargetConnection};

use super::super::releases::is_folder;
use super::super::{Exit, Failure, output, payloads};

/// Receipts that are read and held at once. Their payloads are held one at a time.
const PAGE_SIZE: u32 = 100;

/// Print every receipt with its payload, so that all decisions can be made again offline
///
/// One object a line, the youngest first: the receipt, the catalog it was decided for, and the
/// payload, which is found in the releases by the receipt's content hash. A row that is no receipt has
/// its line as well, and the last line says how many there are and has their digest: without it the
/// export is not whole. Feed it to `tollgate check --ledger-export`. Receipts that are written while it
/// runs may be missing; none is there twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate receipts export --releases plugins > ledger.jsonl
  tollgate check --ledger-export ledger.jsonl

Exit codes:
  0  every receipt is exported with its payload
  1  some have `payload: null` and say why in `missing`, or a row is `damaged`; or the target is not
     ready, and the closing line is missing
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
        is_folder(
            &self.releases,
            "name the folder that holds each release at <plugin code>/<version>",
        )?;
        let ledger = super::ledger(config);
        let mut connection =
            Target::new(config).read_only().open(&SessionContract::default()).await?;
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
        let (mut before, mut missing, mut damaged) = (None, 0_u64, 0_u64);
        let mut sum = ExportSum::default();
        let mut print = |line: String| {
            sum.add(&line);
            output::print(&line)
        };
        loop {
            let page = ledger.list(connection, &Filter::default(), before, PAGE_SIZE).await?;
            let Page { receipts, next, unreadable, .. } = page;
            // An audit has to know of every row, so those that are no receipts stand among the others.
            damaged += unreadable.len() as u64;
            let mut rows = unreadable.into_iter().peekable();
            for receipt in &receipts {
                while let Some(row) = rows.next_if(|row| row.id > receipt.id) {
                    print(line_of(row))?;
                }
                let (line, is_whole) = self.line(catalog, receipt);
                missing += u64::from(!is_whole);
                print(line)?;
            }
            rows.try_for_each(|row| print(line_of(row)))?;
            before = next;
            if before.is_none() {
                break;
            }
        }
        output::print(&sum.to_line())?;
        if damaged > 0 {
            writeln!(io::stderr(), "{damaged} row(s) that are no receipts: `damaged` says why")?;
        }
        if missing > 0 {
            // Not among the receipts: a reader of standard output takes every line as one.
            writeln!(io::stderr(), "{missing} receipt(s) without a payload: `missing` says why")?;
        }
        Ok(if missing + damaged == 0 { Exit::Done } else { Exit::NOT_READY })
    }

    /// The line of a receipt, and whether it has its payload.
    fn line(&self, catalog: &Catalog, receipt: &Receipt) -> (String, bool) {
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
        let line = output::json_line(&Line {
            version: LEDGER_EXPORT_VERSION,
            catalog,
            receipt,
            payload: text.as_deref().ok(),
            missing: text.as_ref().err().cloned(),
        });
        (line, text.is_ok())
    }
}

fn line_of(row: UnreadableRow) -> String {
    let UnreadableRow { id, key, column } = row;
    DamagedRow { id, key, column: column.to_owned() }.to_line()
}
