//! 54, 57 and 58: locks that are not given. 55 and 56 need a cluster.

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{ExecutionError, Executor as _};
use tollgate::ids::Direction;
use tollgate_tests::chain::{Plugin, TARGET_USER};
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::scene::{
    LEDGER, ROWS, applied, delivery, hold_metadata, hold_row_2, ids, refused, session_running,
    stage, tables,
};

/// Of every lock the least that can be asked for.
const IMPATIENT: (&str, &str) = ("SQL_TARGET_LOCK_WAIT_TIMEOUT_SECONDS", "1");

async fn fault_54_a_row_lock_that_is_not_given_undoes_the_whole_unit(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_row_2(&chain).await;
    let executor = chain.executor_with(&[IMPATIENT]);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1205, true));
    // 1205 undoes the statement only; the first one's row must be gone all the same.
    assert_eq!(ids(&chain).await, [2]);
    let (status, runs, code) = chain.receipt("up:1").await.unwrap();
    assert_eq!((status.as_str(), runs, code.as_deref()), ("FAILED", 1, Some("server-1205")));
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(applied(&executor.execute(&step, &plugin.catalog()).await), "sql:preview:up:1");
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_54_a_row_lock_that_is_not_given_undoes_the_whole_unit);

/// The last error of the only receipt.
async fn last_error(chain: &tollgate_tests::chain::Chain) -> String {
    chain.value(&format!("SELECT last_error FROM {LEDGER}")).await
}

async fn fault_57_ddl_behind_a_long_transaction_fails_and_names_it(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS entry", None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = hold_metadata(&chain).await;
    let session: u64 = holder.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
    // The server's own patience is a year.
    let (_, patience): (String, u64) =
        chain.value("SHOW GLOBAL VARIABLES LIKE 'lock_wait_timeout'").await;
    assert!(patience >= 86_400, "{patience}");

    // A confined account is shown nothing of others, and nothing is made up.
    let executor = chain.executor_with(&[IMPATIENT]);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1205, true));
    assert_eq!(source.blockers, None);
    assert!(last_error(&chain).await.ends_with("the account is not shown who holds the lock"));

    // One that may see them is told the session, its age and what it runs, as a digest.
    chain.server.execute(&[&format!("GRANT PROCESS ON *.* TO '{TARGET_USER}'@'%'")]).await;
    let seeing = [IMPATIENT, ("SQL_TARGET_GRANT_CHECK", "warn")];
    let executor = chain.executor_with(&seeing);
    let (error, _) = refused(executor.execute(&step, &plugin.catalog()).await);
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    let blockers = source.blockers.as_deref().unwrap();
    assert!(blockers.iter().any(|blocker| blocker.session == session), "{blockers:?}");
    let text = last_error(&chain).await;
    assert!(text.contains(&format!("in the way: session {session} ")), "{text}");
    let mut busy = chain.admin().await;
    drop(holder);
    busy.query_drop("START TRANSACTION").await.unwrap();
    let id: u64 = busy.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap();
    let running = tokio::spawn(async move {
        busy.query_drop("SELECT *, SLEEP(600) FROM entry WHERE word <> 'canary-literal'").await
    });
    crate::scene::until("it runs", async || {
        let query = format!(
            "SELECT id FROM information_schema.processlist WHERE id = {id} AND info LIKE '%SLEEP%'"
        );
        chain.rows::<u64>(&query).await.pop()
    })
    .await;
    let (error, _) = refused(executor.execute(&step, &plugin.catalog()).await);
    let text = last_error(&chain).await;
    assert!(text.contains(&format!("session {id} ")) && text.contains("sha256:"), "{text}");
    assert!(!format!("{text}{error:?}").contains("canary"), "{text}");

    // Nothing queues up behind the statement that gave up.
    let mut reader = chain.admin().await;
    reader.query_drop("SET SESSION lock_wait_timeout = 2").await.unwrap();
    reader.query_drop("SELECT COUNT(*) FROM entry").await.unwrap();
    chain.server.execute(&[&format!("KILL CONNECTION {id}")]).await;
    let _ = running.await.unwrap();
    applied(&executor.execute(&step, &plugin.catalog()).await);
    assert_eq!(tables(&chain).await, [] as [String; 0]);
}
over_servers!(fault_57_ddl_behind_a_long_transaction_fails_and_names_it);

async fn fault_58_a_blocked_ledger_runs_nothing(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let mut holder = chain.admin().await;
    holder.query_drop(format!("LOCK TABLES {LEDGER} WRITE")).await.unwrap();
    let executor = chain.executor_with(&[IMPATIENT]);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    assert!(matches!(&error, ExecutionError::Claim(_)) && retryable, "{error:?}");
    holder.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(chain.receipt("up:1").await, None);
    assert_eq!(ids(&chain).await, [2]);
    // A lock that ends in time is only waited for.
    let mut holder = chain.admin().await;
    holder.query_drop(format!("LOCK TABLES {LEDGER} WRITE")).await.unwrap();
    let first = delivery(chain.executor(), &plugin, &step);
    session_running(&chain, LEDGER).await;
    holder.query_drop("UNLOCK TABLES").await.unwrap();
    assert_eq!(applied(&first.await.unwrap()), "sql:preview:up:1");
}
over_servers!(fault_58_a_blocked_ledger_runs_nothing);
