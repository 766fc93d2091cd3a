//! A server process that cannot outlive the test that started it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to end after SIGTERM before it is killed.
const STOP_WAIT: Duration = Duration::from_secs(20);
/// Lines of a server's log that an error shows.
const LOG_TAIL_LINES: usize = 30;

/// A running process, killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts what `server` says, with its output in `log`.
    pub(super) fn spawn(server: &Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        // setpriv sets the signal and becomes the program: the pid is the server's own.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(server.get_program())
            .args(server.get_args())
            .envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        spawn_from_lasting_thread(command).map(|child| Self { child })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the process to end in order, and kills it when it takes too long.
    pub(super) fn stop(mut self) {
        self.signal("TERM");
        let deadline = Instant::now() + STOP_WAIT;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the process as a power cut of the server would: nothing is flushed.
    pub(super) fn kill(mut self) {
        self.kill_and_reap();
    }

    /// Sends `signal` (`STOP`, `CONT`, `TERM`, …).
    pub(super) fn signal(&mut self, signal: &str) {
        if !self.has_ended() {
            let pid = self.id().to_string();
            let status =
                Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid]).status();
            assert!(
                status.is_ok_and(|status| status.success()) || self.has_ended(),
                "signal {signal} did not reach the server with pid {pid}"
            );
        }
    }

    fn kill_and_reap(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_and_reap();
    }
}

/// The last lines of a server's log.
pub(super) fn log_tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

type Request = (Command, Sender<io::Result<Child>>);

/// The parent-death signal is sent when the *thread* that started a process ends, and a test's
/// thread may end before the server is done with, so all servers are started by one that stays.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, inbox): (Sender<Request>, Receiver<Request>) = channel();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                // The one who asked may have gone; the child is then dropped, and killed below.
                if let Err(unheard) = answer.send(command.spawn())
                    && let Ok(mut child) = unheard.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        requests
    });
    let (answer, child) = channel();
    spawner.send((command, answer)).expect("the thread that starts servers stays");
    child.recv().expect("the thread that starts servers answers")
}
