//! Server programs: where they are found and how they are called.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A server program with all it needs to be called.
#[derive(Debug, Clone)]
pub(super) struct Program {
    path: PathBuf,
    /// Arguments before the server's own: a loader is called with the program it loads.
    before: Vec<String>,
    libraries: Option<PathBuf>,
    /// Where the server finds scripts of ours, before anything in PATH.
    scripts: Option<PathBuf>,
    /// The file that changes when another version is installed.
    binary: PathBuf,
}

impl Program {
    /// A program of this machine.
    pub(super) fn installed(path: PathBuf) -> Self {
        Self { binary: path.clone(), path, before: Vec::new(), libraries: None, scripts: None }
    }

    /// A program that brings some of its libraries along.
    pub(super) fn with_libraries(path: PathBuf, libraries: PathBuf) -> Self {
        Self { libraries: Some(libraries), ..Self::installed(path) }
    }

    /// The same program, with a folder of scripts that the server calls by name.
    pub(super) fn with_scripts(self, folder: PathBuf) -> Self {
        Self { scripts: Some(folder), ..self }
    }

    /// A program of another system in the folder `root`. It is called through that system's own
    /// loader and libraries, which needs no chroot and so no root.
    pub(super) fn of_other_system(root: &Path, program: &str) -> Self {
        let binary = root.join(program);
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        Self {
            path: root.join("lib64/ld-linux-x86-64.so.2"),
            before: vec![
                "--library-path".to_owned(),
                libraries.display().to_string(),
                binary.display().to_string(),
            ],
            libraries: None,
            scripts: None,
            binary,
        }
    }

    /// The server's own binary.
    pub(super) fn binary(&self) -> &Path {
        &self.binary
    }

    /// A call without the server's arguments, except those every call has.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.before);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if let Some(scripts) = &self.scripts {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(scripts.clone()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders).expect("folders without a colon"));
        }
        // Must be the first; a server as root wants to be told so.
        command.arg("--no-defaults").arg(format!("--user={}", user_name()));
        command
    }
}

/// The program in PATH or where distributions put servers, which is not in every user's PATH.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// The folder where `script/servers` puts servers that are no package of this machine.
pub(super) fn cached_server(name: &str) -> PathBuf {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    folder("TOLLGATE_SERVERS_DIR")
        .unwrap_or_else(|| {
            folder("XDG_CACHE_HOME")
                .unwrap_or_else(|| folder("HOME").unwrap_or_default().join(".cache"))
                .join("tollgate/servers")
        })
        .join(name)
}

/// The name of the user who runs the tests.
pub(super) fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().expect("`id` can be run");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a command to its end with `input`; what it says is the error when it fails.
pub(super) fn run_with_input(mut command: Command, input: &str) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let failed = |what: &dyn std::fmt::Display| format!("`{name}` failed: {what}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let mut stdin = child.stdin.take().expect("the input is piped");
    let input = input.to_owned();
    // Beside reading: a server that writes much would wait for us, and we for it.
    let feeder = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    let fed = feeder.join().expect("feeding does not panic");
    if output.status.success() && fed.is_ok() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(failed(&format_args!("{}:\n{}", output.status, String::from_utf8_lossy(&said))))
}
