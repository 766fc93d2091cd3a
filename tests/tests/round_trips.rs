//! What a step costs in round trips, counted at the wire: a guard that is the same on every machine.
//!
//! `cargo nextest run --workspace -E 'binary(round_trips)' --no-capture` prints each of them.

use std::fmt::Write as _;
use std::time::Duration;

use tollgate::executor::{Executor as _, Outcome, SqlJdbcV1};
use tollgate::ids::Direction;
use tollgate_tests::chain::{CONTROL, Chain, Plugin, TARGET, TARGET_USER};
use tollgate_tests::proxy::{Kind, Proxy};
use tollgate_tests::server::Flavour;

const ENTRY: &str =
    "CREATE TABLE entry (id INT NOT NULL PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB";

/// A chain behind a proxy that counts, and a plugin `warm` whose step has been carried out.
struct Counted {
    chain: Chain,
    proxy: Proxy,
    executor: SqlJdbcV1,
    plugin: Plugin,
}

/// What one execution took.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    connections: usize,
    round_trips: usize,
}

impl Counted {
    async fn on(flavour: Flavour, forward: &str, compensation: Option<&str>) -> Self {
        let chain = Chain::start_on(flavour.builder()).await;
        chain.admin_run(ENTRY).await;
        let proxy = Proxy::to(chain.server.port()).await;
        let executor = executor(&chain, &proxy);
        let plugin = Plugin::install(forward, compensation);
        plugin.install_as("warm", "1.0.0", "DELETE FROM entry WHERE id = 99", None);
        let counted = Self { chain, proxy, executor, plugin };
        counted.warm(&counted.executor).await;
        counted
    }

    async fn warm(&self, executor: &SqlJdbcV1) {
        let key = uuid::Uuid::new_v4().simple().to_string();
        let step = self.plugin.plan_of("warm", &key, "1.0.0").steps()[0].step(Direction::Forward);
        applied(&executor.execute(&step.unwrap(), &self.plugin.catalog()).await);
        self.proxy.round_trips();
    }

    /// Delivers the step, and prints each command that it took.
    async fn cost(&self, what: &str, direction: Direction) -> Cost {
        self.cost_by(&self.executor, what, direction).await
    }

    async fn cost_by(&self, executor: &SqlJdbcV1, what: &str, direction: Direction) -> Cost {
        let step = self.plugin.step("up", direction);
        let before = self.proxy.connection_count();
        applied(&executor.execute(&step, &self.plugin.catalog()).await);
        let connections = self.proxy.connection_count() - before;
        let commands = self.proxy.round_trips();
        let mut listed = format!("{what}: {connections} connections, {} commands", commands.len());
        for (kind, text) in &commands {
            let text: String = text.chars().take(100).collect();
            write!(listed, "\n  {kind:?} {}", text.replace('\n', " ")).unwrap();
        }
        println!("{listed}");
        assert!(commands.iter().all(|(kind, _)| *kind != Kind::Other), "{listed}");
        Cost { connections, round_trips: commands.len() }
    }
}

fn executor(chain: &Chain, proxy: &Proxy) -> SqlJdbcV1 {
    chain.executor_with(&[
        ("SQL_TARGET_JDBC_URL", &proxy.jdbc_url(TARGET)),
        ("CONTROL_JDBC_URL", &proxy.jdbc_url(CONTROL)),
    ])
}

fn applied(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}

const fn kept(round_trips: usize) -> Cost {
    Cost { connections: 0, round_trips }
}

/// Read and claim, begin, prepare and run, complete, commit.
#[tokio::test]
async fn a_first_run_takes_seven_and_two_more_for_the_lease_and_preparing_of_each_statement() {
    for flavour in Flavour::available() {
        let one = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
        let place = Counted::on(flavour, one, None).await;
        assert_eq!(place.cost("first run, 1 INSERT", Direction::Forward).await, kept(7));

        let five: Vec<String> = (1..=5)
            .map(|id| format!("INSERT IGNORE INTO entry (id, word) VALUES ({id}, 'one');\n"))
            .collect();
        let five = five.concat();
        let place = Counted::on(flavour, &five, None).await;
        assert_eq!(place.cost("first run, 5 INSERTs", Direction::Forward).await, kept(7 + 4 * 3));

        let made = "CREATE TABLE IF NOT EXISTS made (id INT NOT NULL PRIMARY KEY)";
        let place = Counted::on(flavour, made, None).await;
        assert_eq!(place.cost("first run, 1 CREATE", Direction::Forward).await, kept(7));
    }
}

#[tokio::test]
async fn a_duplicate_takes_one() {
    for flavour in Flavour::available() {
        let one = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
        let place = Counted::on(flavour, one, None).await;
        place.cost("first run", Direction::Forward).await;
        assert_eq!(place.cost("duplicate", Direction::Forward).await, kept(1));
    }
}

/// One more than a first run for the transaction that turns the forward receipt.
#[tokio::test]
async fn a_compensation_takes_eight() {
    for flavour in Flavour::available() {
        let one = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
        let back = "DELETE FROM entry WHERE id = 1";
        let place = Counted::on(flavour, one, Some(back)).await;
        place.cost("first run", Direction::Forward).await;
        assert_eq!(place.cost("compensation", Direction::Compensate).await, kept(8));
    }
}

/// As many as a first run when the dead holder's session is gone.
#[tokio::test]
async fn a_takeover_claims_in_two() {
    for flavour in Flavour::available() {
        let one = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
        let place = Counted::on(flavour, one, None).await;
        let faults = tollgate::fault_points::Faults::parse(
            "statement=error-before;inspect=error-before;fail-record=error-before",
            0,
        )
        .unwrap();
        let crashed = executor(&place.chain, &place.proxy);
        let step = place.plugin.step("up", Direction::Forward);
        let outcome = faults.during(crashed.execute(&step, &place.plugin.catalog())).await;
        assert!(matches!(outcome, Outcome::Indeterminate { .. }), "{outcome:?}");
        drop(crashed);
        place.chain.server.assert_session_count(TARGET_USER, 1).await;
        place.chain.expire_leases().await;
        place.proxy.round_trips();
        assert_eq!(place.cost("takeover", Direction::Forward).await, kept(7));
    }
}

/// A holder that stopped and kept its session: three for the claim, and beside them looking for it,
/// ending it, and looking until it is gone, which takes as often as the server needs.
#[tokio::test]
async fn a_takeover_from_a_living_session_claims_in_three_plus_the_kill() {
    for flavour in Flavour::available() {
        let one = "INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
        let place = Counted::on(flavour, one, None).await;
        let stopped = executor(&place.chain, &place.proxy);
        let step = place.plugin.step("up", Direction::Forward);
        let go_on = place.chain.server.folder().join("go-on");
        let pause = format!("statement=pause:{}@1", go_on.display());
        let faults = tollgate::fault_points::Faults::parse(&pause, 0).unwrap();
        let catalog = place.plugin.catalog();
        let holder = faults.during(stopped.execute(&step, &catalog));
        let taking = async {
            while faults.fired().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            place.chain.expire_leases().await;
            place.proxy.round_trips();
            applied(&place.executor.execute(&step, &catalog).await);
            let commands = place.proxy.round_trips();
            std::fs::write(&go_on, "").unwrap();
            commands.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        let (outcome, commands) = tokio::join!(holder, taking);
        // Let go on, it finds the receipt of the one that took over.
        applied(&outcome);
        let is_look = |text: &String| text.contains("SHOW FULL PROCESSLIST");
        let kill = commands.iter().position(|text| text.starts_with("KILL ")).unwrap();
        assert_eq!(commands[..kill].iter().filter(|text| is_look(text)).count(), 1, "{commands:?}");
        let looks = commands.iter().filter(|text| is_look(text)).count();
        assert!(looks >= 2, "{commands:?}");
        // As a first run of one statement, and one more for the row that waits meanwhile.
        assert_eq!(commands.len() - looks - 1, 7 + 1, "{commands:?}");
    }
}
