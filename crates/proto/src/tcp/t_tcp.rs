//! T/TCP, TCP for transactions (RFC 1644; its concepts: RFC 1379): a connection that opens with its request.
//!
//! Each host numbers its connections. A client says the number on its SYN, a server remembers the last one of each
//! client. A SYN whose number is greater cannot be an old duplicate, so that its data goes to the application at once and
//! no handshake is waited for: the TAO test, for *TCP accelerated open*. All else opens as ever, by three segments.
//!
//! This file has what a host remembers and the tests on it. What a connection does with them stands in
//! `connection/opening.rs`, which it shares with [`fast_open`](super::fast_open).
//!
//! **Modelled:** the three options and what must be true of them; data and FIN on the SYN, answered by one segment;
//! data of a SYN that fails the test, kept until the handshake is over; half-synchronised states, as a flag beside the
//! states of RFC 9293; TIME-WAIT cut to eight time-outs for a connection shorter than the MSL, which is half of
//! `time-wait`; the next SYN as an acknowledgement of the FIN before it.
//!
//! **Not modelled:** segments that overtake their SYN are dropped; congestion window and round-trip time are not
//! remembered from connection to connection; no more than one segment goes before the SYN is acknowledged.

use crate::describe::{Kind, SIM, System};
use crate::wire::opening::Count;
use crate::wire::{Addr, Seq};

/// What it is, for lists.
pub const T_TCP: System = System::new(
    Kind::Sender,
    "t-tcp",
    "host: t-tcp = true, at both ends",
    "transactions: the SYN carries the request, and counts of connections take the place of the handshake",
    "agarwal00 2; RFC 1644",
)
.tier(2)
.runs(SIM);

/// Hosts that are remembered; the one that was not heard of for longest goes first.
const PEERS_MAX: usize = 256;

/// How many time-outs a shortened TIME-WAIT lasts.
//= rfc1644#section-2.4: K times the time-out, K being 8
pub(super) const TIME_WAIT_RTOS: u64 = 8;

/// What a host remembers of counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    /// `CCgen`: the count of the connection that began last.
    last: u32,
    peers: Vec<Peer>,
}

/// What is remembered of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Peer {
    addr: Addr,
    /// `cache.CC`: the greatest count on a SYN of it that was no duplicate.
    heard: Option<u32>,
    /// `cache.CCsent`: the last count that it was told on a SYN, if it has confirmed one.
    told: Option<u32>,
    /// The segment size that it offered last.
    mss: Option<u16>,
}

/// Whether count `a` is greater than `b`: counts wrap.
fn greater(a: u32, b: u32) -> bool {
    Seq(b).lt(Seq(a))
}

impl Counts {
    /// A host that remembers nothing, and whose next connection has the count behind `last`.
    pub fn new(last: u32) -> Counts {
        Counts { last, peers: Vec::new() }
    }

    /// The count of another connection.
    pub(super) fn next(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }

    /// What is known of `addr`, which was heard of just now.
    fn peer(&mut self, addr: Addr) -> &mut Peer {
        let known = self.peers.iter().position(|peer| peer.addr == addr);
        let peer = match known {
            Some(at) => self.peers.remove(at),
            None => {
                if self.peers.len() >= PEERS_MAX {
                    self.peers.remove(0);
                }
                Peer { addr, heard: None, told: None, mss: None }
            }
        };
        self.peers.push(peer);
        let last = self.peers.len() - 1;
        &mut self.peers[last]
    }

    /// A connection to `addr` opens: the count on its SYN.
    //= rfc1644#section-3.4: CC.NEW if nothing was confirmed by that host, or if the counts have wrapped since
    pub fn open(&mut self, addr: Addr) -> Count {
        let count = self.next();
        let peer = self.peer(addr);
        let rises = peer.told.is_some_and(|told| greater(count, told));
        peer.told = rises.then_some(count);
        if rises { Count::Cc(count) } else { Count::New(count) }
    }

    /// A SYN of `addr` came: the TAO test.
    //= rfc1644#section-3.4: a CC that is greater than the cached one; CC.NEW or none makes the cache undefined
    pub fn accepts(&mut self, addr: Addr, count: Option<Count>) -> bool {
        let peer = self.peer(addr);
        match count {
            Some(Count::Cc(count)) => {
                let new = peer.heard.is_some_and(|heard| greater(count, heard));
                if new {
                    peer.heard = Some(count);
                }
                new
            }
            Some(Count::New(_)) | None => {
                peer.heard = None;
                false
            }
        }
    }

    /// A handshake has shown that the SYN of `addr` with `count` was none of old.
    pub fn shown(&mut self, addr: Addr, count: u32) {
        self.peer(addr).heard.get_or_insert(count);
    }

    /// `addr` has echoed `count` to our SYN; without a count it does not know what that is.
    pub fn echoed(&mut self, addr: Addr, count: Option<u32>) {
        let peer = self.peer(addr);
        peer.told = count.map(|count| peer.told.unwrap_or(count));
    }

    /// The segment size of `addr` is known for its next connection.
    pub(super) fn learn_mss(&mut self, addr: Addr, mss: u16) {
        self.peer(addr).mss = Some(mss);
    }

    /// The segment size that `addr` offered last.
    pub(super) fn mss(&mut self, addr: Addr) -> Option<u16> {
        self.peer(addr).mss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Addr = Addr::v4(10, 0, 0, 1);

    #[test]
    fn a_count_is_new_to_a_host_until_that_has_confirmed_one() {
        let mut counts = Counts::new(6);
        assert_eq!(counts.open(A), Count::New(7));
        assert_eq!(counts.open(A), Count::New(8));
        counts.echoed(A, Some(8));
        assert_eq!(counts.open(A), Count::Cc(9));
        counts.echoed(A, None);
        assert_eq!(counts.open(A), Count::New(10));
    }

    #[test]
    fn only_a_greater_count_passes_the_test() {
        let mut counts = Counts::new(0);
        assert!(!counts.accepts(A, Some(Count::Cc(5))), "nothing is known");
        counts.shown(A, 5);
        assert!(!counts.accepts(A, Some(Count::Cc(5))), "a duplicate");
        assert!(counts.accepts(A, Some(Count::Cc(9))));
        assert!(!counts.accepts(A, Some(Count::Cc(8))), "older than the last");
        assert!(counts.accepts(A, Some(Count::Cc(10))), "which changed nothing");
        assert!(!counts.accepts(A, Some(Count::New(11))));
        assert!(!counts.accepts(A, Some(Count::Cc(12))), "CC.NEW made it forget");
        counts.shown(A, 12);
        assert!(!counts.accepts(A, None));
        assert!(!counts.accepts(A, Some(Count::Cc(13))), "a SYN without did");
    }

    #[test]
    fn counts_wrap_and_leave_zero_out() {
        let mut counts = Counts::new(u32::MAX - 1);
        counts.open(A);
        counts.echoed(A, Some(u32::MAX));
        assert_eq!(counts.open(A), Count::Cc(1), "greater than the largest, in the circle");
        counts.shown(A, u32::MAX);
        assert!(counts.accepts(A, Some(Count::Cc(1))));
        // So many connections to others that the next count seems to be older.
        counts.last = (1 << 31) + 1;
        assert_eq!(counts.open(A), Count::New((1 << 31) + 2));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut counts = Counts::new(0);
        let addr = |n: u32| Addr::v4(10, 1, (n >> 8) as u8, n as u8);
        for n in 0..PEERS_MAX as u32 {
            counts.shown(addr(n), 5);
        }
        assert!(counts.accepts(addr(0), Some(Count::Cc(6))), "the first is still known");
        counts.shown(A, 5);
        assert_eq!(counts.peers.len(), PEERS_MAX);
        assert!(counts.accepts(addr(0), Some(Count::Cc(7))), "it was used last");
        assert!(!counts.accepts(addr(1), Some(Count::Cc(6))), "this one is forgotten");
    }
}
