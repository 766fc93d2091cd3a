//! An installation as an operator has it: a server, the variables of the binary, and releases.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{Run, command, run};
use crate::server::{MariaDb, PrivateServer};

/// The isolated catalog.
pub const TARGET: &str = "plugin_preview";
const CONTROL: &str = "control_plane";
// Secrets: no output may ever hold them.
/// The target account.
pub const TARGET_USER: &str = "canary_target_user";
const TARGET_PASSWORD: &str = "canary-target-password";
const CONTROL_USER: &str = "canary_control_user";
const CONTROL_PASSWORD: &str = "canary-control-password";
const LITERAL: &str = "canary-literal";

const FORWARD: &str = "
    CREATE TABLE IF NOT EXISTS entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(40));
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'canary-literal; one');
";
const BACK: &str = "DROP TABLE IF EXISTS entry;";

/// A server with both catalogs and accounts, an environment for the binary, and a release folder.
#[derive(Debug)]
pub struct Installation {
    /// The server.
    pub server: PrivateServer,
    variables: Vec<(String, String)>,
    folder: TempDir,
}

impl Installation {
    /// With the release `good`, and without a ledger.
    ///
    /// # Panics
    ///
    /// When the server cannot be set up.
    pub async fn new() -> Self {
        let server = MariaDb::start();
        server.create_catalog(TARGET).await;
        server.create_catalog(CONTROL).await;
        let grants = format!(
            "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES ON `{}`.*",
            TARGET.replace('_', r"\_")
        );
        server.create_account(TARGET_USER, TARGET_PASSWORD, &[&grants]).await;
        let grants = format!("ALL PRIVILEGES ON `{}`.*", CONTROL.replace('_', r"\_"));
        server.create_account(CONTROL_USER, CONTROL_PASSWORD, &[&grants]).await;
        let variables = [
            ("EXECUTOR_CODE", "sql-jdbc:v1"),
            ("SQL_TARGET_ENABLED", "true"),
            ("SQL_TARGET_ENVIRONMENT_CODE", "preview"),
            ("SQL_TARGET_JDBC_URL", &server.jdbc_url(TARGET)),
            ("SQL_TARGET_USERNAME", TARGET_USER),
            ("SQL_TARGET_PASSWORD", TARGET_PASSWORD),
            ("SQL_TARGET_ALLOWED_CATALOG", TARGET),
            ("CONTROL_JDBC_URL", &server.jdbc_url(CONTROL)),
            ("CONTROL_USERNAME", CONTROL_USER),
            ("CONTROL_PASSWORD", CONTROL_PASSWORD),
        ];
        let variables = variables
            .map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), value.to_owned()))
            .to_vec();
        let installation = Self { server, variables, folder: tempfile::tempdir().unwrap() };
        installation.release("good", FORWARD, Some(BACK));
        installation
    }

    /// The same with the ledger in place.
    ///
    /// # Panics
    ///
    /// When the server cannot be set up.
    pub async fn ready() -> Self {
        let installation = Self::new().await;
        assert_eq!(installation.tollgate(&["init", "target"]).code(), Some(0));
        installation
    }

    /// Where commands run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Installs a release folder `orders@1.0.0` under a name.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn release(&self, name: &str, forward: &str, compensation: Option<&str>) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut manifest = "code = \"orders\"\nversion = \"1.0.0\"\n\n[[contribution]]\n\
            key = \"schema\"\ntype = \"DATABASE_MIGRATION\"\ntarget = \"sql\"\n\
            idempotent = true\nforward = \"forward.sql\"\n"
            .to_owned();
        std::fs::write(folder.join("forward.sql"), forward).unwrap();
        if let Some(compensation) = compensation {
            manifest.push_str("compensation = \"back.sql\"\n");
            std::fs::write(folder.join("back.sql"), compensation).unwrap();
        }
        std::fs::write(folder.join("plugin.toml"), manifest).unwrap();
        folder
    }

    /// `tollgate` with the installation's variables.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.folder.path());
        command
    }

    /// Runs `tollgate` and looks for secrets in what it prints.
    ///
    /// # Panics
    ///
    /// When one shows.
    pub fn tollgate(&self, arguments: &[&str]) -> Run {
        let run = run(&mut self.command(arguments));
        self.assert_no_canaries(&run, arguments);
        run
    }

    /// The same with other values for some variables, named without their prefix.
    ///
    /// # Panics
    ///
    /// When a secret shows.
    pub fn tollgate_with(&self, changes: &[(&str, &str)], arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        for (name, value) in changes {
            command.env(format!("FACTORY_PLUGIN_{name}"), value);
        }
        let run = run(&mut command);
        self.assert_no_canaries(&run, arguments);
        run
    }

    fn assert_no_canaries(&self, run: &Run, arguments: &[&str]) {
        let port = format!(":{}", self.server.port());
        let secrets = [TARGET_USER, TARGET_PASSWORD, CONTROL_USER, CONTROL_PASSWORD, LITERAL];
        for secret in secrets.into_iter().chain(["127.0.0.1", &port]) {
            for output in [&run.stdout, &run.stderr] {
                assert!(!output.contains(secret), "{arguments:?} shows `{secret}`:\n{output}");
            }
        }
    }

    /// `tollgate execute` of a release's only contribution, as JSON.
    pub fn execute(&self, release: &str, key: &str) -> Run {
        self.tollgate(&["execute", release, "schema", "--step-key", key, "--format", "json"])
    }

    /// Runs a statement in the target's catalog as root.
    pub async fn admin(&self, statement: &str) {
        self.server.execute(&[&format!("USE `{TARGET}`"), statement]).await;
    }
}

/// The only line of JSON that was printed.
///
/// # Panics
///
/// When there is another number of lines.
pub fn json(run: &Run) -> Value {
    let mut lines = run.json_lines();
    assert_eq!(lines.len(), 1, "{}\n{}", run.stdout, run.stderr);
    lines.remove(0)
}
