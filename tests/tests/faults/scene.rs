//! What most scenarios are staged with: a table with a row that a test can hold, deliveries beside
//! the test, and waiting for what a server shows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _, Outcome, SqlJdbcV1};
use tollgate::fault_points::Faults;
use tollgate::plan::Step;
use tollgate_tests::chain::{Chain, Plugin, TARGET_USER};
use tollgate_tests::cli::{self, Run};
use tollgate_tests::server::{Flavour, ServerBuilder};

/// Two rows; a test blocks the second statement by holding a lock on row 2.
pub(crate) const ROWS: &str = "
    INSERT IGNORE INTO entry (id, word) VALUES (1, 'one');
    DELETE FROM entry WHERE id = 2;
";

/// The receipts' table, without its catalog.
pub(crate) const LEDGER: &str = "factory_plugin_target_receipt";

/// How long a test waits for what has to come, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A chain whose table `entry` has row 2.
pub(crate) async fn stage(flavour: Flavour) -> Chain {
    stage_on(flavour.builder()).await
}

/// The same on a server with other options.
pub(crate) async fn stage_on(builder: ServerBuilder) -> Chain {
    let chain = Chain::start_on(builder).await;
    chain
        .admin_run(
            "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB",
        )
        .await;
    chain.admin_run("INSERT INTO entry VALUES (2, 'two')").await;
    chain
}

/// Holds row 2 until it is dropped or rolled back.
pub(crate) async fn hold_row_2(chain: &Chain) -> Conn {
    let mut holder = chain.admin().await;
    holder.query_drop("START TRANSACTION").await.unwrap();
    holder.query_drop("SELECT * FROM entry WHERE id = 2 FOR UPDATE").await.unwrap();
    holder
}

/// Holds the metadata of `entry` until it is dropped or rolled back.
pub(crate) async fn hold_metadata(chain: &Chain) -> Conn {
    let mut holder = chain.admin().await;
    holder.query_drop("START TRANSACTION").await.unwrap();
    holder.query_drop("SELECT * FROM entry").await.unwrap();
    holder
}

/// Waits until the target's account runs a statement with this text, and gives its session.
pub(crate) async fn session_running(chain: &Chain, text: &str) -> u64 {
    let query = format!(
        "SELECT id FROM information_schema.processlist WHERE user = '{TARGET_USER}' AND \
         info LIKE '%{text}%'"
    );
    until("a statement runs", async || chain.rows::<u64>(&query).await.into_iter().next()).await
}

/// Waits until something is there.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether the server has the session.
pub(crate) async fn has_session(chain: &Chain, id: u64) -> bool {
    let query = format!("SELECT id FROM information_schema.processlist WHERE id = {id}");
    !chain.rows::<u64>(&query).await.is_empty()
}

/// Delivers in the background.
pub(crate) fn delivery(
    executor: SqlJdbcV1,
    plugin: &Plugin,
    step: &Step,
) -> tokio::task::JoinHandle<Outcome> {
    let (catalog, step) = (plugin.catalog(), step.clone());
    tokio::spawn(async move { executor.execute(&step, &catalog).await })
}

/// Delivers in the background under faults.
pub(crate) fn faulty_delivery(
    faults: &Arc<Faults>,
    executor: SqlJdbcV1,
    plugin: &Plugin,
    step: &Step,
) -> tokio::task::JoinHandle<Outcome> {
    let (faults, catalog, step) = (Arc::clone(faults), plugin.catalog(), step.clone());
    tokio::spawn(async move { faults.during(executor.execute(&step, &catalog)).await })
}

/// A fault that waits at a point, such as `statement` or `statement@2`, until it is let go.
pub(crate) struct Pause {
    pub(crate) faults: Arc<Faults>,
    file: PathBuf,
}

impl Pause {
    /// At the given time the point is reached, from 1.
    pub(crate) fn at(chain: &Chain, point: &str, hit: u32) -> Self {
        Self::beside(chain.server.folder(), point, hit)
    }

    /// The same with its file in a folder.
    pub(crate) fn beside(folder: &std::path::Path, point: &str, hit: u32) -> Self {
        let file = folder.join(format!("go-on-{point}"));
        let faults = format!("{point}=pause:{}@{hit}", file.display());
        Self { faults: Faults::parse(&faults, 0).unwrap(), file }
    }

    /// Waits until it waits.
    pub(crate) async fn reached(&self) {
        until("the pause", async || (!self.faults.fired().is_empty()).then_some(())).await;
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        std::fs::write(&self.file, "").unwrap();
    }
}

/// The receipt of a step that must be applied.
#[track_caller]
pub(crate) fn applied(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Applied(receipt) => receipt.as_str(),
        other => panic!("expected the step to be applied, got {other:?}"),
    }
}

/// Why a step that must not be applied was not, and whether it is worth another delivery.
#[track_caller]
pub(crate) fn refused(outcome: Outcome) -> (ExecutionError, bool) {
    match outcome {
        Outcome::NotApplied { error, retryable } => (error, retryable),
        other => panic!("expected the step not to be applied, got {other:?}"),
    }
}

/// Row ids of `entry`.
pub(crate) async fn ids(chain: &Chain) -> Vec<u32> {
    chain.rows("SELECT id FROM entry ORDER BY id").await
}

/// Tables of the target besides the ledger.
pub(crate) async fn tables(chain: &Chain) -> Vec<String> {
    let tables: Vec<String> = chain.rows("SHOW TABLES").await;
    tables.into_iter().filter(|table| table != LEDGER).collect()
}

/// A step's row as text, whatever its columns.
pub(crate) async fn row(chain: &Chain, key: &str) -> String {
    let query = format!("SELECT * FROM {LEDGER} WHERE step_idempotency_key = '{key}'");
    format!("{:?}", chain.value::<mysql_async::Row>(&query).await.unwrap())
}

/// A counter of the server.
pub(crate) async fn counter(chain: &Chain, name: &str) -> u64 {
    let rows: Vec<(String, u64)> = chain.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await;
    rows.first().map_or(0, |(_, value)| *value)
}

/// The same once it stays.
pub(crate) async fn settled_counter(chain: &Chain, name: &str) -> u64 {
    chain.settled_counters(&[name]).await[0].1
}

/// `tollgate` in the chain's environment.
pub(crate) fn tollgate(chain: &Chain, arguments: &[&str]) -> Run {
    tollgate_with(chain, &[], arguments)
}

/// The same with further variables, named in full.
pub(crate) fn tollgate_with(chain: &Chain, more: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = cli::command(arguments);
    command.envs(chain.variables()).envs(more.iter().copied());
    command.env("TOLLGATE_CACHE", tollgate_tests::desk::compiled());
    cli::run(&mut command)
}

/// The keys of what `tollgate status` warns of, or of what it misses.
pub(crate) fn status_keys(chain: &Chain) -> Vec<String> {
    let run = tollgate(chain, &["status", "--json"]);
    let line = run.json_lines().remove(0);
    let target = &line["sqlTarget"];
    let said = target.get("warnings").or_else(|| target.get("missing"));
    let said = said.unwrap_or_else(|| panic!("{line}")).as_array().unwrap();
    said.iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect()
}
