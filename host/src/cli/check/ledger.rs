//! `--ledger-export`: deciding again what a ledger says was decided.

use std::fs;
use std::path::{Path, PathBuf};

use tollgate::audit::{
    Agreement, Audited, LedgerExport, LedgerExportError, Replayed, Replayer, Undecided,
};
use tollgate::policy::{Policy, PolicyRuntime};

use super::super::sandbox::{self, FilePin, StoreArguments};
use super::super::until::Until;
use super::super::{Exit, Failure};
use super::report::{Renderer, Report};
use super::summary::{Counted, Counts, Receipts};
use super::{Output, Rendered, bar, exit_of};

/// The policies of the store and those of `--policy`: receipts name theirs by digest. Earlier ones that
/// lie in the store are loaded when a receipt names them.
pub(super) fn replayer(
    runtime: &PolicyRuntime,
    store: &StoreArguments,
    files: &[PathBuf],
) -> Result<Replayer, Failure> {
    let store = store.open()?;
    let mut policies = Vec::new();
    for pin in store.pins() {
        policies.push(sandbox::load_with_bytes(runtime, &store, pin)?.policy);
    }
    for path in files {
        policies.push(sandbox::load_file(runtime, &store, path, FilePin::OfStore)?.policy);
    }
    let runtime = runtime.clone();
    Ok(Replayer::new(policies).fetching(move |digest| {
        match sandbox::load_by_digest(&runtime, &store, digest) {
            Ok(Some(loaded)) => Ok(loaded.policy),
            Ok(None) => Err("the store has no such component".to_owned()),
            Err(failure) => Err(failure.told()),
        }
    }))
}

/// Checks a whole export. What is wrong with it is told where it is found, and does not keep the rest
/// from being checked.
pub(super) fn check(
    replayer: &Replayer,
    renderer: &dyn Renderer,
    path: &Path,
    incomplete: bool,
) -> Result<(Exit, Counts), Failure> {
    let export = LedgerExport::open(path)?;
    let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let progress = bar(length, "{bar:40} {binary_bytes}/{binary_total_bytes}, {eta} left");
    let mut output = Output::begin(renderer)?;
    output.counts.receipts = Some(Receipts { complete: true, ..Receipts::default() });
    let mut wrong = Vec::new();
    let mut until: Until<Failure> = Until::failure();
    let render = |line: Result<Replayed, LedgerExportError>| {
        let line = line.or_else(|error| bad_line(path, error))?;
        let bytes = line.audited.payload.len() as u64;
        Ok((rendered(renderer, &line), bytes))
    };
    replayer.replay_all(export, render, |line| {
        until.passed(match line {
            Ok((shown, bytes)) => {
                progress.inc(bytes);
                progress.suspend(|| output.add(shown)).map_err(Failure::from)
            }
            Err(error) => {
                wrong.push(error);
                Ok(())
            }
        })
    })?;
    progress.finish_and_clear();
    until.ended()?;
    if let Some(receipts) = &mut output.counts.receipts {
        receipts.complete = wrong.is_empty();
    }
    let (mut exit, counts) = output.end()?;
    for error in wrong {
        if !(incomplete && matches!(error, LedgerExportError::NotClosed { .. })) {
            Failure::from(error).report();
            exit = exit.max(Exit::Usage);
        }
    }
    Ok((exit, counts))
}

/// A line that is no receipt is reported in its place among the receipts; what is wrong with the export
/// as a whole is not.
fn bad_line(path: &Path, error: LedgerExportError) -> Result<Replayed, LedgerExportError> {
    let Some(line) = error.line().filter(|_| error.is_of_a_line()) else { return Err(error) };
    let path = PathBuf::from(format!("{}:{line}", path.display()));
    let audited = Audited { path, payload: Vec::new(), result: Err(Undecided::Line(error)) };
    Ok(Replayed { audited, policy: None, agreement: None })
}

fn rendered(renderer: &dyn Renderer, replayed: &Replayed) -> Rendered {
    let Replayed { audited, policy, agreement } = replayed;
    let agreement = agreement.as_ref();
    let mut report = Report::new(audited, policy.as_ref().map(Policy::pin), None);
    report.recorded = agreement;
    let differs = agreement.is_some_and(Agreement::is_difference);
    let exit = exit_of(&audited.result);
    let exit = if differs { exit.max(Exit::PinMismatch) } else { exit };
    let counted = Counted::of_line(audited, agreement);
    Rendered { written: renderer.render(&report), exit, counted }
}

impl From<LedgerExportError> for Failure {
    fn from(error: LedgerExportError) -> Self {
        let help = error.help();
        Self::usage(error).with_help(help)
    }
}
