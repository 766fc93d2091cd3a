//! A cluster with both catalogs, and a chain through each of its nodes.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::control::Control;
use tollgate::target::{SessionContract, Target, TargetConnection};
use tollgate_tests::chain::Chain;
use tollgate_tests::server::GaleraCluster;

/// How long a condition of the cluster is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Nodes {
    pub(crate) chains: Vec<Chain>,
}

impl Nodes {
    /// None when this run does not cover a cluster.
    pub(crate) async fn start() -> Option<Self> {
        let mut servers = GaleraCluster::start_if_listed().await?.nodes.into_iter();
        let first = Chain::on(servers.next()?).await;
        first.control().await;
        let others: Vec<Chain> = servers.map(|server| first.through(server)).collect();
        let nodes = Self { chains: std::iter::once(first).chain(others).collect() };
        nodes.settle().await;
        Some(nodes)
    }

    /// Waits until every node has applied what was committed until now.
    pub(crate) async fn settle(&self) {
        for chain in self.chains.iter().filter(|chain| chain.server.pid().is_some()) {
            let mut admin = chain.server.admin().await;
            admin.query_drop("SET SESSION wsrep_sync_wait = 1").await.unwrap();
            admin.query_drop("SELECT 1 FROM mysql.global_priv LIMIT 1").await.unwrap();
            admin.disconnect().await.unwrap();
        }
    }

    /// A target connection through a node.
    pub(crate) async fn target(&self, node: usize) -> TargetConnection {
        let config = self.chains[node].config(&[]).sql_target.unwrap();
        Target::new(&config).open(&SessionContract::default()).await.unwrap()
    }

    /// The control catalog through a node.
    pub(crate) fn control(&self, node: usize) -> Control {
        Control::new(self.chains[node].config(&[]).control.as_ref().unwrap())
    }

    /// Transactions that nodes gave up for one another's, until now.
    pub(crate) async fn conflicts(&self) -> u64 {
        let mut conflicts = 0;
        for chain in &self.chains {
            conflicts += chain.server.certification_conflicts().await;
        }
        conflicts
    }
}

/// Waits until a query of root's through a node gives at least one row.
pub(crate) async fn until_there_is(chain: &Chain, query: &str) {
    let begun = Instant::now();
    while chain.rows::<mysql_async::Row>(query).await.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing after {PATIENCE:?}: {query}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
