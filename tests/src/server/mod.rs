//! Private database servers: one per test, on a free loopback port and a socket in a folder of its
//! own, gone when the test is.
//!
//! A start copies an initialised data directory and costs 0.3 s for MariaDB, less for MySQL 5.6 and
//! 1 s for MySQL 9, so a test never shares a server with another one and may kill, restart or
//! misconfigure it as it likes. Nothing here knows about Tollgate's own tables: `tollgate` creates
//! those itself.
//!
//! Beside single servers there is a Galera cluster of three ([`GaleraCluster`]), for the tests that are
//! about clusters.
//!
//! ```no_run
//! # async fn example() {
//! let server = tollgate_tests::server::MariaDb::start();
//! server.create_catalog("plugin_preview").await;
//! server
//!     .create_account("tollgate", "secret", &["ALL PRIVILEGES ON `plugin_preview`.*"])
//!     .await;
//! let url = server.jdbc_url("plugin_preview");
//! # }
//! ```

mod admin;
mod flavour;
mod galera;
mod launch;
mod process;
mod program;
mod recipe;
mod template;

pub use flavour::{Flavour, MariaDb, Mysql9, Mysql56};
pub use galera::GaleraCluster;
pub use launch::{PrivateServer, ServerBuilder};
