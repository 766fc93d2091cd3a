//! What a receipt's payload said: decided again, from the installed release.
//!
//! The ledger keeps digests and no payload. With the releases at hand the same policy gives the same
//! decision, and its digest tells whether it is the one that the receipt names.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::frame::{Long, Prose};
use crate::audit::Auditor;
use crate::digest::Digest;
use crate::ids::Catalog;
use crate::ledger::Receipt;
use crate::plan::{FolderCatalog, Payload};
use crate::policy::{Decision, Outcome, Policy, Severity, Statement};
use crate::text::visible;

/// Decisions at once, at most: a page must not take the processors from a worker beside it.
const DECISIONS_MAX: usize = 1;

/// Characters of a statement that are shown.
const STATEMENT_CHARS_MAX: usize = 16_384;

/// Decides on payloads of installed releases.
pub(super) struct Redecider {
    auditor: Auditor,
    releases: FolderCatalog,
    turns: Arc<Semaphore>,
}

/// What came of it.
pub(super) enum Decided {
    /// The page was started without releases.
    NotAsked,
    /// The payload is not at hand, or there is no decision.
    Unknown { why: String, help: String },
    /// Here it is.
    Known(Box<Decision>),
}

impl Redecider {
    pub(super) fn new(policy: Policy, catalog: Catalog, releases: FolderCatalog) -> Self {
        let turns = Arc::new(Semaphore::new(DECISIONS_MAX));
        Self { auditor: Auditor::new(policy, catalog), releases, turns }
    }

    pub(super) async fn decide(&self, receipt: &Receipt) -> Decided {
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            return unknown("nobody decides any more", "reload the page");
        };
        let (auditor, releases) = (self.auditor.clone(), self.releases.clone());
        let receipt = receipt.clone();
        // Reads files and computes: on a thread that may block, which keeps its turn to its end.
        let deciding = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let payload = match payload(&releases, &receipt) {
                Ok(payload) => payload,
                Err(unknown) => return unknown,
            };
            match auditor.decide(payload.bytes()) {
                Ok(decision) => Decided::Known(Box::new(decision)),
                Err(error) => unknown(&error.to_string(), error.help()),
            }
        });
        deciding.await.unwrap_or_else(|_| unknown("the decision did not return", "reload the page"))
    }
}

/// The installed payload with the receipt's digest.
fn payload(releases: &FolderCatalog, receipt: &Receipt) -> Result<Payload, Decided> {
    let identity = &receipt.identity;
    let release = match releases.read(&identity.release) {
        Ok(Some(release)) => release,
        Ok(None) => {
            return Err(unknown(
                &format!("release `{}` is not installed here", identity.release),
                "start `tollgate serve --releases` with a folder that has it",
            ));
        }
        // Its own words name paths of this machine.
        Err(_) => {
            return Err(unknown(
                &format!("release `{}` cannot be read here", identity.release),
                "see its folder below `--releases`",
            ));
        }
    };
    let payloads = release.contributions().iter().filter_map(|it| it.payload(identity.direction));
    let wanted = |payload: &&Payload| payload.content_hash() == identity.content_hash;
    payloads.into_iter().find(wanted).cloned().ok_or_else(|| {
        unknown(
            &format!("release `{}` is installed with another payload", identity.release),
            "install the release as it was published: its payload's digest is the receipt's",
        )
    })
}

fn unknown(why: &str, help: &str) -> Decided {
    Decided::Unknown { why: visible(why), help: help.to_owned() }
}

/// The section of the page.
#[derive(Debug)]
pub(super) struct DecisionView {
    /// Whether the digest is the receipt's.
    pub(super) is_match: bool,
    pub(super) verdict: Prose,
    pub(super) help: Option<Prose>,
    pub(super) statements: Vec<StatementView>,
    pub(super) diagnostics: Vec<DiagnosticView>,
    pub(super) no_diagnostics: &'static str,
}

#[derive(Debug)]
pub(super) struct StatementView {
    pub(super) operation: &'static str,
    pub(super) tables: String,
    pub(super) text: String,
    /// What is not shown of it.
    pub(super) more: Option<String>,
}

#[derive(Debug)]
pub(super) struct DiagnosticView {
    pub(super) code: String,
    pub(super) severity: &'static str,
    /// From 1.
    pub(super) statement: Option<u32>,
    pub(super) message: Long,
    pub(super) help: Option<Prose>,
}

impl DecisionView {
    pub(super) fn new(decided: Decided, receipt: &Receipt) -> Self {
        match decided {
            Decided::NotAsked => Self::without(
                "The ledger keeps digests and no payload.",
                "start `tollgate serve --releases DIR` with the installed releases: the payload is \
                 then decided again and shown",
            ),
            Decided::Unknown { why, help } => {
                Self::without(&format!("The statements cannot be shown: {why}."), &help)
            }
            Decided::Known(decision) => Self::known(&decision, receipt),
        }
    }

    fn without(verdict: &str, help: &str) -> Self {
        Self {
            is_match: false,
            verdict: Prose::of(verdict),
            help: Some(Prose::of(help)),
            statements: Vec::new(),
            diagnostics: Vec::new(),
            no_diagnostics: "Not known without the payload.",
        }
    }

    fn known(decision: &Decision, receipt: &Receipt) -> Self {
        let (is_match, verdict, help) = verdict(decision, receipt);
        let statements = match decision.outcome() {
            Outcome::Allow { statements, .. } => statements.iter().map(statement).collect(),
            Outcome::Deny { .. } => Vec::new(),
        };
        let found = decision.outcome().diagnostics().iter();
        Self {
            is_match,
            verdict: Prose::of(&verdict),
            help: help.as_deref().map(Prose::of),
            statements,
            diagnostics: found
                .map(|found| DiagnosticView {
                    code: visible(&found.code),
                    severity: match found.severity {
                        Severity::Error => "error",
                        Severity::Advisory => "advisory",
                    },
                    statement: found.statement.map(|index| index.saturating_add(1)),
                    message: Long::of(&found.message),
                    help: found.help.as_deref().map(Prose::of),
                })
                .collect(),
            no_diagnostics: "The policy has nothing to add.",
        }
    }
}

/// Whether what was decided now is what the receipt names, in words.
fn verdict(decision: &Decision, receipt: &Receipt) -> (bool, String, Option<String>) {
    let answer = if decision.outcome().is_allow() { "allows" } else { "denies" };
    let other_policy = |digest: &Digest| {
        (
            false,
            format!(
                "Decided again by another policy than the receipt's, which {answer} the payload: \
                 what ran was printed by {digest}."
            ),
            Some("decide with the receipt's policy: `tollgate check --policy FILE`".to_owned()),
        )
    };
    match (&receipt.policy_digest, &receipt.decision_digest) {
        (Some(policy), _) if *policy != decision.policy_digest() => other_policy(policy),
        (_, Some(digest)) if *digest == decision.digest() => (
            true,
            "Decided again just now: the decision's digest is the receipt's, so these are its \
             statements."
                .to_owned(),
            None,
        ),
        (_, Some(_)) => (
            false,
            format!(
                "Decided again just now, the policy {answer} the payload with another decision \
                 digest than the receipt's."
            ),
            Some("compare the catalog: a decision is made for one catalog".to_owned()),
        ),
        (_, None) => (
            false,
            format!(
                "The receipt was pruned and names no decision any more. Decided now, the policy \
                 {answer} the payload."
            ),
            None,
        ),
    }
}

fn statement(statement: &Statement) -> StatementView {
    let text = visible(&statement.text);
    let chars = text.chars().count();
    let more = chars.checked_sub(STATEMENT_CHARS_MAX).filter(|more| *more > 0);
    let tables: Vec<&str> = statement.tables.iter().map(|table| table.name.as_str()).collect();
    StatementView {
        operation: statement.operation.as_str(),
        tables: visible(&tables.join(", ")),
        text: if more.is_some() { text.chars().take(STATEMENT_CHARS_MAX).collect() } else { text },
        more: more.map(|more| {
            format!("{more} more characters: `tollgate check --format json` prints all of them.")
        }),
    }
}
