//! The `tollgate` binary as a process that a test signals, stops and kills.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::chain::{Chain, Plugin};
use crate::cli::{Run, command, run};

/// Number of SIGKILL.
pub const SIGKILL: i32 = 9;

/// The binary with the chain's configuration, and other values for some variables.
pub fn tollgate(chain: &Chain, changes: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.envs(chain.variables());
    for (name, value) in changes {
        command.env(format!("FACTORY_PLUGIN_{name}"), value);
    }
    command
}

/// Submits a document; what the command said.
pub fn submit(chain: &Chain, plugin: &Plugin, document: &str) -> Run {
    let file = plugin.root().join("plan.json");
    std::fs::write(&file, document).unwrap();
    let releases = plugin.root().display().to_string();
    let file = file.display().to_string();
    run(&mut tollgate(chain, &[], &["submit", &file, "--releases", &releases]))
}

/// A running command. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a worker that logs into a file.
    pub fn start(
        chain: &Chain,
        plugin: &Plugin,
        changes: &[(&str, &str)],
        arguments: &[&str],
        log: &Path,
    ) -> Self {
        let releases = plugin.root().display().to_string();
        let mut all = vec!["work", "--releases", &releases];
        all.extend(arguments);
        Self::spawn(&mut tollgate(chain, changes, &all), log)
    }

    /// Starts a command that prints and logs into a file.
    pub fn spawn(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).expect("a log can be written");
        let printed = file.try_clone().expect("a file can be shared");
        let child = command.stdout(printed).stderr(file).spawn().expect("the binary starts");
        Self { child, log: log.to_owned() }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed and logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until its log says something.
    pub fn wait_until_it_says(&self, what: &str) {
        let begun = Instant::now();
        while !self.log().contains(what) {
            assert!(begun.elapsed() < Duration::from_mins(1), "no `{what}` in:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, such as `TERM`, `STOP` and `CONT`.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -s $0 $1", signal, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Stops it with SIGSTOP, and sees it stopped.
    pub fn stop(&self) {
        self.signal("STOP");
        let begun = Instant::now();
        while !self.is_stopped() {
            assert!(begun.elapsed() < Duration::from_secs(10), "SIGSTOP did not stop it");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // After the name in parentheses: proc(5).
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Kills it and sees it gone.
    pub fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(200), "it does not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Runs a command to its end, which must be SIGKILL.
pub fn run_until_killed(command: &mut Command) -> Run {
    let run = run(command);
    assert_eq!(run.status.signal(), Some(SIGKILL), "it was not killed: {run:?}");
    run
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
