//! Packets of the MySQL protocol: three bytes of length, one of sequence, the payload.
//!
//! MySQL Internals, "MySQL Packets": a payload of 16 MiB less one byte goes on in the next packet.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The length that says that the payload goes on.
const CONTINUED: usize = 0xff_ff_ff;
/// Bytes before a payload.
const HEADER_BYTES: usize = 4;
/// `CLIENT_SSL` in the first capability flags of a client's first packet.
const CLIENT_SSL: u16 = 0x0800;
/// Bytes of an SSL request: capabilities, packet size, character set and filler, nothing else.
const SSL_REQUEST_BYTES: usize = 32;

/// A command or an answer's part: one packet, or one with what it goes on in.
#[derive(Debug)]
pub(super) struct Packet {
    /// As they are on the wire, headers included.
    pub(super) bytes: Vec<u8>,
    /// The payload alone.
    pub(super) payload: Vec<u8>,
    /// The first packet's number in its exchange: 0 begins a command.
    pub(super) sequence: u8,
}

impl Packet {
    /// Reads one. Not to be cancelled in the middle.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        from.read_exact(&mut header).await?;
        Self::read_after(header, from).await
    }

    /// Reads what follows a header.
    pub(super) async fn read_after(
        header: [u8; HEADER_BYTES],
        from: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Self> {
        let mut packet = Self { bytes: Vec::new(), payload: Vec::new(), sequence: header[3] };
        let mut header = header;
        loop {
            let length =
                usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            let begin = packet.payload.len();
            packet.payload.resize(begin + length, 0);
            from.read_exact(&mut packet.payload[begin..]).await?;
            packet.bytes.extend(header);
            packet.bytes.extend(&packet.payload[begin..]);
            if length < CONTINUED {
                return Ok(packet);
            }
            from.read_exact(&mut header).await?;
        }
    }

    /// Whether the client asks for TLS and goes on in it.
    pub(super) fn asks_for_tls(&self) -> bool {
        self.sequence == 1
            && self.payload.len() == SSL_REQUEST_BYTES
            && u16::from_le_bytes([self.payload[0], self.payload[1]]) & CLIENT_SSL != 0
    }

    /// The first half of it, header included.
    pub(super) fn half(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_payload_that_goes_on_is_one_packet() {
        let mut wire = vec![0xff, 0xff, 0xff, 0];
        wire.extend(vec![b'x'; CONTINUED]);
        wire.extend([2, 0, 0, 1, b'y', b'z', 1, 0, 0, 0, 7]);
        let mut from = wire.as_slice();
        let first = Packet::read(&mut from).await.unwrap();
        assert_eq!(first.payload.len(), CONTINUED + 2);
        assert!(first.payload.ends_with(b"xyz"));
        let second = Packet::read(&mut from).await.unwrap();
        assert_eq!((second.payload, second.sequence), (vec![7], 0));
        assert_eq!(first.bytes.len() + second.bytes.len(), wire.len());
    }
}
