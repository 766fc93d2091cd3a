//! A registry that answers whatever a test wants it to, without an end if need be.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What is sent back.
#[derive(Debug, Clone)]
pub struct Reply {
    head: String,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Whole(Vec<u8>),
    /// The same over and over.
    Endless(u8),
    /// A byte now and then, over and over.
    Dripping(u8),
}

impl Reply {
    /// An answer with this status, with further headers.
    pub fn new(status: &str, headers: &[&str], body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = format!("Content-Length: {}\r\n", body.len());
        Self { head: head(status, headers, &length), body: Body::Whole(body) }
    }

    /// An answer without a length and without an end.
    pub fn endless(status: &str) -> Self {
        Self { head: head(status, &[], ""), body: Body::Endless(b' ') }
    }

    /// An answer that has no end and takes its time.
    pub fn dripping(status: &str) -> Self {
        Self { head: head(status, &[], ""), body: Body::Dripping(b' ') }
    }
}

fn head(status: &str, headers: &[&str], length: &str) -> String {
    let headers = [headers, &["Connection: close", "", ""]].concat().join("\r\n");
    format!("HTTP/1.1 {status}\r\n{length}{headers}")
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method and path.
    pub line: String,
    /// Its headers, a line each.
    pub headers: String,
}

/// A registry on a free loopback port, until the test ends.
#[derive(Debug)]
pub struct HostileRegistry {
    port: u16,
    sent: Arc<AtomicU64>,
}

impl HostileRegistry {
    /// Answers each request as told.
    ///
    /// # Panics
    ///
    /// When nothing can be listened on.
    pub fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let (reply, sent) = (Arc::new(reply), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&sent);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (reply, counted) = (Arc::clone(&reply), Arc::clone(&counted));
                // A client that has enough hangs up.
                thread::spawn(move || answer(&client?, &*reply, &counted));
            }
        });
        Self { port, sent }
    }

    /// Its port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// A place in it, such as `p:1.0.0`.
    pub fn place(&self, name: &str) -> String {
        format!("127.0.0.1:{}/policies/{name}", self.port)
    }

    /// Bytes of bodies that clients took, and what systems hold on the way.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

fn answer(
    client: &TcpStream,
    reply: &dyn Fn(&Request) -> Reply,
    sent: &AtomicU64,
) -> io::Result<()> {
    let mut lines = BufReader::new(client).lines();
    let line = lines.next().transpose()?.unwrap_or_default();
    let mut headers = String::new();
    while let Some(header) = lines.next().transpose()?.filter(|header| !header.is_empty()) {
        headers += &header;
        headers.push('\n');
    }
    let Reply { head, body } = reply(&Request { line, headers });
    let mut client = client;
    client.write_all(head.as_bytes())?;
    let mut put = |bytes: &[u8]| {
        sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        client.write_all(bytes)
    };
    match body {
        Body::Whole(bytes) => put(&bytes),
        Body::Endless(byte) => loop {
            put(&[byte; 1 << 14])?;
        },
        Body::Dripping(byte) => loop {
            put(&[byte])?;
            thread::sleep(Duration::from_millis(20));
        },
    }
}
