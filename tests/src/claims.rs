//! What deliveries ask of the receipt ledger, for tests that speak to it directly.

use std::time::Duration;

use tollgate::digest::Digest;
use tollgate::ids::{Direction, ExecutorCode, PluginRelease, StepKey};
use tollgate::ledger::{Claim, ClaimRequest, Counterpart, Failure, Lease, StepIdentity};

/// Long enough for a test, short enough to be a lease.
pub const LEASE: Duration = Duration::from_mins(1);

/// The lease of a claim that was granted.
///
/// # Panics
///
/// When it was not.
pub fn granted(claim: Claim) -> Lease {
    match claim {
        Claim::Granted(lease) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// A step's key.
///
/// # Panics
///
/// When the text is none.
pub fn key(text: &str) -> StepKey {
    text.parse().unwrap()
}

/// A forward step of the plugin `shop`.
///
/// # Panics
///
/// When the text is no key.
pub fn forward(text: &str) -> ClaimRequest {
    ClaimRequest {
        key: key(text),
        identity: StepIdentity {
            environment: "preview".parse().unwrap(),
            release: PluginRelease {
                code: "shop".parse().unwrap(),
                version: "1.2.3-rc.1+build.5".parse().unwrap(),
            },
            direction: Direction::Forward,
            content_hash: Digest::of("forward"),
        },
        counterpart: None,
        executor: ExecutorCode::sql_jdbc_v1(),
        policy_digest: Digest::of("policy"),
        decision_digest: Digest::of("decision"),
        superseded_policies: Vec::new(),
        statement_count: 3,
        lease: LEASE,
    }
}

/// The compensation of [`forward`].
///
/// # Panics
///
/// When the text is no key.
pub fn compensation(text: &str, of: &ClaimRequest) -> ClaimRequest {
    let mut request = forward(text);
    request.identity.direction = Direction::Compensate;
    request.identity.content_hash = Digest::of("reverse");
    request.counterpart =
        Some(Counterpart { key: of.key.clone(), content_hash: of.identity.content_hash });
    request
}

/// A statement that failed, with a text that no receipt may keep.
pub fn failure() -> Failure {
    Failure {
        code: "server-1062".to_owned(),
        statement: Some(2),
        message: "Duplicate entry 'canary-7' for key 'PRIMARY'".to_owned(),
        remark: None,
        settled: true,
    }
}
