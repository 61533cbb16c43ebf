//! ICMP errors about segments of a connection (`tcp_v4_err`).
//!
//! An error aborts a connection during its opening; an open connection only reports it by `SO_ERROR`. If a
//! segment is too large for a path, segments become smaller, and data in flight is retransmitted at once. An
//! error that quotes no sequence number in flight is ignored.
//!
//! **Not modelled:** soft errors that abort a connection when its retransmissions end; a backoff that an error
//! reverts (RFC 6069); IPv6.

use crate::machine::Out;
use crate::tcp::state::State;
use crate::units::Time;
use crate::wire::{FlowKey, Seq};

use super::{Errno, Sockets};

/// Minimum accepted path MTU (`min_pmtu`).
const PATH_MTU_MIN: u16 = 552;
/// Maximum number of hosts whose path MTU is remembered.
const PATHS_MAX: usize = 1024;
/// Size of IPv4 and TCP headers without options, in bytes.
const HEADERS: u16 = 40;

/// An ICMP error message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// Type of ICMPv4.
    pub kind: u8,
    /// Code of this type.
    pub code: u8,
    /// The MTU of the next hop, if the packet is too large (type 3, code 4).
    pub mtu: u16,
    /// The sequence number of the quoted segment.
    pub seq: Seq,
}

impl IcmpError {
    const TOO_LARGE: (u8, u8) = (3, 4);

    /// The error of a call, as in Linux (`icmp_err_convert`). Source quench and redirects are ignored (RFC 6633).
    fn errno(&self) -> Option<Errno> {
        match (self.kind, self.code) {
            (3, 0 | 6 | 9 | 11) => Some(Errno::NetUnreachable),
            (3, 1 | 10 | 12..=15) | (11, _) => Some(Errno::HostUnreachable),
            (3, 2) => Some(Errno::NoProtocol),
            (3, 3) => Some(Errno::ConnectionRefused),
            (3, 5) => Some(Errno::NotSupported),
            (3, 7) => Some(Errno::HostDown),
            (3, 8) => Some(Errno::NoNetwork),
            (12, _) => Some(Errno::Protocol),
            _ => None,
        }
    }
}

impl Sockets {
    /// Handles an ICMP error that quotes a segment of this host on `flow`, and returns whether it was obeyed.
    //= rfc1122#section-4.2.3.9: it is directed to the connection that created the segment
    pub fn on_icmp_error(
        &mut self,
        now: Time,
        flow: FlowKey,
        error: &IcmpError,
        out: &mut Out,
    ) -> bool {
        let found = self.host.connections().iter().rposition(|c| c.flow == flow);
        let Some(index) = found.filter(|index| self.host.connections()[*index].has_sent(error.seq))
        else {
            return false;
        };
        let connection = &self.host.connections()[index];
        let (state, half) = (connection.state(), connection.waits_for_handshake());
        if (error.kind, error.code) == IcmpError::TOO_LARGE {
            let mss = error.mtu.max(PATH_MTU_MIN) - HEADERS;
            if self.paths.len() < PATHS_MAX || self.paths.contains_key(&flow.dst) {
                // Later connections to this host begin with this size.
                self.paths.insert(flow.dst, mss);
            }
            self.host.act(index, |c| c.shrink_path(now, mss.into(), out));
            return true;
        }
        let Some(errno) = error.errno() else { return false };
        let waiting = self.host.listener(flow.src_port).is_some_and(|l| l.waiting.contains(&index));
        let opening = matches!(state, State::SynSent | State::SynReceived) || half && waiting;
        if opening {
            if state == State::SynReceived
                && let Some(listener) = self.host.listener(flow.src_port)
            {
                // No trace of a request remains.
                listener.waiting.retain(|waiting| *waiting != index);
            }
            self.host.act(index, |c| c.give_up(out));
            self.settle(now, index, errno);
        } else {
            self.socket(index).soft_error = Some(errno);
        }
        opening
    }
}
