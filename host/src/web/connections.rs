//! Connections, bounded: how many there are, and how long one keeps its place without asking.
//!
//! The HTTP server waits for the rest of a request for as long as a client likes, and accepts as many
//! clients as come. So a handful of clients that send half a request each could keep everybody else
//! away, and every file descriptor with them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::security::ANSWER_BUDGET;

/// Connections at once, at most; others wait to be accepted. Far from what a system allows one process
/// to have open, and more than people and monitors need.
const CONNECTIONS_MAX: usize = 256;

/// How long a client may take to ask, and to ask again: monitors on a busy machine take a second.
const ASK_BUDGET: Duration = Duration::from_secs(10);

/// The same of a worker's probes, which answer at once: a supervisor that is kept waiting by those who do
/// not ask restarts the worker.
const PROBE_BUDGET: Duration = Duration::from_secs(5);

/// How much of its time a connection keeps after an answer, while half of the places are taken: what
/// is asked again later asks for a place again, so that those who wait are let in.
const CROWDED_SHARE: u32 = 16;

/// A listener whose connections are bounded.
#[derive(Debug)]
pub struct Connections {
    listener: TcpListener,
    places: Arc<Semaphore>,
    place_count: usize,
    patience: Duration,
}

/// A connection, which is over when its client does not ask, or does not take its answer, in time.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    patience: Duration,
    over: Pin<Box<Sleep>>,
    /// When it ends at the latest while there is a crowd.
    last: Instant,
    crowded_from: usize,
    /// Whether something arrived since the last answer began: what is written next begins another.
    is_asked: bool,
    /// Absent once nobody is given a place any more, which does not happen.
    place: Option<OwnedSemaphorePermit>,
}

impl Connections {
    /// Bounds the connections of this listener, for the page.
    pub fn new(listener: TcpListener) -> Self {
        // A request that arrives at the last moment is still answered.
        Self::bounded(listener, CONNECTIONS_MAX, ASK_BUDGET + ANSWER_BUDGET)
    }

    /// Bounds the connections of this listener, for a worker's probes.
    pub fn of_probes(listener: TcpListener) -> Self {
        Self::bounded(listener, CONNECTIONS_MAX, PROBE_BUDGET)
    }

    fn bounded(listener: TcpListener, connections_max: usize, patience: Duration) -> Self {
        let places = Arc::new(Semaphore::new(connections_max));
        Self { listener, places, place_count: connections_max, patience }
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let over = Box::pin(tokio::time::sleep(self.patience));
        let connection = Connection {
            stream,
            patience: self.patience,
            over,
            last: Instant::now() + self.patience,
            crowded_from: self.place_count / 2,
            is_asked: false,
            place,
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connection {
    /// Fails once the time is over, and wakes whoever waits when it is.
    fn in_time(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.over.as_mut().poll(context) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Whether half of the places are taken.
    fn is_crowded(&self) -> bool {
        let free = self.place.as_ref().map(|place| place.semaphore().available_permits());
        free.is_some_and(|free| free <= self.crowded_from)
    }

    /// Takes note of a write: the first one after something arrived begins an answer, and the time
    /// for the client to take it and to ask again.
    fn answers(&mut self, written: &Poll<io::Result<usize>>) {
        if self.is_asked && matches!(written, Poll::Ready(Ok(1..))) {
            self.is_asked = false;
            let now = Instant::now();
            let until = if self.is_crowded() {
                (now + self.patience / CROWDED_SHARE).min(self.last.max(now))
            } else {
                now + self.patience
            };
            self.over.as_mut().reset(until);
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.in_time(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.is_asked |= buffer.filled().len() > before;
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.in_time(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.answers(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.in_time(context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.answers(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// Answers with a text of this length.
    async fn serve(connections_max: usize, patience: Duration, length: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::bounded(listener, connections_max, patience);
        let site = Router::new().route("/", get(async move || "x".repeat(length)));
        tokio::spawn(async move { axum::serve(connections, site).await });
        address
    }

    /// Reads until the server ends the connection.
    async fn to_its_end(client: &mut TcpStream) -> Vec<u8> {
        let mut all = Vec::new();
        // A connection that is reset is over, too.
        let _ = client.read_to_end(&mut all).await;
        all
    }

    #[tokio::test]
    async fn half_a_request_is_waited_for_no_longer_than_the_bound_however_it_drips() {
        let address = serve(8, Duration::from_millis(200), 2).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
        assert_eq!(to_its_end(&mut silent).await, b"");
        let mut drips = TcpStream::connect(address).await.unwrap();
        drips.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
        // It ends by being refused a byte, or never.
        while drips.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_keeps_asking_keeps_its_connection() {
        let patience = Duration::from_millis(400);
        let address = serve(8, patience, 2).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < patience * 3 {
            client.write_all(REQUEST).await.unwrap();
            let mut answer = [0; 512];
            assert!(client.read(&mut answer).await.unwrap() > 0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(to_its_end(&mut client).await, b"", "once it asks no more");
    }

    #[tokio::test]
    async fn an_answer_that_is_not_taken_is_given_up() {
        let length = 64 << 20;
        let address = serve(1, Duration::from_millis(200), length).await;
        let mut lazy = TcpStream::connect(address).await.unwrap();
        lazy.write_all(REQUEST).await.unwrap();
        // The one place is free again, so the next client is answered.
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 12];
        next.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        assert!(to_its_end(&mut lazy).await.len() < length);
    }

    /// The others ask again and again, and none of them keeps its place for long.
    #[tokio::test]
    async fn a_crowd_that_keeps_asking_lets_the_next_in() {
        let patience = Duration::from_millis(800);
        let address = serve(4, patience, 2).await;
        for _ in 0..4 {
            let mut client = TcpStream::connect(address).await.unwrap();
            tokio::spawn(async move {
                let mut answer = [0; 512];
                while client.write_all(REQUEST).await.is_ok()
                    && client.read(&mut answer).await.is_ok_and(|length| length > 0)
                {
                    tokio::time::sleep(patience / CROWDED_SHARE / 4).await;
                }
            });
        }
        tokio::time::sleep(patience / 4).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    #[tokio::test]
    async fn more_clients_than_places_wait_and_are_answered() {
        let address = serve(2, Duration::from_millis(300), 2).await;
        let mut silent = Vec::new();
        for _ in 0..4 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET /").await.unwrap();
            silent.push(client);
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}
