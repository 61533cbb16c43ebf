//! T/TCP, TCP for transactions (RFC 1644; its concepts: RFC 1379): a connection that opens with its request.
//!
//! Each host numbers its connections. A client sends the number on its SYN, and a server stores the last
//! number of each client. A SYN with a greater number cannot be an old duplicate, so its data goes to the
//! application at once, without a handshake. This is the TAO test, for *TCP accelerated open*. All other
//! connections open as usual, by three segments.
//!
//! This file has the state that a host stores, and the tests on it. `connection/opening.rs`, shared with
//! [`fast_open`](super::fast_open), has the behaviour of a connection.
//!
//! **Modelled:** the three options and their validation; data and FIN on the SYN, answered by one segment.
//! Data of a SYN that fails the test is stored until the handshake is over. Half-synchronised states are a
//! flag next to the states of RFC 9293. TIME-WAIT is eight timeouts for a connection shorter than the MSL,
//! which is half of `time-wait`. The next SYN acknowledges the FIN before it.
//!
//! **Not modelled:** segments that overtake their SYN (they are dropped), a congestion window and round-trip
//! time stored between connections, and more than one segment before the SYN is acknowledged.

use crate::describe::{Kind, SIM, System};
use crate::wire::opening::Count;
use crate::wire::{Addr, Seq};

/// Description of the system, for lists.
pub const T_TCP: System = System::new(
    Kind::Sender,
    "t-tcp",
    "host: t-tcp = true, at both ends",
    "transactions: the SYN carries the request, and counts of connections take the place of the handshake",
    "agarwal00 2; RFC 1644",
)
.tier(2)
.runs(SIM);

/// Maximum number of stored hosts; the least recently used one is discarded first.
const PEERS_MAX: usize = 256;

/// Duration of a shortened TIME-WAIT in timeouts.
//= rfc1644#section-2.4: K times the timeout, K being 8
pub(super) const TIME_WAIT_RTOS: u64 = 8;

/// Connection counts of a host and its peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    /// `CCgen`: the count of the last connection.
    last: u32,
    peers: Vec<Peer>,
}

/// Cached state of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Peer {
    addr: Addr,
    /// `cache.CC`: the greatest count on its SYNs, duplicates excluded.
    cc: Option<u32>,
    /// `cache.CCsent`: the last count sent to it on a SYN, if it has confirmed one.
    cc_sent: Option<u32>,
    /// The segment size that it offered last.
    mss: Option<u16>,
}

/// Whether count `a` is greater than `b`: counts wrap.
fn greater(a: u32, b: u32) -> bool {
    Seq(b).lt(Seq(a))
}

impl Counts {
    /// Creates the counts of a host without cached peers; the next connection has the count after `last`.
    pub fn new(last: u32) -> Counts {
        Counts { last, peers: Vec::new() }
    }

    /// The count of another connection.
    pub(super) fn next(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }

    /// The cached state of `addr`, which becomes the most recent.
    fn peer(&mut self, addr: Addr) -> &mut Peer {
        let known = self.peers.iter().position(|peer| peer.addr == addr);
        let peer = match known {
            Some(at) => self.peers.remove(at),
            None => {
                if self.peers.len() >= PEERS_MAX {
                    self.peers.remove(0);
                }
                Peer { addr, cc: None, cc_sent: None, mss: None }
            }
        };
        self.peers.push(peer);
        let last = self.peers.len() - 1;
        &mut self.peers[last]
    }

    /// Opens a connection to `addr`: returns the count on its SYN.
    //= rfc1644#section-3.4: CC.NEW if nothing was confirmed by that host, or if the counts have wrapped since
    pub fn open(&mut self, addr: Addr) -> Count {
        let count = self.next();
        let peer = self.peer(addr);
        let rises = peer.cc_sent.is_some_and(|sent| greater(count, sent));
        peer.cc_sent = rises.then_some(count);
        if rises { Count::Cc(count) } else { Count::New(count) }
    }

    /// The TAO test for a SYN of `addr`.
    //= rfc1644#section-3.4: a CC that is greater than the cached one; CC.NEW or none makes the cache undefined
    pub fn accepts(&mut self, addr: Addr, count: Option<Count>) -> bool {
        let peer = self.peer(addr);
        match count {
            Some(Count::Cc(count)) => {
                let new = peer.cc.is_some_and(|last| greater(count, last));
                if new {
                    peer.cc = Some(count);
                }
                new
            }
            Some(Count::New(_)) | None => {
                peer.cc = None;
                false
            }
        }
    }

    /// Records that a handshake has validated the SYN of `addr` with `count`.
    pub fn validate(&mut self, addr: Addr, count: u32) {
        self.peer(addr).cc.get_or_insert(count);
    }

    /// Records that `addr` has echoed `count` to this end's SYN; without a count it does not support the
    /// option.
    pub fn echoed(&mut self, addr: Addr, count: Option<u32>) {
        let peer = self.peer(addr);
        peer.cc_sent = count.map(|count| peer.cc_sent.unwrap_or(count));
    }

    /// Stores the segment size of `addr` for its next connection.
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
    fn counts_are_cc_new_until_the_peer_echoes_one() {
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
        counts.validate(A, 5);
        assert!(!counts.accepts(A, Some(Count::Cc(5))), "a duplicate");
        assert!(counts.accepts(A, Some(Count::Cc(9))));
        assert!(!counts.accepts(A, Some(Count::Cc(8))), "older than the last");
        assert!(counts.accepts(A, Some(Count::Cc(10))), "which changed nothing");
        assert!(!counts.accepts(A, Some(Count::New(11))));
        assert!(!counts.accepts(A, Some(Count::Cc(12))), "CC.NEW made it forget");
        counts.validate(A, 12);
        assert!(!counts.accepts(A, None));
        assert!(!counts.accepts(A, Some(Count::Cc(13))), "a SYN without did");
    }

    #[test]
    fn counts_wrap_and_skip_zero() {
        let mut counts = Counts::new(u32::MAX - 1);
        counts.open(A);
        counts.echoed(A, Some(u32::MAX));
        assert_eq!(counts.open(A), Count::Cc(1), "greater than the largest, in the circle");
        counts.validate(A, u32::MAX);
        assert!(counts.accepts(A, Some(Count::Cc(1))));
        // The next count appears older after many connections to other hosts.
        counts.last = (1 << 31) + 1;
        assert_eq!(counts.open(A), Count::New((1 << 31) + 2));
    }

    #[test]
    fn the_count_cache_evicts_the_least_recently_used_peer() {
        let mut counts = Counts::new(0);
        let addr = |n: u32| Addr::v4(10, 1, (n >> 8) as u8, n as u8);
        for n in 0..PEERS_MAX as u32 {
            counts.validate(addr(n), 5);
        }
        assert!(counts.accepts(addr(0), Some(Count::Cc(6))), "the first is still known");
        counts.validate(A, 5);
        assert_eq!(counts.peers.len(), PEERS_MAX);
        assert!(counts.accepts(addr(0), Some(Count::Cc(7))), "it was used last");
        assert!(!counts.accepts(addr(1), Some(Count::Cc(6))), "this one is forgotten");
    }
}
