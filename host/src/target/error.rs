//! Why there is no target connection.

use std::borrow::Cow;
use std::fmt;

use super::contract::ContractProblem;
use super::grants::{GrantFinding, GrantReach};
use crate::blame::Blame;
use crate::ids::Catalog;
use crate::session::{Flavour, PinMismatch, ServerFailure, ServerVersion};

/// Which of the two catalogs answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The isolated target.
    Target,
    /// The control catalog.
    Control,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "target",
            Self::Control => "control catalog",
        })
    }
}

/// The target was not opened, or a connection to it could not be used.
///
/// No variant holds a URL, a user, a password or a word of a server's own message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A server did not answer as it should.
    #[error("the {side} is not usable")]
    Server {
        /// Which of the two.
        side: Side,
        /// What it answered.
        #[source]
        failure: ServerFailure,
    },
    /// The connection is in another catalog than the allowed one.
    #[error("the target's connection is in {}, not in the allowed catalog `{allowed}`", in_catalog(.found.as_deref()))]
    CatalogMismatch {
        /// The allowed one.
        allowed: Catalog,
        /// What `DATABASE()` says.
        found: Option<String>,
    },
    /// The control URL and the target URL are the same once normalised.
    #[error("the target's URL leads to the control catalog")]
    ControlUrl,
    /// Another URL leads to the same server and catalog.
    #[error("the target is the control catalog, reached by another name")]
    ControlAlias,
    /// The control catalog is called as the target's, on another server.
    #[error("the control catalog and the target's catalog have the same name")]
    ControlCatalog,
    /// The target's catalog holds tables of the control side.
    #[error("the target's catalog holds `{table}`, a table of the control side")]
    ControlTables {
        /// The first of them.
        table: String,
    },
    /// The server is none of the allowed ones.
    #[error("the target's server `{id}` is none of the allowed ones")]
    ServerNotAllowed {
        /// Its identity.
        id: String,
    },
    /// A server the rules of a target cannot be kept on.
    #[error("the target runs on {flavour} {version}: {reason}")]
    ServerUnsupported {
        /// Whose server.
        flavour: Flavour,
        /// Its version.
        version: ServerVersion,
        /// Why it cannot be a target.
        reason: &'static str,
    },
    /// The server takes no writes.
    #[error("the target's server takes no writes: `{variable}` is on")]
    ServerReadOnly {
        /// The variable that says so.
        variable: &'static str,
    },
    /// The node is not part of its cluster's majority.
    #[error("the target's server is not ready in its cluster: `{variable}` is `{value}`")]
    ClusterNotReady {
        /// The status variable that says so.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The server writes statements into its binary log.
    #[error("the target's server logs statements, which READ COMMITTED cannot be written as")]
    BinlogStatements,
    /// The account may do more than the catalog needs.
    #[error("the target's account reaches beyond the catalog: {}", listed(.findings))]
    GrantsBeyond {
        /// Everything it reaches.
        findings: Vec<GrantFinding>,
    },
    /// The account may do less than steps need.
    #[error("the target's account lacks rights in the catalog: {}", .missing.join(", "))]
    GrantsMissing {
        /// The catalog.
        catalog: Catalog,
        /// What it lacks, at least one.
        missing: Vec<&'static str>,
    },
    /// The policy asks for a session no connection can be.
    #[error("the policy {0}")]
    Contract(ContractProblem),
    /// Session variables do not have the values they were set to.
    #[error("the target's session is not as the policy asks: {}", listed(.mismatches))]
    SessionNotPinned {
        /// Every one of them.
        mismatches: Vec<PinMismatch>,
    },
}

impl TargetError {
    pub(super) const fn target(failure: ServerFailure) -> Self {
        Self::Server { side: Side::Target, failure }
    }

    pub(super) const fn control(failure: ServerFailure) -> Self {
        Self::Server { side: Side::Control, failure }
    }

    /// The stable code, kebab-case.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Server { side: Side::Target, failure } => failure.target_code(),
            Self::Server { side: Side::Control, failure } => failure.control_code(),
            Self::CatalogMismatch { .. } => "catalog-mismatch",
            Self::ControlUrl => "control-url-equal",
            Self::ControlAlias => "control-catalog-reached",
            Self::ControlCatalog => "control-catalog-equal",
            Self::ControlTables { .. } => "control-tables-in-target",
            Self::ServerNotAllowed { .. } => "server-not-allowed",
            Self::ServerUnsupported { .. } => "server-unsupported",
            Self::ServerReadOnly { .. } => "server-read-only",
            Self::ClusterNotReady { .. } => "cluster-not-ready",
            Self::BinlogStatements => "binlog-statements",
            Self::GrantsBeyond { .. } => "grants-beyond-catalog",
            Self::GrantsMissing { .. } => "grants-missing",
            Self::Contract(_) => "session-contract-unsupported",
            Self::SessionNotPinned { .. } => "session-not-pinned",
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Server { failure, .. } => failure.blame(),
            Self::ServerReadOnly { .. } | Self::ClusterNotReady { .. } => Blame::Server,
            Self::CatalogMismatch { .. }
            | Self::ControlUrl
            | Self::ControlAlias
            | Self::ControlCatalog
            | Self::ControlTables { .. }
            | Self::ServerNotAllowed { .. }
            | Self::ServerUnsupported { .. }
            | Self::BinlogStatements
            | Self::GrantsBeyond { .. }
            | Self::GrantsMissing { .. }
            | Self::SessionNotPinned { .. } => Blame::Operator,
            Self::Contract(_) => Blame::Policy,
        }
    }

    /// Whether the same attempt may succeed later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Server { failure, .. } => failure.is_transient(),
            Self::ServerReadOnly { .. } | Self::ClusterNotReady { .. } => true,
            _ => false,
        }
    }

    /// What to do: a command or an exact edit.
    pub fn help(&self) -> Cow<'static, str> {
        match self {
            Self::GrantsMissing { catalog, .. } => Cow::Owned(format!(
                "run as an administrator the GRANT that `tollgate target grants --catalog {catalog}` \
                 prints, for the account of FACTORY_PLUGIN_SQL_TARGET_USERNAME"
            )),
            other => Cow::Borrowed(other.fixed_help()),
        }
    }

    fn fixed_help(&self) -> &'static str {
        match self {
            Self::Server { side: Side::Target, failure } => failure.help(),
            Self::Server { side: Side::Control, failure } => failure.control_help(),
            Self::CatalogMismatch { .. } => {
                "set FACTORY_PLUGIN_SQL_TARGET_ALLOWED_CATALOG and the URL's catalog to the same \
                 name, in the server's spelling"
            }
            Self::ControlUrl | Self::ControlAlias | Self::ControlCatalog => {
                "give the target a catalog of its own, with a name of its own"
            }
            Self::ControlTables { .. } => {
                "point the target at its own catalog, or drop the control side's tables from it"
            }
            Self::ServerNotAllowed { .. } => {
                "point the URL at an allowed server, or add this one to \
                 FACTORY_PLUGIN_SQL_TARGET_ALLOWED_SERVERS"
            }
            Self::ServerUnsupported { .. } => "use MySQL 5.6 or later, or MariaDB 10.6 or later",
            Self::ServerReadOnly { .. } => "point the URL at the writer",
            Self::ClusterNotReady { .. } => "wait until the node has joined, or point at another",
            Self::BinlogStatements => "set binlog_format=ROW (or MIXED) on the server",
            Self::GrantsBeyond { findings } if findings.iter().any(|it| it.through_public) => {
                "take from PUBLIC what everyone has, as a new MariaDB gives it: `REVOKE ALL PRIVILEGES, \
                 GRANT OPTION FROM PUBLIC`; for the rest, `tollgate target grants` prints the SQL of a \
                 confined account"
            }
            Self::GrantsBeyond { findings }
                if findings.iter().any(|it| it.reach == GrantReach::TestCatalogs) =>
            {
                "run `mysql_secure_installation`, which takes from everyone what they have in catalogs \
                 called `test`; for the rest, `tollgate target grants` prints the SQL of a confined \
                 account"
            }
            Self::GrantsMissing { .. } => {
                "grant the target's account what `tollgate target grants` prints"
            }
            Self::GrantsBeyond { .. } => {
                "make a confined account: `tollgate target grants` prints the SQL; or set \
                 FACTORY_PLUGIN_SQL_TARGET_GRANT_CHECK=warn"
            }
            Self::Contract(_) => "pin a policy whose session this host can give",
            Self::SessionNotPinned { .. } => {
                "check the server's init_connect and its restrictions on session variables"
            }
        }
    }

    /// Which of the two sides a code of this enum is about. What tells that the target is the control
    /// catalog is about the target.
    pub fn side_of(code: &str) -> Side {
        let of_any = code.strip_prefix("control-");
        match of_any {
            Some(of_any) if ServerFailure::CODES.contains(&of_any) => Side::Control,
            _ => Side::Target,
        }
    }

    /// Every code of this enum; those of a server's failure come twice, as `target-…` and
    /// `control-…`.
    pub const CODES: &[&str] = &[
        "catalog-mismatch",
        "control-url-equal",
        "control-catalog-reached",
        "control-catalog-equal",
        "control-tables-in-target",
        "server-not-allowed",
        "server-unsupported",
        "server-read-only",
        "cluster-not-ready",
        "binlog-statements",
        "grants-beyond-catalog",
        "grants-missing",
        "session-contract-unsupported",
        "session-not-pinned",
    ];
}

fn in_catalog(found: Option<&str>) -> String {
    found.map_or_else(|| "no catalog".to_owned(), |name| format!("`{name}`"))
}

fn listed<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_tells_its_side() {
        for code in ServerFailure::CODES {
            assert_eq!(TargetError::side_of(&format!("control-{code}")), Side::Control, "{code}");
            assert_eq!(TargetError::side_of(&format!("target-{code}")), Side::Target, "{code}");
        }
        for code in TargetError::CODES {
            assert_eq!(TargetError::side_of(code), Side::Target, "{code}");
        }
    }
}
