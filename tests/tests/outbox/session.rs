//! What an administrator sets for every session changes nothing.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate_tests::server::Flavour;

use crate::fixture::{Fixture, plan};

#[tokio::test]
async fn a_limit_on_select_cuts_no_plan_short() {
    for flavour in Flavour::available() {
        let fixture = Fixture::start(flavour).await;
        fixture.submit(&plan("up", 5)).await;
        fixture.apply(5).await;
        fixture.server.execute(&["SET GLOBAL sql_select_limit = 1"]).await;
        let mut other = fixture.server.admin().await;
        let cut: Vec<u32> = other.query("SELECT 1 UNION SELECT 2").await.unwrap();
        assert_eq!(cut.len(), 1, "{flavour}: the limit holds for others");
        let plan = "up".parse().unwrap();
        let mut connection = fixture.open().await;
        let back = fixture.outbox.compensate(&mut connection, &plan, None).await.unwrap();
        assert_eq!(back.enqueued.len(), 5, "{flavour}");
        let steps = fixture.outbox.plan_steps(&mut connection, &plan).await.unwrap();
        assert_eq!(steps.len(), 10, "{flavour}");
    }
}

#[tokio::test]
async fn a_stopped_clock_keeps_no_abandoned_step() {
    for flavour in Flavour::available() {
        let stopped = "--init-connect=SET timestamp = 1700000000";
        let fixture = Fixture::on(flavour.builder().arg(stopped).start()).await;
        let mut plain =
            fixture.server.connect("tollgate_control", "secret", Some("control_plane")).await;
        let clock: Option<String> = plain.query_first("SELECT UTC_TIMESTAMP()").await.unwrap();
        assert_eq!(clock.as_deref(), Some("2023-11-14 22:13:20"), "{flavour}: the fault fires");

        fixture.submit(&plan("up", 1)).await;
        let mut connection = fixture.open().await;
        assert!(fixture.hasty().claim(&mut connection).await.unwrap().is_some(), "{flavour}");
        let begun = Instant::now();
        while fixture.outbox.claim(&mut connection).await.unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{flavour}: its lease never ends");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let near: Vec<bool> = fixture
            .rows(
                "SELECT ABS(TIMESTAMPDIFF(SECOND, created_at, UTC_TIMESTAMP())) < 600 \
                 FROM factory_plugin_control_outbox",
            )
            .await;
        assert_eq!(near, [true], "{flavour}");
    }
}
