//! The kinds of server the product supports, and which of them a run has to cover.

use std::fmt;

use super::recipe::Recipe;
use super::{PrivateServer, ServerBuilder};

/// Names the servers a run must cover, such as `mariadb,mysql9,mysql56`.
pub(super) const REQUIRED_SERVERS: &str = "TOLLGATE_SERVERS";
/// Names the cluster in that list. It is no kind of server: a test over the matrix never runs on it.
const GALERA: &str = "galera";

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// MariaDB, the version this machine's distribution has.
    MariaDb,
    /// The newest MySQL, as `script/servers` installs it.
    Mysql9,
    /// MySQL 5.6.24, the oldest one supported, as `script/servers` installs it.
    Mysql56,
}

impl Flavour {
    /// Every kind there is.
    pub const ALL: &[Self] = &[Self::MariaDb, Self::Mysql9, Self::Mysql56];

    /// The name used in `TOLLGATE_SERVERS` and in test output.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::Mysql9 => "mysql9",
            Self::Mysql56 => "mysql56",
        }
    }

    /// The servers a test over the matrix runs on, at least one.
    ///
    /// With `TOLLGATE_SERVERS` set these are exactly the listed ones, and starting a listed one
    /// that is not installed fails the test. Without it, they are MariaDB and whatever else is
    /// found on this machine. What is left out is said on stderr.
    pub fn available() -> Vec<Self> {
        let left_out = match std::env::var(REQUIRED_SERVERS) {
            Ok(list) => {
                let required = parse(&list);
                assert!(!required.is_empty(), "{REQUIRED_SERVERS} lists no server beside {GALERA}");
                Box::new(move |flavour: Self| {
                    (!required.contains(&flavour))
                        .then(|| format!("not listed in {REQUIRED_SERVERS}"))
                }) as Box<dyn Fn(Self) -> Option<String>>
            }
            Err(_) => {
                Box::new(|flavour: Self| flavour.missing().filter(|_| flavour != Self::MariaDb))
            }
        };
        let (kept, skipped): (Vec<Self>, Vec<Self>) =
            Self::ALL.iter().partition(|flavour| left_out(**flavour).is_none());
        for flavour in skipped {
            eprintln!("skipped on {flavour}: {}", left_out(flavour).unwrap_or_default());
        }
        kept
    }

    /// Why this kind cannot be started here, or nothing when it can.
    pub fn missing(self) -> Option<String> {
        Recipe::of(self).err()
    }

    /// Starts a private server of this kind.
    #[track_caller]
    pub fn start(self) -> PrivateServer {
        self.builder().start()
    }

    /// A private server of this kind with other options.
    pub fn builder(self) -> ServerBuilder {
        ServerBuilder::new(self)
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! shorthand {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl $name {
            /// Starts a private server of this kind.
            #[track_caller]
            pub fn start() -> PrivateServer {
                Flavour::$name.start()
            }

            /// A private server of this kind with other options.
            pub fn builder() -> ServerBuilder {
                Flavour::$name.builder()
            }
        }
    };
}

shorthand!(
    /// Short for [`Flavour::MariaDb`].
    MariaDb
);
shorthand!(
    /// Short for [`Flavour::Mysql9`].
    Mysql9
);
shorthand!(
    /// Short for [`Flavour::Mysql56`].
    Mysql56
);

/// Whether the run must cover a Galera cluster: only when it is listed, because a cluster is three
/// servers and takes seconds to start.
pub(super) fn lists_galera() -> bool {
    std::env::var(REQUIRED_SERVERS).is_ok_and(|list| names(&list).any(|name| name == GALERA))
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// The single servers of a list.
fn parse(list: &str) -> Vec<Flavour> {
    assert!(names(list).next().is_some(), "{REQUIRED_SERVERS} is set but lists no server");
    names(list)
        .filter(|name| *name != GALERA)
        .map(|name| {
            *Flavour::ALL.iter().find(|flavour| flavour.name() == name).unwrap_or_else(|| {
                panic!("{REQUIRED_SERVERS} lists `{name}`, which is no server this kit knows")
            })
        })
        .collect()
}
