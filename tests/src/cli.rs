//! Running the `tollgate` binary as its users do.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

/// What a run of the binary came to.
#[derive(Debug)]
pub struct Run {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Run {
    /// Its exit code; `None` when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its standard output, an object a line.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// The `tollgate` binary beside the running test or bench: `target/<profile>/tollgate`.
///
/// # Panics
///
/// When it has not been built.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().expect("a program is in a folder");
    // Tests are in `deps`, programs beside it.
    let profile = folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder);
    let binary = profile.join(format!("tollgate{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is missing: run `cargo build --workspace`", binary.display());
    binary
}

/// Cargo's target folder, `target`.
///
/// # Panics
///
/// When the test runs elsewhere.
pub fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    test.ancestors().nth(3).expect("target/<profile>/deps/<test>").to_owned()
}

/// The binary with these arguments, and without anything of the environment that could steer it.
pub fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("FACTORY_PLUGIN_") || name_text.starts_with("TOLLGATE_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it cannot be started or prints what is not UTF-8.
pub fn run(command: &mut Command) -> Run {
    run_with_input(command, b"")
}

/// Runs a command to its end, with this on its standard input.
///
/// # Panics
///
/// When it cannot be started or prints what is not UTF-8.
pub fn run_with_input(command: &mut Command, input: &[u8]) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a piped standard input");
    let input = input.to_vec();
    // A command that does not read its input may end first.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("writing does not panic");
    Run {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
    }
}
