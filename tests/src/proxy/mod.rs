//! A proxy between a client and its server that reads the MySQL protocol and makes it go wrong.
//!
//! It frames packets, so that a fault happens at one command and not somewhere in a stream of bytes,
//! and counts what it did, so that a test can tell a fault that happened from one that did not.
//!
//! With TLS it is a plain tunnel: what it forwards it cannot read, and no rule matches. For faults
//! the URL needs `sslMode=DISABLED`, as [`Proxy::jdbc_url`] has it.

mod carry;
mod packet;
mod rule;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use self::rule::{Act, Kind, Rule};

/// A port that leads to a server. Dropping it closes it and every connection through it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    rules: Mutex<Vec<Rule>>,
    /// Every command, in the order they came: its kind and text.
    commands: Mutex<Vec<(Kind, String)>>,
    refuses: AtomicBool,
    refused: AtomicUsize,
    opened: AtomicUsize,
    /// How often all connections were to be cut; a change is the order.
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// A port of its own on loopback that leads to this one.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound port").port();
        let shared = Arc::new(Shared {
            rules: Mutex::default(),
            commands: Mutex::default(),
            refuses: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            cuts: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&shared)));
        Self { port, shared, accepting }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a catalog through it, without TLS.
    pub fn jdbc_url(&self, catalog: &str) -> String {
        format!("jdbc:mysql://127.0.0.1:{}/{catalog}?sslMode=DISABLED", self.port)
    }

    /// From now on, this too. A rule acts once.
    pub fn add(&self, rule: Rule) {
        locked(&self.shared.rules).push(rule);
    }

    /// How many rules acted.
    pub fn fired(&self) -> usize {
        locked(&self.shared.rules).iter().filter(|rule| rule.has_fired()).count()
    }

    /// How many commands of this whole text were sent to be carried out, whether or not they arrived.
    pub fn count(&self, text: &str) -> usize {
        let commands = locked(&self.shared.commands);
        let counts = |(kind, sent): &&(Kind, String)| {
            matches!(kind, Kind::Query | Kind::Execute) && sent == text
        };
        commands.iter().filter(counts).count()
    }

    /// The commands since this was last asked that a client waits for an answer to: round trips.
    pub fn round_trips(&self) -> Vec<(Kind, String)> {
        let mut commands = std::mem::take(&mut *locked(&self.shared.commands));
        commands.retain(|(kind, _)| !matches!(kind, Kind::Quit | Kind::Close));
        commands
    }

    /// Closes new connections before the server's greeting, or lets them through again.
    pub fn refuse_connections(&self, refuse: bool) {
        self.shared.refuses.store(refuse, Ordering::SeqCst);
    }

    /// How many connections were refused.
    pub fn refused_count(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }

    /// How many connections were let through so far.
    pub fn connection_count(&self) -> usize {
        self.shared.opened.load(Ordering::SeqCst)
    }

    /// Cuts every connection there is.
    pub fn cut_all(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut_all();
    }
}

impl Shared {
    /// Notes a command, and gives what is to happen to it.
    fn due(&self, kind: Kind, text: &str) -> Option<Act> {
        locked(&self.commands).push((kind, text.to_owned()));
        locked(&self.rules).iter_mut().find_map(|rule| rule.meets(kind, text))
    }
}

async fn accept(listener: TcpListener, server: u16, shared: Arc<Shared>) {
    while let Ok((near, _)) = listener.accept().await {
        if shared.refuses.load(Ordering::SeqCst) {
            shared.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        shared.opened.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // An error is a side that closed: then both are.
            if let Ok(far) = TcpStream::connect(("127.0.0.1", server)).await {
                let _ = carry::carry(near, far, &shared).await;
            }
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
