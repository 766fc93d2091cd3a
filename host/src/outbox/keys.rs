//! Step keys, of which each belongs to one plan: those of its steps and those that take them back.
//!
//! A compensation is enqueued long after its plan was submitted. Its key is kept in the forward row
//! from the beginning, so that no other plan can take it meanwhile.

use std::collections::BTreeMap;

use mysql_async::Value;

use super::fault::OutboxFault;
use super::sql::{self, COMPENSATION_KEY, STEP_KEY, TABLE};
use crate::control::ControlConnection;
use crate::ids::StepKey;
use crate::plan::PlanCode;

/// Keys one look for taken ones names.
const KEYS_PER_LOOK: usize = 200;

/// Keys that belong to other plans, with these plans.
pub(super) type Taken = Vec<(StepKey, PlanCode)>;

/// Whether a look waits for what others have written and not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// What is committed is seen.
    Plain,
    /// What is being written is waited for. No unique key covers a step's key here and a
    /// compensation's there: of two plans that are submitted at the same moment, the later one to
    /// look, after it has written its own rows, finds the other's, or both wait for each other and
    /// the server ends one (error 1213), which is run again.
    Locking,
}

/// Which of the keys belong to other plans, as keys of steps or of what takes them back.
pub(super) async fn taken(
    connection: &mut ControlConnection,
    plan: &PlanCode,
    keys: &[&StepKey],
    look: Look,
) -> Result<Taken, OutboxFault> {
    let waiting = if look == Look::Locking { "LOCK IN SHARE MODE" } else { "" };
    let mut taken = BTreeMap::new();
    for keys in keys.chunks(KEYS_PER_LOOK) {
        for (column, index) in
            [("step_idempotency_key", STEP_KEY), ("compensation_key", COMPENSATION_KEY)]
        {
            let query = format!(
                "SELECT {column} AS taken_key, plan_code FROM {TABLE} FORCE INDEX ({index}) \
                 WHERE plan_code <> ? AND {column} IN ({}) {waiting}",
                vec!["?"; keys.len()].join(", ")
            );
            // The plan itself may have been enqueued a moment ago, by another; that is no refusal,
            // and the INSERT finds it.
            let mut values = vec![Value::from(plan.as_str())];
            values.extend(keys.iter().map(|key| Value::from(key.as_str())));
            for row in sql::rows(connection, &query, values).await? {
                taken.insert(row.required("taken_key")?, row.required("plan_code")?);
            }
        }
    }
    Ok(taken.into_iter().collect())
}

/// Keys with their plans, for people.
pub(super) fn listed(keys: &[(StepKey, PlanCode)]) -> String {
    let shown: Vec<_> = keys.iter().map(|(key, plan)| format!("`{key}` to `{plan}`")).collect();
    shown.join(", ")
}
