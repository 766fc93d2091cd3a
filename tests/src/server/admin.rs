//! What a test asks of its server as root.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};

use super::PrivateServer;

/// How long sessions may take to go after their client closed them.
const SESSIONS_SETTLE: Duration = Duration::from_secs(5);
/// "Too many connections" (manual of MySQL, "Server Error Message Reference").
const ER_CON_COUNT_ERROR: u16 = 1040;

impl PrivateServer {
    /// A session of root, by socket, without a catalog. Sessions that were closed a moment ago may
    /// still be in its way: it is waited for.
    pub async fn admin(&self) -> Conn {
        let begin = Instant::now();
        loop {
            match self.try_admin().await {
                Ok(conn) => return conn,
                Err(mysql_async::Error::Server(error))
                    if error.code == ER_CON_COUNT_ERROR && begin.elapsed() < SESSIONS_SETTLE =>
                {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => panic!("cannot connect to the private {}: {error}", self.flavour()),
            }
        }
    }

    /// The same of a server that may not have any session for us yet.
    pub(super) async fn try_admin(&self) -> Result<Conn, mysql_async::Error> {
        Conn::new(Opts::from(self.admin_opts())).await
    }

    fn admin_opts(&self) -> OptsBuilder {
        OptsBuilder::default().user(Some("root")).socket(Some(self.socket_text()))
    }

    /// A session of an account, by TCP.
    pub async fn connect(&self, user: &str, password: &str, catalog: Option<&str>) -> Conn {
        self.connect_with(
            OptsBuilder::default()
                .user(Some(user))
                .pass(Some(password))
                .db_name(catalog)
                .ip_or_hostname("127.0.0.1")
                .tcp_port(self.port())
                .prefer_socket(false),
        )
        .await
    }

    async fn connect_with(&self, opts: OptsBuilder) -> Conn {
        match Conn::new(Opts::from(opts)).await {
            Ok(conn) => conn,
            Err(error) => panic!("cannot connect to the private {}: {error}", self.flavour()),
        }
    }

    /// Runs statements as root, one after the other.
    pub async fn execute(&self, statements: &[&str]) {
        let mut admin = self.admin().await;
        for statement in statements {
            if let Err(error) = admin.query_drop(*statement).await {
                panic!("{} refused `{statement}`: {error}", self.flavour());
            }
        }
        admin.disconnect().await.expect("root's session can be closed");
    }

    /// Creates an empty catalog in utf8mb4.
    pub async fn create_catalog(&self, catalog: &str) {
        self.execute(&[&format!("CREATE DATABASE `{catalog}` CHARACTER SET utf8mb4")]).await;
    }

    /// Creates an account that may connect from anywhere, with `grants` such as
    /// ``"ALL PRIVILEGES ON `plugin_preview`.*"``.
    pub async fn create_account(&self, user: &str, password: &str, grants: &[&str]) {
        let account = format!("'{user}'@'%'");
        let password = password.replace('\\', r"\\").replace('\'', r"\'");
        let mut statements = vec![format!("CREATE USER {account} IDENTIFIED BY '{password}'")];
        statements.extend(grants.iter().map(|grant| format!("GRANT {grant} TO {account}")));
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        self.execute(&statements).await;
    }

    /// How many sessions of `user` the server has now.
    pub async fn session_count(&self, user: &str) -> usize {
        let mut admin = self.admin().await;
        let count: Option<usize> = admin
            .exec_first(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ?",
                (user,),
            )
            .await
            .expect("root reads the process list");
        admin.disconnect().await.expect("root's session can be closed");
        count.expect("a count is one row")
    }

    /// Waits until the server has exactly `count` sessions of `user`: a server notices a closed
    /// connection a moment after its client closed it.
    pub async fn assert_session_count(&self, user: &str, count: usize) {
        let begin = Instant::now();
        loop {
            let now = self.session_count(user).await;
            if now == count {
                return;
            }
            assert!(
                begin.elapsed() < SESSIONS_SETTLE,
                "the server has {now} sessions of `{user}`, not {count}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn socket_text(&self) -> String {
        self.socket().display().to_string()
    }
}
