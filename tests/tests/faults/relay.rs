//! A relay between a client and its server that another machine could be: it gives out session
//! numbers of its own, says other words than the server, or leads elsewhere from one moment on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the relay changes of what the server says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// The session number in the greeting.
    pub(crate) session: Option<u32>,
    /// Words and what is said instead, of the same length.
    pub(crate) words: Vec<(&'static [u8], &'static [u8])>,
}

/// A port that leads to a server.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) port: u16,
    to: Arc<AtomicU16>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Relay {
    pub(crate) async fn to(server: u16, changes: Changes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            to: Arc::new(AtomicU16::new(server)),
            accepted: Arc::default(),
            open: Arc::default(),
        };
        let (to, accepted, open) =
            (Arc::clone(&relay.to), Arc::clone(&relay.accepted), Arc::clone(&relay.open));
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                accepted.fetch_add(1, Ordering::SeqCst);
                open.fetch_add(1, Ordering::SeqCst);
                let (changes, open) = (changes.clone(), Arc::clone(&open));
                let port = to.load(Ordering::SeqCst);
                tokio::spawn(async move {
                    // An error is a side that closed; then both do.
                    let _ = carry(near, port, &changes).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        relay
    }

    /// From now on new connections go to another server.
    pub(crate) fn lead_to(&self, server: u16) {
        self.to.store(server, Ordering::SeqCst);
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Connections now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

async fn carry(mut near: TcpStream, port: u16, changes: &Changes) -> std::io::Result<()> {
    let mut far = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut near_in, mut near_out) = near.split();
    let (mut far_in, mut far_out) = far.split();
    let (mut asked, mut said) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut is_greeting = true;
    loop {
        tokio::select! {
            read = near_in.read(&mut asked) => match read? {
                0 => return Ok(()),
                length => far_out.write_all(&asked[..length]).await?,
            },
            read = far_in.read(&mut said) => {
                let length = read?;
                if length == 0 {
                    return Ok(());
                }
                let bytes = &mut said[..length];
                if std::mem::take(&mut is_greeting) {
                    greet(bytes, changes.session);
                }
                for (word, instead) in &changes.words {
                    replace(bytes, word, instead);
                }
                near_out.write_all(bytes).await?;
            }
        }
    }
}

/// The number stands behind the header, the protocol's version and the server's (manual, "Protocol
/// Handshake").
fn greet(bytes: &mut [u8], session: Option<u32>) {
    let Some(session) = session else { return };
    let end = bytes.iter().skip(5).position(|byte| *byte == 0).expect("a version that ends");
    let start = 5 + end + 1;
    bytes[start..start + 4].copy_from_slice(&session.to_le_bytes());
}

fn replace(bytes: &mut [u8], word: &[u8], instead: &[u8]) {
    assert_eq!(word.len(), instead.len(), "lengths stand in the packets");
    let places: Vec<usize> = bytes
        .windows(word.len())
        .enumerate()
        .filter_map(|(place, window)| (window == word).then_some(place))
        .collect();
    for place in places {
        bytes[place..place + word.len()].copy_from_slice(instead);
    }
}
