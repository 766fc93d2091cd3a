//! What a person does about a step that needs one: said alike by the command line and the page.

use super::listing::ListedStep;
use super::status::Status;
use crate::ids::Direction;

impl ListedStep {
    /// The way out of a step that needs a person, by the code of its last error, with commands in
    /// backticks; nothing where there is nothing to do.
    pub fn advice(&self) -> Option<String> {
        match self.status {
            Status::NeedsAttention => Some(self.way_out()),
            Status::Waiting
            | Status::Pending
            | Status::Claimed
            | Status::Applied
            | Status::Superseded => None,
        }
    }

    fn way_out(&self) -> String {
        let Self { step_key, plan, .. } = self;
        let retry = format!("`tollgate outbox retry {step_key}`");
        let anew = if self.direction == Direction::Forward {
            format!("`tollgate compensate {plan}`, then publish a new version and submit its plan")
        } else {
            "what is left to take back has to be taken back by hand".to_owned()
        };
        match self.last_error_code.as_deref().unwrap_or_default() {
            // The payload itself: the same text would fail the same way.
            "statement-failed" | "text-not-carried" => {
                format!("if the payload is wrong, {anew}; if the target was, mend it and {retry}")
            }
            "needs-attention" => format!(
                "see `tollgate receipts --key {step_key}`; then raise \
                 `FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX` for every worker and {retry}; or \
                 {anew}"
            ),
            "deliveries-lost" => format!(
                "see in the workers' logs what ended them during this step, then {retry}; or {anew}"
            ),
            "receipt-lost" => format!(
                "restore the ledger's table and see what the step left on the target, then {retry}"
            ),
            "forward-receipt-lost" => format!(
                "restore that receipt from a backup, or undo by hand what the step did; then {retry}"
            ),
            "identity-mismatch" | "receipt-pruned" => anew,
            // What is installed, pinned or in the way: for whoever runs this.
            _ => format!("mend what the reason says, then {retry}; or {anew}"),
        }
    }
}
