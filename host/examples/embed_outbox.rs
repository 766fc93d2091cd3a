//! Our outbox and our worker, with releases from a catalog of your own.
//!
//! `cargo run --no-default-features --example embed_outbox -- PLAN.json RELEASES_FOLDER`, with the
//! `FACTORY_PLUGIN_CONTROL_*` variables set and `tollgate init control` done; without a target it is
//! a dry run.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use tollgate::config::Config;
use tollgate::control::Control;
use tollgate::executor::{BoxFuture, ExecutorRegistry};
use tollgate::ids::PluginRelease;
use tollgate::outbox::{ExecutorChoice, Outbox};
use tollgate::plan::{CatalogError, ContributionCatalog, InstalledRelease, Plan, read_release};
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate::worker::{Worker, WorkerOptions, check_plan};

/// What your application has installed: here, what was read once when it started.
struct Installed(HashMap<PluginRelease, InstalledRelease>);

impl ContributionCatalog for Installed {
    fn installed<'a>(
        &'a self,
        release: &'a PluginRelease,
    ) -> BoxFuture<'a, Result<Option<InstalledRelease>, CatalogError>> {
        Box::pin(async move { Ok(self.0.get(release).cloned()) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(plan), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed_outbox PLAN.json RELEASES_FOLDER".into());
    };
    let plan = Plan::parse(&std::fs::read(plan)?)?;
    let mut installed = HashMap::new();
    for step in plan.steps() {
        let (code, version) = (step.release.code.as_str(), step.release.version.to_string());
        let release = read_release(&Path::new(&folder).join(code).join(version))?;
        installed.insert(step.release.clone(), release);
    }
    let releases = Arc::new(Installed(installed));

    let config = Config::from_env()?;
    let control = Control::new(config.control.as_ref().ok_or("no control catalog is set")?);
    let runtime = PolicyRuntime::new(RuntimeOptions::default())?;
    let registry = ExecutorRegistry::open(&config, &PolicyStore::embedded()?, &runtime).await?;
    let registry = Arc::new(registry);

    let executors = ExecutorChoice { sql: config.executor.clone() };
    check_plan(&plan, &executors, &registry, &*releases).await?;
    Outbox::of(&config).submit(&mut control.open().await?, &plan, &executors).await?;

    let options = WorkerOptions { until_idle: true, ..WorkerOptions::from(&config) };
    let ended = Worker::new(control, registry, releases, options).run().await;
    if ended.dropped == 0 { Ok(()) } else { Err("steps were dropped".into()) }
}
