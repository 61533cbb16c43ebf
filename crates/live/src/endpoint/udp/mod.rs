//! Datagrams of the UDP roles.
//!
//! A datagram begins with the token of the receiver's answer, its number and its time of departure. The
//! receiver counts datagrams with a valid token and answers none. It sends datagrams only to the address and port
//! from which the client sends the token again and again, so it cannot be used as a reflector.

mod pace;
mod reverse;
mod sender;
pub(super) mod source;
mod tally;

pub use reverse::receive_udp;
pub use sender::send_udp;
pub use tally::Tally;

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use lasthop_proto::units::{Rate, Span, Time};
use serde::Serialize;

use super::role::{Report, Token};
use super::{End, SendOptions};

/// Time for datagrams on the way.
const ON_THE_WAY: Span = Span::secs(1);

/// Time limit of the report.
const PATIENCE: Span = Span::secs(10);

/// Additional time that the receiver grants after the last datagram.
const MARGIN: Span = Span::secs(20);

/// Length of the header, bytes.
pub const HEADER: usize = 32;

/// Header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Token of the receiver's answer.
    pub token: Token,
    /// Number, from 0.
    pub number: u64,
    /// Time of departure on the sender's clock.
    pub sent: Time,
}

impl Header {
    /// The first bytes of the datagram.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..16].copy_from_slice(&self.token);
        bytes[16..24].copy_from_slice(&self.number.to_be_bytes());
        bytes[24..].copy_from_slice(&self.sent.0.to_be_bytes());
        bytes
    }

    /// Parses a datagram; `None` if it is too short.
    pub fn parse(datagram: &[u8]) -> Option<Header> {
        let header: &[u8; HEADER] = datagram.first_chunk()?;
        Some(Header {
            token: *header.first_chunk()?,
            number: u64::from_be_bytes(*header[16..].first_chunk()?),
            sent: Time(u64::from_be_bytes(*header[24..].first_chunk()?)),
        })
    }
}

/// Options of a UDP transfer.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Destination, source and handshake of the TCP connection that controls the transfer.
    pub send: SendOptions,
    /// Rate of the payload.
    pub rate: Rate,
    /// Payload of a datagram, bytes; at least 32.
    pub length: usize,
    /// Duration of the sending.
    pub duration: Span,
}

/// Result of a UDP transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UdpReport {
    /// Whether the peer sent and this end received.
    pub reverse: bool,
    /// Address of this end's socket.
    pub local: SocketAddr,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// How it ended. The counters of the peer are known only after `Closed`.
    pub end: End,
    /// Number of datagrams that the sending kernel accepted; 0 if the peer sent and did not report it.
    pub sent: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Number of datagrams that the kernel refused, for example because a queue was full.
    pub refused: u64,
    /// Number of datagrams that were due too late to be sent, because this machine was busy.
    pub skipped: u64,
    /// Granted rate, if it is below the requested one.
    pub limited: Option<Rate>,
    /// Payload of a datagram, bytes.
    pub length: usize,
    /// Start, on the session's clock: of the sending, or the arrival of the first datagram.
    pub began: Time,
    /// Duration from this start.
    pub seconds: Span,
    /// Counters of the receiving end; `None` if the peer did not report its own.
    pub receiver: Option<Report>,
}

impl UdpReport {
    /// Number of datagrams that did not arrive.
    pub fn lost(&self) -> Option<u64> {
        self.receiver.map(|receiver| self.sent.saturating_sub(receiver.datagrams))
    }
}

/// A non-blocking UDP socket from the local address of `stream` to `to`.
fn socket_of(stream: &TcpStream, to: SocketAddr) -> io::Result<UdpSocket> {
    // The address of a link-local network has a scope, which only the whole address contains.
    let mut local = stream.local_addr()?;
    local.set_port(0);
    let socket = UdpSocket::bind(local)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_encoding() {
        let header = Header { token: [7; 16], number: 1 << 50, sent: Time(99) };
        let datagram = [&header.encode()[..], b"padding"].concat();
        assert_eq!(Header::parse(&datagram), Some(header));
        assert_eq!(Header::parse(&datagram[..HEADER - 1]), None);
    }
}
