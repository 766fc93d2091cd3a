//! `tollgate compensate`: take a plan back.

use std::fmt::Write as _;

use clap::Args;
use tollgate::config::ControlConfig;
use tollgate::control::Control;
use tollgate::ids::StepKey;
use tollgate::outbox::{CompensateError, Compensated, Outbox};
use tollgate::plan::PlanCode;

use super::{Exit, Failure, Global, Run, configuration, output};

/// Take a submitted plan back, whole or from a step on
///
/// Enqueues the recorded compensations of what was applied, the last step's first, and ends forward
/// steps that were not applied. All of it or nothing: refused while a worker is at a forward step,
/// under the configuration of another environment than the plan's, and when a step cannot be taken
/// back. Needs no plan document; the outbox kept what it takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate compensate loyalty-1.0.0
  tollgate compensate loyalty-1.0.0 --from loyalty-1.0.0:3

Exit codes:
  0  enqueued, now or earlier
  1  refused, or the control catalog is not reached; nothing is enqueued
  2  usage or configuration")]
pub(super) struct Compensate {
    /// Plan, by its code
    #[arg(value_name = "PLAN")]
    plan: PlanCode,
    /// Take back this step and those after it only
    #[arg(long, value_name = "STEP_KEY")]
    from: Option<StepKey>,
    /// Report as one JSON object
    #[arg(long)]
    json: bool,
}

impl Run for Compensate {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let control = configuration::control(&config)?;
        let outbox = Outbox::of(&config);
        let enqueueing = enqueue(&outbox, control, &self.plan, self.from.as_ref());
        let compensated = configuration::block_on(enqueueing)??;
        output::print(&if self.json {
            output::json_line(&serde_json::json!({
                "plan": self.plan,
                "enqueued": compensated.enqueued,
                "already": compensated.already,
                "superseded": compensated.superseded,
            }))
        } else {
            human(&self.plan, &compensated)
        })?;
        Ok(Exit::Done)
    }
}

/// Enqueues the compensations.
pub(super) async fn enqueue(
    outbox: &Outbox,
    control: &ControlConfig,
    plan: &PlanCode,
    from: Option<&StepKey>,
) -> Result<Compensated, Failure> {
    let mut connection = Control::new(control).open().await?;
    let compensated = outbox.compensate(&mut connection, plan, from).await;
    connection.close().await;
    Ok(compensated?)
}

/// What was enqueued, for people.
pub(super) fn human(plan: &PlanCode, compensated: &Compensated) -> String {
    let mut text =
        format!("plan `{plan}`: {} compensation(s) enqueued", compensated.enqueued.len());
    if compensated.already > 0 {
        let _ = write!(text, ", {} were before", compensated.already);
    }
    let _ = writeln!(text, ", {} step(s) superseded", compensated.superseded);
    for key in &compensated.enqueued {
        let _ = writeln!(text, "  {key}");
    }
    if !compensated.enqueued.is_empty() || compensated.already > 0 {
        let _ = writeln!(text, "next: `tollgate work`");
    }
    text
}

impl From<CompensateError> for Failure {
    fn from(error: CompensateError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_APPLIED, error).with_help(help)
    }
}
