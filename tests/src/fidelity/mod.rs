//! Does a normalised payload do on a server what its author's text does?
//!
//! The raw text runs in one catalog as root; the normalised statements run in another, by an
//! account that may do everything there and nothing elsewhere. Both sessions are pinned as the
//! policy asks. Then the definitions of all tables, all rows byte for byte, what each statement
//! reported and its warnings must be equal, or the server must have refused both at the same
//! statement with the same error code. What the confined account is refused for lack of rights is a
//! difference, whatever the raw text met.
//!
//! ```no_run
//! # async fn example() {
//! use tollgate_tests::fidelity::{Bench, Setup};
//! use tollgate_tests::server::MariaDb;
//!
//! let server = MariaDb::start();
//! let mut bench = Bench::open(&server).await;
//! let comparison = bench
//!     .compare(
//!         &Setup::decisions(),
//!         "INSERT IGNORE INTO t (id, name) VALUES (9, 'x')",
//!         &["INSERT IGNORE INTO `plugin_preview`.`t` (`id`, `name`) VALUES (9, 'x')"],
//!     )
//!     .await;
//! assert!(comparison.differences.is_empty(), "{comparison}");
//! # }
//! ```

mod observe;
mod run;
mod standing;

use std::fmt;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use crate::corpus::CATALOG;
use crate::server::{PrivateServer, ServerBuilder};
use observe::{Contents, observe};
pub use standing::StandingBench;

use run::{Failure, Run, pinned, run_raw, run_statements};

/// The catalog of the raw text. As long as [`CATALOG`], so that no length depends on the side.
pub const RAW_CATALOG: &str = "plugin_rawtext";
/// A catalog that no payload may read or change.
const HOST_CATALOG: &str = "host_core";
/// The account of the normalised statements.
const ACCOUNT: &str = "confined";
const PASSWORD: &str = "confined";
/// Errors that say the confined account lacks a right.
const ACCESS_DENIED: &[u16] = &[1044, 1045, 1142, 1143, 1227, 1370];

/// What stands in both catalogs before the comparison.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Run with the catalog as the current one; `{db}` is its name.
    pub statements: Vec<String>,
}

impl Setup {
    /// The tables decisions.jsonl is written for.
    pub fn decisions() -> Self {
        Self::of(&[
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(64), n INT NOT NULL DEFAULT 0, \
             j TEXT, b VARBINARY(64), d DOUBLE, dt DATETIME NULL)",
            "INSERT INTO t (id, name, n) VALUES (1,'a',1),(2,'b',2),(3,'c',3)",
            "CREATE TABLE u (id INT PRIMARY KEY, tid INT, v VARCHAR(64))",
            "INSERT INTO u VALUES (1,1,'x'),(2,2,'y')",
        ])
    }

    /// These statements.
    pub fn of<S: AsRef<str>>(statements: &[S]) -> Self {
        Self { statements: statements.iter().map(|text| text.as_ref().to_owned()).collect() }
    }
}

/// What came of one comparison.
#[derive(Debug)]
pub struct Comparison {
    /// The raw text as it ran.
    pub raw: String,
    /// The normalised statements as they ran.
    pub normalised: Vec<String>,
    /// What differs; empty when the texts mean the same.
    pub differences: Vec<String>,
    /// The error with which the server refused both sides.
    pub refused: Option<u16>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  raw:        {}", self.raw)?;
        for text in &self.normalised {
            writeln!(f, "  normalised: {text}")?;
        }
        for difference in &self.differences {
            writeln!(f, "  differs:    {difference}")?;
        }
        Ok(())
    }
}

/// A server prepared for comparisons, one after the other.
#[derive(Debug)]
pub struct Bench<'a> {
    server: &'a PrivateServer,
    admin: Conn,
}

impl<'a> Bench<'a> {
    /// A server that tells both sides the same time.
    #[must_use]
    pub fn server(builder: ServerBuilder) -> PrivateServer {
        builder.arg("--sysdate-is-now").start()
    }

    /// Prepares a server, once for all comparisons on it.
    pub async fn open(server: &'a PrivateServer) -> Self {
        server.create_catalog(HOST_CATALOG).await;
        for table in ["secrets", "victim"] {
            server
                .execute(&[
                    &format!(
                        "CREATE TABLE {HOST_CATALOG}.{table} (id INT PRIMARY KEY, v VARCHAR(64))"
                    ),
                    &format!("INSERT INTO {HOST_CATALOG}.{table} VALUES (1,'s1'),(2,'s2')"),
                ])
                .await;
        }
        let grant = format!("ALL PRIVILEGES ON `{CATALOG}`.*");
        server.create_account(ACCOUNT, PASSWORD, &[&grant]).await;
        Self { server, admin: server.admin().await }
    }

    /// Runs both texts after the same setup, in new catalogs, and compares.
    ///
    /// `raw` and the setup may name [`CATALOG`]; the raw side reads its own catalog there.
    pub async fn compare<S: AsRef<str>>(
        &mut self,
        setup: &Setup,
        raw: &str,
        normalised: &[S],
    ) -> Comparison {
        let raw = raw.replace(CATALOG, RAW_CATALOG);
        let normalised: Vec<String> =
            normalised.iter().map(|text| text.as_ref().to_owned()).collect();

        self.prepare(RAW_CATALOG, setup).await;
        let mut session = pinned(self.server.admin().await, RAW_CATALOG).await;
        let raw_run = run_raw(&mut session, &raw, normalised.len()).await;
        let raw_contents = observe(&mut self.admin, RAW_CATALOG).await;

        self.prepare(CATALOG, setup).await;
        let session = self.server.connect(ACCOUNT, PASSWORD, None).await;
        let mut session = pinned(session, CATALOG).await;
        let run = run_statements(&mut session, &normalised).await;
        let contents = observe(&mut self.admin, CATALOG).await;
        let host = observe(&mut self.admin, HOST_CATALOG).await;

        let mut differences = compare_runs(&raw_run, &run);
        differences.extend(raw_contents.mapped(RAW_CATALOG, CATALOG).differences(&contents));
        differences.extend(host_changes(&host));
        let refused = raw_run.failure.as_ref().and_then(|failure| failure.code);
        Comparison { raw, normalised, differences, refused }
    }

    /// The error with which the server refuses a text as its author wrote it.
    pub async fn refusal(&mut self, setup: &Setup, raw: &str) -> Option<u16> {
        let raw = raw.replace(CATALOG, RAW_CATALOG);
        self.prepare(RAW_CATALOG, setup).await;
        let mut session = pinned(self.server.admin().await, RAW_CATALOG).await;
        run_raw(&mut session, &raw, 1).await.failure.and_then(|failure| failure.code)
    }

    async fn prepare(&mut self, catalog: &str, setup: &Setup) {
        let mut statements = vec![
            format!("DROP DATABASE IF EXISTS `{catalog}`"),
            format!("CREATE DATABASE `{catalog}` CHARACTER SET utf8mb4"),
            format!("USE `{catalog}`"),
        ];
        let setup = setup.statements.iter();
        statements
            .extend(setup.map(|text| text.replace("{db}", catalog).replace(CATALOG, catalog)));
        for statement in statements {
            if let Err(error) = self.admin.query_drop(&statement).await {
                panic!("{} refused the setup `{statement}`: {error}", self.server.flavour());
            }
        }
    }
}

fn compare_runs(raw: &Run, run: &Run) -> Vec<String> {
    let mut differences = Vec::new();
    match (&raw.failure, &run.failure) {
        (_, Some(Failure { code: Some(code), message, .. })) if ACCESS_DENIED.contains(code) => {
            differences.push(format!("the normalised text reaches beyond its catalog: {message}"));
        }
        (None, None) => {}
        (Some(left), Some(right)) if left.code.is_some() && left.at() == right.at() => {}
        (left, right) => differences.push(format!(
            "raw {}, normalised {}",
            Failure::told(left.as_ref()),
            Failure::told(right.as_ref())
        )),
    }
    if raw.effects != run.effects {
        differences.push(format!(
            "statements reported {:?} raw and {:?} normalised",
            raw.effects, run.effects
        ));
    }
    if let (Some(left), Some(right)) = (raw.mapped_warnings(), &run.warnings)
        && left != *right
    {
        differences.push(format!("warnings {left:?} raw and {right:?} normalised"));
    }
    differences
}

fn host_changes(host: &Contents) -> Vec<String> {
    let expected: Vec<Vec<Option<Vec<u8>>>> = vec![
        vec![Some(b"1".to_vec()), Some(b"s1".to_vec())],
        vec![Some(b"2".to_vec()), Some(b"s2".to_vec())],
    ];
    ["secrets", "victim"]
        .into_iter()
        .filter(|table| host.rows(table) != Some(&expected))
        .map(|table| format!("the normalised text changed {HOST_CATALOG}.{table}"))
        .collect()
}
