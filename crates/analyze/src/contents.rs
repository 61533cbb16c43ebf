//! Counts of packets without TCP, and of packets that the decoder cannot read.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use lasthop_observe::capture::{Protocol, Reason};
use lasthop_proto::wire::Transport;
use lasthop_proto::wire::parse::View;

use crate::reading::{Analysis, Other, Unread};

/// Packets of other protocols by protocol, and unread packets by reason. Each map has at most some 200,000 entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    other: BTreeMap<Protocol, u64>,
    unread: BTreeMap<Reason, u64>,
    fragments: u64,
}

impl Contents {
    pub(crate) fn other(&mut self, protocol: Protocol) {
        *self.other.entry(protocol).or_default() += 1;
    }

    pub(crate) fn unread(&mut self, reason: Reason) {
        *self.unread.entry(reason).or_default() += 1;
    }

    pub(crate) fn fragment(&mut self) {
        self.fragments += 1;
    }

    /// Counts a packet with a readable IP header and without TCP.
    pub(crate) fn not_tcp(&mut self, packet: &View) {
        let icmp = if packet.src.is_v4() { 1 } else { 58 };
        match packet.transport {
            Transport::Fragment(_) => self.unread(Reason::IncompleteFragments),
            _ => self.other(Protocol::Ip(packet.transport.opaque().unwrap_or(icmp))),
        }
    }

    /// Writes the counts into `analysis`.
    pub(crate) fn report(self, analysis: &mut Analysis) {
        let other = self.other.into_iter();
        analysis.other = other.map(|(protocol, packets)| Other { protocol, packets }).collect();
        let unread = self.unread.into_iter();
        analysis.unread = unread.map(|(reason, packets)| Unread { reason, packets }).collect();
        // Stable, so that equal counts stay in the order of their kinds.
        analysis.other.sort_by_key(|other| Reverse(other.packets));
        analysis.unread.sort_by_key(|unread| Reverse(unread.packets));
        analysis.other_packets = analysis.other.iter().map(|other| other.packets).sum();
        analysis.unread_packets = analysis.unread.iter().map(|unread| unread.packets).sum();
        let malformed =
            |unread: &&Unread| matches!(unread.reason, Reason::Malformed | Reason::CutOff);
        analysis.malformed_packets =
            analysis.unread.iter().filter(malformed).map(|unread| unread.packets).sum();
        analysis.fragments = self.fragments;
    }
}
