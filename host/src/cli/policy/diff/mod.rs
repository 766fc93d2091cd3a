//! `tollgate policy diff`

mod human;
mod json;

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use tollgate::audit::{
    self, Auditor, Compared, Comparison, Difference, LedgerExport, LedgerExportError, Undecided,
};
use tollgate::ids::{Catalog, ExecutorCode};
use tollgate::policy::{Policy, PolicyRuntime};

use super::super::check;
use super::super::sandbox::{self, FilePin, RuntimeArguments, StoreArguments};
use super::super::until::Until;
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;

/// Show what an upgrade would change: decide on a corpus under two policies
///
/// A policy is a component's file, an executor code (the policy pinned to it in the store), or
/// `CODE@DIR` (pinned to it in another store). What is compared is the decision, the text of what
/// would run with its tables, and the codes; wording and places are not.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy diff sql-jdbc:v1 mysql-repeatable-subset-1.1.0.wasm --corpus migrations/
  tollgate policy diff sql-jdbc:v1 sql-jdbc:v1@next-store --corpus plugins/ --examples 20
  tollgate policy diff sql-jdbc:v1 next.wasm --ledger-export receipts.jsonl
  tollgate policy diff old.wasm new.wasm --corpus migrations/ --format json

Exit code 0 when nothing that was denied becomes allowed, 1 when something does, 2 when something
cannot be read, 3 when a policy could not decide, 4 when a policy is not the pinned one; the highest
that applies.")]
pub(super) struct Diff {
    /// The policy as it is: FILE.wasm, CODE, or CODE@DIR
    #[arg(value_name = "BEFORE")]
    before: Named,
    /// The policy as it would be
    #[arg(value_name = "AFTER")]
    after: Named,
    /// Payloads to decide on: files, and directories with `.sql` files; may be repeated
    #[arg(long, required_unless_present = "ledger_export", value_name = "PATH", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// Payloads that a ledger has receipts of: what `tollgate receipts export` wrote
    #[arg(long, value_name = "FILE")]
    ledger_export: Option<PathBuf>,
    /// Take an export for what it has that does not say where it ends, as those of earlier versions
    #[arg(long, requires = "ledger_export")]
    incomplete: bool,
    /// Catalog that files are meant for; receipts name theirs
    #[arg(
        long,
        env = "FACTORY_PLUGIN_SQL_TARGET_ALLOWED_CATALOG",
        default_value = "plugin_preview"
    )]
    catalog: Catalog,
    /// Examples to show of each kind of difference
    #[arg(long, value_name = "N", default_value_t = 5)]
    examples: usize,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
    /// How to print it; JSON has every difference and a last line with the counts, see
    /// docs/schema/policy-diff.schema.json
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A policy as the command line names it.
#[derive(Debug, Clone)]
enum Named {
    /// Pinned in the store of `--store`.
    Pinned(ExecutorCode),
    /// Pinned in another store.
    PinnedIn(ExecutorCode, PathBuf),
    /// A component's file.
    File(PathBuf),
}

impl std::str::FromStr for Named {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Executor codes have a colon and no dot or slash in them: no component's file looks so.
        if let Ok(executor) = text.parse() {
            return Ok(Self::Pinned(executor));
        }
        let pinned_in = text.split_once('@').and_then(|(code, folder)| {
            Some(Self::PinnedIn(code.parse().ok()?, PathBuf::from(folder)))
        });
        Ok(pinned_in.unwrap_or_else(|| Self::File(PathBuf::from(text))))
    }
}

impl Run for Diff {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let runtime = self.runtime.start()?;
        let before = self.load(&runtime, &self.before)?;
        let after = self.load(&runtime, &self.after)?;
        let pins = (before.pin().clone(), after.pin().clone());
        let auditor = |policy| Auditor::new(policy, self.catalog.clone());
        let comparison = Comparison::new(auditor(before), auditor(after));
        let mut tally = Tally::new(self.examples, self.format == Format::Human);
        let mut out = io::BufWriter::new(io::stdout().lock());
        // What was found before the corpus broke off is told all the same.
        let ended = self.compare(&comparison, |rendered| tally.add(rendered, &mut out));
        let closing = match self.format {
            Format::Human => human::closing(&pins, &tally),
            Format::Json => json::summary(&pins, &tally),
        };
        out.write_all(closing.as_bytes())?;
        out.flush()?;
        ended.map(|()| tally.exit)
    }
}

impl Diff {
    /// Compares the whole corpus, files first.
    fn compare(
        &self,
        comparison: &Comparison,
        mut add: impl FnMut(Rendered) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut until: Until<Failure> = Until::failure();
        let mut emit = |rendered: Result<Rendered, Failure>| {
            until.passed(rendered.and_then(|rendered| Ok(add(rendered)?)))
        };
        if !self.corpus.is_empty() {
            let files = audit::collect(&self.corpus)?;
            let progress = check::progress(files.len());
            let render = |compared: Compared| Rendered::new(&compared, self.format);
            comparison.compare_files(&files, render, |rendered| {
                progress.inc(1);
                emit(Ok(rendered))
            })?;
            progress.finish_and_clear();
        }
        if let Some(path) = &self.ledger_export {
            let render = |compared: Result<Compared, LedgerExportError>| {
                compared.map(|compared| Rendered::new(&compared, self.format))
            };
            comparison.compare_export(
                LedgerExport::open(path)?,
                render,
                |rendered| match rendered {
                    Err(LedgerExportError::NotClosed { .. }) if self.incomplete => {
                        ControlFlow::Continue(())
                    }
                    rendered => emit(rendered.map_err(Failure::from)),
                },
            )?;
        }
        until.ended()
    }

    fn load(&self, runtime: &PolicyRuntime, named: &Named) -> Result<Policy, Failure> {
        match named {
            Named::Pinned(executor) => sandbox::load_pinned(runtime, &self.store.open()?, executor),
            Named::PinnedIn(executor, folder) => {
                sandbox::load_pinned(runtime, &self.store.open_other(folder)?, executor)
            }
            Named::File(path) => {
                let store = self.store.open()?;
                sandbox::load_file(runtime, &store, path, FilePin::Own).map(|it| it.policy)
            }
        }
    }
}

/// A comparison as it is printed.
struct Rendered {
    difference: Difference,
    exit: Exit,
    /// Empty when there is nothing to tell.
    text: String,
}

impl Rendered {
    fn new(compared: &Compared, format: Format) -> Self {
        let difference = compared.difference();
        let exit = match (difference, &compared.answers) {
            (_, Err(Undecided::Unreadable(_))) => Exit::Usage,
            (Difference::Error, _) => Exit::NoDecision,
            (Difference::DenyToAllow, _) => Exit::Denied,
            _ => Exit::Done,
        };
        let text = match format {
            _ if difference == Difference::Same => String::new(),
            Format::Human => human::example(compared),
            Format::Json => json::line(compared),
        };
        Self { difference, exit, text }
    }
}

/// What was counted so far, and the examples that are kept until the end: a few, however large the
/// corpus is.
struct Tally {
    kinds: [Kind; Difference::ALL.len()],
    exit: Exit,
    examples_max: usize,
    keeps: bool,
}

struct Kind {
    difference: Difference,
    count: u64,
    examples: Vec<String>,
}

impl Tally {
    fn new(examples_max: usize, keeps: bool) -> Self {
        let kinds =
            Difference::ALL.map(|difference| Kind { difference, count: 0, examples: Vec::new() });
        Self { kinds, exit: Exit::Done, examples_max, keeps }
    }

    fn add(&mut self, rendered: Rendered, out: &mut impl io::Write) -> io::Result<()> {
        let Rendered { difference, exit, text } = rendered;
        self.exit = self.exit.max(exit);
        if !self.keeps {
            out.write_all(text.as_bytes())?;
        }
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.difference == difference) {
            kind.count += 1;
            if self.keeps && kind.examples.len() < self.examples_max && !text.is_empty() {
                kind.examples.push(text);
            }
        }
        Ok(())
    }

    fn payloads(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }
}
