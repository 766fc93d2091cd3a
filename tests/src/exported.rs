//! Exports of ledgers, put together without a server: receipts whose decisions were really made.

use serde_json::{Value, json};
use tollgate::audit::ExportSum;
use tollgate::digest::Digest;

use crate::desk::Desk;

/// The receipt of a step that succeeded with this payload, as `tollgate receipts export` prints it.
/// `policy` is what `tollgate check` takes to name one.
///
/// # Panics
///
/// When the payload is not allowed.
pub fn receipt(desk: &Desk, key: &str, payload: &str, policy: &[&str]) -> Value {
    desk.write("exported.sql", payload);
    let check = [&["check", "--format", "json", "exported.sql"], policy].concat();
    let checked = desk.run(&check).json_lines().remove(0);
    assert_eq!(checked["decision"], "allow", "{checked}");
    let count = checked["statements"].as_array().expect("a list").len();
    let time = "2026-01-31T09:30:00.000000Z";
    json!({
        "version": 2, "id": 1, "key": key, "environment": "preview",
        "release": { "code": "shop", "version": "1.0.0" }, "direction": "FORWARD",
        "executor": "sql-jdbc:v1", "catalog": "plugin_preview", "contentHash": Digest::of(payload),
        "policyDigest": checked["policy"]["digest"], "decisionDigest": checked["decisionDigest"],
        "counterpart": null, "status": "SUCCEEDED", "standing": "succeeded",
        "leaseDeadline": time, "leaseImplausible": false, "contradiction": null, "generation": 1,
        "executionCount": 1, "statementCount": count, "statementsDone": count, "sessionId": 1,
        "externalReceipt": format!("sql:preview:{key}"), "lastErrorCode": null, "lastError": null,
        "createdAt": time, "updatedAt": time, "completedAt": time,
        "payload": payload, "missing": null,
    })
}

/// The export of these lines, with the one that closes it.
pub fn export(lines: &[Value]) -> String {
    closed(&lines.iter().map(Value::to_string).collect::<Vec<_>>())
}

/// The same of lines as they are written.
pub fn closed<S: AsRef<str>>(lines: &[S]) -> String {
    let (mut text, mut sum) = (String::new(), ExportSum::default());
    for line in lines.iter().map(S::as_ref) {
        text.push_str(line);
        text.push('\n');
        sum.add(line);
    }
    text + &sum.to_line()
}
