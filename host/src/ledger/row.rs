//! Rows of the ledger as the database sees them now.
//!
//! Everything that depends on time or on live sessions is computed by the server in the same query
//! that reads the row.

use std::time::Duration;

use super::consistency;
use super::fault::LedgerFault;
use super::receipt::{DatabaseTime, Receipt, Standing, Status, StepIdentity};
use super::state::{Executions, LeaseTime, Previous};
use crate::ids::{Direction, ExternalReceipt, PluginRelease, StepKey};
use crate::session::Columns;

/// Longest lease there is, in seconds: the upper bound of the configuration's rule.
pub(super) const LEASE_SECONDS_MAX: u64 = 3600;

/// Who runs a payload: a session of a server process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    /// `CONNECTION_ID()`.
    pub(super) session_id: u64,
    /// The session's random name: that of the user-level lock it holds until it is gone.
    pub(super) marker: String,
    /// The server process.
    pub(super) server: String,
}

/// How the name of a session starts whose server refused it a user-level lock.
pub(super) const UNLOCKED: &str = "unlocked-";

impl Holder {
    /// Whether the session's lock tells if it is gone.
    pub(super) fn holds_lock(&self) -> bool {
        !self.marker.starts_with(UNLOCKED)
    }
}

/// A row, read.
#[derive(Debug, Clone)]
pub(super) struct LedgerRow {
    pub(super) receipt: Receipt,
    pub(super) token: String,
    pub(super) lease: LeaseTime,
    /// What is left of the lease, at most as long as a lease can be.
    pub(super) lease_left: Duration,
    pub(super) holder: Option<Holder>,
    /// The session that holds the holder's marker now.
    pub(super) marked_session: Option<u64>,
}

/// The columns of a receipt under the alias, and what the server knows about it now.
pub(super) fn selection(alias: &str) -> String {
    const PLAIN: &[&str] = &[
        "id",
        "step_idempotency_key",
        "environment_code",
        "plugin_code",
        "plugin_version",
        "direction",
        "content_hash",
        "counterpart_key",
        "executor_code",
        "policy_digest",
        "decision_digest",
        "status",
        "lease_token",
        "generation",
        "execution_count",
        "statement_count",
        "statements_done",
        "session_id",
        "session_marker",
        "server_id",
        "external_receipt",
        "last_error_code",
        "last_error",
    ];
    const TIMES: &[&str] = &["lease_deadline", "created_at", "updated_at", "completed_at"];
    let plain = PLAIN.iter().map(|column| format!("{alias}.{column} AS {column}"));
    let times = TIMES.iter().map(|column| {
        format!("DATE_FORMAT({alias}.{column}, '%Y-%m-%dT%H:%i:%s.%fZ') AS {column}")
    });
    let now = [
        format!("{alias}.lease_deadline <= UTC_TIMESTAMP(6) AS lease_over"),
        format!(
            "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {alias}.lease_deadline) AS lease_left"
        ),
        format!("{} AS marked_session", marker_holder(alias)),
    ];
    plain.chain(times).chain(now).collect::<Vec<_>>().join(", ")
}

/// The session that holds the row's marker now, as an SQL expression.
///
/// Only rows that may have a live holder are asked about, and MySQL refuses NULL as a lock's name
/// (5.7 manual, 12.14 Locking Functions).
pub(super) fn marker_holder(alias: &str) -> String {
    format!(
        "IF({alias}.session_marker IS NULL OR {alias}.status = 'SUCCEEDED', NULL, \
         IS_USED_LOCK({alias}.session_marker))"
    )
}

impl LedgerRow {
    /// Reads the columns of [`selection`]; `None` where an outer join found no row.
    pub(super) fn read(
        columns: &Columns,
        executions_max: u32,
    ) -> Result<Option<Self>, LedgerFault> {
        let Some(id) = columns.value("id")? else {
            return Ok(None);
        };
        let lease = if columns.flag("lease_over")? { LeaseTime::Over } else { LeaseTime::Open };
        let left: i64 = columns.required("lease_left")?;
        let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
        let longest = Duration::from_secs(LEASE_SECONDS_MAX);
        let holder = match (
            columns.value("session_id")?,
            columns.text("session_marker")?,
            columns.text("server_id")?,
        ) {
            (Some(session_id), Some(marker), Some(server)) => {
                Some(Holder { session_id, marker, server })
            }
            _ => None,
        };
        let marked_session: Option<u64> = columns.value("marked_session")?;
        let mut receipt = receipt(columns, id)?;
        receipt.lease_implausible = left > longest;
        receipt.session_is_there = marked_session.is_some();
        let token: String = columns.required("lease_token")?;
        receipt.contradiction = consistency::contradiction(&receipt, &token, holder.as_ref());
        receipt.standing = standing(&receipt, lease, marked_session.is_some(), executions_max);
        Ok(Some(Self {
            receipt,
            token,
            lease,
            lease_left: left.min(longest),
            holder,
            marked_session,
        }))
    }

    /// Whether a session other than `mine` that the row names may still be running something, as far
    /// as one read can tell. One without a lock counts as present while its server process lives.
    pub(super) fn presence(&self, mine: &Holder) -> Previous {
        let present = match &self.holder {
            Some(holder) if holder == mine || self.receipt.status == Status::Succeeded => false,
            Some(holder) if holder.holds_lock() => self.marked_session.is_some(),
            Some(holder) => holder.server == mine.server,
            None => false,
        };
        if present { Previous::Present } else { Previous::Gone }
    }

    /// The count against the bound.
    pub(super) fn executions(&self, executions_max: u32) -> Executions {
        if self.receipt.execution_count >= executions_max {
            Executions::AtBound
        } else {
            Executions::BelowBound
        }
    }
}

fn standing(receipt: &Receipt, lease: LeaseTime, marked: bool, executions_max: u32) -> Standing {
    let at_bound = receipt.execution_count >= executions_max;
    match (receipt.status, lease) {
        (Status::Pruned, _) => Standing::Pruned,
        (Status::Succeeded, _) if receipt.execution_count == 0 => Standing::NotApplicable,
        (Status::Succeeded, _) => Standing::Succeeded,
        (Status::Running, LeaseTime::Open) => Standing::Running,
        (Status::Running, LeaseTime::Over) if marked => Standing::PossiblyStillRunning,
        _ if at_bound => Standing::NeedsAttention,
        (Status::Running, LeaseTime::Over) => Standing::LeaseExpired,
        (Status::Failed, _) => Standing::Failed,
    }
}

fn receipt(columns: &Columns, id: u64) -> Result<Receipt, LedgerFault> {
    let key: StepKey = columns.required("step_idempotency_key")?;
    let identity = StepIdentity {
        environment: columns.required("environment_code")?,
        release: PluginRelease {
            code: columns.required("plugin_code")?,
            version: columns.required("plugin_version")?,
        },
        direction: columns.required::<Direction>("direction")?,
        content_hash: columns.required("content_hash")?,
    };
    let external_receipt = match columns.text("external_receipt")? {
        None => None,
        Some(text) => {
            let expected = ExternalReceipt::sql(&identity.environment, &key);
            if expected.as_str() != text {
                return Err(LedgerFault::Unreadable { column: "external_receipt" });
            }
            Some(expected)
        }
    };
    let status: Status = columns.required("status")?;
    let digest = |column| match status {
        Status::Pruned => Ok(None),
        _ => columns.required(column).map(Some),
    };
    Ok(Receipt {
        id,
        key,
        identity,
        counterpart: columns.value("counterpart_key")?,
        executor: columns.required("executor_code")?,
        policy_digest: digest("policy_digest")?,
        decision_digest: digest("decision_digest")?,
        status,
        standing: Standing::Failed,
        lease_deadline: columns.required::<DatabaseTime>("lease_deadline")?,
        lease_implausible: false,
        contradiction: None,
        generation: columns.required("generation")?,
        execution_count: columns.required("execution_count")?,
        statement_count: columns.required("statement_count")?,
        statements_done: columns.required("statements_done")?,
        session_id: columns.value("session_id")?,
        external_receipt,
        last_error_code: columns.text("last_error_code")?,
        last_error: columns.text("last_error")?,
        created_at: columns.required("created_at")?,
        updated_at: columns.required("updated_at")?,
        completed_at: columns.value("completed_at")?,
        session_is_there: false,
    })
}
