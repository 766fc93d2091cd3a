//! Faults staged in a process of its own, and the proof that they took place.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a fault may take until it happens.
const PATIENCE: Duration = Duration::from_mins(1);

/// Faults for one process, as `tollgate::fault_points` reads them.
#[derive(Debug)]
pub struct Staged {
    folder: TempDir,
    points: String,
}

impl Staged {
    /// Faults such as `complete=crash@2`. A pause that is to end with [`Staged::go_on`] is written
    /// `statement=pause:{go}`.
    pub fn new(points: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let go = folder.path().join("go").display().to_string();
        Self { points: points.replace("{go}", &go), folder }
    }

    /// Has the command run under them.
    pub fn on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("TOLLGATE_FAULT_POINTS", &self.points).env("TOLLGATE_FAULT_LOG", self.log())
    }

    /// What took place so far, in order, such as `complete crash 2`: point, action, and how often
    /// the point had been reached by then.
    pub fn fired(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Waits until something of it took place.
    pub fn wait_until_fired(&self) {
        let begun = Instant::now();
        while self.fired().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "`{}` did not happen", self.points);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the pauses.
    pub fn go_on(&self) {
        std::fs::write(self.folder.path().join("go"), "").expect("a file can be written");
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("fired")
    }
}
