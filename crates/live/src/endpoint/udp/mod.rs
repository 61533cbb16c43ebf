//! Datagrams of the UDP role.
//!
//! A datagram begins with the token of the receiver's answer, its number and its time of departure. The
//! receiver counts datagrams with a valid token and answers none, so it cannot be used as a reflector.

mod sender;
mod tally;

pub use sender::{UdpOptions, UdpReport, send_udp};
pub use tally::Tally;

use lasthop_proto::units::Time;

use super::role::Token;

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
