//! A gate before an HTTP server: it hangs up, answers in the server's place, or lets through.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What becomes of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// Hung up without an answer.
    HungUp,
    /// Answered with this, and hung up.
    Answered(String),
    /// Let through.
    Through,
}

impl Passage {
    /// An answer with a status and nothing else.
    pub fn status(status: &str) -> Self {
        Self::Answered(format!(
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ))
    }
}

/// A gate that is open until the test ends.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Gate {
    /// Listens on every address of the machine, for a server on this port of 127.0.0.1. `passage` is
    /// asked for each connection, with its number from 0 and what arrived first, which is a request
    /// with its line and headers when it is HTTP.
    ///
    /// # Panics
    ///
    /// When nothing can be listened on.
    pub fn before(
        server: u16,
        passage: impl Fn(usize, &str) -> Passage + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, passage) = (Arc::clone(&seen), Arc::new(passage));
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let (noted, passage) = (Arc::clone(&noted), Arc::clone(&passage));
                thread::spawn(move || {
                    let _ = pass(client?, server, number, &noted, &*passage);
                    Ok::<(), io::Error>(())
                });
            }
        });
        Self { port, seen }
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What arrived first on each connection.
    ///
    /// # Panics
    ///
    /// When a connection's thread did.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics with the list").clone()
    }
}

fn pass(
    mut client: TcpStream,
    server: u16,
    number: usize,
    noted: &Mutex<Vec<String>>,
    passage: &dyn Fn(usize, &str) -> Passage,
) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    let head = head(&mut client)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    noted.lock().expect("nobody panics with the list").push(text.clone());
    match passage(number, &text) {
        Passage::HungUp => Ok(()),
        Passage::Answered(answer) => client.write_all(answer.as_bytes()),
        Passage::Through => {
            client.set_read_timeout(None)?;
            let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
            upstream.write_all(&head)?;
            let (mut back, mut forth) = (upstream.try_clone()?, client.try_clone()?);
            let answers = thread::spawn(move || {
                let copied = io::copy(&mut back, &mut forth);
                let _ = forth.shutdown(Shutdown::Both);
                copied
            });
            io::copy(&mut client, &mut upstream)?;
            let _ = upstream.shutdown(Shutdown::Both);
            answers.join().expect("copying does not panic").map(drop)
        }
    }
}

/// What arrives up to the end of a request's headers; of anything else the first bytes.
fn head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        head.extend(byte);
        if head.first().is_some_and(|first| !first.is_ascii_uppercase()) && head.len() >= 3 {
            break;
        }
    }
    Ok(head)
}
