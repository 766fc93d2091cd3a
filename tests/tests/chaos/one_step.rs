//! One step of DML alone, its process killed at random moments: no effect is lost, none is doubled.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tollgate_tests::asked::number;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::desk::compiled;
use tollgate_tests::process::tollgate;

use crate::seed::Choices;

/// Every run of it adds a row: the key is the server's own, so IGNORE has nothing to ignore.
const STATEMENT: &str = "INSERT IGNORE INTO entry (word) VALUES ('once');\n";
/// As many of them as make the time at work as long as all around it.
const STATEMENT_COUNT: usize = 40;
/// Kills in CI; `TOLLGATE_CHAOS_KILLS` asks for another number.
const KILLS: u64 = 60;
/// Deliveries that are killed of one step, at most: fewer than a payload may be started.
const KILLS_PER_STEP: u64 = 5;

/// Where a kill found its delivery.
#[derive(Debug, Default)]
struct Found {
    before_its_claim: u64,
    at_work: u64,
    after_its_commit: u64,
    over: u64,
}

struct Bench {
    chain: Chain,
    plugin: Plugin,
}

impl Bench {
    fn delivery(&self, key: &str) -> Command {
        let folder = self.plugin.release_folder("1.0.0").display().to_string();
        let mut command =
            tollgate(&self.chain, &[], &["execute", &folder, "schema", "--step-key", key]);
        command.env("TOLLGATE_CACHE", compiled()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The receipt's status and how often the payload was started.
    async fn receipt(&self, key: &str) -> (String, u32) {
        let receipt = self.chain.receipt(key).await;
        receipt.map_or_else(Default::default, |(status, count, _)| (status, count))
    }

    /// Kills a delivery after this long. Whether it was still there to be killed.
    fn kill_after(&self, key: &str, moment: Duration) -> bool {
        let mut child = self.delivery(key).spawn().unwrap();
        std::thread::sleep(moment);
        let was_there = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        was_there
    }

    /// Delivers until it is applied; the lease of a killed one ends as if its time had passed. Gives
    /// the milliseconds that the delivery took which did it.
    async fn deliver(&self, key: &str) -> u64 {
        for _ in 0..20 {
            self.chain.expire_leases().await;
            let begun = Instant::now();
            if self.delivery(key).status().unwrap().success() {
                return u64::try_from(begun.elapsed().as_millis()).unwrap().max(10);
            }
        }
        panic!("`{key}` is not applied: {:?}", self.chain.receipt(key).await);
    }
}

/// Somewhere in a delivery, every other time where it is at its database.
fn moment(choices: &mut Choices, takes: u64) -> Duration {
    if choices.below(2) == 0 {
        choices.millis(0, takes * 5 / 4)
    } else {
        choices.millis(takes / 2, takes * 9 / 8 + 1)
    }
}

#[tokio::test]
async fn one_step_killed_at_random() {
    let mut choices = Choices::of_this_run("one step");
    let kills = number("TOLLGATE_CHAOS_KILLS").unwrap_or(KILLS);
    let plugin = Plugin::install(&STATEMENT.repeat(STATEMENT_COUNT), None);
    let bench = Bench { chain: Chain::start().await, plugin };
    let table =
        "CREATE TABLE entry (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB";
    bench.chain.admin_run(table).await;
    // The first one compiles the policy for all.
    bench.deliver("warm-up").await;
    let mut takes = bench.deliver("measured").await;

    let (mut found, mut steps, mut killed) = (Found::default(), 2_usize, 0);
    while killed < kills {
        let key = format!("step-{steps}");
        for _ in 0..=choices.below(KILLS_PER_STEP) {
            bench.chain.expire_leases().await;
            let (_, before) = bench.receipt(&key).await;
            let was_there = bench.kill_after(&key, moment(&mut choices, takes));
            killed += u64::from(was_there);
            let (status, after) = bench.receipt(&key).await;
            *match status.as_str() {
                _ if !was_there => &mut found.over,
                "SUCCEEDED" => &mut found.after_its_commit,
                _ if after > before => &mut found.at_work,
                _ => &mut found.before_its_claim,
            } += 1;
        }
        let had_an_answer = bench.receipt(&key).await.0 == "SUCCEEDED";
        let took = bench.deliver(&key).await;
        if !had_an_answer {
            // The machine may be busier now, or less.
            takes = u64::midpoint(takes, took);
        }
        steps += 1;
        let effects: usize = bench.chain.value("SELECT COUNT(*) FROM entry").await;
        assert_eq!(
            effects,
            steps * STATEMENT_COUNT,
            "after `{key}`: {:?}",
            bench.chain.receipt(&key).await
        );
    }
    println!("one step: {killed} kills of {steps} steps, the last in {takes} ms: {found:?}");
    // The fault fired, and everywhere.
    let Found { before_its_claim, at_work, after_its_commit, .. } = found;
    assert!(before_its_claim > 0 && at_work > 0 && after_its_commit > 0, "{found:?}");
}
