//! The status page as it is served, and an installation worth looking at.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use crate::chain::{Chain, Plugin};
use crate::cli::run;
use crate::process::{Process, submit, tollgate};

/// The ledger's table.
pub const LEDGER: &str = "factory_plugin_target_receipt";

/// What no answer may ever hold, besides the server's port. Every password has a canary in it.
pub const SECRETS: &[&str] = &["canary", "jdbc:mysql://", "127.0.0.1"];

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, by lowercase name.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// A header that has to be there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no `{name}` in {:?}", self.headers))
    }
}

/// A running `tollgate serve`.
#[derive(Debug)]
pub struct Served {
    /// The process.
    pub process: Process,
    /// Address and port.
    pub address: String,
}

impl Served {
    /// Starts it for a chain, with other values for some variables.
    pub fn start(chain: &Chain, changes: &[(&str, &str)], more: &[&str], log: &Path) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
        Self::of(&mut tollgate(chain, changes, &arguments), log)
    }

    /// Starts a command that serves the page and waits for its address.
    pub fn of(command: &mut Command, log: &Path) -> Self {
        let process = Process::spawn(command, log);
        let begun = Instant::now();
        // A line of its own, among whatever is logged.
        let address = loop {
            let said = process.log();
            let url = |line: &str| {
                let address = line.strip_prefix("http://")?.strip_suffix("/\n")?;
                Some(address.to_owned())
            };
            if let Some(address) = said.split_inclusive('\n').find_map(url) {
                break address;
            }
            assert!(begun.elapsed() < Duration::from_mins(1), "no address in:\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        };
        Self { process, address }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks for a page.
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &self.address)
    }

    /// Asks in any way, as whatever host.
    pub fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        ask(&self.address, method, path, host)
    }
}

/// Asks an address.
pub fn ask(address: &str, method: &str, path: &str, host: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Answer { status, headers, body: body.to_owned() }
}

/// Connections to a port of this machine, from their clients' side: proc(5), `/proc/net/tcp`.
pub fn connections_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{port:04X}");
    let is_there = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2].ends_with(&remote) && columns[3] == "01"
    };
    table.lines().skip(1).filter(is_there).count()
}

/// A payload whose literals a browser or a terminal could take for more than text.
pub const HOSTILE_PAYLOAD: &str = "\
    CREATE TABLE IF NOT EXISTS note (id INT NOT NULL PRIMARY KEY, body TEXT);\n\
    INSERT IGNORE INTO note (id, body) VALUES (1, '<script>alert(1)</script>'), (2, '\u{202e}gnol');\n";

/// An installation in use: plans that were applied, one that stands still, and executions in every
/// state.
#[derive(Debug)]
pub struct InUse {
    /// Servers and configuration.
    pub chain: Chain,
    /// The installed releases.
    pub plugin: Plugin,
    /// The session of a holder whose lease is over.
    _zombie: Conn,
}

impl InUse {
    /// Sets it up.
    pub async fn start() -> Self {
        let chain = Chain::start().await;
        chain.control().await;
        let back = Some("DROP TABLE IF EXISTS note;");
        let plugin = Plugin::install(HOSTILE_PAYLOAD, back);
        plugin.install_as(
            "loyalty",
            "1.0.0",
            "CREATE TABLE IF NOT EXISTS tier (code INT NOT NULL PRIMARY KEY, label VARCHAR(40));\n\
             INSERT IGNORE INTO tier (code, label) VALUES (1, 'Bronze'), (2, 'Silver');\n\
             DELETE FROM tier WHERE code = 9;\n",
            Some("DROP TABLE IF EXISTS tier;"),
        );
        plugin.install_as(
            "badges",
            "1.0.0",
            "INSERT IGNORE INTO nowhere (id) VALUES (1);",
            Some("DROP TABLE IF EXISTS nowhere;"),
        );
        for (plan, plugins) in [
            ("orders-1.0.0", &["orders"][..]),
            ("loyalty-1.0.0", &["loyalty"]),
            ("spring-campaign", &["badges", "loyalty"]),
        ] {
            let submitted = submit(&chain, &plugin, &plugin.document_of(plan, plugins));
            assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
        }
        let releases = plugin.root().display().to_string();
        let arguments = ["work", "--releases", &releases, "--until-idle"];
        let worked = run(&mut tollgate(&chain, &[("WORKER_ATTEMPTS_MAX", "1")], &arguments));
        // The step of `badges` needs a person.
        assert_eq!(worked.code(), Some(6), "{}", worked.stderr);
        let mut zombie = chain.admin().await;
        zombie.query_drop("DO GET_LOCK('tollgate-page-zombie', 0)").await.unwrap();
        let in_use = Self { chain, plugin, _zombie: zombie };
        in_use.states().await;
        in_use
    }

    /// One execution in each state that is not there yet.
    async fn states(&self) {
        let session = "session_id = 4711, session_marker = 'tollgate-page-gone', server_id = 's'";
        let held = "status = 'RUNNING', external_receipt = NULL, completed_at = NULL, \
                    statements_done = 1";
        let (over, open) = ("- INTERVAL 4 MINUTE", "+ INTERVAL 4 MINUTE");
        let deadline = |when: &str| format!("lease_deadline = UTC_TIMESTAMP(6) {when}");
        let failed = "status = 'FAILED', external_receipt = NULL, completed_at = NULL, \
                      statements_done = 0";
        for (key, change) in [
            ("summer-7:1", format!("{held}, {}, {session}", deadline(open))),
            ("summer-7:2", format!("{held}, {}, {session}", deadline(over))),
            (
                "summer-7:3",
                format!(
                    "{held}, {}, {session}, session_marker = 'tollgate-page-zombie'",
                    deadline(over)
                ),
            ),
            (
                "summer-7:4",
                format!(
                    "{failed}, execution_count = 20, generation = 60, \
                     last_error_code = 'statement-budget', \
                     last_error = 'statement 2 was not done within 900 s'"
                ),
            ),
            (
                "summer-7:5",
                format!(
                    "{failed}, last_error_code = 'server-1213', last_error = \
                     'statement 1: a deadlock, after another transaction'"
                ),
            ),
            (
                "summer-7:6",
                "status = 'PRUNED', policy_digest = '', decision_digest = ''".to_owned(),
            ),
            (
                "summer-7:6:compensate",
                "direction = 'COMPENSATE', execution_count = 0, statements_done = 0, \
                 counterpart_key = 'summer-7:6'"
                    .to_owned(),
            ),
        ] {
            self.copy(&format!("'{key}'"), "").await;
            self.change(key, &change).await;
        }
    }

    /// Copies a receipt that succeeded under other keys: an SQL expression over `source`.
    pub async fn copy(&self, keys: &str, source: &str) {
        let columns: String = self
            .chain
            .value(&format!(
                "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns \
                 WHERE table_name = '{LEDGER}' AND column_name NOT IN \
                 ('id', 'step_idempotency_key', 'external_receipt')"
            ))
            .await;
        let statement = format!(
            "INSERT INTO {LEDGER} (step_idempotency_key, external_receipt, {columns}) \
             SELECT {keys}, CONCAT('sql:preview:', {keys}), {columns} FROM {LEDGER} {source} \
             WHERE step_idempotency_key = 'loyalty-1.0.0:1'"
        );
        self.chain.admin_run(&statement).await;
    }

    /// So many receipts that succeeded, named after a word.
    pub async fn add_many(&self, word: &str, count: u32) {
        self.copy(&format!("CONCAT('{word}-', seq)"), &format!("CROSS JOIN seq_1_to_{count}"))
            .await;
    }

    /// Changes a receipt by hand.
    pub async fn change(&self, key: &str, assignments: &str) {
        let statement =
            format!("UPDATE {LEDGER} SET {assignments} WHERE step_idempotency_key = '{key}'");
        self.chain.admin_run(&statement).await;
    }

    /// Where the releases are.
    pub fn releases(&self) -> String {
        self.plugin.root().display().to_string()
    }
}
