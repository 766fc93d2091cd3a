//! `tollgate outbox`: what is enqueued, what needs a person, and delivering that again.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use tollgate::config::ControlConfig;
use tollgate::control::{Control, ControlConnection};
use tollgate::ids::{EnvironmentCode, StepKey};
use tollgate::outbox::{
    AttentionFilter, Belonging, Counts, ListedStep, Outbox as ControlOutbox, OutboxFault,
    RetryError, Status, UnreadableStep,
};
use tollgate::plan::PlanCode;

use super::output::visible_line;
use super::reconcile::Reconcile;
use super::{Exit, Failure, Global, Run, configuration, output};

/// Steps needing attention that are shown at most.
const ATTENTION_COUNT_MAX: u32 = 100;

/// Show what is enqueued and what needs attention
///
/// Without a plan: how many steps are in which state, and the steps that need a person with the
/// reason. With one: each of its steps.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tollgate outbox
  tollgate outbox loyalty-1.0.0
  tollgate outbox --json
  tollgate outbox retry loyalty-1.0.0:3
  tollgate outbox retry --code statement-failed
  tollgate outbox reconcile

States:
  WAITING          an earlier step of its plan is not done
  PENDING          its plan's turn; delivered when it is due
  CLAIMED          a worker has it, until its lease is over
  APPLIED          done
  NEEDS_ATTENTION  a person has to look; its plan stands still
  SUPERSEDED       never runs: its plan is taken back

Exit codes:
  0  listed
  1  the control catalog is not reached, or it has no such plan
  2  usage or configuration"
)]
pub(super) struct Outbox {
    /// Plan, by its code
    #[arg(value_name = "PLAN")]
    plan: Option<PlanCode>,
    /// One object a line: counts first, then steps
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Retry(Retry),
    Reconcile(Reconcile),
}

/// Deliver steps again that needed attention
///
/// Once their cause is mended: they are due at once, with as many attempts as new ones. Each by its
/// key, or all that a plan or a code names.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate outbox retry loyalty-1.0.0:3
  tollgate outbox retry loyalty-1.0.0:3 orders-2.1.0:1
  tollgate outbox retry --plan loyalty-1.0.0
  tollgate outbox retry --code statement-failed

Exit codes:
  0  they are due again
  1  one is not: there is no such step, it needs no attention, or the control catalog is not reached
  2  usage or configuration")]
#[group(required = true, multiple = true)]
struct Retry {
    /// The steps
    #[arg(value_name = "STEP_KEY")]
    keys: Vec<StepKey>,
    /// Every step of this plan that needs attention
    #[arg(long, value_name = "PLAN", conflicts_with = "keys")]
    plan: Option<PlanCode>,
    /// Every step that needs attention for this reason, as `tollgate outbox` shows it
    #[arg(long, value_name = "CODE", conflicts_with = "keys")]
    code: Option<String>,
}

impl Run for Outbox {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let config = configuration::read(global)?;
        let control = configuration::control(&config)?;
        match &self.command {
            Some(Command::Reconcile(command)) => return command.run(&config),
            Some(Command::Retry(retry)) => {
                let (due, errors) = configuration::block_on(retry.run(control))??;
                let due = due.iter().map(|key| format!("step `{key}` is due again\n"));
                output::print(&due.collect::<String>())?;
                not_due(errors)?;
            }
            None => {
                let shown = configuration::block_on(shown(
                    &ControlOutbox::of(&config),
                    control,
                    self.plan.as_ref(),
                ))??;
                output::print(&if self.json { shown.json() } else { shown.human() })?;
            }
        }
        Ok(Exit::Done)
    }
}

impl Retry {
    /// The steps that are due again, and why others are not.
    async fn run(
        &self,
        control: &ControlConfig,
    ) -> Result<(Vec<StepKey>, Vec<RetryError>), Failure> {
        let mut connection = Control::new(control).open().await?;
        let retried = match self.selected(&mut connection).await {
            Ok(keys) => Ok(retry_each(&mut connection, keys).await),
            Err(failure) => Err(failure),
        };
        connection.close().await;
        retried
    }

    async fn selected(&self, connection: &mut ControlConnection) -> Result<Vec<StepKey>, Failure> {
        if !self.keys.is_empty() {
            return Ok(self.keys.clone());
        }
        let filter = AttentionFilter { plan: self.plan.clone(), code: self.code.clone() };
        let keys = ControlOutbox::default().attention_keys(connection, &filter).await?;
        if keys.is_empty() {
            let of_plan = self.plan.as_ref().map(|plan| format!(" of plan `{plan}`"));
            let of_code = self.code.as_ref().map(|code| format!(" with the code `{code}`"));
            let error = format!(
                "no step{}{} needs attention",
                of_plan.unwrap_or_default(),
                of_code.unwrap_or_default()
            );
            return Err(Failure::new(Exit::NOT_READY, error)
                .with_help("run `tollgate outbox` to see what needs attention"));
        }
        Ok(keys)
    }
}

async fn retry_each(
    connection: &mut ControlConnection,
    keys: Vec<StepKey>,
) -> (Vec<StepKey>, Vec<RetryError>) {
    let (mut due, mut errors) = (Vec::new(), Vec::new());
    for key in keys {
        match ControlOutbox::default().retry(connection, &key).await {
            Ok(_) => due.push(key),
            // Whatever it was, the connection may be gone with it.
            Err(fault @ RetryError::Fault(_)) => {
                errors.push(fault);
                break;
            }
            Err(error) => errors.push(error),
        }
    }
    (due, errors)
}

/// One error with its causes and its help, several with a line each.
fn not_due(mut errors: Vec<RetryError>) -> Result<(), Failure> {
    if errors.len() < 2 {
        return errors.pop().map_or(Ok(()), |error| Err(error.into()));
    }
    let mut text = format!("{} steps are not due again", errors.len());
    for error in &errors {
        let _ = write!(text, "\n  {error}");
    }
    Err(Failure::new(Exit::NOT_READY, text)
        .with_help("run `tollgate outbox` to see what needs attention"))
}

/// What is there.
pub(super) struct Shown {
    counts: Counts,
    /// All steps of one plan, or those that need attention.
    steps: Vec<ListedStep>,
    /// Rows among those that need attention that do not read.
    unreadable: Vec<UnreadableStep>,
    /// Where steps are due that this configuration's workers do not take.
    elsewhere: Vec<Belonging>,
}

/// Reads a plan's steps, or what needs attention.
pub(super) async fn shown(
    outbox: &ControlOutbox,
    control: &ControlConfig,
    plan: Option<&PlanCode>,
) -> Result<Shown, Failure> {
    let mut connection = Control::new(control).open().await?;
    let shown = read(outbox, &mut connection, plan).await;
    connection.close().await;
    let shown = shown?;
    match plan {
        Some(plan) if shown.steps.is_empty() => {
            Err(Failure::new(Exit::NOT_READY, format!("plan `{plan}` is not in the outbox"))
                .with_help("submit it: `tollgate submit`"))
        }
        _ => Ok(shown),
    }
}

async fn read(
    outbox: &ControlOutbox,
    connection: &mut ControlConnection,
    plan: Option<&PlanCode>,
) -> Result<Shown, OutboxFault> {
    let counts = outbox.counts(connection, plan).await?;
    let (steps, unreadable) = match plan {
        Some(plan) => (outbox.plan_steps(connection, plan).await?, Vec::new()),
        None => {
            let found = outbox.needing_attention(connection, ATTENTION_COUNT_MAX).await?;
            (found.steps, found.unreadable)
        }
    };
    let elsewhere = match plan {
        Some(_) => Vec::new(),
        None => outbox.due_elsewhere(connection).await?,
    };
    Ok(Shown { counts, steps, unreadable, elsewhere })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CountsLine<'a> {
    counts: &'a Counts,
    unreadable: &'a [UnreadableStep],
}

impl Shown {
    fn json(&self) -> String {
        let counts =
            output::json_line(&CountsLine { counts: &self.counts, unreadable: &self.unreadable });
        counts + &self.steps.iter().map(output::json_line).collect::<String>()
    }

    /// For people: the counts, then the steps.
    pub(super) fn human(&self) -> String {
        let mut text = String::new();
        for status in Status::ALL {
            if let Some(count) = self.counts.get(status) {
                let _ = writeln!(text, "{count:>8}  {status}");
            }
        }
        if self.counts.is_empty() {
            text.push_str("nothing is enqueued\n");
        }
        for belonging in &self.elsewhere {
            let _ = writeln!(
                text,
                "due steps belong to {belonging}: only workers configured so take them"
            );
        }
        if !self.steps.is_empty() {
            text.push('\n');
            text.push_str(&table(&self.steps));
        }
        for UnreadableStep { id, step_key, column, .. } in &self.unreadable {
            let key = visible_line(step_key);
            let _ = writeln!(
                text,
                "\nrow {id} (`{key}`): its `{column}` does not read as this version writes it\n    \
                 next: restore the row from a backup, then `tollgate outbox retry {}`",
                output::quoted(&key)
            );
        }
        text
    }
}

/// A line a step, and a second one under those that failed.
pub(super) fn table(steps: &[ListedStep]) -> String {
    let keys = steps.iter().map(|step| step.step_key.as_str().len());
    let width = keys.max().unwrap_or_default().max(4);
    let mut text = format!(
        "{:<width$}  {:<11}  {:<15}  {:>8}  RECEIPT\n",
        "STEP", "ENVIRONMENT", "STATE", "ATTEMPTS"
    );
    for step in steps {
        let receipt = step.external_receipt.as_deref().unwrap_or("-");
        let _ = writeln!(
            text,
            "{:<width$}  {:<11}  {:<15}  {:>8}  {receipt}",
            step.step_key.as_str(),
            step.environment.as_ref().map_or("-", EnvironmentCode::as_str),
            step.status.as_str(),
            step.attempt_count
        );
        let is_open = !matches!(step.status, Status::Applied | Status::Superseded);
        if let Some(code) = step.last_error_code.as_ref().filter(|_| is_open) {
            let error = visible_line(step.last_error.as_deref().unwrap_or_default());
            let _ = writeln!(text, "    {}: {error}", visible_line(code));
        }
        if let Some(advice) = step.advice() {
            let _ = writeln!(text, "    next: {advice}");
        }
        if step.status == Status::Claimed && step.lease_is_over {
            let _ = writeln!(text, "    {}", step.words());
        }
    }
    text
}

impl From<OutboxFault> for Failure {
    fn from(error: OutboxFault) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}

impl From<RetryError> for Failure {
    fn from(error: RetryError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
