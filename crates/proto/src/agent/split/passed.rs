//! Connections that are permanently unsplit.
//!
//! An end that has received the far end's own SYN-ACK cannot continue with a base station that offers
//! other options. So a SYN that passed once passes again, even if there is room meanwhile.

use core::mem::swap;
use std::collections::BTreeSet;

use crate::wire::opening::Opening;
use crate::wire::{Flags, FlowKey, Segment, Seq};

/// Minimum number of stored SYNs.
const LEAST: usize = 1 << 14;

/// Recently passed SYNs in two generations: when the younger one is full, the older one is discarded. A
/// connection may have several, since a third party's SYN must not replace that of the host.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    young: BTreeSet<(FlowKey, u32)>,
    old: BTreeSet<(FlowKey, u32)>,
    most: usize,
}

impl Passed {
    /// An empty memory for a base station with room for `flows` connections.
    pub(super) fn new(flows: usize) -> Passed {
        let most = flows.saturating_mul(4).max(LEAST);
        Passed { young: BTreeSet::new(), old: BTreeSet::new(), most }
    }

    /// Whether the SYN of the connection `key` with this sequence number passed. `key` is the flow from left to right.
    pub(super) fn has(&self, key: FlowKey, seq: Seq) -> bool {
        [&self.young, &self.old].into_iter().any(|syns| syns.contains(&(key, seq.0)))
    }

    /// Records that it passes now.
    pub(super) fn note(&mut self, key: FlowKey, seq: Seq) {
        let syn = (key, seq.0);
        if self.young.len() == self.most && !self.young.contains(&syn) {
            self.old.clear();
            swap(&mut self.young, &mut self.old);
        }
        self.young.insert(syn);
    }

    /// Bytes of state.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        (self.young.len() + self.old.len()) * size_of::<(FlowKey, u32)>()
    }
}

/// Whether a connection that `syn` opens can be split without a disadvantage for its ends: only if the whole
/// SYN is understood here. Cookies of TCP Fast Open (RFC 7413) and connection counts (RFC 1644) are of use only between the
/// ends: through a split connection no server would send one.
//= rfc9293#section-3.1: an option that is not known must be ignored; it may still mean something to the far end
pub(super) fn is_splittable(syn: &Segment) -> bool {
    let flags = syn.flags.without(Flags::ACE | Flags::PSH);
    let options = syn.options();
    flags == Flags::SYN && options.unknown.is_empty() && options.opening == Opening::NONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Addr;
    use crate::wire::opening::Cookie;

    fn key(n: u32) -> FlowKey {
        let [a, b, c, d] = n.to_be_bytes();
        let (src, dst) = (Addr::v4(a, b, c, d), Addr::v4(10, 1, 0, 1));
        FlowKey { src, dst, src_port: 1, dst_port: 9 }
    }

    #[test]
    fn a_syn_with_a_cookie_or_its_request_passes() {
        let mut syn = Segment::new(1, 2, Seq(1), Seq(0), Flags::SYN);
        assert!(is_splittable(&syn));
        syn.options_mut().opening.cookie = Some(Cookie::REQUEST);
        assert!(!is_splittable(&syn));
    }

    #[test]
    fn the_latest_are_remembered_and_the_memory_is_bounded() {
        let mut passed = Passed::new(1);
        for n in 0..5 * LEAST as u32 {
            passed.note(key(n), Seq(n));
            assert!(passed.has(key(n), Seq(n)) && !passed.has(key(n), Seq(n + 1)));
            let first = n.saturating_sub(LEAST as u32 - 1);
            assert!(passed.has(key(first), Seq(first)), "{first} of {n}");
            assert!(passed.bytes() <= 2 * LEAST * size_of::<(FlowKey, u32)>());
        }
        passed.note(key(7), Seq(1));
        passed.note(key(7), Seq(2));
        assert!([1, 2].into_iter().all(|seq| passed.has(key(7), Seq(seq))), "of several SYNs");
    }
}
