//! `tollgate check`: offline decisions on payload files.

mod fix;
mod github;
mod human;
mod json;
mod ledger;
mod report;
mod sarif;
mod summary;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tollgate::audit::{self, Audited, Auditor, CollectError, Undecided};
use tollgate::ids::{Catalog, ExecutorCode};
use tollgate::policy::{Decision, Diagnostic, LineIndex, Policy};

use self::report::{Renderer, Report, Summary, Written};
use self::summary::{Counted, Counts};
use super::sandbox::{self, FilePin, RuntimeArguments, StoreArguments};
use super::until::Until;
use super::{Exit, Failure, Global, Run, output};

/// Decide on payloads offline, exactly as the executor will
///
/// Files are taken as they are; directories mean every `*.sql` in them; `-` is standard input.
/// Nothing is connected to and nothing is run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate check migrations/
  tollgate check --catalog ruoyi_plugin_preview 001_create.sql 002_seed.sql
  tollgate check --fix --write migrations/
  tollgate check --format json - < payload.sql
  tollgate check --format sarif migrations/ > tollgate.sarif
  tollgate check --policy policies/mysql-repeatable-subset-1.0.0.wasm payload.sql
  tollgate check --format json --summary summary.json migrations/ > decisions.jsonl
  tollgate check --ledger-export ledger.jsonl

Exit codes, of which the highest that applies is returned:
  0  everything is allowed; of an export: every receipt agrees or was pruned, none included
  1  something is denied
  2  something cannot be read; of an export: a line is bad, or its closing line does not vouch for it
  3  the policy could not decide; of an export: a receipt cannot be decided again, or was damaged
  4  the policy is not the pinned one; of an export: something is not as its receipt says")]
pub(super) struct Check {
    /// Payloads: files, directories, or `-` for standard input
    #[arg(
        required_unless_present = "ledger_export",
        conflicts_with = "ledger_export",
        value_name = "PATH"
    )]
    paths: Vec<PathBuf>,
    /// Decide again on what `tollgate receipts export` wrote, each payload by the policy and for the
    /// catalog its receipt names, and compare
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fix", "executor"])]
    ledger_export: Option<PathBuf>,
    /// Take an export for what it has that does not say where it ends, as those of earlier versions
    #[arg(long, requires = "ledger_export")]
    incomplete: bool,
    /// Catalog the payloads are meant for
    #[arg(
        long,
        env = "FACTORY_PLUGIN_SQL_TARGET_ALLOWED_CATALOG",
        default_value = "plugin_preview"
    )]
    catalog: Catalog,
    /// Executor code whose pinned policy decides
    #[arg(long, value_name = "CODE", default_value = "sql-jdbc:v1")]
    executor: ExecutorCode,
    /// Component that decides instead, pinned or not; of an export, one that receipts may name, and it
    /// may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "executor")]
    policy: Vec<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write counts of decisions and codes into a file when it is done, `-` for standard error; see
    /// docs/schema/check-summary.schema.json
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Work out the repairs that are mechanical and show them as a diff
    #[arg(long)]
    fix: bool,
    /// Write the repairs into the files
    #[arg(long, requires = "fix")]
    write: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// For people, with the offending text underlined
    #[default]
    Human,
    /// One object a line; see docs/schema/check.schema.json
    Json,
    /// A SARIF 2.1.0 log, for code scanning
    Sarif,
    /// GitHub workflow commands, shown as annotations
    Github,
}

/// Files from which on a progress bar is worth its line.
const PROGRESS_FILES_MIN: usize = 50;

impl Run for Check {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let stdin = Path::new("-");
        if self.paths.iter().any(|path| path == stdin) && (self.paths.len() > 1 || self.write) {
            return Err(Failure::usage("`-` stands alone and cannot be written back")
                .with_help("leave out the other paths and `--write`"));
        }
        if let Some(path) = &self.summary {
            let inputs = self.paths.iter().chain(&self.ledger_export).chain(&self.policy);
            summary::check_place(path, &inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
        }
        let started = Instant::now();
        let renderer = self.renderer()?;
        let (exit, mut counts, policies) = if let Some(export) = &self.ledger_export {
            let replayer = ledger::replayer(&self.runtime.start()?, &self.store, &self.policy)?;
            let (exit, counts) =
                ledger::check(&replayer, renderer.as_ref(), export, self.incomplete)?;
            (exit, counts, replayer.policies())
        } else {
            let policy = self.load_policy()?;
            let auditor = Auditor::new(policy.clone(), self.catalog.clone());
            let checker = Checker { renderer, fix: self.fix, write: self.write, auditor };
            let (exit, counts) = if self.paths.iter().any(|path| path == stdin) {
                checker.check_stdin()?
            } else {
                checker.check_files(&audit::collect(&self.paths)?)?
            };
            (exit, counts, vec![policy])
        };
        if let Some(path) = &self.summary {
            counts.elapsed = started.elapsed();
            counts.write(path, exit, &policies)?;
        }
        Ok(exit)
    }
}

impl Check {
    fn renderer(&self) -> Result<Box<dyn Renderer>, Failure> {
        Ok(match self.format {
            Format::Human => Box::new(human::Human::new()),
            Format::Json => Box::new(json::Json),
            Format::Sarif | Format::Github if self.ledger_export.is_some() => {
                return Err(Failure::usage("a ledger's payloads are no files to annotate")
                    .with_help("use `--format human` or `--format json`"));
            }
            Format::Sarif => Box::new(sarif::Sarif),
            Format::Github => Box::new(github::Github),
        })
    }

    fn load_policy(&self) -> Result<Policy, Failure> {
        let runtime = self.runtime.start()?;
        match self.policy.as_slice() {
            [_, _, ..] => Err(Failure::usage("one policy decides on files")
                .with_help("name one `--policy`; `tollgate policy diff` compares two")),
            [path] => {
                let store = self.store.open()?;
                sandbox::load_file(&runtime, &store, path, FilePin::Own).map(|it| it.policy)
            }
            [] => sandbox::load_pinned(&runtime, &self.store.open()?, &self.executor),
        }
    }
}

/// Findings as this command shows them, for other commands.
pub(super) fn underlined(path: &str, payload: &[u8], diagnostics: &[Diagnostic]) -> String {
    let lines = LineIndex::new(payload);
    human::Human::new().findings(&output::visible_line(path), &lines, diagnostics)
}

/// Findings as this command writes them in JSON, for other commands.
pub(super) fn diagnostics_json<'a>(
    payload: &[u8],
    diagnostics: &'a [Diagnostic],
) -> Vec<impl Serialize + use<'a>> {
    json::diagnostics(&LineIndex::new(payload), diagnostics)
}

struct Checker {
    auditor: Auditor,
    renderer: Box<dyn Renderer>,
    fix: bool,
    write: bool,
}

impl Checker {
    fn check_stdin(&self) -> Result<(Exit, Counts), Failure> {
        let path = PathBuf::from("-");
        let audited = match audit::read_payload(io::stdin().lock()) {
            Ok(payload) => self.auditor.audit_payload(path, payload),
            Err(error) => Audited { path, payload: Vec::new(), result: Err(error) },
        };
        let rendered = self.render(audited);
        let mut output = Output::begin(self.renderer.as_ref())?;
        output.add(rendered)?;
        output.end()
    }

    fn check_files(&self, files: &[PathBuf]) -> Result<(Exit, Counts), Failure> {
        let progress = progress(files.len());
        let mut output = Output::begin(self.renderer.as_ref())?;
        let mut until = Until::failure();
        let render = |audited| self.render(audited);
        self.auditor.audit_files(files, render, |rendered| {
            progress.inc(1);
            until.passed(progress.suspend(|| output.add(rendered)))
        })?;
        progress.finish_and_clear();
        until.ended()?;
        output.end()
    }

    fn render(&self, audited: Audited) -> Rendered {
        let (audited, repair) = if self.fix {
            fix::repair(&self.auditor, audited, self.write)
        } else {
            (audited, None)
        };
        let exit = exit_of(&audited.result);
        let unwritten = repair.as_ref().and_then(|repair| repair.write_error.as_ref());
        let exit = if unwritten.is_some() { exit.max(Exit::Usage) } else { exit };
        let report = Report::new(&audited, Some(self.auditor.policy().pin()), repair.as_ref());
        Rendered { written: self.renderer.render(&report), exit, counted: Counted::of(&audited) }
    }
}

/// What one payload makes of the exit code.
fn exit_of(result: &Result<Decision, Undecided>) -> Exit {
    match result {
        Ok(decision) if decision.outcome().is_allow() => Exit::Done,
        Ok(_) => Exit::Denied,
        Err(Undecided::Unreadable(_) | Undecided::Line(_)) => Exit::Usage,
        // Nothing is left to decide, and nothing contradicts it.
        Err(Undecided::Pruned) => Exit::Done,
        Err(
            Undecided::Policy(_)
            | Undecided::Size
            | Undecided::PayloadMissing(_)
            | Undecided::PolicyMissing { .. }
            | Undecided::Damaged { .. },
        ) => Exit::NoDecision,
    }
}

struct Rendered {
    written: Written,
    exit: Exit,
    counted: Counted,
}

/// What has been printed so far.
struct Output<'a> {
    renderer: &'a dyn Renderer,
    out: io::BufWriter<io::Stdout>,
    summary: Summary,
    counts: Counts,
    exit: Exit,
}

impl<'a> Output<'a> {
    fn begin(renderer: &'a dyn Renderer) -> io::Result<Self> {
        let mut out = io::BufWriter::new(io::stdout());
        out.write_all(renderer.begin().as_bytes())?;
        Ok(Self {
            renderer,
            out,
            summary: Summary::default(),
            counts: Counts::default(),
            exit: Exit::Done,
        })
    }

    fn add(&mut self, Rendered { written, exit, counted }: Rendered) -> io::Result<()> {
        self.exit = self.exit.max(exit);
        self.counts.add(counted);
        for item in written.items {
            if self.summary.items > 0 {
                self.out.write_all(self.renderer.separator().as_bytes())?;
            }
            self.summary.items += 1;
            self.out.write_all(item.as_bytes())?;
        }
        self.summary.notifications.extend(written.notifications);
        if io::stdout().is_terminal() { self.out.flush() } else { Ok(()) }
    }

    fn end(mut self) -> Result<(Exit, Counts), Failure> {
        let (allowed, denied, undecided) = self.counts.words();
        self.summary.files = allowed + denied + undecided;
        (self.summary.allowed, self.summary.denied) = (allowed, denied);
        self.summary.undecided = undecided;
        self.summary.receipts = self.counts.receipts;
        self.out.write_all(self.renderer.end(&self.summary).as_bytes())?;
        self.out.flush()?;
        Ok((self.exit, self.counts))
    }
}

/// A bar over payloads, when there is something to wait for.
pub(super) fn progress(files: usize) -> ProgressBar {
    if files < PROGRESS_FILES_MIN {
        return ProgressBar::hidden();
    }
    bar(files as u64, "{bar:40} {pos}/{len} payloads, {eta} left")
}

/// A bar on standard error, when that is a terminal.
fn bar(length: u64, template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl From<CollectError> for Failure {
    fn from(error: CollectError) -> Self {
        Self::usage(error).with_help("name files, directories with `.sql` files, or `-`")
    }
}
