//! The signals that end a command which runs until it is told to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Exit;

/// SIGINT and SIGTERM, from when this was made on.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Hears them; without this the first one ends the process.
    pub(super) fn new() -> io::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    /// The next one: the exit code when it is the second, and its name.
    pub(super) async fn next(&mut self) -> (Exit, &'static str) {
        tokio::select! {
            _ = self.interrupt.recv() => (Exit::Interrupted, "SIGINT"),
            _ = self.terminate.recv() => (Exit::Terminated, "SIGTERM"),
        }
    }
}
