//! What every format reports, and what a format is.

use std::borrow::Cow;

use tollgate::audit::{Agreement, Audited};
use tollgate::policy::{LineIndex, PolicyPin};

use super::fix::Repair;
use super::summary::Receipts;

/// One payload, ready to be shown.
pub(super) struct Report<'a> {
    /// The path as it is shown.
    pub(super) path: Cow<'a, str>,
    pub(super) audited: &'a Audited,
    pub(super) lines: LineIndex<'a>,
    /// The policy that decided; none is at hand for some receipts of a ledger.
    pub(super) pin: Option<&'a PolicyPin>,
    /// What `--fix` found.
    pub(super) repair: Option<&'a Repair>,
    /// Of a receipt: whether it agrees.
    pub(super) recorded: Option<&'a Agreement>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        audited: &'a Audited,
        pin: Option<&'a PolicyPin>,
        repair: Option<&'a Repair>,
    ) -> Self {
        let lines = LineIndex::new(&audited.payload);
        Self { path: audited.path.to_string_lossy(), audited, lines, pin, repair, recorded: None }
    }
}

/// A format. Reports are rendered in parallel and written in order.
pub(super) trait Renderer: Sync {
    /// What stands before the first item.
    fn begin(&self) -> String {
        String::new()
    }

    /// What stands between two items.
    fn separator(&self) -> &'static str {
        ""
    }

    /// One report.
    fn render(&self, report: &Report<'_>) -> Written;

    /// What stands after the last item.
    fn end(&self, _summary: &Summary) -> String {
        String::new()
    }
}

/// A rendered report.
#[derive(Default)]
pub(super) struct Written {
    pub(super) items: Vec<String>,
    /// What a format says at its end.
    pub(super) notifications: Vec<String>,
}

impl From<String> for Written {
    fn from(item: String) -> Self {
        Self { items: vec![item], notifications: Vec::new() }
    }
}

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) files: usize,
    pub(super) allowed: usize,
    pub(super) denied: usize,
    pub(super) undecided: usize,
    pub(super) items: usize,
    pub(super) notifications: Vec<String>,
    /// Of a ledger's export.
    pub(super) receipts: Option<Receipts>,
}
