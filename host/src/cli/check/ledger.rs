//! `--ledger-export`: deciding again what a ledger says was decided.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use tollgate::audit::{LedgerExport, LedgerExportError, Replayed, Replayer};
use tollgate::policy::{Policy, PolicyRuntime};

use super::super::sandbox::{self, LoadedPolicy, StoreArguments};
use super::super::{Exit, Failure};
use super::report::{Renderer, Report};
use super::summary::{Counted, Counts};
use super::{Output, Rendered, bar, exit_of};

/// The policies of the store, and the one of `--policy`: receipts name theirs by digest.
pub(super) fn replayer(
    runtime: &PolicyRuntime,
    store: &StoreArguments,
    file: Option<&Path>,
) -> Result<Replayer, Failure> {
    let store = store.open()?;
    let mut policies = Vec::new();
    for pin in store.pins() {
        policies.push(sandbox::load_with_bytes(runtime, &store, pin)?.policy);
    }
    if let Some(path) = file {
        let LoadedPolicy { policy, .. } = sandbox::load_file_with_bytes(runtime, &store, path)?;
        policies.push(policy);
    }
    Ok(Replayer::new(policies))
}

/// Checks a whole export.
pub(super) fn check(
    replayer: &Replayer,
    renderer: &dyn Renderer,
    path: &Path,
) -> Result<(Exit, Counts), Failure> {
    let export = LedgerExport::open(path)?;
    let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let progress = bar(length, "{bar:40} {binary_bytes}/{binary_total_bytes}, {eta} left");
    let mut output = Output::begin(renderer)?;
    let mut failed: Option<Failure> = None;
    let render = |replayed: Result<Replayed, LedgerExportError>| {
        replayed.map(|replayed| {
            let bytes = replayed.audited.payload.len() as u64;
            (rendered(renderer, &replayed), bytes)
        })
    };
    replayer.replay_all(export, render, |replayed| {
        let added = replayed.map_err(Failure::from).and_then(|(rendered, bytes)| {
            progress.inc(bytes);
            Ok(progress.suspend(|| output.add(rendered))?)
        });
        match added {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    progress.finish_and_clear();
    // What was found before the export broke off is printed all the same.
    let ended = output.end()?;
    failed.map_or(Ok(ended), Err)
}

fn rendered(renderer: &dyn Renderer, replayed: &Replayed) -> Rendered {
    let Replayed { audited, policy, agreement } = replayed;
    let mut report = Report::new(audited, policy.as_ref().map(Policy::pin), None);
    report.recorded = Some(*agreement);
    let exit = exit_of(&audited.result);
    let exit = if agreement.is_difference() { exit.max(Exit::PinMismatch) } else { exit };
    let counted = Counted::of_receipt(audited, *agreement);
    Rendered { written: renderer.render(&report), exit, counted }
}

impl From<LedgerExportError> for Failure {
    fn from(error: LedgerExportError) -> Self {
        let help = error.help();
        Self::usage(error).with_help(help)
    }
}
