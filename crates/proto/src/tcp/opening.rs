//! Connections that open with data: what [`t_tcp`](super::t_tcp) and [`fast_open`](super::fast_open) have in common.

use crate::describe::Keys;
use crate::rng::Stream;
use crate::units::Time;
use crate::wire::opening::{Cookie, Count};
use crate::wire::{Body, Segment};

use super::config::TcpConfig;
use super::fast_open::Cookies;
use super::t_tcp::Counts;

/// The segment size of a peer that nothing is known of.
//= rfc9293#section-3.7.1: 536 without the option
pub(super) const DEFAULT_MSS: u16 = 536;

/// What a host remembers of its peers from connection to connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Of T/TCP.
    pub counts: Counts,
    /// Of TCP Fast Open.
    pub cookies: Cookies,
}

impl Memory {
    /// A host that remembers nothing. Its first count and the key of its cookies are drawn from `chance`.
    pub fn new(chance: &mut Stream) -> Memory {
        let counts = Counts::new(chance.next_u64() as u32);
        Memory { counts, cookies: Cookies::new([chance.next_u64(), chance.next_u64()]) }
    }
}

/// Whether the peer is known to have our SYN, where data did not wait for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Half {
    /// It is, or nothing was sent ahead.
    #[default]
    No,
    /// It is not, and our SYN goes with the first data.
    Due,
    /// It is not; our SYN is under way.
    Sent,
}

/// What becomes of a connection when a SYN for the same ports comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Succession {
    /// It has nothing to say to that.
    None,
    /// Its peer has closed, and begins anew.
    Succeeded,
    /// The SYN is of old, or comes too soon.
    Refused,
}

/// How a connection opens.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// Lent by the host, for the call.
    pub(super) memory: Option<Box<Memory>>,
    /// When this end began to open.
    pub(super) began: Time,
    /// Our count; the SYN of a client says whether it is a new one.
    pub(super) count: Option<Count>,
    /// The peer's count, once its SYN has come.
    pub(super) heard: Option<u32>,
    /// One past what a SYN of ours has carried; never less than 1, the SYN itself.
    pub(super) carried: u64,
    /// The same of the SYN that went last.
    pub(super) carries: u64,
    /// A SYN with data that waits for the end of the handshake.
    pub(super) queued: Option<Box<(Segment, Body)>>,
    /// The peer has kept what our SYN carried: it need not go again.
    pub(super) kept: bool,
    /// A cookie for the peer, which has asked for one or has a wrong one.
    pub(super) grant: Option<Cookie>,
    /// Whether cookies are in options of experiments: the peer's, or those of this end.
    pub(super) experiment: bool,
    /// A SYN of ours has asked for a cookie or shown one.
    pub(super) offered: bool,
    /// A write waits for the answer to our SYN.
    pub(super) write_waits: bool,
    /// Our SYN was sent again.
    pub(super) repeated: bool,
    /// What a SYN carried has arrived: all of ours (a client), or the peer's (a server).
    pub(super) data_acked: bool,
    /// Whether the peer has our SYN.
    pub(super) half: Half,
    /// This connection is one of those that are pending on the host.
    pub(super) pending: bool,
}

impl Opening {
    /// Of a connection of `config`; nothing if that opens by the handshake alone.
    pub(super) fn new(config: &TcpConfig) -> Option<Box<Opening>> {
        let quick = config.handshake && (config.t_tcp || config.fast_open);
        quick.then(|| Box::new(Opening { carried: 1, carries: 1, ..Opening::default() }))
    }

    /// Whether a segment has another count than the peer's SYN, or data without one.
    //= rfc1644#section-3.4: what has not the count of this connection is dropped
    pub(super) fn is_of_another(&self, segment: &Segment, len: u32) -> bool {
        match segment.options().opening.count {
            Some(count) => Some(count.number()) != self.heard,
            // Base stations make ACKs without knowing of counts.
            None => len > 0,
        }
    }
}

impl TcpConfig {
    /// Goes over the keys that say how connections open.
    pub(super) fn openings(&mut self, k: &mut Keys<'_>) {
        let what = "T/TCP: connections are counted, and the SYN carries data, if both ends have it (RFC 1644)";
        k.flag("t-tcp", &mut self.t_tcp, what);
        let what = "TCP Fast Open: a SYN with the server's cookie carries data, if both ends have it (RFC 7413)";
        k.flag("fast-open", &mut self.fast_open, what);
        if self.t_tcp && self.fast_open {
            let help = "leave out one of them: both are ways to send data with the SYN";
            let message = "`t-tcp` and `fast-open` exclude each other";
            k.refuse("fast-open", message, "one too many", help);
        }
    }
}
