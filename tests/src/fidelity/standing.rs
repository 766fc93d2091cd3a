//! Comparisons of statements that change rows and nothing else, many a second.
//!
//! Both catalogs are set up once. Each side runs in a transaction of its own session that is rolled
//! back when its rows were read. What that makes of a text is believed only when both sides agree:
//! a difference is looked at again on new catalogs, definitions and all.

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::observe::observe_rows;
use super::run::{Run, pinned, run_raw, run_statements};
use super::{ACCOUNT, Bench, Comparison, PASSWORD, RAW_CATALOG, Setup, compare_runs};
use crate::corpus::CATALOG;

/// A [`Bench`] whose catalogs stand.
#[derive(Debug)]
pub struct StandingBench<'a> {
    bench: Bench<'a>,
    setup: Setup,
    sides: Option<Sides>,
}

#[derive(Debug)]
struct Sides {
    raw: Conn,
    normalised: Conn,
}

impl<'a> StandingBench<'a> {
    /// On a prepared server, with what stands in both catalogs.
    pub fn new(bench: Bench<'a>, setup: Setup) -> Self {
        Self { bench, setup, sides: None }
    }

    /// Compares texts of statements that change only rows.
    pub async fn compare<S: AsRef<str>>(&mut self, raw: &str, normalised: &[S]) -> Comparison {
        let comparison = self.compare_here(raw, normalised).await;
        if comparison.differences.is_empty() {
            return comparison;
        }
        // What one side did beyond its rows, such as using up numbers, must not reach the next text.
        self.sides = None;
        self.bench.compare(&self.setup, raw, normalised).await
    }

    /// The error with which the server refuses a text as its author wrote it.
    pub async fn refusal(&mut self, raw: &str) -> Option<u16> {
        let sides = self.sides().await;
        let (run, _) = side(&mut sides.raw, RAW_CATALOG, async |conn| {
            run_raw(conn, &raw.replace(CATALOG, RAW_CATALOG), 1).await
        })
        .await;
        run.failure.and_then(|failure| failure.code)
    }

    async fn compare_here<S: AsRef<str>>(&mut self, raw: &str, normalised: &[S]) -> Comparison {
        let raw = raw.replace(CATALOG, RAW_CATALOG);
        let normalised: Vec<String> =
            normalised.iter().map(|text| text.as_ref().to_owned()).collect();
        let sides = self.sides().await;
        let (raw_run, raw_contents) = side(&mut sides.raw, RAW_CATALOG, async |conn| {
            run_raw(conn, &raw, normalised.len()).await
        })
        .await;
        let (run, contents) = side(&mut sides.normalised, CATALOG, async |conn| {
            run_statements(conn, &normalised).await
        })
        .await;
        let mut differences = compare_runs(&raw_run, &run);
        differences.extend(raw_contents.mapped(RAW_CATALOG, CATALOG).differences(&contents));
        let refused = raw_run.failure.and_then(|failure| failure.code);
        Comparison { raw, normalised, differences, refused }
    }

    async fn sides(&mut self) -> &mut Sides {
        if self.sides.is_none() {
            self.bench.prepare(RAW_CATALOG, &self.setup).await;
            self.bench.prepare(CATALOG, &self.setup).await;
            let server = self.bench.server;
            let raw = pinned(server.admin().await, RAW_CATALOG).await;
            let normalised = server.connect(ACCOUNT, PASSWORD, None).await;
            let normalised = pinned(normalised, CATALOG).await;
            self.sides = Some(Sides { raw, normalised });
        }
        self.sides.as_mut().expect("set up above")
    }
}

/// Runs something in a transaction, reads what the catalog holds then, and takes it back.
async fn side(
    conn: &mut Conn,
    catalog: &str,
    run: impl AsyncFnOnce(&mut Conn) -> Run,
) -> (Run, super::observe::Contents) {
    conn.query_drop("START TRANSACTION").await.expect("a transaction can begin");
    let run = run(conn).await;
    let contents = observe_rows(conn, catalog).await;
    conn.query_drop("ROLLBACK").await.expect("a transaction can be rolled back");
    (run, contents)
}
