//! How MariaDB is found, initialised and started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::launch::{Settings, find_program, run_with_input, user_name};

/// Why MariaDB cannot be started here.
pub(super) fn missing() -> Option<String> {
    ["mariadbd", "mariadb-install-db"]
        .into_iter()
        .find(|name| find_program(name).is_none())
        .map(|name| {
            format!(
                "`{name}` was not found; install the packages mariadb-server-core and \
                 mariadb-client-core"
            )
        })
}

pub(super) fn program() -> Option<PathBuf> {
    find_program("mariadbd")
}

/// What the initialised directory and the running server must agree on. Small, because a start
/// copies it; not synced to the disk, because a test's data need not survive the machine.
pub(super) fn format_options() -> Vec<String> {
    [
        "--innodb-log-file-size=8M",
        "--innodb-data-file-path=ibdata1:5M:autoextend",
        "--innodb-autoextend-increment=1",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Options of a running server beyond those that every kind gets.
pub(super) fn run_options(settings: Settings) -> Vec<String> {
    let mut options = format_options();
    options.extend(
        [
            "--innodb-temp-data-file-path=ibtmp1:3M:autoextend",
            "--aria-pagecache-buffer-size=128K",
            "--loose-innodb-buffer-pool-load-at-startup=OFF",
            "--loose-innodb-buffer-pool-dump-at-shutdown=OFF",
        ]
        .map(str::to_owned),
    );
    if !settings.durable {
        options.push("--loose-innodb-flush-method=nosync".to_owned());
    }
    options
}

/// Fills `folder` with a fresh data directory whose only account is root, without a password and
/// by socket alone.
pub(super) fn initialise(program: &Path, folder: &Path) -> Result<(), String> {
    let install = find_program("mariadb-install-db")
        .ok_or_else(|| missing().unwrap_or_else(|| "mariadb-install-db went away".to_owned()))?;
    let output = Command::new(install)
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ])
        .arg(format!("--user={}", user_name()))
        .arg(format!("--datadir={}", folder.display()))
        .args(format_options())
        .arg("--loose-innodb-flush-method=nosync")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run mariadb-install-db: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "mariadb-install-db ended with {}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let mut bootstrap = Command::new(program);
    bootstrap
        .arg("--no-defaults")
        .arg(format!("--user={}", user_name()))
        .arg(format!("--datadir={}", folder.display()))
        .args(["--bootstrap", "--skip-networking"])
        .args(format_options());
    run_with_input(
        bootstrap,
        "DELETE FROM mysql.global_priv WHERE Host <> 'localhost';\n\
         DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';\n",
    )
}
