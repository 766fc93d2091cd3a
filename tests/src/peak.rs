//! How much memory a command takes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs a command to its end, without its output. Its exit code, and the most memory it ever held, in
/// kibibytes, as Linux counts it (proc(5), `VmHWM`).
///
/// # Panics
///
/// When it cannot be started.
pub fn peak_kib(command: &mut Command) -> (Option<i32>, u64) {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(exit) = child.try_wait().expect("a child of ours") {
            return (exit.code(), peak);
        }
        // It only grows, so the last reading is the answer but for the last moments.
        peak = high_water(Path::new(&status)).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn high_water(status: &Path) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
