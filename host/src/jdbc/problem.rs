//! What can be wrong with a JDBC URL.

/// One problem of a URL. None repeats a part of the URL but a property's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JdbcUrlProblem {
    /// It is not a `jdbc:mysql:` URL at all.
    #[error("is not a `jdbc:mysql:` URL")]
    Scheme,
    /// A scheme for several servers.
    #[error("asks for several servers (load balancing, replication or DNS SRV)")]
    SchemeOfSeveral,
    /// Several hosts.
    #[error("names several hosts")]
    SeveralHosts,
    /// Connector/J's `address=(host=…)` form.
    #[error("writes its host in parentheses")]
    HostInParentheses,
    /// A user or a password.
    #[error("holds a user or a password")]
    Credentials,
    /// The host is not a host.
    #[error("has a host that is neither a name nor an address")]
    Host,
    /// The port is not a port.
    #[error("has a port that is not within 1 to 65535")]
    Port,
    /// No catalog.
    #[error("names no catalog")]
    CatalogMissing,
    /// A catalog with other characters.
    #[error("names a catalog with other characters than `A-Z a-z 0-9 _ $ -`, or longer than 64")]
    Catalog,
    /// A fragment.
    #[error("has a fragment (`#`)")]
    Fragment,
    /// A property without a readable name.
    #[error("has a property whose name is not a name")]
    PropertyName,
    /// A property this host does not know.
    #[error("has the unknown property `{name}`")]
    PropertyUnknown {
        /// Its name.
        name: String,
        /// A known one that is spelt nearly so.
        nearest: Option<&'static str>,
    },
    /// A property that is known and cannot be allowed.
    #[error("has the property `{name}`: {reason}")]
    PropertyRefused {
        /// Its name.
        name: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A property given twice.
    #[error("gives the property `{name}` twice")]
    PropertyTwice {
        /// Its name.
        name: &'static str,
    },
    /// A property's value outside its rule.
    #[error("has a value the property `{name}` cannot have")]
    PropertyValue {
        /// Its name.
        name: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// TLS is asked for where it cannot be.
    #[error("asks for TLS on a unix socket")]
    TlsOnSocket,
    /// A socket and a host of another machine.
    #[error("names both a unix socket and a host")]
    SocketAndHost,
}

impl JdbcUrlProblem {
    /// The edit that mends it.
    pub fn help(&self) -> String {
        match self {
            Self::Scheme => "write `jdbc:mysql://host[:port]/catalog`",
            Self::SchemeOfSeveral | Self::SeveralHosts => {
                "name the one writer: a receipt, a lease and a lock hold on one server only"
            }
            Self::HostInParentheses => "write `jdbc:mysql://host:port/catalog`",
            Self::Credentials => {
                "take them out: they have variables of their own, which are kept secret"
            }
            Self::Host => "write a DNS name, an IPv4 address, or an IPv6 address in brackets",
            Self::Port => "write a port, or leave it out for 3306",
            Self::CatalogMissing | Self::Catalog => {
                "write the catalog after the host: `jdbc:mysql://host/catalog`"
            }
            Self::Fragment => "remove it; write `%23` for a `#` in a value",
            Self::PropertyName => "write properties as `?name=value&name=value`",
            Self::PropertyUnknown { nearest: Some(nearest), .. } => {
                return format!("did you mean `{nearest}`?");
            }
            Self::PropertyUnknown { nearest: None, .. } | Self::PropertyRefused { .. } => {
                "remove the property"
            }
            Self::PropertyTwice { .. } => "keep one of them",
            Self::PropertyValue { rule, .. } => rule,
            Self::TlsOnSocket => "remove `sslMode`, or set it to `DISABLED`",
            Self::SocketAndHost => "leave the host out: `jdbc:mysql:///catalog?localSocket=/path`",
        }
        .to_owned()
    }
}
