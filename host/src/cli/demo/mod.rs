//! `tollgate demo`: the whole way of a payload, on a private server that is gone afterwards.

mod files;
mod server;
mod setting;
mod story;
mod workers;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use self::setting::Setting;
use super::sandbox::RuntimeArguments;
use super::{Exit, Failure, Global, Run, configuration, output};

/// Show everything once: a private server, a sample plugin, its receipt
///
/// Starts a MariaDB of its own in a temporary folder, on a free loopback port, and takes two sample
/// plugins through policy, outbox, two worker processes and ledger: forward, delivered twice, taken
/// back, and a payload that is denied. Reads no configuration, touches nothing else, and leaves nothing running. Needs
/// the programs of a MariaDB server and client; script/demo installs them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate demo
  script/demo

Exit codes:
  0  shown
  1  something in it did not happen as told, or it was interrupted
  2  no MariaDB was found, or it did not start")]
pub(super) struct Demo {
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Demo {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        configuration::block_on(self.show())?
    }
}

impl Demo {
    /// Tells the story to its end, or to the first signal that asks to stop. Either way everything
    /// that was started is dropped, and so ended, before this returns.
    async fn show(&self) -> Result<Exit, Failure> {
        let (mut interrupt, mut terminate, mut hangup) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        );
        tokio::select! {
            told = self.tell() => told.map(|()| Exit::Done),
            _ = interrupt.recv() => Err(interrupted()),
            _ = terminate.recv() => Err(interrupted()),
            _ = hangup.recv() => Err(interrupted()),
        }
    }

    async fn tell(&self) -> Result<(), Failure> {
        output::print("tollgate demo: starting a private MariaDB, a few seconds\n")?;
        let setting = Setting::build(&self.runtime).await?;
        story::tell(&setting).await?;
        let folder = setting.server.folder().display().to_string();
        drop(setting);
        output::print(&format!(
            "\nThe server is stopped and {folder} is removed. Nothing is left running.\n\
             Next: `tollgate check FILE.sql` decides on a payload of yours; \
             `tollgate doctor` says how to enable a target of yours, and `tollgate serve` opens its \
             status page.\n"
        ))?;
        Ok(())
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::NOT_APPLIED, "interrupted; the private server is stopped")
}
