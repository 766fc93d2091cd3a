//! A Galera cluster of three MariaDB nodes on loopback.
//!
//! Each node is a [`PrivateServer`] and can do what one can; only coming back after a kill differs
//! ([`PrivateServer::rejoin`]). No node ever needs a copy of another's data: all start from one data
//! directory that a cluster of one has left, so that joining takes the last write sets alone. That
//! spares the packages and the system account that a whole state transfer needs, and keeps a start
//! at some seconds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;

use super::flavour::{REQUIRED_SERVERS, lists_galera};
use super::launch::{common_options, free_port};
use super::recipe::Recipe;
use super::template::{copy_folder, copy_template};
use super::{Flavour, PrivateServer};

/// Nodes of a cluster: the fewest of which one can go and the others still are a majority.
const NODE_COUNT: usize = 3;
/// How long a node may take to join; far above what it needs, for busy machines.
const JOIN_WAIT: Duration = Duration::from_mins(1);
/// Where Debian's and Ubuntu's package `galera-4` has the provider.
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
/// What a joining node calls, by the name its method `tail` gives.
const STATE_TRANSFER: (&str, &str) = ("wsrep_sst_tail", include_str!("wsrep_sst_tail"));

/// A cluster. Dropping it kills its nodes and removes their folders.
#[derive(Debug)]
pub struct GaleraCluster {
    /// The nodes; all are writers.
    pub nodes: Vec<PrivateServer>,
}

impl GaleraCluster {
    /// Starts a cluster when `TOLLGATE_SERVERS` lists `galera`, and says so on stderr when it does
    /// not: there is nothing to test then.
    ///
    /// # Panics
    ///
    /// When it is listed and cannot be started.
    pub async fn start_if_listed() -> Option<Self> {
        if !lists_galera() {
            eprintln!("skipped on galera: not listed in {REQUIRED_SERVERS}");
            return None;
        }
        match Self::try_start().await {
            Ok(cluster) => Some(cluster),
            Err(reason) => panic!("cannot start galera: {reason}"),
        }
    }

    async fn try_start() -> Result<Self, String> {
        if !Path::new(PROVIDER).is_file() {
            return Err(format!("{PROVIDER} does not exist; run `apt-get install galera-4`"));
        }
        let mut ports = Vec::new();
        for _ in 0..NODE_COUNT {
            ports.push(free_port()?);
        }
        let mut nodes = Vec::new();
        for port in &ports {
            nodes.push(node(*port, &ports)?);
        }
        // Alone at first: what it leaves on its files is where every node begins.
        let first = &mut nodes[0];
        copy_template("mariadb", &Recipe::of(Flavour::MariaDb)?, &data(first))?;
        let alone = ["--wsrep-new-cluster".to_owned()];
        first.try_launch_with(&alone)?;
        first.wait_until_synced(1).await;
        first.stop();
        let (first, others) = nodes.split_first_mut().expect("a cluster has nodes");
        for node in &*others {
            copy_folder(&data(first), &data(node))
                .map_err(|error| format!("cannot copy a data directory: {error}"))?;
        }
        first.try_launch_with(&alone)?;
        first.wait_until_synced(1).await;
        // One after the other: a donor serves one joiner, and the next would wait for seconds.
        for (node, size) in others.iter_mut().zip(2..) {
            node.try_launch_with(&[])?;
            node.wait_until_synced(size).await;
        }
        let cluster = Self { nodes };
        cluster.wait_until_whole().await;
        Ok(cluster)
    }

    /// Waits until every running node sees all of them.
    pub async fn wait_until_whole(&self) {
        for node in &self.nodes {
            node.wait_until_synced(NODE_COUNT).await;
        }
    }
}

/// A node that talks to the others on `port`; `ports` are all nodes'.
fn node(port: u16, ports: &[u16]) -> Result<PrivateServer, String> {
    let io_error = |error: std::io::Error| format!("cannot prepare a node: {error}");
    let recipe = Recipe::of(Flavour::MariaDb)?;
    let folder = tempfile::Builder::new().prefix("tollgate-").tempdir().map_err(io_error)?;
    let scripts = folder.path().join("scripts");
    fs::create_dir(&scripts).map_err(io_error)?;
    let (name, text) = STATE_TRANSFER;
    fs::write(scripts.join(name), text).map_err(io_error)?;
    fs::set_permissions(scripts.join(name), fs::Permissions::from_mode(0o755)).map_err(io_error)?;
    let mut args = recipe.format;
    args.extend(recipe.run);
    args.extend(common_options(false));
    args.extend(cluster_options(port, free_port()?, ports));
    PrivateServer::prepared(Flavour::MariaDb, recipe.program.with_scripts(scripts), args, folder)
}

/// What makes a server a node (Galera manual, "Configuration" and "Galera Parameters").
fn cluster_options(port: u16, transfer_port: u16, ports: &[u16]) -> Vec<String> {
    let members: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let provider_options = [
        "base_host=127.0.0.1".to_owned(),
        format!("base_port={port}"),
        format!("gmcast.listen_addr=tcp://127.0.0.1:{port}"),
        format!("ist.recv_addr=127.0.0.1:{transfer_port}"),
        format!("ist.recv_bind=127.0.0.1:{transfer_port}"),
        // What a node misses while it is away has to fit: there is no other state transfer.
        "gcache.size=64M".to_owned(),
        // Who was there before is told by the addresses alone.
        "pc.recovery=false".to_owned(),
        // A node that was killed is given up after 3 s instead of 5.
        "evs.keepalive_period=PT0.5S".to_owned(),
        "evs.inactive_check_period=PT0.25S".to_owned(),
        "evs.suspect_timeout=PT3S".to_owned(),
        "evs.inactive_timeout=PT6S".to_owned(),
        "evs.install_timeout=PT6S".to_owned(),
    ];
    vec![
        "--binlog-format=ROW".to_owned(),
        "--default-storage-engine=InnoDB".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={PROVIDER}"),
        "--wsrep-cluster-name=tollgate".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", members.join(",")),
        format!("--wsrep-node-address=127.0.0.1:{port}"),
        "--wsrep-sst-method=tail".to_owned(),
        format!("--wsrep-sst-receive-address=127.0.0.1:{transfer_port}"),
        format!("--wsrep-provider-options={}", provider_options.join(";")),
    ]
}

fn data(node: &PrivateServer) -> PathBuf {
    node.folder().join("data")
}

impl PrivateServer {
    /// Starts a node again after `stop` or `kill9`, and waits until it takes statements.
    ///
    /// # Panics
    ///
    /// When it does not join the others.
    pub async fn rejoin(&mut self) {
        let position = match self.recovered_position() {
            Ok(position) => position,
            Err(reason) => panic!("{reason}"),
        };
        let start = [format!("--wsrep-start-position={position}")];
        if let Err(reason) = self.try_launch_with(&start) {
            panic!("{reason}");
        }
        self.wait_until_synced(1).await;
    }

    /// A status of the node, such as `wsrep_local_cert_failures`.
    pub async fn status(&self, name: &str) -> String {
        let mut admin = self.admin().await;
        let query = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let row: Option<(String, String)> = admin.query_first(query).await.unwrap();
        admin.disconnect().await.unwrap();
        row.unwrap_or_else(|| panic!("the node has no status `{name}`")).1
    }

    /// How many transactions of its own the node gave up for another node's: at their COMMIT
    /// because they did not pass certification, or before it because one that did needed their
    /// locks (Galera manual, "Galera Status Variables").
    pub async fn certification_conflicts(&self) -> u64 {
        let mut conflicts = 0;
        for name in ["wsrep_local_cert_failures", "wsrep_local_bf_aborts"] {
            conflicts += self.status(name).await.parse::<u64>().unwrap();
        }
        conflicts
    }

    /// Where a killed node's files end, in the cluster's order of write sets (MariaDB manual,
    /// "Galera Cluster Recovery").
    fn recovered_position(&self) -> Result<String, String> {
        let failed = |what: String| format!("cannot find a node's position: {what}");
        let mut recovery = self.call().map_err(failed)?;
        let output =
            recovery.arg("--wsrep-recover").output().map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let position = said
            .split("Recovered position:")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
        position.ok_or_else(|| failed(said.into_owned()))
    }

    /// Waits until the node takes statements and sees so many nodes. A node that is joining may
    /// greet and close the session all the same.
    async fn wait_until_synced(&self, size: usize) {
        let begin = Instant::now();
        loop {
            let found = self.membership().await;
            if let Ok((state, ready, seen)) = &found
                && (state.as_str(), ready.as_str()) == ("Synced", "ON")
                && *seen >= size
            {
                return;
            }
            assert!(begin.elapsed() < JOIN_WAIT, "not one of {size} nodes in time: {found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// State, readiness and the number of nodes it sees.
    async fn membership(&self) -> Result<(String, String, usize), mysql_async::Error> {
        let mut admin = self.try_admin().await?;
        let query = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                     ('wsrep_local_state_comment', 'wsrep_ready', 'wsrep_cluster_size')";
        let rows: Vec<(String, String)> = admin.query(query).await?;
        admin.disconnect().await?;
        let value = |name: &str| {
            let row = rows.iter().find(|row| row.0 == name);
            row.map(|row| row.1.clone()).unwrap_or_default()
        };
        let seen = value("wsrep_cluster_size").parse().unwrap_or_default();
        Ok((value("wsrep_local_state_comment"), value("wsrep_ready"), seen))
    }
}
