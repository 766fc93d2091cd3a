//! Starting, stopping and restarting a private server.

use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{Process, log_tail};
use super::program::Program;
use super::recipe::Recipe;
use super::{Flavour, template};

/// How long a server may take until it greets; far above what it needs, for busy machines.
const START_WAIT: Duration = Duration::from_mins(1);
/// Ports that outgoing connections are not given (Linux hands out 32768 and above), so that a
/// server finds its port free again after a restart.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// How many ports are tried before a start is given up.
const PORT_ATTEMPTS: usize = 20;

/// A server that is about to be started.
#[derive(Debug, Clone)]
pub struct ServerBuilder {
    flavour: Flavour,
    durable: bool,
    args: Vec<String>,
}

impl ServerBuilder {
    pub(super) fn new(flavour: Flavour) -> Self {
        Self { flavour, durable: false, args: Vec::new() }
    }

    /// Writes through to the disk at every commit, with the doublewrite buffer. Without it a commit
    /// survives `kill9` of the server, but a page that was being written may be torn.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// One more option of the server, such as `--lower-case-table-names=1`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Starts the server and waits until it greets.
    #[track_caller]
    pub fn start(self) -> PrivateServer {
        match self.try_start() {
            Ok(server) => server,
            Err(reason) => panic!("{reason}"),
        }
    }

    /// Starts the server, or says why it did not start, with the end of its log.
    pub fn try_start(self) -> Result<PrivateServer, String> {
        let recipe = Recipe::of(self.flavour)
            .map_err(|reason| format!("cannot start {}: {reason}", self.flavour))?;
        let folder = tempfile::Builder::new()
            .prefix("tollgate-")
            .tempdir()
            .map_err(|error| format!("cannot create a temporary folder: {error}"))?;
        template::copy_template(self.flavour.name(), &recipe, &folder.path().join("data"))?;
        let mut args = recipe.format;
        args.extend(recipe.run);
        args.extend(common_options(self.durable));
        args.extend(self.args);
        let mut server = PrivateServer {
            flavour: self.flavour,
            program: recipe.program,
            args,
            port: 0,
            process: None,
            folder,
        };
        for _ in 0..PORT_ATTEMPTS {
            server.port = free_port()?;
            match server.try_launch() {
                Err(reason) if reason.contains("Address already in use") => {}
                Err(reason) => return Err(reason),
                Ok(()) => return Ok(server),
            }
        }
        Err(format!("no free port in {PORTS:?} after {PORT_ATTEMPTS} attempts"))
    }
}

/// Options that every kind of server understands.
pub(super) fn common_options(durable: bool) -> Vec<String> {
    let mut options: Vec<String> = [
        "--bind-address=127.0.0.1",
        // An account's host is compared with an address: no test depends on a name service.
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=16M",
        "--key-buffer-size=64K",
        "--performance-schema=OFF",
    ]
    .map(str::to_owned)
    .to_vec();
    if durable {
        options.push("--innodb-flush-log-at-trx-commit=1".to_owned());
    } else {
        // To the operating system at every commit, to the disk once a second.
        options.push("--innodb-flush-log-at-trx-commit=2".to_owned());
        options.push("--skip-innodb-doublewrite".to_owned());
        options.push("--loose-innodb-flush-method=nosync".to_owned());
    }
    options
}

/// A server of the test's own. Dropping it kills the server and removes its folder.
#[derive(Debug)]
pub struct PrivateServer {
    flavour: Flavour,
    program: Program,
    args: Vec<String>,
    port: u16,
    // Before the folder: the server ends before its data goes.
    process: Option<Process>,
    folder: TempDir,
}

impl PrivateServer {
    /// A server that is not running yet and has nothing in its folder but its data.
    pub(super) fn prepared(
        flavour: Flavour,
        program: Program,
        args: Vec<String>,
        folder: TempDir,
    ) -> Result<Self, String> {
        Ok(Self { flavour, program, args, port: free_port()?, process: None, folder })
    }

    /// What kind of server it is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The port on 127.0.0.1; it stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("server.sock")
    }

    /// The folder of the server, with `data` and `server.log` in it; a test may keep files here.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process id, or nothing while the server is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// `jdbc:mysql://127.0.0.1:<port>/<catalog>`
    pub fn jdbc_url(&self, catalog: &str) -> String {
        self.jdbc_url_at("127.0.0.1", catalog)
    }

    /// The same with another spelling of the host, such as `localhost` or `127.0.0.2`.
    pub fn jdbc_url_at(&self, host: &str, catalog: &str) -> String {
        format!("jdbc:mysql://{host}:{}/{catalog}", self.port)
    }

    /// Ends the server in order; what it has committed is on its files.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
    }

    /// Kills the server with SIGKILL.
    pub fn kill9(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Sends a signal to the server, such as `STOP` and `CONT`.
    pub fn signal(&mut self, signal: &str) {
        self.process.as_mut().expect("a stopped server gets no signals").signal(signal);
    }

    /// Starts the server again after `stop` or `kill9`, with the same data, port and socket.
    #[track_caller]
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server is running already");
        if let Err(reason) = self.try_launch() {
            panic!("{reason}");
        }
    }

    /// Stops the server in order and starts it again.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Stops the server in order and starts it with one more option.
    #[track_caller]
    pub fn restart_with(&mut self, arg: impl Into<String>) {
        self.args.push(arg.into());
        self.restart();
    }

    /// The call that starts the server, with its options and nothing after them.
    pub(super) fn call(&self) -> Result<Command, String> {
        let folder = self.folder.path();
        let mut server = self.program.command();
        server
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--tmpdir={}", self.temporary_files()?.display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", folder.join("server.pid").display()))
            .arg(format!("--port={}", self.port))
            .args(&self.args);
        Ok(server)
    }

    fn try_launch(&mut self) -> Result<(), String> {
        self.try_launch_with(&[])
    }

    /// Starts the server with options that this start alone has.
    pub(super) fn try_launch_with(&mut self, once: &[String]) -> Result<(), String> {
        let log = self.folder.path().join("server.log");
        // A log of this start alone, so that an error shows what belongs to it.
        let _ = std::fs::rename(&log, self.folder.path().join("server.log.before"));
        let mut server = self.call()?;
        server.args(once);
        let started = Process::spawn(&server, &log)
            .map_err(|error| format!("cannot start {}: {error}", self.flavour))?;
        let process = self.process.insert(started);
        let socket = self.folder.path().join("server.sock");
        let begin = Instant::now();
        while !greets(&socket) {
            let ended = process.has_ended();
            if ended || begin.elapsed() > START_WAIT {
                self.process = None;
                let what = if ended { "ended while it started" } else { "did not start in time" };
                return Err(format!("{} {what}; its log ends:\n{}", self.flavour, log_tail(&log)));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn temporary_files(&self) -> Result<PathBuf, String> {
        let folder = self.folder.path().join("tmp");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        Ok(folder)
    }
}

/// A server is up when it sends its greeting; MySQL 5.6 opens the socket earlier than that.
fn greets(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return false;
    };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut header = [0; 5];
    stream.read_exact(&mut header).is_ok() && header[4] != 0xff
}

pub(super) fn free_port() -> Result<u16, String> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Neighbouring processes start far from one another.
    let base = std::process::id().wrapping_mul(7919) % u32::from(count);
    for _ in 0..count {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % count;
        let offset = (base + u32::from(step)) % u32::from(count);
        let port = PORTS.start + u16::try_from(offset).expect("the offset is below a u16");
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(format!("cannot bind a port on 127.0.0.1: {error}")),
        }
    }
    Err(format!("no free port in {PORTS:?}"))
}
