//! Which server answered.

use std::fmt;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::failure::ServerFailure;
use super::variables::Variables;
use crate::digest::Digest;

/// The variables an identity is made of.
pub(crate) const IDENTITY_VARIABLES: &[&str] = &[
    "version",
    "version_comment",
    "server_uuid",
    "server_uid",
    "hostname",
    "port",
    "datadir",
    "socket",
    "wsrep_on",
    "wsrep_cluster_name",
    "group_replication_group_name",
    "tidb_config",
    "innodb_page_size",
];

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Oracle's MySQL, or a build of it that says so.
    MySql,
    /// MariaDB.
    MariaDb,
    /// `TiDB`: KILL may not stop DDL and SKIP LOCKED may not lock.
    TiDb,
    /// Vitess or `PlanetScale`: DDL is not direct.
    Vitess,
    /// Something else that speaks the protocol and has no `InnoDB`.
    Other,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::TiDb => "TiDB",
            Self::Vitess => "Vitess",
            Self::Other => "an unknown server",
        })
    }
}

/// A server's version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    /// Major.
    pub major: u16,
    /// Minor.
    pub minor: u16,
    /// Patch.
    pub patch: u16,
}

impl ServerVersion {
    /// A version.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// The first three numbers of `8.0.36-log` or `5.5.5-10.11.6-MariaDB`.
    fn parse(text: &str) -> Self {
        // MariaDB puts this in front so that old replicas accept it.
        let text = text.strip_prefix("5.5.5-").unwrap_or(text);
        let mut numbers = text.split(['.', '-']).map_while(|part| part.parse().ok());
        let mut next = || numbers.next().unwrap_or_default();
        Self::new(next(), next(), next())
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Which server answered, and which run of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    id: String,
    incarnation: String,
    started_at: Option<u64>,
    cluster: Option<String>,
    flavour: Flavour,
    version: ServerVersion,
}

impl ServerIdentity {
    /// The identity, stable over restarts: `server_uuid` on MySQL (manual, "Replication and Binary
    /// Logging Options"). MariaDB has none: `mariadb-` and a digest of `server_uid` (a hash of
    /// network address and port, where the version has it), `hostname`, `port`, `datadir` and
    /// `socket`, which together belong to one server only.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Names one run of one server: the identity and the second it was started in. Thread ids mean
    /// something within one run only.
    pub fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// Seconds since 1970 when the server was started, on its own clock at that moment; none when
    /// the server does not say.
    pub fn started_at(&self) -> Option<u64> {
        self.started_at
    }

    /// The Galera cluster or replication group, whose members hold the same catalogs.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Whose server it is.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Its version.
    pub fn version(&self) -> ServerVersion {
        self.version
    }

    /// Whether a crash leaves a DDL statement whole or absent (manual, "Atomic Data Definition
    /// Statement Support"; MariaDB, "Atomic DDL").
    pub fn has_atomic_ddl(&self) -> bool {
        match self.flavour {
            Flavour::MySql => self.version >= ServerVersion::new(8, 0, 0),
            Flavour::MariaDb => self.version >= ServerVersion::new(10, 6, 1),
            Flavour::TiDb | Flavour::Vitess | Flavour::Other => false,
        }
    }

    /// Whether both hold the same catalogs: one server, or members of one cluster.
    pub fn shares_catalogs_with(&self, other: &Self) -> bool {
        self.id == other.id || self.cluster.is_some() && self.cluster == other.cluster
    }

    /// Reads the identity, given the variables it is made of.
    pub(crate) async fn read(
        conn: &mut Conn,
        variables: &Variables,
    ) -> Result<Self, ServerFailure> {
        let mut identity = Self::of(variables);
        identity.started_at = started_at(conn, &identity).await?;
        if let Some(second) = identity.started_at {
            identity.incarnation = format!("{}@{second}", identity.id);
        }
        if variables.is_on("wsrep_on") {
            let status = Variables::status(conn, &["wsrep_cluster_state_uuid"]).await?;
            identity.cluster = status.value("wsrep_cluster_state_uuid").map(str::to_owned);
        }
        Ok(identity)
    }

    fn of(variables: &Variables) -> Self {
        let text = variables.value("version").unwrap_or_default();
        let comment = variables.value("version_comment").unwrap_or_default();
        let flavour = flavour(&format!("{text} {comment}"), variables);
        let id = match (flavour, variables.value("server_uuid")) {
            (Flavour::MariaDb, _) | (_, None | Some("")) => derived_id(flavour, variables),
            (_, Some(uuid)) => uuid.to_owned(),
        };
        let group = variables.value("group_replication_group_name").filter(|name| !name.is_empty());
        Self {
            incarnation: id.clone(),
            id,
            started_at: None,
            cluster: group.map(str::to_owned),
            flavour,
            version: ServerVersion::parse(text),
        }
    }
}

fn flavour(said: &str, variables: &Variables) -> Flavour {
    let said = said.to_ascii_lowercase();
    if said.contains("tidb") || variables.value("tidb_config").is_some() {
        Flavour::TiDb
    } else if said.contains("vitess") || said.contains("planetscale") {
        Flavour::Vitess
    } else if variables.value("innodb_page_size").is_none() {
        Flavour::Other
    } else if said.contains("mariadb") {
        Flavour::MariaDb
    } else {
        Flavour::MySql
    }
}

fn derived_id(flavour: Flavour, variables: &Variables) -> String {
    let mut preimage = String::new();
    for name in ["server_uid", "hostname", "port", "datadir", "socket"] {
        let value = variables.value(name).unwrap_or_default();
        preimage.push_str(value);
        preimage.push('\0');
    }
    let digest = Digest::of(preimage).to_string();
    let short: String = digest.chars().skip("sha256:".len()).take(32).collect();
    let prefix = if flavour == Flavour::MariaDb { "mariadb" } else { "server" };
    format!("{prefix}-{short}")
}

/// The second the server was started in.
///
/// Uptime is the statement's own time minus the start; taken in one statement the difference is the
/// start, exactly and whatever the clock did since. A session whose clock was set to before the start
/// has a negative uptime, which the server shows as an unsigned number.
async fn started_at(
    conn: &mut Conn,
    server: &ServerIdentity,
) -> Result<Option<u64>, ServerFailure> {
    let has_performance_schema =
        server.flavour == Flavour::MySql && server.version >= ServerVersion::new(5, 7, 0);
    let table = if has_performance_schema {
        "performance_schema.global_status"
    } else {
        "information_schema.global_status"
    };
    let statement = format!(
        "SELECT CAST(UNIX_TIMESTAMP() AS SIGNED) - CAST(CAST(variable_value AS UNSIGNED) AS SIGNED) \
         FROM {table} WHERE variable_name = 'UPTIME'"
    );
    conn.query_first(statement).await.map_err(|error| ServerFailure::of(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(values: &[(&str, &str)]) -> ServerIdentity {
        ServerIdentity::of(&Variables::given(values))
    }

    #[test]
    fn a_version_is_read_whoever_says_it() {
        for (text, version) in [
            ("5.6.24-log", ServerVersion::new(5, 6, 24)),
            ("9.7.0", ServerVersion::new(9, 7, 0)),
            ("10.11.6-MariaDB-0+deb12u1", ServerVersion::new(10, 11, 6)),
            ("5.5.5-10.11.6-MariaDB", ServerVersion::new(10, 11, 6)),
            ("what", ServerVersion::new(0, 0, 0)),
        ] {
            assert_eq!(ServerVersion::parse(text), version, "{text}");
        }
    }

    #[test]
    fn mysql_is_its_uuid_and_mariadb_a_digest_of_what_is_its_own() {
        let mysql =
            identity(&[("version", "8.0.1"), ("innodb_page_size", "8"), ("server_uuid", "u")]);
        assert_eq!((mysql.id(), mysql.flavour()), ("u", Flavour::MySql));
        let one = [
            ("version", "10.11.6-MariaDB"),
            ("innodb_page_size", "10"),
            ("hostname", "h"),
            ("port", "3306"),
        ];
        let mut two = one;
        two[3].1 = "3307";
        assert!(identity(&one).id().starts_with("mariadb-"));
        assert_eq!(identity(&one).id(), identity(&one).id());
        assert_ne!(identity(&one).id(), identity(&two).id());
    }

    #[test]
    fn servers_that_only_speak_the_protocol_are_told_apart() {
        for (text, comment, flavour) in [
            ("5.7.25-TiDB-v7.5.0", "TiDB Server", Flavour::TiDb),
            ("8.0.30-Vitess", "Version: 19.0", Flavour::Vitess),
            ("8.0.0", "some store", Flavour::Other),
        ] {
            let mut values = vec![("version", text), ("version_comment", comment)];
            if flavour != Flavour::Other {
                values.push(("innodb_page_size", "5.6.25"));
            }
            assert_eq!(identity(&values).flavour(), flavour, "{text}");
        }
    }
}
