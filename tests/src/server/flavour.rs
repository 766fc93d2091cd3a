//! The kinds of server the product supports, and which of them a run has to cover.

use std::fmt;

/// Names the servers a run must cover, such as `mariadb,mysql9,mysql56`.
const REQUIRED_SERVERS: &str = "TOLLGATE_SERVERS";

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// MariaDB 10.6 or newer.
    MariaDb,
}

impl Flavour {
    /// Every kind there is.
    pub const ALL: &[Self] = &[Self::MariaDb];

    /// The name used in `TOLLGATE_SERVERS` and in test output.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
        }
    }

    /// The servers a test over the matrix runs on.
    ///
    /// With `TOLLGATE_SERVERS` set these are exactly the listed ones, and a listed one that is not
    /// installed fails the test. Without it, these are the ones found on this machine; MariaDB is
    /// always among them.
    pub fn available() -> Vec<Self> {
        match std::env::var(REQUIRED_SERVERS) {
            Ok(list) => {
                let required = parse(&list);
                Self::ALL
                    .iter()
                    .copied()
                    .filter(|flavour| {
                        let wanted = required.contains(flavour);
                        if !wanted {
                            eprintln!("skipped on {flavour}: not listed in {REQUIRED_SERVERS}");
                        }
                        wanted
                    })
                    .collect()
            }
            Err(_) => Self::ALL
                .iter()
                .copied()
                .filter(|flavour| match flavour.missing() {
                    Some(reason) if *flavour != Self::MariaDb => {
                        eprintln!("skipped on {flavour}: {reason}");
                        false
                    }
                    _ => true,
                })
                .collect(),
        }
    }

    /// Why this kind cannot be started here, or nothing when it can.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::MariaDb => super::mariadb::missing(),
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn parse(list: &str) -> Vec<Flavour> {
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| {
            *Flavour::ALL
                .iter()
                .find(|flavour| flavour.name() == name)
                .unwrap_or_else(|| {
                    panic!("{REQUIRED_SERVERS} lists `{name}`, which is no server this kit knows")
                })
        })
        .collect()
}
