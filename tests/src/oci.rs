//! Private OCI registries: Debian's `docker-registry` on a free loopback port, in a folder of its own,
//! gone when the test is.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tollgate::digest::Digest;

use crate::process::Process;

/// Who may use a registry that asks for a password.
pub const USER: &str = "publisher";
/// Their password. No output may have it.
pub const PASSWORD: &str = "canary-registry-password";
/// Both as `htpasswd -B` writes them.
const HTPASSWD: &str = "publisher:$2y$05$iGwi84RWeItrKJLInrCRBeRxpSUlPJ9iheDXpyHeCf8rdIXsgw466\n";

/// How long a registry may take to listen; far above what it needs.
const START_WAIT: Duration = Duration::from_secs(30);

/// A running registry.
#[derive(Debug)]
pub struct OciRegistry {
    // Ends before its folder goes.
    _process: Process,
    folder: TempDir,
    port: u16,
}

impl OciRegistry {
    /// A registry that lets everyone in.
    pub fn start() -> Self {
        Self::launch(false)
    }

    /// A registry that asks for [`USER`] and [`PASSWORD`].
    pub fn with_password() -> Self {
        Self::launch(true)
    }

    fn launch(asks: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Another process may take the port in between; then the registry ends at once.
        for _ in 0..5 {
            let port = free_port();
            let config = config(folder.path(), port, asks);
            let mut command = Command::new("docker-registry");
            command.arg("serve").arg(config);
            assert!(
                command.get_program().to_str().is_some_and(is_installed),
                "`docker-registry` is not installed: script/test installs it"
            );
            let process = Process::spawn(&mut command, &folder.path().join("log"));
            let begun = Instant::now();
            while begun.elapsed() < START_WAIT && !process.log().contains("level=fatal") {
                if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                    return Self { _process: process, folder, port };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        panic!("the registry does not start:\n{}", log(folder.path()));
    }

    /// Its port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// A place in it, such as `p:1.0.0`.
    pub fn place(&self, name: &str) -> String {
        format!("127.0.0.1:{}/policies/{name}", self.port)
    }

    /// The file a blob is kept in.
    pub fn blob(&self, digest: Digest) -> PathBuf {
        let digest = digest.to_string();
        let hex = digest.trim_start_matches("sha256:");
        let blobs = self.folder.path().join("store/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }
}

/// A folder for `DOCKER_CONFIG` in which `docker login` recorded a password for a registry.
///
/// # Panics
///
/// When it cannot be written.
pub fn logged_in(folder: &Path, registry: &str, password: &str) {
    fs::create_dir_all(folder).expect("the folder can be made");
    let config = serde_json::json!({
        "auths": { registry: { "username": USER, "password": password } }
    });
    fs::write(folder.join("config.json"), config.to_string()).expect("the file can be written");
}

fn config(folder: &Path, port: u16, asks: bool) -> PathBuf {
    let at = |name: &str| folder.join(name).display().to_string();
    let mut text = format!(
        "version: 0.1\nlog: {{ level: warn, accesslog: {{ disabled: true }} }}\n\
         storage: {{ filesystem: {{ rootdirectory: {} }} }}\n\
         http: {{ addr: \"127.0.0.1:{port}\", secret: test }}\n",
        at("store")
    );
    if asks {
        fs::write(folder.join("htpasswd"), HTPASSWD).expect("the file can be written");
        let path = at("htpasswd");
        writeln!(text, "auth: {{ htpasswd: {{ realm: test, path: {path} }} }}").expect("a string");
    }
    let path = folder.join("config.yml");
    fs::write(&path, text).expect("the file can be written");
    path
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// A port that nobody listens on, a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Whether a program can be called by its name.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
