//! Datagrams that the discard receiver sends to a client.

use std::net::{SocketAddr, UdpSocket};

use lasthop_proto::units::{Rate, Span, Time};

use super::pace::Pace;
use super::{HEADER, Header};
use crate::endpoint::role::Token;

/// Time without a datagram of the client after which none is sent to it.
const SILENCE: Span = Span::secs(3);

/// Datagrams before other connections have their turn.
const TURN: usize = 64;

/// Sends datagrams to the address from which the client has sent its token, so the client has confirmed address and
/// port. After [`SILENCE`] without a token it sends none.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct DatagramSource {
    pub(in crate::endpoint) token: Token,
    /// Address of the client's datagrams, and the time of the last one.
    target: Option<(SocketAddr, Time)>,
    rate: Rate,
    length: usize,
    pace: Pace,
    /// Number of datagrams that the kernel has accepted.
    pub(in crate::endpoint) sent: u64,
}

impl DatagramSource {
    pub(in crate::endpoint) fn new(
        token: Token,
        rate: Rate,
        length: u16,
        now: Time,
    ) -> DatagramSource {
        let length = usize::from(length).max(HEADER);
        let pace = Pace::new(rate, length, now);
        DatagramSource { token, target: None, rate, length, pace, sent: 0 }
    }

    /// The client has sent its token from `address`.
    pub(in crate::endpoint) fn confirm(&mut self, address: SocketAddr, now: Time) {
        if self.is_silent(now) {
            self.pace = Pace::new(self.rate, self.length, now);
        }
        self.target = Some((address, now));
    }

    fn is_silent(&self, now: Time) -> bool {
        self.target.is_none_or(|(_, at)| now.since(at) >= SILENCE)
    }

    /// Time of the next departure, if there is one.
    pub(in crate::endpoint) fn due(&self, now: Time) -> Option<Time> {
        (!self.is_silent(now)).then(|| self.pace.due())
    }

    /// Sends the datagrams that are due. Returns their bytes.
    pub(in crate::endpoint) fn send(
        &mut self,
        socket: &UdpSocket,
        now: Time,
        scratch: &mut [u8],
    ) -> u64 {
        let mut bytes = 0;
        let Some((address, _)) = self.target.filter(|_| !self.is_silent(now)) else { return 0 };
        let Some(datagram) = scratch.get_mut(..self.length) else { return 0 };
        for _ in 0..TURN {
            if !self.pace.departs(now) {
                break;
            }
            let header = Header { token: self.token, number: self.sent, sent: now };
            datagram[..HEADER].copy_from_slice(&header.encode());
            // A full queue of this machine refuses datagrams, which have no number then.
            if socket.send_to(datagram, address).is_ok() {
                self.sent += 1;
                bytes += self.length as u64;
            }
        }
        bytes
    }
}
