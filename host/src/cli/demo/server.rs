//! A private MariaDB for the demo: in a temporary folder, on a free loopback port, gone with the
//! value.
//!
//! Root's way in is the `mariadb` client over a socket in that folder, which nobody else can read:
//! what the demo shows of the server's state is what an operator's own client shows.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::super::Failure;

/// How long the server may take to start; far above what it needs, for slow machines.
const START_WAIT: Duration = Duration::from_mins(1);
/// How long the server may take to end once it is killed.
const END_WAIT: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Lines of the server's log that an error shows.
const LOG_LINES: usize = 15;

const INSTALL: &str =
    "run script/demo, or `apt-get install mariadb-server-core mariadb-client-core`";

/// A running server. Dropping it kills the server, then removes its folder.
pub(super) struct PrivateServer {
    client: PathBuf,
    port: u16,
    // Before the folder: the server ends before its files go.
    process: Process,
    folder: TempDir,
}

/// A child that is gone when its owner is.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.start_kill();
        let begin = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && begin.elapsed() < END_WAIT {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl PrivateServer {
    /// Initialises a data directory and starts a server on it.
    pub(super) async fn start() -> Result<Self, Failure> {
        let server = program(&["mariadbd"])?;
        let install = program(&["mariadb-install-db"])?;
        let client = program(&["mariadb", "mysql"])?;
        let folder = tempfile::Builder::new().prefix("tollgate-demo-").tempdir()?;
        initialise(&server, &install, folder.path()).await?;
        let port = free_port()?;
        let process = Process(launch(&server, folder.path(), port)?);
        let mut started = Self { client, port, process, folder };
        started.wait_until_it_greets().await?;
        Ok(started)
    }

    /// The port on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The server's process id, while it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.0.id()
    }

    /// The folder everything is in.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs SQL as root with the `mariadb` client and returns what it prints, as a table.
    pub(super) async fn show(&self, sql: &str) -> Result<String, Failure> {
        self.client(sql, "--table").await
    }

    /// The same, bare: a line a row, tabs between columns.
    pub(super) async fn rows(&self, sql: &str) -> Result<String, Failure> {
        self.client(sql, "--skip-column-names").await
    }

    async fn client(&self, sql: &str, format: &str) -> Result<String, Failure> {
        let mut command = Command::new(&self.client);
        command
            .args(["--no-defaults", "--user=root", "--batch", format])
            .args(["--default-character-set=utf8mb4"])
            .arg(format!("--socket={}", self.folder().join("server.sock").display()));
        run(command, sql).await
    }

    async fn wait_until_it_greets(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        loop {
            if self.rows("SELECT 1").await.is_ok() {
                return Ok(());
            }
            let has_ended = !matches!(self.process.0.try_wait(), Ok(None));
            if has_ended || begin.elapsed() > START_WAIT {
                let what = if has_ended { "ended while it started" } else { "did not start" };
                let log = std::fs::read_to_string(self.folder().join("server.log"));
                let log = log.unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default();
                return Err(Failure::usage(format!("mariadbd {what}:\n{}", tail.join("\n")))
                    .with_help("run `tollgate demo` again; see the lines above if it stays"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn initialise(server: &Path, install: &Path, folder: &Path) -> Result<(), Failure> {
    let data = format!("--datadir={}", folder.join("data").display());
    let user = format!("--user={}", user_name());
    let mut command = Command::new(install);
    command
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(["--skip-name-resolve", "--loose-innodb-flush-method=nosync"])
        .args([&data, &user]);
    run(command, "").await?;
    // Root comes by the socket alone: on the port only accounts with a password are let in.
    let mut command = Command::new(server);
    command.args(["--no-defaults", &data, &user, "--bootstrap"]);
    run(
        command,
        "DELETE FROM mysql.global_priv WHERE Host <> 'localhost';\n\
         DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';\n",
    )
    .await?;
    Ok(())
}

fn launch(server: &Path, folder: &Path, port: u16) -> Result<Child, Failure> {
    let log = File::create(folder.join("server.log"))?;
    let mut command = bound_to_this_process(server);
    command
        .args(["--no-defaults", &format!("--user={}", user_name())])
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-networking=0"])
        .args(["--innodb-buffer-pool-size=16M", "--skip-log-bin"])
        .arg(format!("--port={port}"))
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--tmpdir={}", folder.display()))
        .arg(format!("--socket={}", folder.join("server.sock").display()))
        .arg(format!("--pid-file={}", folder.join("server.pid").display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // A Ctrl-C at the terminal is for this process, which ends the server itself.
        .process_group(0);
    Ok(command.kill_on_drop(true).spawn()?)
}

/// A program that also ends when this process is killed in a way it cannot react to.
pub(super) fn bound_to_this_process(program: &Path) -> Command {
    match find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Runs a program to its end with this on its standard input, and returns what it prints.
async fn run(mut command: Command, input: &str) -> Result<String, Failure> {
    let name = Path::new(command.as_std().get_program()).display().to_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let feeding = async move {
        if let Some(mut stdin) = stdin {
            // A program that failed does not read to the end; its own words say more.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), output) = tokio::join!(feeding, child.wait_with_output());
    let output = output?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Failure::usage(format!("`{name}` failed ({}): {said}", output.status)))
}

fn program(names: &[&str]) -> Result<PathBuf, Failure> {
    names.iter().find_map(|name| find(name)).ok_or_else(|| {
        let name = names.first().copied().unwrap_or_default();
        Failure::usage(format!("`{name}` was not found")).with_help(INSTALL)
    })
}

/// In PATH, or where distributions put servers, which is not in every user's PATH.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/libexec"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// As a number: it need not have a name. A server as root wants to be told so.
fn user_name() -> String {
    if rustix::process::geteuid().is_root() {
        return "root".to_owned();
    }
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| rustix::process::geteuid().as_raw().to_string())
}

/// A port nobody listens on now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
