//! What a person does about a step that needs one: said alike by the command line and the page.

use super::listing::{ListedStep, WayBack};
use super::status::Status;
use crate::ids::Direction;

/// Why `tollgate compensate` would be refused.
const NO_COMPENSATION: &str = "this step records no compensation";

impl ListedStep {
    /// The words for where it is; of a claim, whether its lease is over.
    pub const fn words(&self) -> &'static str {
        match self.status {
            Status::Claimed if self.lease_is_over => {
                "claimed, lease over: the next worker takes it"
            }
            status => status.words(),
        }
    }

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
        let key = &self.step_key;
        let retry = format!("`tollgate outbox retry {key}`");
        let anew = self.anew();
        let or_anew = anew.as_ref().map(|anew| format!("; or {anew}")).unwrap_or_default();
        match self.last_error_code.as_deref().unwrap_or_default() {
            // The payload itself: the same text would fail the same way.
            "statement-failed" | "text-not-carried" => match anew {
                Some(anew) => {
                    format!("if the payload is wrong, {anew}; if the target was, mend it and {retry}")
                }
                None => format!(
                    "{NO_COMPENSATION}: mend the target, by hand or with the plan of a new version, \
                     so that it can run, then {retry}"
                ),
            },
            "needs-attention" => format!(
                "see `tollgate receipts --key {key}`; then raise \
                 `FACTORY_PLUGIN_SQL_TARGET_EXECUTION_COUNT_MAX` for every worker and {retry}{or_anew}"
            ),
            "deliveries-lost" => format!(
                "see in the workers' logs what ended them during this step, then {retry}{or_anew}"
            ),
            "receipt-lost" => format!(
                "restore the ledger's table and see what the step left on the target, then {retry}"
            ),
            "forward-receipt-lost" => format!(
                "restore that receipt from a backup, or undo by hand what the step did; then {retry}"
            ),
            "identity-mismatch" | "receipt-pruned" => anew.unwrap_or_else(|| {
                format!(
                    "{NO_COMPENSATION} and never runs, so its plan stays where it is: publish a new \
                     version and submit its plan, which runs beside it"
                )
            }),
            // What is installed, pinned or in the way: for whoever runs this.
            _ => format!("mend what the reason says, then {retry}{or_anew}"),
        }
    }

    /// How to do without this step; nothing where its plan cannot be taken back over it.
    fn anew(&self) -> Option<String> {
        let plan = &self.plan;
        if self.direction == Direction::Compensate {
            return Some("what is left to take back has to be taken back by hand".to_owned());
        }
        let from = match &self.way_back {
            WayBack::Whole => String::new(),
            WayBack::From(key) => format!(" --from {key}"),
            WayBack::None => return None,
        };
        Some(format!(
            "`tollgate compensate {plan}{from}`, then publish a new version and submit its plan"
        ))
    }
}
