//! `tollgate receipts prune`

use std::time::Duration;

use clap::Args;
use tollgate::config::SqlTargetConfig;
use tollgate::ledger::PruneError;
use tollgate::target::{SessionContract, Target};

use super::super::{Exit, Failure, output};

/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;

/// Make old receipts small, so that their steps can still never run again
///
/// A pruned receipt keeps its key, what the step is, when it was done and its external receipt. It
/// loses the digests of policy and decision, without which nobody can decide again what was decided,
/// and the session that ran it. A late delivery of its step is refused; its compensation is not
/// affected. Prune nothing that may still be delivered: with our own worker, what `tollgate outbox`
/// does not show as APPLIED.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate receipts prune --older-than 365

Exit codes:
  0  pruned
  1  the target is not ready, or did not answer: run it again
  2  usage or configuration")]
pub(super) struct Prune {
    /// Days since a step succeeded, by the database's clock; 1 to 36500
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    older_than: u64,
}

impl Prune {
    pub(super) async fn run(&self, config: &SqlTargetConfig) -> Result<Exit, Failure> {
        let mut connection = Target::new(config).open(&SessionContract::default()).await?;
        let older_than = Duration::from_secs(self.older_than * DAY_SECONDS);
        let pruned = super::ledger(config).prune(&mut connection, older_than).await;
        connection.close().await;
        output::print(&format!("{} receipt(s) pruned\n", pruned?))?;
        Ok(Exit::Done)
    }
}

impl From<PruneError> for Failure {
    fn from(error: PruneError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
