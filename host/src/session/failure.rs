//! What a server or the way to it can answer instead of a session.

use std::io;

use mysql_async::{DriverError, Error, IoError};

use crate::blame::Blame;

/// `ER_UNKNOWN_COM_ERROR`, with which a Galera node refuses every statement while it is not part of
/// its cluster (Galera manual, "Troubleshooting": "WSREP has not yet prepared node").
const NODE_NOT_READY: u16 = 1047;

/// What a control account is granted. It needs other rights than a target's.
pub(crate) const CONTROL_GRANT_HELP: &str = "if the catalog is there (`CREATE DATABASE`), run as an administrator, with its name and the \
     account's: `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON <control catalog>.* TO <control \
     account>`";

/// What to do when a server answers, and not with what was asked for.
pub(crate) const HELD_UP_HELP: &str = "see with `SHOW PROCESSLIST` on that server what holds it up";

/// What to do about a statement that something on the server held up, by its error number: a time that
/// was set for statements is over, MariaDB's 1969 and MySQL's 3024, or the wait for a lock is, 1205.
pub(crate) const fn held_up_help(code: u16) -> Option<&'static str> {
    match code {
        1969 | 3024 => Some(
            "the statement took longer than it may (max_statement_time, max_execution_time): see with \
             `SHOW PROCESSLIST` on that server what holds it up",
        ),
        1205 => Some(
            "another session has held a lock for too long: see with `SHOW PROCESSLIST` on that server \
             which, and try again",
        ),
        _ => None,
    }
}

/// Why TLS did not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsProblem {
    /// The certificate is signed by nobody we trust.
    UnknownIssuer,
    /// The certificate is for another host.
    OtherHost,
    /// The certificate's time is over, or not yet come.
    OutOfTime,
    /// The certificate cannot be accepted for another reason.
    Certificate,
    /// No common version or cipher, or the server broke off.
    Handshake,
}

/// An answer that is not the one asked for, without a word of the driver's or the server's text:
/// that names users, hosts and statements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerFailure {
    /// The host name has no address.
    #[error("the host name cannot be resolved")]
    NameNotResolved,
    /// Nothing answers there.
    #[error("the server cannot be reached: {}", unreachable_text(*.0))]
    Unreachable(io::ErrorKind),
    /// The answer did not come within the bound.
    #[error("the server did not answer within the bound")]
    TimedOut,
    /// The connection ended before the answer came.
    #[error("the connection ended before the answer came")]
    ConnectionLost,
    /// TLS is asked for and the server has none.
    #[error("the server offers no TLS")]
    TlsNotOffered,
    /// TLS did not come about.
    #[error("TLS failed: {}", tls_text(*.0))]
    Tls(TlsProblem),
    /// The PEM file with the authorities to trust cannot be used.
    #[error("the file with the certificate authorities cannot be used")]
    CaFile,
    /// User, password or host are refused.
    #[error("the server refused the login (error {code})")]
    AccessDenied {
        /// The server's error number.
        code: u16,
    },
    /// The account is locked, or its password has expired.
    #[error("the account is locked or its password has expired (error {code})")]
    AccountBlocked {
        /// The server's error number.
        code: u16,
    },
    /// The account's way to log in is not supported.
    #[error("the account logs in in a way that is not supported")]
    LoginUnsupported,
    /// The catalog does not exist.
    #[error("the catalog does not exist")]
    CatalogUnknown,
    /// The account may not use the catalog.
    #[error("the account may not use the catalog")]
    CatalogDenied,
    /// The server has no session left for us.
    #[error("the server has no session left (error {code})")]
    TooManySessions {
        /// The server's error number.
        code: u16,
    },
    /// The server refused a statement of ours.
    #[error("the server refused a statement of the host's own (error {code}, state {state})")]
    Refused {
        /// The server's error number.
        code: u16,
        /// Its SQLSTATE.
        state: String,
    },
    /// The server's answer could not be read.
    #[error("the server's answer could not be read")]
    Unreadable,
}

impl ServerFailure {
    /// What is known about a driver error.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Server(error) => of_server(error.code, &error.state),
            Error::Io(IoError::Io(error)) => of_io(error),
            Error::Io(IoError::Tls(error)) => Self::Tls(of_tls(&error.to_string())),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => Self::TlsNotOffered,
            Error::Driver(
                DriverError::UnknownAuthPlugin { .. }
                | DriverError::MysqlOldPasswordDisabled
                | DriverError::CleartextPluginDisabled,
            ) => Self::LoginUnsupported,
            Error::Driver(DriverError::ConnectionClosed) => Self::ConnectionLost,
            _ => Self::Unreadable,
        }
    }

    /// The stable code: by itself, of the target and of the control catalog.
    const fn codes(&self) -> (&'static str, &'static str, &'static str) {
        macro_rules! on {
            ($code:literal) => {
                ($code, concat!("target-", $code), concat!("control-", $code))
            };
        }
        match self {
            Self::NameNotResolved => on!("name-not-resolved"),
            Self::Unreachable(_) => on!("unreachable"),
            Self::TimedOut => on!("timed-out"),
            Self::ConnectionLost => on!("connection-lost"),
            Self::TlsNotOffered => on!("tls-not-offered"),
            Self::Tls(_) => on!("tls-failed"),
            Self::CaFile => on!("ca-file-unusable"),
            Self::AccessDenied { .. } => on!("access-denied"),
            Self::AccountBlocked { .. } => on!("account-blocked"),
            Self::LoginUnsupported => on!("login-unsupported"),
            Self::CatalogUnknown => on!("catalog-unknown"),
            Self::CatalogDenied => on!("catalog-denied"),
            Self::TooManySessions { .. } => on!("too-many-sessions"),
            Self::Refused { .. } => on!("statement-refused"),
            Self::Unreadable => on!("answer-unreadable"),
        }
    }

    /// The stable code.
    pub const fn code(&self) -> &'static str {
        self.codes().0
    }

    /// The stable code when it is the target that answered so.
    pub(crate) const fn target_code(&self) -> &'static str {
        self.codes().1
    }

    /// The stable code when it is the control catalog that answered so.
    pub(crate) const fn control_code(&self) -> &'static str {
        self.codes().2
    }

    /// Every code there is.
    pub const CODES: &[&str] = &[
        "name-not-resolved",
        "unreachable",
        "timed-out",
        "connection-lost",
        "tls-not-offered",
        "tls-failed",
        "ca-file-unusable",
        "access-denied",
        "account-blocked",
        "login-unsupported",
        "catalog-unknown",
        "catalog-denied",
        "too-many-sessions",
        "statement-refused",
        "answer-unreadable",
    ];

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::NameNotResolved
            | Self::TlsNotOffered
            | Self::Tls(_)
            | Self::CaFile
            | Self::AccessDenied { .. }
            | Self::AccountBlocked { .. }
            | Self::LoginUnsupported
            | Self::CatalogUnknown
            | Self::CatalogDenied => Blame::Operator,
            Self::Unreachable(_)
            | Self::TimedOut
            | Self::ConnectionLost
            | Self::TooManySessions { .. }
            | Self::Refused { .. }
            | Self::Unreadable => Blame::Server,
        }
    }

    /// Whether the same attempt may succeed later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NameNotResolved
            | Self::Unreachable(_)
            | Self::TimedOut
            | Self::ConnectionLost
            | Self::TooManySessions { .. } => true,
            // Lock wait timeout, deadlock, interrupted, shutdown in progress (MySQL Server Error
            // Reference); and Galera's node that has not joined, or is cut off from the majority.
            Self::Refused { code, .. } => {
                matches!(code, 1205 | 1213 | 1317 | 1053 | 1927) || *code == NODE_NOT_READY
            }
            _ => false,
        }
    }

    /// What to do when it is the control catalog that answered so.
    pub(crate) const fn control_help(&self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::TimedOut => {
                "check that the control catalog's server runs, and host and port in \
                 FACTORY_PLUGIN_CONTROL_JDBC_URL, and the firewall"
            }
            Self::ConnectionLost => {
                "check that the control catalog's server runs, and the firewall; if it does, read its \
                 log"
            }
            Self::AccessDenied { .. } => {
                "check FACTORY_PLUGIN_CONTROL_USERNAME and FACTORY_PLUGIN_CONTROL_PASSWORD (or its \
                 …_FILE), and that the account may log in from this host; where an anonymous account \
                 (`''@'<this host>'`) comes first, drop it"
            }
            Self::CatalogDenied => CONTROL_GRANT_HELP,
            failure => failure.help(),
        }
    }

    /// What to do when it is the target that answered so.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NameNotResolved => "check the host name in the URL and this machine's resolver",
            Self::Unreachable(_) | Self::TimedOut => {
                "check that the target's server runs, and host and port in \
                 FACTORY_PLUGIN_SQL_TARGET_JDBC_URL, and the firewall"
            }
            Self::ConnectionLost => "try again; if it stays, read the server's log",
            Self::TlsNotOffered => {
                "give the server a certificate, or set `sslMode=DISABLED` on a private network"
            }
            Self::Tls(TlsProblem::UnknownIssuer) => {
                "name the authority's PEM file: `serverSslCert=/path/ca.pem` in the URL"
            }
            Self::Tls(TlsProblem::OtherHost) => {
                "connect by a name that is in the server's certificate"
            }
            Self::Tls(TlsProblem::OutOfTime) => "renew the server's certificate",
            Self::Tls(TlsProblem::Certificate) => "replace the server's certificate",
            Self::Tls(TlsProblem::Handshake) => {
                "TLS 1.2 or 1.3 is needed; for a server that has neither, set `sslMode=DISABLED`"
            }
            Self::CaFile => "name a readable PEM file: `serverSslCert=/path/ca.pem` in the URL",
            // An anonymous account of a host comes before a named one of any host (MySQL manual,
            // "Access Control, Stage 1: Connection Verification").
            Self::AccessDenied { .. } => {
                "check FACTORY_PLUGIN_SQL_TARGET_USERNAME and FACTORY_PLUGIN_SQL_TARGET_PASSWORD (or \
                 its …_FILE), and that the account may log in from this host; where an anonymous \
                 account (`''@'<this host>'`) comes first, drop it"
            }
            Self::AccountBlocked { .. } => "unlock the account, or give it a new password",
            Self::LoginUnsupported => {
                "use mysql_native_password, caching_sha2_password or ed25519 for the account"
            }
            Self::CatalogUnknown => "create the catalog: `CREATE DATABASE`",
            Self::CatalogDenied => "grant the account the catalog: `tollgate target grants`",
            Self::TooManySessions { .. } => "try again later, or raise max_connections",
            Self::Refused { code: NODE_NOT_READY, .. } => {
                "wait until the node has joined its cluster, or point at another"
            }
            Self::Refused { code, .. } => match held_up_help(*code) {
                Some(help) => help,
                None => "read the server's log",
            },
            Self::Unreadable => "read the server's log",
        }
    }
}

/// Of a socket that is not there the kind alone would say that some entity is not found.
fn unreachable_text(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::NotFound => "there is no such socket".to_owned(),
        kind => kind.to_string(),
    }
}

const fn tls_text(problem: TlsProblem) -> &'static str {
    match problem {
        TlsProblem::UnknownIssuer => "the certificate's issuer is not trusted",
        TlsProblem::OtherHost => "the certificate is for another host",
        TlsProblem::OutOfTime => "the certificate's time is over or not yet come",
        TlsProblem::Certificate => "the certificate cannot be accepted",
        TlsProblem::Handshake => "no common version or cipher",
    }
}

/// By number: MySQL Server Error Reference, MariaDB Error Codes.
fn of_server(code: u16, state: &str) -> ServerFailure {
    match code {
        // ER_ACCESS_DENIED_ERROR, …_NO_PASSWORD_ERROR, ER_HOST_NOT_PRIVILEGED, ER_HOST_IS_BLOCKED.
        1045 | 1698 | 1130 | 1129 => ServerFailure::AccessDenied { code },
        // ER_MUST_CHANGE_PASSWORD(_LOGIN), ER_ACCOUNT_HAS_BEEN_LOCKED, MariaDB's 4151 and 4160.
        1820 | 1862 | 3118 | 4151 | 4160 => ServerFailure::AccountBlocked { code },
        1049 => ServerFailure::CatalogUnknown,
        1044 => ServerFailure::CatalogDenied,
        1040 | 1203 | 1226 => ServerFailure::TooManySessions { code },
        // ER_CON_COUNT aside: shutdown, connection killed, idle cut.
        1053 | 1927 | 4031 => ServerFailure::ConnectionLost,
        1251 | 1524 => ServerFailure::LoginUnsupported,
        _ => ServerFailure::Refused { code, state: state.to_owned() },
    }
}

fn of_io(error: &io::Error) -> ServerFailure {
    match error.kind() {
        io::ErrorKind::TimedOut => ServerFailure::TimedOut,
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => ServerFailure::ConnectionLost,
        // rustls' own errors arrive inside an I/O error.
        io::ErrorKind::InvalidData => ServerFailure::Tls(of_tls(&error.to_string())),
        // The resolver's errors have no kind of their own.
        _ if error.to_string().contains("lookup address") => ServerFailure::NameNotResolved,
        kind => ServerFailure::Unreachable(kind),
    }
}

/// By rustls' text, which is all the driver leaves of it. Read, never shown.
fn of_tls(text: &str) -> TlsProblem {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["unknownissuer", "unknown issuer", "no trusted root", "noroot", "badsignature"]) {
        TlsProblem::UnknownIssuer
    } else if has(&["not valid for name", "notvalidforname"]) {
        TlsProblem::OtherHost
    } else if has(&["expired", "notvalidyet", "not valid yet"]) {
        TlsProblem::OutOfTime
    } else if has(&["certificate"]) {
        TlsProblem::Certificate
    } else {
        TlsProblem::Handshake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_servers_text_is_kept() {
        let text = "Access denied for user 'canary'@'canary-host' (using password: YES)";
        let error = Error::Server(mysql_async::ServerError {
            code: 1045,
            message: text.to_owned(),
            state: "28000".to_owned(),
        });
        let failure = ServerFailure::of(&error);
        assert_eq!(failure, ServerFailure::AccessDenied { code: 1045 });
        assert!(!format!("{failure} {failure:?}").contains("canary"));
    }

    #[test]
    fn a_node_outside_its_cluster_is_waited_for() {
        let away = ServerFailure::Refused { code: NODE_NOT_READY, state: "08S01".to_owned() };
        assert!(away.is_transient() && away.help().starts_with("wait"), "{}", away.help());
        let wrong = ServerFailure::Refused { code: 1064, state: "42000".to_owned() };
        assert!(!wrong.is_transient());
    }

    #[test]
    fn what_is_held_up_is_not_looked_up_in_a_log() {
        for code in [1969, 3024, 1205] {
            let held = ServerFailure::Refused { code, state: "HY000".to_owned() };
            for help in [held.help(), held.control_help()] {
                assert!(help.contains("`SHOW PROCESSLIST`"), "{code}: {help}");
            }
        }
    }

    #[test]
    fn what_cannot_be_reached_is_said_in_words_of_servers() {
        let text = |kind| ServerFailure::Unreachable(kind).to_string();
        assert!(text(io::ErrorKind::NotFound).ends_with(": there is no such socket"));
        assert!(text(io::ErrorKind::ConnectionRefused).ends_with(": connection refused"));
    }

    #[test]
    fn each_sides_help_names_its_own_variables() {
        let denied = ServerFailure::AccessDenied { code: 1045 };
        for (help, own) in [
            (denied.help(), "FACTORY_PLUGIN_SQL_TARGET_"),
            (denied.control_help(), "FACTORY_PLUGIN_CONTROL_"),
        ] {
            for name in ["USERNAME", "PASSWORD"] {
                let name = format!("{own}{name}");
                assert!(help.contains(&name), "{help}");
                assert!(crate::config::KEYS.iter().any(|key| key.name == name), "{name}");
            }
            assert!(help.contains("anonymous"), "{help}");
        }
        let (target, control) =
            (ServerFailure::TimedOut.help(), ServerFailure::TimedOut.control_help());
        assert!(target.contains("FACTORY_PLUGIN_SQL_TARGET_JDBC_URL"), "{target}");
        assert!(control.contains("FACTORY_PLUGIN_CONTROL_JDBC_URL"), "{control}");
        for silent in [ServerFailure::TimedOut, ServerFailure::ConnectionLost] {
            assert!(silent.control_help().contains("firewall"), "{}", silent.control_help());
        }
    }

    #[test]
    fn every_code_is_listed_once() {
        let failures = [
            ServerFailure::NameNotResolved,
            ServerFailure::Unreachable(io::ErrorKind::ConnectionRefused),
            ServerFailure::TimedOut,
            ServerFailure::ConnectionLost,
            ServerFailure::TlsNotOffered,
            ServerFailure::Tls(TlsProblem::Handshake),
            ServerFailure::CaFile,
            ServerFailure::AccessDenied { code: 1045 },
            ServerFailure::AccountBlocked { code: 1820 },
            ServerFailure::LoginUnsupported,
            ServerFailure::CatalogUnknown,
            ServerFailure::CatalogDenied,
            ServerFailure::TooManySessions { code: 1040 },
            ServerFailure::Refused { code: 1064, state: "42000".to_owned() },
            ServerFailure::Unreadable,
        ];
        let codes: Vec<_> = failures.iter().map(ServerFailure::code).collect();
        assert_eq!(codes, ServerFailure::CODES);
    }
}
