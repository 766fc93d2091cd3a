//! Receipts for people.

use std::fmt::Write as _;

use tollgate::ledger::Receipt;

use super::super::output::visible_line;

const HEAD: [&str; 8] =
    ["ID", "STEP", "PLUGIN", "DIRECTION", "STATE", "STATEMENTS", "RUNS", "UPDATED (UTC)"];

/// One line a receipt, and others under those that failed, were edited by hand, or need something.
pub(in super::super) fn table(receipts: &[Receipt]) -> String {
    let rows: Vec<[String; 8]> = receipts.iter().map(row).collect();
    let mut widths = HEAD.map(|head| head.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    line(&mut text, &HEAD.map(str::to_owned), &widths);
    for (row, receipt) in rows.iter().zip(receipts) {
        line(&mut text, row, &widths);
        if let Some(column) = receipt.contradiction {
            let _ =
                writeln!(text, "    edited by hand: `{column}` contradicts the rest of the row");
        }
        if let Some(code) = &receipt.last_error_code {
            let error = receipt.last_error.as_deref().unwrap_or_default();
            let code = visible_line(code);
            let _ = writeln!(text, "    last error {code}: {}", visible_line(error));
        }
        if let Some(advice) = receipt.advice() {
            let _ = writeln!(text, "    next: {advice}");
        }
    }
    text
}

fn row(receipt: &Receipt) -> [String; 8] {
    [
        receipt.id.to_string(),
        receipt.key.to_string(),
        receipt.identity.release.to_string(),
        receipt.identity.direction.to_string(),
        receipt.standing.to_string(),
        format!("{}/{}", receipt.statements_done, receipt.statement_count),
        receipt.execution_count.to_string(),
        moment(receipt.updated_at.as_str()),
    ]
}

/// To the second: what is shown is not compared.
fn moment(time: &str) -> String {
    time.split('.').next().unwrap_or(time).replace('T', " ")
}

fn line(text: &mut String, cells: &[String; 8], widths: &[usize; 8]) {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    let _ = writeln!(text, "{}", padded.join("  ").trim_end());
}

/// Everything about one receipt.
pub(super) fn details(receipt: &Receipt) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<17} {value}");
    };
    line("step", receipt.key.to_string());
    line("state", receipt.standing.to_string());
    line("external receipt", optional(receipt.external_receipt.as_ref()));
    line("environment", receipt.identity.environment.to_string());
    line("plugin", receipt.identity.release.to_string());
    line("direction", receipt.identity.direction.to_string());
    line("other direction", optional(receipt.counterpart.as_ref()));
    line("content hash", receipt.identity.content_hash.to_string());
    line("executor", receipt.executor.to_string());
    line("policy digest", optional(receipt.policy_digest.as_ref()));
    line("decision digest", optional(receipt.decision_digest.as_ref()));
    line("statements", format!("{} of {}", receipt.statements_done, receipt.statement_count));
    line("runs", receipt.execution_count.to_string());
    line("lease until", receipt.lease_deadline.to_string());
    if receipt.lease_implausible {
        line("", "further ahead than any lease is long: the server's clock went back".to_owned());
    }
    if let Some(column) = receipt.contradiction {
        line("edited by hand", format!("`{column}` contradicts the rest of the row"));
    }
    line("session", optional(receipt.session_id.as_ref()));
    line("created", receipt.created_at.to_string());
    line("updated", receipt.updated_at.to_string());
    line("completed", optional(receipt.completed_at.as_ref()));
    if let Some(code) = &receipt.last_error_code {
        line("last error", visible_line(code));
        line("", visible_line(receipt.last_error.as_deref().unwrap_or_default()));
    }
    if let Some(advice) = receipt.advice() {
        line("next", advice);
    }
    text
}

fn optional(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}
