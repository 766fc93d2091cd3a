//! Plans for several workers at once, and what they leave when each step of theirs ran once and in its
//! plan's order.

use tollgate::control::Control;
use tollgate::ids::ExecutorCode;
use tollgate::outbox::ExecutorChoice;
use tollgate::plan::Plan;

use crate::chain::{Chain, Plugin, outbox};

/// Steps of each plan.
const STEPS_PER_PLAN: usize = 4;

/// The shortest leases there are, so that the dead are found soon: variables of a worker, without
/// their prefix.
pub const HASTY: &[(&str, &str)] =
    &[("WORKER_LEASE_SECONDS", "5"), ("SQL_TARGET_RECEIPT_LEASE_SECONDS", "30")];

/// So many plans, each of which creates, fills and cleans a table of its own.
#[derive(Debug)]
pub struct Workload {
    /// The releases the plans are of.
    pub plugin: Plugin,
    plan_count: usize,
}

impl Workload {
    /// Installs the releases.
    pub fn of(plan_count: usize) -> Self {
        let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
        for plan in 0..plan_count {
            let table = format!("t{plan}");
            for (number, text) in [
                format!(
                    "CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY, word VARCHAR(20))"
                ),
                format!("INSERT IGNORE INTO {table} (id, word) VALUES (1, 'one'), (2, 'two')"),
                format!("DELETE FROM {table} WHERE id = 1"),
                format!("INSERT IGNORE INTO {table} (id, word) VALUES (3, 'three')"),
            ]
            .iter()
            .enumerate()
            {
                plugin.install_as(&format!("p{plan}-{number}"), "1.0.0", text, None);
            }
        }
        Self { plugin, plan_count }
    }

    /// Steps of all plans.
    pub fn step_count(&self) -> usize {
        self.plan_count * STEPS_PER_PLAN
    }

    /// Enqueues every plan.
    ///
    /// # Panics
    ///
    /// When one is refused.
    pub async fn submit(&self, control: &Control) {
        let sql = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
        let mut connection = control.open().await.unwrap();
        for number in 0..self.plan_count {
            let names: Vec<String> =
                (0..STEPS_PER_PLAN).map(|step| format!("p{number}-{step}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let document = self.plugin.document_of(&format!("plan{number}"), &names);
            let plan = Plan::parse(document.as_bytes()).unwrap();
            outbox().submit(&mut connection, &plan, &sql).await.unwrap();
        }
        connection.close().await;
    }

    /// How many steps are not applied yet.
    ///
    /// # Panics
    ///
    /// When the outbox cannot be read.
    pub async fn open_steps(&self, chain: &Chain) -> usize {
        let query = "SELECT COUNT(*) FROM factory_plugin_control_outbox WHERE status <> 'APPLIED'";
        chain.control_rows::<usize>(query).await[0]
    }

    /// Asserts that the tables hold what their plans end with.
    ///
    /// # Panics
    ///
    /// When one does not.
    pub async fn assert_effects(&self, chain: &Chain) {
        for number in 0..self.plan_count {
            let ids: Vec<u32> = chain.rows(&format!("SELECT id FROM t{number} ORDER BY id")).await;
            assert_eq!(ids, [2, 3], "plan{number}");
        }
    }
}
