//! `tollgate serve`: the status page.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tollgate::plan::FolderCatalog;
use tollgate::web::{self, Connections, Exposure, Observer};

use super::exposure::Answered;
use super::sandbox::{RuntimeArguments, StoreArguments};
use super::signals::Signals;
use super::{Exit, Failure, Global, Run, configuration, output};

/// Where the page is when nobody says otherwise: this machine alone. IANA assigns port 8645 to
/// nobody, and it is below the range from which systems take ports for outgoing connections.
const LISTEN: &str = "127.0.0.1:8645";

/// How long what is being answered may take once the page is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What other machines may be let to ask.
const PAGE: Answered = Answered {
    flag: "--allow-remote",
    instead: "the page has no login: use a tunnel or a proxy with one",
};

/// Show the status page: the target, executions and what needs attention
///
/// Reads and never writes: its sessions are read-only on the servers themselves, and it answers GET
/// and HEAD alone. It works without scripts and loads nothing from elsewhere. There is no login, so
/// it answers on this machine alone unless told otherwise. Never shows a URL, a user or a password.
/// SIGTERM or SIGINT ends it once what is being answered is answered, within 5 seconds; a second
/// signal at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate serve
  tollgate serve --listen 127.0.0.1:0
  tollgate serve --releases plugins        # with the statements of each execution
  ssh -L 8645:127.0.0.1:8645 HOST          # to see it from elsewhere

Exit codes:
  0    told to stop
  2    usage or configuration; the address cannot be listened on
  4    a pin or a digest does not match
  130  a second SIGINT
  143  a second SIGTERM")]
pub(super) struct Serve {
    /// Address and port; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = LISTEN, env = "TOLLGATE_LISTEN")]
    listen: SocketAddr,
    /// Let other machines see it: whoever reaches the address sees everything
    #[arg(long)]
    allow_remote: bool,
    /// Folder with the installed releases, each at <plugin code>/<version>: shows statements, with
    /// the literals of their payloads
    #[arg(long, value_name = "DIR", env = "TOLLGATE_RELEASES")]
    releases: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Serve {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        let exposure = PAGE.exposure(self.listen, self.allow_remote)?;
        if let Some(folder) = self.releases.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format!("`{}` is no folder", folder.display()))
                .with_help("name the folder that holds <plugin code>/<version> with --releases"));
        }
        configuration::block_on(self.serve(global, exposure))?
    }
}

impl Serve {
    async fn serve(self, global: &Global, exposure: Exposure) -> Result<Exit, Failure> {
        // Before what takes its time: an address that cannot be had is said at once.
        let listener = listen(self.listen).await?;
        let policy = configuration::sql_policy(&self.store, &self.runtime)?;
        let observer = match configuration::read(global) {
            Ok(config) => Observer::new(&config, &policy, self.releases.map(FolderCatalog::tree)),
            // The page is where people look for what is wrong, so it is there all the same.
            Err(errors) => Observer::of_broken(&errors, Some(policy.pin().into())),
        };
        // Before anybody can know that the page is there: a signal that comes at once is heard.
        let mut signals = Signals::new()?;
        output::print(&format!("http://{}/\n", listener.local_addr()?))?;
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let serving = axum::serve(Connections::new(listener), web::site(observer, exposure))
            .with_graceful_shutdown(async move { drop(told.await) });
        let mut serving = std::pin::pin!(serving.into_future());
        tokio::select! {
            ended = &mut serving => {
                ended?;
                return Ok(Exit::Done);
            }
            (_, signal) = signals.next() => tracing::info!(signal, "ending"),
        }
        // What is being answered may end; a client that only keeps its connection may not keep us.
        drop(tell);
        tokio::select! {
            ended = tokio::time::timeout(GRACE, serving) => if ended.is_err() {
                tracing::debug!("a connection was still open at the end");
            },
            (exit, _) = signals.next() => {
                tracing::warn!("a second signal: ending at once");
                // Not by returning: that would wait for threads that still decide on a payload.
                std::process::exit(exit as i32);
            }
        }
        Ok(Exit::Done)
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::usage(format!("{address} cannot be listened on: {error}"))
            .with_help("choose another address with --listen; port 0 is any free one")
    })
}
