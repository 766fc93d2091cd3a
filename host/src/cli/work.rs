//! `tollgate work`: the worker as a daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tollgate::config::{Config, ControlConfig};
use tollgate::control::Control;
use tollgate::executor::ExecutorRegistry;
use tollgate::plan::FolderCatalog;
use tollgate::web::{self, Connections, Exposure};
use tollgate::worker::{Ended, StartError, Worker, WorkerOptions, check_control};

use super::exposure::Answered;
use super::sandbox::{RuntimeArguments, StoreArguments};
use super::signals::Signals;
use super::{Exit, Failure, Global, Run, configuration, releases};

/// What other machines may be let to ask.
const PROBES: Answered = Answered {
    flag: "--probes-allow-remote",
    instead: "probes have no login: listen on 127.0.0.1",
};

/// Carry out what is enqueued, until told to stop
///
/// Any number of workers, on any number of machines, share one outbox; each carries out the plans of
/// the environment it is configured for. SIGTERM or SIGINT drains:
/// nothing new is claimed, running steps may end within the grace period, then they are dropped and
/// handed back; what was dropped is delivered again and takes effect once. A second signal exits at
/// once. Logs go to standard error, one event a line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate work --releases plugins
  tollgate work --releases plugins --concurrency 8 --grace 60 --log-format json
  tollgate work --releases plugins --until-idle
  tollgate work --releases plugins --probes-listen 127.0.0.1:9464
  tollgate work --releases plugins --probes-listen 0.0.0.0:9464 --probes-allow-remote

Exit codes:
  0    drained: every running step ended
  1    it cannot be set up: executors, or a control catalog that refuses the login or has no outbox
  2    usage or configuration; there is no folder of releases
  4    a pin or a digest does not match
  5    drained, and steps were dropped because the grace period was over
  6    with --until-idle: nothing is left to do, and a step it delivered needs a person
  130  a second SIGINT
  143  a second SIGTERM")]
pub(super) struct Work {
    /// Folder with the installed releases, each at <plugin code>/<version>
    #[arg(long, value_name = "DIR", env = "TOLLGATE_RELEASES")]
    releases: PathBuf,
    /// Steps carried out at once, 1 to 64 [default: as configured, or 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: Option<u16>,
    /// How long running steps may go on once told to stop [default: as
    /// configured, or 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    grace: Option<u64>,
    /// Drain when nothing is left to do, instead of waiting for more
    ///
    /// A step that waits is left to do: for a release that is not installed here, or for a server
    /// that is away. One that needs a person is not; then the exit code is 6.
    #[arg(long)]
    until_idle: bool,
    /// Answer /healthz, /readyz and /metrics over HTTP there; port 0 chooses a free one
    ///
    /// /healthz says that the process is alive, /readyz that it works: 503, with the reasons, while
    /// it drains or the control catalog or the target is away. Nothing secret is answered.
    #[arg(long, value_name = "ADDRESS:PORT", env = "TOLLGATE_PROBES_LISTEN")]
    probes_listen: Option<SocketAddr>,
    /// Let other machines ask for them, such as Prometheus or a kubelet: whoever reaches the address
    /// sees what they say
    #[arg(long)]
    probes_allow_remote: bool,
    /// How to log
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

/// How a worker logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One object a line
    Json,
}

impl Work {
    /// How it logs.
    pub(super) fn log_format(&self) -> LogFormat {
        self.log_format
    }
}

impl Run for Work {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let probes = self.probes()?;
        let config = configuration::read(global)?;
        let control = configuration::control(&config)?;
        let releases = releases::tree(&self.releases)?;
        let ended = configuration::block_on(self.work(&config, control, releases, probes))??;
        Ok(match ended {
            // Whoever waits for a queue to be done has to know that it is not.
            Ended { needs_attention: 1.., .. } if self.until_idle => Exit::Attention,
            Ended { dropped: 1.., .. } => Exit::Dropped,
            _ => Exit::Done,
        })
    }
}

impl Work {
    /// Where probes are answered, and to whom.
    fn probes(&self) -> Result<Option<(SocketAddr, Exposure)>, Failure> {
        let Some(address) = self.probes_listen else { return Ok(None) };
        Ok(Some((address, PROBES.exposure(address, self.probes_allow_remote)?)))
    }

    async fn work(
        &self,
        config: &Config,
        control: &ControlConfig,
        releases: FolderCatalog,
        probes: Option<(SocketAddr, Exposure)>,
    ) -> Result<Ended, Failure> {
        let probes = match probes {
            Some((address, exposure)) => Some((listen(address).await?, exposure)),
            None => None,
        };
        let control = Control::new(control);
        check_control(&control).await?;
        let registry =
            ExecutorRegistry::open(config, &self.store.open()?, &self.runtime.start()?).await?;
        let options = self.options(config);
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            releases = %self.releases.display(),
            concurrency = options.concurrency,
            grace_s = options.grace.as_secs(),
            executor = %config.executor,
            environment = config.sql_target.as_ref().map(|target| target.environment.as_str()),
            "the worker runs"
        );
        let worker =
            Arc::new(Worker::new(control, Arc::new(registry), Arc::new(releases), options));
        if let Some((listener, exposure)) = probes {
            serve_probes(listener, exposure, Arc::clone(&worker))?;
        }
        run_until_told(&worker).await
    }

    fn options(&self, config: &Config) -> WorkerOptions {
        let configured = WorkerOptions::from(config);
        WorkerOptions {
            concurrency: self.concurrency.map_or(configured.concurrency, usize::from),
            grace: self.grace.map_or(configured.grace, Duration::from_secs),
            until_idle: self.until_idle,
            ..configured
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::usage(format!("probes cannot be answered on {address}: {error}"))
            .with_help("choose another address with --probes-listen; port 0 is any free one")
    })
}

/// Answers probes until the process ends: while it drains, that it drains.
fn serve_probes(
    listener: TcpListener,
    exposure: Exposure,
    worker: Arc<Worker>,
) -> Result<(), Failure> {
    tracing::info!(address = %listener.local_addr()?, "probes are answered");
    let probes = web::probes(move || worker.readiness(), exposure);
    tokio::spawn(async move { axum::serve(Connections::of_probes(listener), probes).await });
    Ok(())
}

/// Works; the first signal drains, the second ends the process.
async fn run_until_told(worker: &Worker) -> Result<Ended, Failure> {
    let mut signals = Signals::new()?;
    let running = worker.run();
    tokio::pin!(running);
    let mut is_told = false;
    loop {
        let (exit, signal) = tokio::select! {
            ended = &mut running => {
                tracing::info!(
                    applied = ended.applied,
                    needs_attention = ended.needs_attention,
                    superseded = ended.superseded,
                    put_off = ended.put_off,
                    dropped = ended.dropped,
                    "the worker ended"
                );
                return Ok(ended);
            }
            told = signals.next() => told,
        };
        if is_told {
            tracing::warn!("a second signal: ending at once");
            // Not by returning: that would wait for threads that still decide on a payload.
            std::process::exit(exit as i32);
        }
        is_told = true;
        worker.drain().request_because(signal);
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let help = error.help();
        Self::new(Exit::NOT_READY, error).with_help(help)
    }
}
