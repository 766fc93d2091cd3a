//! When two URLs mean the same place.

use std::fmt;
use std::net::IpAddr;

use super::Endpoint;

/// A URL reduced to what decides where it leads: host and port, or the socket, and the catalog.
///
/// Case of scheme, host and catalog, a default port, the forms of localhost and every parameter are
/// gone. Equal values lead to the same place; unequal ones may still do (a DNS alias, a proxy),
/// which is for the server's identity to tell.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NormalisedUrl {
    server: Server,
    catalog: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Server {
    Tcp(String, u16),
    Socket(std::path::PathBuf),
}

impl NormalisedUrl {
    pub(super) fn of(endpoint: &Endpoint, catalog: &str) -> Self {
        let server = match endpoint {
            Endpoint::Tcp { host, port } => Server::Tcp(normalised_host(host), *port),
            Endpoint::Socket(path) => Server::Socket(path.clone()),
        };
        Self { server, catalog: catalog.to_ascii_lowercase() }
    }
}

/// As [`super::JdbcUrl`]: not for eyes.
impl fmt::Debug for NormalisedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NormalisedUrl(..)")
    }
}

const LOCALHOST: &str = "localhost";

fn normalised_host(host: &str) -> String {
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        // Connecting to the unspecified address reaches this machine.
        return if address.is_loopback() || address.is_unspecified() {
            LOCALHOST.to_owned()
        } else {
            address.to_string()
        };
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let first = host.split('.').next().unwrap_or_default();
    // `localhost.` and everything under it (RFC 6761), and the names distributions give ::1.
    let local = host == LOCALHOST
        || host.ends_with(".localhost")
        || first == LOCALHOST
        || first == "ip6-localhost"
        || first == "ip6-loopback";
    if local { LOCALHOST.to_owned() } else { host }
}

#[cfg(test)]
mod tests {
    use super::super::JdbcUrl;
    use super::*;

    fn normalised(text: &str) -> NormalisedUrl {
        JdbcUrl::parse(text).unwrap().normalised()
    }

    #[test]
    fn spellings_of_one_place_are_equal() {
        let one = normalised("jdbc:mysql://localhost:3306/preview");
        for text in [
            "jdbc:mysql://localhost/preview",
            "JDBC:MySQL://LOCALHOST/preview",
            "jdbc:mysql:///preview",
            "jdbc:mysql://127.0.0.1/preview",
            "jdbc:mysql://127.1.2.3:3306/preview",
            "jdbc:mysql://127.1/preview",
            "jdbc:mysql://0x7f000001/preview",
            "jdbc:mysql://[::1]/preview",
            "jdbc:mysql://[0:0:0:0:0:0:0:1]:3306/preview",
            "jdbc:mysql://[::ffff:127.0.0.1]/preview",
            "jdbc:mysql://0.0.0.0/preview",
            "jdbc:mysql://localhost./preview",
            "jdbc:mysql://localhost.localdomain/preview",
            "jdbc:mysql://db.localhost/preview",
            "jdbc:mysql://localhost/PREVIEW?useUnicode=true&sslMode=DISABLED",
        ] {
            assert!(normalised(text) == one, "{text}");
        }
    }

    #[test]
    fn different_places_are_not_equal() {
        let one = normalised("jdbc:mysql://localhost/preview");
        for text in [
            "jdbc:mysql://localhost:3307/preview",
            "jdbc:mysql://localhost/preview2",
            "jdbc:mysql://db/preview",
            "jdbc:mysql://localhosts/preview",
            "jdbc:mysql://10.0.0.1/preview",
        ] {
            assert!(normalised(text) != one, "{text}");
        }
    }
}
