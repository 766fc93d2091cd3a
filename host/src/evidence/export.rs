//! Making a bundle.

use std::fmt::Write as _;

use super::archive;
use super::bundle::EvidenceBundle;
use super::error::{EvidenceError, ExportError};
use super::facts::{self, DecisionFacts, Manifest, RecordedReceipt, Request, Versions};
use super::layout::{
    self, BUNDLE_BYTES_MAX, COMPONENT, DECISION, MANIFEST, PAYLOAD, PIN, POLICY_WIT, PREIMAGE,
    RECEIPT, REQUEST, STATEMENT_COUNT_MAX, SUMS, VERSIONS, WIT,
};
use crate::digest::Digest;
use crate::ids::{Catalog, EnvironmentCode};
use crate::policy::{Decision, DecisionRequest, Outcome, PROTECTED_TABLES, Pins, Policy};

/// What evidence is made of.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit<'a> {
    /// The policy that decides.
    pub policy: &'a Policy,
    /// The bytes it was loaded from.
    pub component: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
    /// The catalog it is meant for.
    pub catalog: &'a Catalog,
    /// The environment it is meant for, when that is known.
    pub environment: Option<&'a EnvironmentCode>,
    /// Of a step that was claimed: its receipt.
    pub receipt: Option<&'a RecordedReceipt>,
}

impl EvidenceBundle {
    /// Decides, and makes a bundle of the decision, allowed or denied. The same facts give the same
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`ExportError`]: there is no decision, or the receipt is about another one.
    pub fn export(exhibit: &Exhibit<'_>) -> Result<Self, ExportError> {
        let &Exhibit { policy, component, payload, catalog, environment, receipt } = exhibit;
        let pin = policy.pin();
        let component_digest = Digest::of(component);
        if component_digest != pin.sha256 {
            let expected = pin.sha256;
            return Err(ExportError::Component { expected, found: component_digest });
        }
        let decision = policy
            .decide(&DecisionRequest { payload, catalog, protected_tables: PROTECTED_TABLES })
            .map_err(ExportError::NoDecision)?;
        if let Some(receipt) = receipt {
            check_receipt(receipt, &decision)?;
        }
        let environment = receipt.map(|receipt| &receipt.environment).or(environment);
        let request = Request {
            executor: pin.executor.clone(),
            environment: environment.cloned(),
            catalog: catalog.clone(),
            protected_tables: PROTECTED_TABLES.iter().map(|&table| table.to_owned()).collect(),
            payload_digest: decision.payload_digest(),
        };
        let mut pins = Pins::default();
        pins.set(pin.clone());
        let mut members = vec![
            (MANIFEST.to_owned(), facts::to_json(&Manifest::default())),
            (REQUEST.to_owned(), facts::to_json(&request)),
            (PAYLOAD.to_owned(), payload.to_vec()),
            (COMPONENT.to_owned(), component.to_vec()),
            (WIT.to_owned(), POLICY_WIT.as_bytes().to_vec()),
            (PIN.to_owned(), pins.to_text().into_bytes()),
        ];
        members.extend(answered(policy, &decision, PROTECTED_TABLES));
        if let Some(receipt) = receipt {
            members.push((RECEIPT.to_owned(), facts::to_json(receipt)));
        }
        members.push((VERSIONS.to_owned(), facts::to_json(&Versions::default())));
        let sums = sums(members.iter().map(|(name, content)| (name.as_str(), content.as_slice())));
        members.push((SUMS.to_owned(), sums.into_bytes()));
        check_sizes(&members, &decision)?;
        let written =
            archive::write(members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
                .map_err(ExportError::Archive)?;
        // What could not be read again is no evidence.
        Self::parse(written).map_err(|error| match error {
            EvidenceError::Archive(source) => ExportError::Archive(source),
            other => ExportError::Archive(std::io::Error::other(other)),
        })
    }
}

/// The members that follow from a decision: the answer, its preimage and its statements.
pub(super) fn answered(
    policy: &Policy,
    decision: &Decision,
    protected_tables: &[&str],
) -> Vec<(String, Vec<u8>)> {
    let pin = policy.pin();
    let facts = DecisionFacts::new(decision, &pin.name, pin.version.to_string());
    let mut members = vec![
        (DECISION.to_owned(), facts::to_json(&facts)),
        (PREIMAGE.to_owned(), decision.preimage(protected_tables).unwrap_or_default()),
    ];
    if let Outcome::Allow { statements, .. } = decision.outcome() {
        members.extend(
            statements.iter().enumerate().map(|(at, statement)| {
                (layout::statement(at), statement.text.clone().into_bytes())
            }),
        );
    }
    members
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
pub(super) fn sums<'a>(members: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut text = String::new();
    for (name, content) in members.filter(|(name, _)| *name != SUMS) {
        let digest = Digest::of(content).to_string();
        let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
        let _ = writeln!(text, "{hex}  {name}");
    }
    text
}

fn check_receipt(receipt: &RecordedReceipt, decision: &Decision) -> Result<(), ExportError> {
    let (Some(policy_digest), Some(decision_digest)) =
        (receipt.policy_digest, receipt.decision_digest)
    else {
        return Err(ExportError::Pruned);
    };
    let (expected, found) = (receipt.content_hash, decision.payload_digest());
    if expected != found {
        return Err(ExportError::ContentHash { expected, found });
    }
    let (expected, found) = (policy_digest, decision.policy_digest());
    if expected != found {
        return Err(ExportError::Policy { expected, found });
    }
    let (expected, found) = (decision_digest, decision.digest());
    if expected != found {
        return Err(ExportError::Decision { expected, found });
    }
    Ok(())
}

fn check_sizes(members: &[(String, Vec<u8>)], decision: &Decision) -> Result<(), ExportError> {
    if let Outcome::Allow { statements, .. } = decision.outcome()
        && statements.len() > STATEMENT_COUNT_MAX
    {
        return Err(ExportError::Statements(statements.len()));
    }
    let too_large =
        |(name, content): &&(String, Vec<u8>)| content.len() as u64 > layout::bytes_max(name);
    if let Some((name, content)) = members.iter().find(too_large) {
        return Err(ExportError::Size { name: name.clone(), bytes: content.len() as u64 });
    }
    // A block for each header and for each padding.
    let bytes = members.iter().map(|(_, content)| content.len() as u64 + 1024).sum::<u64>() + 1024;
    if bytes > BUNDLE_BYTES_MAX {
        return Err(ExportError::Size { name: "the bundle".to_owned(), bytes });
    }
    Ok(())
}
