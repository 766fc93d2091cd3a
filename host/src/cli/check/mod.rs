//! `tollgate check`: offline decisions on payload files.

mod fix;
mod github;
mod human;
mod json;
mod report;
mod sarif;

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tollgate::audit::{self, Audited, Auditor, CollectError, Undecided};
use tollgate::ids::{Catalog, ExecutorCode};
use tollgate::policy::{Diagnostic, LineIndex, Policy};

use self::report::{Renderer, Report, Summary, Written};
use super::sandbox::{self, RuntimeArguments, StoreArguments};
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

Exit code 0 when everything is allowed, 1 when something is denied, 2 when something cannot be read,
3 when the policy could not decide, 4 when the policy is not the pinned one.")]
pub(super) struct Check {
    /// Payloads: files, directories, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
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
    /// Component that decides instead, pinned or not
    #[arg(long, value_name = "FILE", conflicts_with = "executor")]
    policy: Option<PathBuf>,
    /// How to report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
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
        let auditor = Auditor::new(self.load_policy()?, self.catalog.clone());
        let checker = Checker {
            renderer: match self.format {
                Format::Human => Box::new(human::Human::new()),
                Format::Json => Box::new(json::Json),
                Format::Sarif => Box::new(sarif::Sarif),
                Format::Github => Box::new(github::Github),
            },
            fix: self.fix,
            write: self.write,
            auditor,
        };
        if self.paths.iter().any(|path| path == stdin) {
            return checker.check_stdin();
        }
        checker.check_files(&audit::collect(&self.paths)?)
    }
}

impl Check {
    fn load_policy(&self) -> Result<Policy, Failure> {
        let runtime = self.runtime.start()?;
        match &self.policy {
            Some(path) => sandbox::load_file(&runtime, path),
            None => sandbox::load_pinned(&runtime, &self.store.open()?, &self.executor),
        }
    }
}

/// Findings as this command shows them, for other commands.
pub(super) fn underlined(path: &str, payload: &[u8], diagnostics: &[Diagnostic]) -> String {
    let lines = LineIndex::new(payload);
    human::Human::new().findings(&output::visible(path), &lines, diagnostics)
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
    fn check_stdin(&self) -> Result<Exit, Failure> {
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

    fn check_files(&self, files: &[PathBuf]) -> Result<Exit, Failure> {
        let progress = progress(files.len());
        let mut output = Output::begin(self.renderer.as_ref())?;
        let mut failed = None;
        let render = |audited| self.render(audited);
        self.auditor.audit_files(files, render, |rendered| {
            progress.inc(1);
            match progress.suspend(|| output.add(rendered)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        progress.finish_and_clear();
        failed.map_or_else(|| output.end(), |error| Err(error.into()))
    }

    fn render(&self, audited: Audited) -> Rendered {
        let (audited, repair) = if self.fix {
            fix::repair(&self.auditor, audited, self.write)
        } else {
            (audited, None)
        };
        let exit = match &audited.result {
            Ok(decision) if decision.outcome().is_allow() => Exit::Done,
            Ok(_) => Exit::Denied,
            Err(Undecided::Unreadable(_)) => Exit::Usage,
            Err(Undecided::Policy(_) | Undecided::Size) => Exit::NoDecision,
        };
        let unwritten = repair.as_ref().and_then(|repair| repair.write_error.as_ref());
        let exit = if unwritten.is_some() { exit.max(Exit::Usage) } else { exit };
        let report = Report::new(&audited, self.auditor.policy().pin(), repair.as_ref());
        Rendered { written: self.renderer.render(&report), exit }
    }
}

struct Rendered {
    written: Written,
    exit: Exit,
}

/// What has been printed so far.
struct Output<'a> {
    renderer: &'a dyn Renderer,
    out: io::BufWriter<io::Stdout>,
    summary: Summary,
    exit: Exit,
}

impl<'a> Output<'a> {
    fn begin(renderer: &'a dyn Renderer) -> io::Result<Self> {
        let mut out = io::BufWriter::new(io::stdout());
        out.write_all(renderer.begin().as_bytes())?;
        Ok(Self { renderer, out, summary: Summary::default(), exit: Exit::Done })
    }

    fn add(&mut self, Rendered { written, exit }: Rendered) -> io::Result<()> {
        self.exit = self.exit.max(exit);
        self.summary.files += 1;
        match exit {
            Exit::Done => self.summary.allowed += 1,
            Exit::Denied => self.summary.denied += 1,
            _ => self.summary.undecided += 1,
        }
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

    fn end(mut self) -> Result<Exit, Failure> {
        self.out.write_all(self.renderer.end(&self.summary).as_bytes())?;
        self.out.flush()?;
        Ok(self.exit)
    }
}

/// A bar on standard error when that is a terminal and there is something to wait for.
pub(super) fn progress(files: usize) -> ProgressBar {
    if files < PROGRESS_FILES_MIN || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} payloads, {eta} left") {
        bar.set_style(style);
    }
    bar
}

impl From<CollectError> for Failure {
    fn from(error: CollectError) -> Self {
        Self::usage(error).with_help("name files, directories with `.sql` files, or `-`")
    }
}
