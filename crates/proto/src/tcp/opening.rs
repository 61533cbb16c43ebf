//! Connections that open with data: the common part of [`t_tcp`](super::t_tcp) and
//! [`fast_open`](super::fast_open).

use crate::describe::Keys;
use crate::rng::Stream;
use crate::units::Time;
use crate::wire::opening::{Cookie, Count};
use crate::wire::{Body, Segment};

use super::config::TcpConfig;
use super::fast_open::Cookies;
use super::t_tcp::Counts;

/// The segment size of an unknown peer.
//= rfc9293#section-3.7.1: 536 without the option
pub(super) const DEFAULT_MSS: u16 = 536;

/// State of peers that a host stores between connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Counts of T/TCP.
    pub counts: Counts,
    /// Cookies of TCP Fast Open.
    pub cookies: Cookies,
}

impl Memory {
    /// Creates an empty memory. Its first count and the key of its cookies are drawn from `rng`.
    pub fn new(rng: &mut Stream) -> Memory {
        let counts = Counts::new(rng.next_u64() as u32);
        Memory { counts, cookies: Cookies::new([rng.next_u64(), rng.next_u64()]) }
    }
}

/// Whether the peer has acknowledged this end's SYN, if data did not wait for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Half {
    /// It has, or no data was sent ahead.
    #[default]
    No,
    /// It has not, and the SYN is sent with the first data.
    Due,
    /// It has not; the SYN is in flight.
    Sent,
}

/// Effect on a connection of a SYN for the same ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Succession {
    /// No effect.
    None,
    /// Its peer has closed and starts a new connection.
    Succeeded,
    /// The SYN is an old duplicate, or arrives too soon.
    Refused,
}

/// Opening state of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// Borrowed from the host, for the call.
    pub(super) memory: Option<Box<Memory>>,
    /// When this end began to open.
    pub(super) began: Time,
    /// This end's count; the SYN of a client contains whether it is a new one.
    pub(super) count: Option<Count>,
    /// The peer's count, once its SYN has arrived.
    pub(super) peer_count: Option<u32>,
    /// One past the last position that a SYN of this end has carried; at least 1, for the SYN itself.
    pub(super) carried: u64,
    /// The same for the last SYN.
    pub(super) carries: u64,
    /// A SYN with data that waits for the end of the handshake.
    pub(super) queued: Option<Box<(Segment, Body)>>,
    /// Whether the peer has queued the data of this end's SYN, so that it need not be retransmitted.
    pub(super) queued_by_peer: bool,
    /// A cookie for the peer, which has requested one or has a wrong one.
    pub(super) grant: Option<Cookie>,
    /// Whether cookies are in experimental options: the peer's, or those of this end.
    pub(super) experiment: bool,
    /// Whether a SYN of this end has requested or presented a cookie.
    pub(super) offered: bool,
    /// Whether a write waits for the answer to this end's SYN.
    pub(super) write_waits: bool,
    /// Whether this end's SYN was retransmitted.
    pub(super) repeated: bool,
    /// Whether the data of a SYN has arrived: all of this end's (a client), or the peer's (a server).
    pub(super) data_acked: bool,
    /// Whether the peer has this end's SYN.
    pub(super) half: Half,
    /// Whether this connection counts among the pending ones of the host.
    pub(super) pending: bool,
}

impl Opening {
    /// The state of a connection of `config`; `None` if it opens only by the handshake.
    pub(super) fn new(config: &TcpConfig) -> Option<Box<Opening>> {
        let quick = config.handshake && (config.t_tcp || config.fast_open);
        quick.then(|| Box::new(Opening { carried: 1, carries: 1, ..Opening::default() }))
    }

    /// Whether a segment has another count than the peer's SYN, or data without one.
    //= rfc1644#section-3.4: segments without the count of this connection are dropped
    pub(super) fn is_of_another(&self, segment: &Segment, len: u32) -> bool {
        match segment.options().opening.count {
            Some(count) => Some(count.number()) != self.peer_count,
            // Base stations create ACKs without counts.
            None => len > 0,
        }
    }
}

impl TcpConfig {
    /// Reads the keys of opening.
    pub(super) fn openings(&mut self, k: &mut Keys<'_>) {
        let doc = "T/TCP: connections are counted, and the SYN carries data, if both ends have it (RFC 1644)";
        k.flag("t-tcp", &mut self.t_tcp, doc);
        let doc = "TCP Fast Open: a SYN with the server's cookie carries data, if both ends have it (RFC 7413)";
        k.flag("fast-open", &mut self.fast_open, doc);
        if self.t_tcp && self.fast_open {
            let help = "leave out one of them: both are ways to send data with the SYN";
            let message = "`t-tcp` and `fast-open` exclude each other";
            k.refuse("fast-open", message, "one too many", help);
        }
    }
}
