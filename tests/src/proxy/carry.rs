//! One connection through the proxy.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::packet::Packet;
use super::rule::{Act, Kind};
use super::{Shared, locked};

/// What the two directions of a connection tell each other.
#[derive(Default)]
struct Between(Mutex<State>);

#[derive(Default)]
struct State {
    is_tls: bool,
    /// What is to happen to the answer that comes next.
    answer: Option<Act>,
    /// The text whose preparation is to be answered next.
    preparing: Option<String>,
    /// Texts by the number the server gave them.
    prepared: BTreeMap<u32, String>,
}

/// Carries both directions until one side closes, a rule cuts, or all are to be cut.
pub(super) async fn carry(
    mut near: TcpStream,
    mut far: TcpStream,
    shared: &Shared,
) -> io::Result<()> {
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let between = Between::default();
    let (near_in, near_out) = near.split();
    let (far_in, far_out) = far.split();
    let mut cuts = shared.cuts.subscribe();
    tokio::select! {
        ended = commands(near_in, far_out, shared, &between) => ended,
        ended = answers(far_in, near_out, &between) => ended,
        _ = cuts.changed() => Ok(()),
    }
}

/// From the client to the server.
async fn commands(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    shared: &Shared,
    between: &Between,
) -> io::Result<()> {
    loop {
        let packet = Packet::read(&mut from).await?;
        if packet.asks_for_tls() {
            locked(&between.0).is_tls = true;
            to.write_all(&packet.bytes).await?;
            copy(&mut from, &mut to).await?;
            return Ok(());
        }
        // Later packets of an exchange belong to the login.
        let act = if packet.sequence == 0 {
            let (kind, text) = read_command(&packet.payload, between);
            shared.due(kind, &text)
        } else {
            None
        };
        match act {
            Some(Act::CutBefore) => return Ok(()),
            Some(Act::HalfCommand) => {
                to.write_all(packet.half()).await?;
                return to.shutdown().await;
            }
            Some(act @ (Act::LoseAnswer | Act::HalfAnswer)) => {
                locked(&between.0).answer = Some(act);
            }
            Some(Act::Delay(time)) => tokio::time::sleep(time).await,
            None => {}
        }
        to.write_all(&packet.bytes).await?;
    }
}

/// From the server to the client.
async fn answers(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    between: &Between,
) -> io::Result<()> {
    loop {
        let mut header = [0; 4];
        from.read_exact(&mut header).await?;
        if locked(&between.0).is_tls {
            to.write_all(&header).await?;
            copy(&mut from, &mut to).await?;
            return Ok(());
        }
        let packet = Packet::read_after(header, &mut from).await?;
        let act = {
            let mut state = locked(&between.0);
            if let Some(text) = state.preparing.take()
                && let [0, a, b, c, d, ..] = packet.payload[..]
            {
                state.prepared.insert(u32::from_le_bytes([a, b, c, d]), text);
            }
            state.answer.take()
        };
        match act {
            // The answer is there: the command has been carried out.
            Some(Act::LoseAnswer) => return Ok(()),
            Some(Act::HalfAnswer) => {
                to.write_all(packet.half()).await?;
                return to.shutdown().await;
            }
            _ => to.write_all(&packet.bytes).await?,
        }
    }
}

/// Kind and text of a command: MySQL Internals, "Command Phase".
fn read_command(payload: &[u8], between: &Between) -> (Kind, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match payload {
        [0x01, ..] => (Kind::Quit, String::new()),
        [0x03, query @ ..] => (Kind::Query, text(query)),
        [0x16, statement @ ..] => {
            locked(&between.0).preparing = Some(text(statement));
            (Kind::Prepare, text(statement))
        }
        [0x17, a, b, c, d, ..] => {
            let number = u32::from_le_bytes([*a, *b, *c, *d]);
            let prepared = locked(&between.0).prepared.get(&number).cloned();
            (Kind::Execute, prepared.unwrap_or_default())
        }
        [0x19, ..] => (Kind::Close, String::new()),
        _ => (Kind::Other, String::new()),
    }
}
