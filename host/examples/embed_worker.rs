//! A worker of your own around Tollgate's executor: your queue, your retries, no outbox of ours.
//!
//! `cargo run --no-default-features --example embed_worker -- PLAN.json RELEASES_FOLDER`, with the
//! `FACTORY_PLUGIN_*` variables set; without them it is a dry run.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use tollgate::config::Config;
use tollgate::executor::{Executor, ExecutorRegistry, Outcome};
use tollgate::ids::{Direction, ExternalReceipt};
use tollgate::plan::{ContributionCatalog, FolderCatalog, Plan, Step};
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(plan), Some(releases)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed_worker PLAN.json RELEASES_FOLDER".into());
    };
    let plan = Plan::parse(&std::fs::read(plan)?)?;
    let releases = FolderCatalog::tree(releases);

    let runtime = PolicyRuntime::new(RuntimeOptions::default())?;
    let registry =
        ExecutorRegistry::open(&Config::from_env()?, &PolicyStore::embedded()?, &runtime).await?;
    let executor = registry.configured()?;
    for planned in plan.steps() {
        let step = planned.step(Direction::Forward)?;
        let receipt = deliver(&*executor, &step, &releases).await?;
        println!("{}: {receipt}", step.key);
    }
    Ok(())
}

/// Delivers a step until it is known what came of it. The same step may be delivered again at any
/// time, by anyone: it has one effect.
async fn deliver(
    executor: &dyn Executor,
    step: &Step,
    releases: &dyn ContributionCatalog,
) -> Result<ExternalReceipt, Box<dyn Error>> {
    for _ in 0..20 {
        match executor.execute(step, releases).await {
            Outcome::Applied(receipt) => return Ok(receipt),
            Outcome::NotApplied { retryable: true, .. } => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Outcome::NotApplied { error, .. } => return Err(error.into()),
            Outcome::Indeterminate { retry_after, .. } => tokio::time::sleep(retry_after).await,
        }
    }
    Err(format!("step {} needs attention", step.key).into())
}
