//! Our worker around an executor of your own: no policy, no target, no payload of ours.
//!
//! `cargo run --no-default-features --example embed_executor -- RELEASES_FOLDER`, with the
//! `FACTORY_PLUGIN_CONTROL_*` variables set; it carries out what was enqueued for `announce:v1`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::executor::{BoxFuture, Executor, ExecutorRegistry, Outcome};
use tollgate::ids::{ExecutorCode, ExternalReceipt};
use tollgate::plan::{ContributionCatalog, FolderCatalog, Step};
use tollgate::worker::{Worker, WorkerOptions};

/// Carries a step out by saying so, which has the same effect however often it is said.
struct Announce(ExecutorCode);

impl Executor for Announce {
    fn code(&self) -> &ExecutorCode {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        step: &'a Step,
        _contributions: &'a dyn ContributionCatalog,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            println!("{} of {}", step.key, step.release);
            Outcome::Applied(ExternalReceipt::own(&self.0, &step.key))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let releases = std::env::args().nth(1).ok_or("usage: embed_executor RELEASES_FOLDER")?;
    let config = Config::from_env()?;
    let control = Control::new(config.control.as_ref().ok_or("no control catalog is set")?);
    let announce = Announce("announce:v1".parse()?);
    let mut registry = ExecutorRegistry::empty(announce.code().clone());
    registry.install(Arc::new(announce));

    let options = WorkerOptions { until_idle: true, ..WorkerOptions::from(&config) };
    let releases = Arc::new(FolderCatalog::tree(releases));
    let ended = Worker::new(control, Arc::new(registry), releases, options).run().await;
    if ended.dropped == 0 { Ok(()) } else { Err("steps were dropped".into()) }
}
