//! Rows that no write of the ledger leaves behind.
//!
//! Every write changes what belongs together: a row whose parts contradict each other was edited by
//! hand, and nothing it says can be acted on. This is no seal: who edits every part alike is not found
//! out. Times are not compared, since the server's clock may have gone back between two writes.

use super::receipt::{Receipt, Status};
use super::row::Holder;
use crate::ids::Direction;

/// Characters of a lease token: 128 bits in hexadecimal.
const TOKEN_CHARS: usize = 32;

/// The first column that contradicts the rest of the row.
pub(super) fn contradiction(
    receipt: &Receipt,
    token: &str,
    holder: Option<&Holder>,
) -> Option<&'static str> {
    let succeeded = matches!(receipt.status, Status::Succeeded | Status::Pruned);
    let is_token = token.len() == TOKEN_CHARS
        && token.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let compensates = receipt.identity.direction == Direction::Compensate;
    // Only a compensation of what never ran is done without a run, and it names what it reverses.
    let ran = receipt.execution_count > 0 || (compensates && receipt.counterpart.is_some());
    [
        ("lease_token", is_token),
        ("external_receipt", receipt.external_receipt.is_some() == succeeded),
        ("completed_at", receipt.completed_at.is_some() == succeeded),
        ("execution_count", u64::from(receipt.execution_count) <= receipt.generation),
        ("status", !succeeded || ran),
        ("statements_done", receipt.statements_done <= receipt.statement_count),
        ("session_id", receipt.session_id.is_some() == holder.is_some()),
        ("created_at", !receipt.created_at.as_str().starts_with("0000")),
        ("lease_deadline", !receipt.lease_deadline.as_str().starts_with("0000")),
    ]
    .into_iter()
    .find_map(|(column, holds)| (!holds).then_some(column))
}

/// Whether [`contradiction`] finds one in a row, as an SQL expression that is never NULL.
pub(super) fn is_edited(alias: &str) -> String {
    let column = |name: &str| format!("{alias}.{name}");
    let token = column("lease_token");
    let is_done = format!("({} IN ('SUCCEEDED', 'PRUNED'))", column("status"));
    let ran = format!(
        "({} > 0 OR ({} = 'COMPENSATE' AND {} IS NOT NULL))",
        column("execution_count"),
        column("direction"),
        column("counterpart_key")
    );
    [
        format!("CHAR_LENGTH({token}) <> {TOKEN_CHARS}"),
        format!("UNHEX({token}) IS NULL"),
        format!("{token} <> LOWER({token})"),
        format!("({} IS NOT NULL) <> {is_done}", column("external_receipt")),
        format!("({} IS NOT NULL) <> {is_done}", column("completed_at")),
        format!("{} > {}", column("execution_count"), column("generation")),
        format!("({is_done} AND NOT {ran})"),
        format!("{} > {}", column("statements_done"), column("statement_count")),
        format!(
            "({} IS NOT NULL AND ({} IS NULL OR {} IS NULL))",
            column("session_id"),
            column("session_marker"),
            column("server_id")
        ),
        format!("YEAR({}) = 0", column("created_at")),
        format!("YEAR({}) = 0", column("lease_deadline")),
    ]
    .join(" OR ")
}
