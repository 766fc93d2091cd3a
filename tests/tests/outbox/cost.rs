//! What a claim costs: the same with many rows as with few.

use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use tollgate::control::ControlConnection;
use tollgate_tests::asked::number;
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, plan};

/// Rows that are done, wait, are claimed, not due yet or due elsewhere; `TOLLGATE_OUTBOX_ROWS` asks for another number.
const ROW_COUNT: u64 = 100_000;
/// Rows a claim may read: two looks, the row it takes, and the row it reads back.
const ROWS_READ_MAX: u64 = 12;

/// Rows copied by one statement: each is locked, and a small server has little room for locks.
const COPIED_AT_ONCE: u64 = 100_000;

fn row_count() -> u64 {
    number("TOLLGATE_OUTBOX_ROWS").unwrap_or(ROW_COUNT)
}

/// Copies the plan's rows over and over, under other keys.
pub(crate) async fn fill(fixture: &Fixture, row_count: u64) {
    let columns =
        "plan_fingerprint, plan_step_count, direction, executor_code, step, created_at, updated_at";
    let mut count = fixture.statuses().await.len() as u64;
    while count < row_count {
        fixture
            .run(&format!(
                "INSERT INTO factory_plugin_control_outbox (environment_code, plan_code, position, \
                 step_idempotency_key, status, not_before, {columns}) SELECT \
                 IF(id % 5 > 3, 'elsewhere', '-'), \
                 CONCAT('copy', {count}, '-', id), position, CONCAT('copy', {count}, '-', id), \
                 ELT(1 + id % 5, 'WAITING', 'APPLIED', 'CLAIMED', 'PENDING', 'PENDING'), \
                 UTC_TIMESTAMP(6) + INTERVAL IF(id % 5 IN (2, 3), 1, -1) HOUR, {columns} \
                 FROM factory_plugin_control_outbox LIMIT {COPIED_AT_ONCE}"
            ))
            .await;
        count += count.min(COPIED_AT_ONCE);
    }
}

async fn rows_read(connection: &mut ControlConnection) -> u64 {
    let rows: Vec<(String, u64)> =
        connection.conn().query("SHOW SESSION STATUS LIKE 'Handler_read%'").await.unwrap();
    rows.iter().map(|(_, count)| count).sum()
}

#[tokio::test]
async fn a_claim_reads_a_handful_of_rows_however_many_there_are() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 20)).await;
        fill(&fixture, row_count()).await;
        let count: Vec<u64> =
            fixture.rows("SELECT COUNT(*) FROM factory_plugin_control_outbox").await;
        assert!(count[0] >= row_count(), "{count:?}");
        let mut connection = fixture.open().await;
        // The shape is compared once on a session, whatever is claimed then.
        let nobodys = fixture.elsewhere("nobodys");
        assert_eq!(nobodys.claim(&mut connection).await.unwrap().map(drop), None);
        for expected in [Some("up:1"), None] {
            let before = rows_read(&mut connection).await;
            let claim = fixture.outbox.claim(&mut connection).await.unwrap();
            let read = rows_read(&mut connection).await - before;
            assert_eq!(claim.as_ref().map(|claim| claim.step().key.as_str()), expected);
            println!("{flavour}: {read} rows read for {expected:?} among {}", count[0]);
            assert!(read <= ROWS_READ_MAX, "{flavour}: {read} rows were read");
        }
        let before = rows_read(&mut connection).await;
        let due = fixture.outbox.due_elsewhere(&mut connection).await.unwrap();
        let read = rows_read(&mut connection).await - before;
        assert_eq!(due.len(), 1, "{flavour}");
        assert!(read <= ROWS_READ_MAX, "{flavour}: {read} rows were read");
        let before = rows_read(&mut connection).await;
        let waited = fixture.outbox.oldest_due(&mut connection).await.unwrap();
        let read = rows_read(&mut connection).await - before;
        println!("{flavour}: {read} rows read for the oldest due");
        assert!(waited > Some(Duration::from_mins(59)), "{flavour}: {waited:?}");
        assert!(read <= ROWS_READ_MAX, "{flavour}: {read} rows were read");
    }
}

#[tokio::test]
async fn a_claim_whose_lease_is_over_is_due_as_well() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        let mut connection = fixture.open().await;
        assert_eq!(fixture.outbox.oldest_due(&mut connection).await.unwrap(), None, "{flavour}");
        fixture.submit(&plan("up", 1)).await;
        assert!(fixture.outbox.oldest_due(&mut connection).await.unwrap().is_some());
        let claim = fixture.claim().await.unwrap();
        assert_eq!(fixture.outbox.oldest_due(&mut connection).await.unwrap(), None, "{flavour}");
        let listed = fixture.outbox.step(&mut connection, &claim.step().key).await.unwrap();
        assert_eq!(listed.unwrap().words(), "claimed");
        fixture.let_leases_end().await;
        let waited = fixture.outbox.oldest_due(&mut connection).await.unwrap();
        assert!(waited >= Some(Duration::from_secs(1)), "{flavour}: {waited:?}");
        let listed = fixture.outbox.step(&mut connection, &claim.step().key).await.unwrap();
        let words = listed.unwrap().words();
        assert_eq!(words, "claimed, lease over: the next worker takes it", "{flavour}");
    }
}

#[tokio::test]
async fn the_server_plans_a_claim_by_its_index() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 20)).await;
        let mut admin = fixture.server.admin().await;
        admin.query_drop("USE control_plane").await.unwrap();
        for status in ["PENDING", "CLAIMED"] {
            let explain = format!(
                "EXPLAIN FORMAT=TRADITIONAL SELECT id FROM factory_plugin_control_outbox FORCE INDEX \
                 (ix_factory_plugin_control_outbox_due) WHERE status = '{status}' AND \
                 environment_code = '-' AND not_before <= \
                 UTC_TIMESTAMP(6) ORDER BY not_before, id LIMIT 1 FOR UPDATE"
            );
            let plan: mysql_async::Row = admin.query_first(explain).await.unwrap().unwrap();
            let key: String = plan.get("key").unwrap();
            let extra: String = plan.get("Extra").unwrap();
            assert_eq!(key, "ix_factory_plugin_control_outbox_due", "{flavour}");
            assert!(!extra.contains("filesort"), "{flavour}: {extra}");
        }
    }
}
