//! Detection of packets that were captured twice: by a mirror port for both directions, or at two interfaces of a
//! router. Packets that the network duplicates look the same.
//!
//! A copy has the same bytes from the IP addresses to the last option, and the same IP identification; only the hop
//! limit may differ. Equal identifications alone prove nothing: a host may repeat them in a retransmission (RFC 1122,
//! 3.2.1.5), and in packets that may not be fragmented they have no meaning (RFC 6864, 4.1). So the point of capture,
//! time and order decide:
//!
//! - A packet with the same identification and another hop limit, or on another link, is a copy behind a router.
//! - A SYN is retransmitted after at least 200 ms, and on the link of the first one. Floods repeat SYNs sooner: equal
//!   SYNs on one link are copies only if other packets are captured twice, or if each appears exactly twice at once.
//! - Data is retransmitted after a packet of the peer or a timeout, so not directly after the original. If a path delays
//!   both the original and a needless retransmission, the two look like copies; there was no loss in this case either.
//! - Duplicate ACKs look like copies. They count as copies only while other packets of their direction are captured
//!   twice. If their direction gives no evidence, the other direction decides.
//! - A packet on another link (interface, MAC addresses, VLAN), or with a lower hop limit, is a copy behind a router or
//!   bridge. A retransmission would take the path of the original.
//! - In a direction with ACKs only, each new ACK is directly followed by an equal one.

mod fingerprint;
mod store;

pub(crate) use fingerprint::{fingerprint, flow_print};

use lasthop_proto::units::{Span, Time};
use store::{Slot, Store};

/// Maximum time of a packet between two interfaces of a router.
const WITHIN: Span = Span::secs(1);

/// Maximum time by which a copy may precede its original, if only time distinguishes copies from retransmissions.
const SWAPPED: Span = Span::millis(2);

/// Time before which no SYN is retransmitted.
const SYN_WITHIN: Span = Span::millis(100);

/// Maximum time of a copy directly after its original.
const AT_ONCE: Span = Span::millis(1);

/// Most copies of the SYNs of one connection, if no other packet proves that packets are captured twice.
const SYN_COPIES: u64 = 1;

/// A sender does not retransmit within a fourth of the minimum round trip without a packet of its peer. With the same IP
/// identification, the packet of the peer must have answered this one, so the round trip is that of the whole path.
const UNHEARD: u64 = 4;

/// Maximum factor between the delays of successive copies.
const SPACING: u64 = 4;

/// Maximum time until a packet appears at the other point of capture.
const ELSEWHERE: Span = Span::millis(100);

/// Number of packets without a copy that shows that a direction is captured once.
const SINGLE: u8 = 4;

/// Number of consecutive new ACKs, each directly followed by one equal ACK, that shows a twice captured direction.
const TWINS: u8 = 8;

/// Delay of copies that is always accepted.
const JITTER: Span = Span::micros(50);

/// Increase of a direction's score by a copy, and decrease by a packet without one. From `ESTABLISHED` on, the
/// direction is captured twice.
const COPY: u8 = 2;
const ESTABLISHED: u8 = 2;
const MOST: u8 = 8;

/// Maximum number of packets of a direction for which a copy may still arrive.
const OPEN: usize = 4;

/// The fields by which two packets are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Print {
    pub(crate) value: u64,
    pub(crate) at: Time,
    /// Number of the link on which it was captured.
    pub(crate) link: u32,
    pub(crate) ttl: u8,
    /// Whether each packet of its sender has a different IP identification.
    pub(crate) identified: bool,
    /// Whether it is a SYN.
    pub(crate) opens: bool,
    /// Whether it has payload or a FIN: a sender repeats these only after feedback or a timeout.
    pub(crate) counts: bool,
    /// Whether its frame repeats one of 802.11, whose receiver drops copies.
    pub(crate) retry: bool,
}

impl Print {
    /// Whether this is on another link than the packet in `slot`, or has a lower hop limit.
    fn is_elsewhere(&self, slot: &Slot) -> bool {
        self.link != slot.link || self.ttl < slot.ttl
    }

    /// Whether the identification shows that this is a copy of the packet in `slot`, captured `after` that one.
    fn is_identical(&self, slot: &Slot, after: Span) -> bool {
        // The clock of a tap farther ahead on the path may be behind. A sender retransmits no ACK.
        let within = if self.ttl <= slot.ttl { WITHIN } else { ELSEWHERE };
        let moved = self.link != slot.link || self.ttl != slot.ttl;
        let repeated = self.counts || self.opens;
        self.identified && (moved && after <= within || !repeated && after <= ELSEWHERE)
    }
}

/// When the sender of a packet can detect its loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Feedback {
    /// Minimum time from here to the peer and back.
    pub(crate) least: Option<Span>,
    /// Minimum time from here to both ends and back: a retransmission follows its original after this time.
    pub(crate) round_trip: Option<Span>,
    /// The peer has acknowledged the packet.
    pub(crate) acked: bool,
}

/// Whether packets of one direction are captured twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubling {
    score: u8,
    /// Number of consecutive packets without a copy.
    single: u8,
    /// Whether the latest copy was on another link, or had a lower hop limit.
    elsewhere: bool,
    spacing: Span,
    /// Maximum number of copies of one SYN or data packet.
    copies: u8,
    /// Copies of SYNs on the link of their original, and the maximum delay of one.
    syns: u64,
    syns_after: Span,
    /// Ring of the latest original packets without a copy, and the position of its next entry.
    open: [Open; OPEN],
    next: u8,
    acks: EqualAcks,
}

/// An original packet without a copy: its fingerprint (zero for an empty entry), and its time.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    print: u64,
    at: Time,
}

/// The latest equal ACKs of a direction that directly follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct EqualAcks {
    print: u64,
    at: Time,
    count: u8,
    spacing: Span,
    /// Number of consecutive new ACKs that arrived exactly twice.
    twins: u8,
}

impl EqualAcks {
    /// Adds the next packet of the direction that is no copy.
    fn add(&mut self, packet: &Print, adjacent: Option<u64>) {
        let after = packet.at.since(self.at);
        if self.print == packet.value && adjacent == Some(packet.value) && after <= AT_ONCE {
            self.count = self.count.saturating_add(1);
            self.spacing = self.spacing.max(after);
        } else {
            match self.count {
                2 => self.twins = self.twins.saturating_add(1),
                count if count % 2 == 1 => (self.twins, self.spacing) = (0, Span::ZERO),
                _ => {}
            }
            let plain = !packet.counts && !packet.opens;
            (self.print, self.count) = (packet.value, u8::from(plain));
        }
        self.at = packet.at;
    }
}

/// Finds copies in a capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    store: Store,
    /// Whether a packet was captured twice that no sender repeats.
    proved: bool,
}

impl Copies {
    /// Whether the packet is a copy of an earlier one of its direction. `back` is the doubling of the other
    /// direction, and `adjacent` the fingerprint of the packet just before it in its connection.
    pub(crate) fn is_copy(
        &mut self,
        doubling: &mut Doubling,
        back: &Doubling,
        packet: &Print,
        adjacent: Option<u64>,
        feedback: impl FnOnce() -> Feedback,
    ) -> bool {
        let own = Slot::new(packet);
        if let Some(slot) = self.store.find(&own) {
            let sure = packet.identified || packet.opens;
            let swapped = if sure { ELSEWHERE } else { SWAPPED };
            if let Some(after) = slot.until(&own, swapped) {
                let elsewhere = packet.is_elsewhere(slot);
                let found = Found { slot, after, elsewhere };
                if doubling.is_copy(back, packet, &found, adjacent, feedback()) {
                    slot.copies = slot.copies.saturating_add(1);
                    if packet.retry {
                        return true;
                    }
                    self.proved |= elsewhere || !packet.opens;
                    doubling.copied(packet, slot.copies, after, elsewhere);
                    return true;
                }
            }
            *slot = own;
        } else {
            self.store.insert(own);
        }
        doubling.first(packet, back, adjacent);
        false
    }
}

impl Doubling {
    /// Number of copies of SYNs that were sent repeatedly instead, as `copies` shows at the end of the capture.
    pub(crate) fn repeated_syns(&self, copies: &Copies) -> u64 {
        let twice = self.syns <= SYN_COPIES && self.syns_after <= AT_ONCE;
        if copies.proved || twice { 0 } else { self.syns }
    }
}

/// An earlier packet with the same fingerprint.
struct Found<'a> {
    slot: &'a Slot,
    /// The time since then.
    after: Span,
    /// Whether the packet is on another link than that one, or has a lower hop limit.
    elsewhere: bool,
}

impl Doubling {
    fn is_copy(
        &self,
        back: &Doubling,
        packet: &Print,
        found: &Found<'_>,
        adjacent: Option<u64>,
        feedback: Feedback,
    ) -> bool {
        let &Found { slot, after, elsewhere } = found;
        if packet.retry && after <= WITHIN || packet.is_identical(slot, after) {
            return true;
        }
        // Where copies are long underway, many packets precede the first of them.
        let usual = self.is_usual(after, elsewhere)
            || (elsewhere || self.single < SINGLE) && back.is_usual(after, elsewhere);
        let at_once = after <= AT_ONCE && adjacent == Some(packet.value);
        let due = slot.copies < self.copies.max(back.copies).max(1);
        match packet {
            Print { opens: true, .. } => after <= SYN_WITHIN || elsewhere && after < WITHIN,
            Print { counts: true, .. } => {
                let trip = if packet.identified { feedback.round_trip } else { None };
                let least = feedback.least.max(trip);
                let unheard = least.is_some_and(|least| after <= least / UNHEARD);
                let round_trip = feedback.round_trip.or(feedback.least);
                // Near the receiver the bytes are acknowledged before their copy. They are not lost in either case.
                let passed =
                    elsewhere && (feedback.acked || round_trip.is_none_or(|least| after < least));
                at_once || unheard || usual && due || passed && after <= ELSEWHERE
            }
            _ => usual && (elsewhere || due && after <= SWAPPED),
        }
    }

    /// Whether copies with this delay, on another link or not, are established in this direction.
    fn is_usual(&self, after: Span, elsewhere: bool) -> bool {
        self.score >= ESTABLISHED && after <= self.latest() && elsewhere == self.elsewhere
    }

    /// Records the copy number `copies` of a packet, with the delay `after`.
    fn copied(&mut self, packet: &Print, copies: u8, after: Span, elsewhere: bool) {
        self.elsewhere = elsewhere;
        if packet.opens && !elsewhere {
            (self.syns, self.syns_after) = (self.syns + 1, self.syns_after.max(after));
        }
        if packet.counts || packet.opens {
            self.copies = self.copies.max(copies);
        }
        self.score = (self.score + COPY).min(MOST);
        self.single = 0;
        self.spacing = self.spacing.max(after);
        if let Some(open) = self.open.iter_mut().find(|open| open.print == packet.value) {
            *open = Open::default();
        }
    }

    /// Records a packet that is no copy. Earlier packets without a copy after the maximum delay reduce the score.
    fn first(&mut self, packet: &Print, back: &Doubling, adjacent: Option<u64>) {
        let latest = self.latest();
        for open in self.open.iter_mut().filter(|open| open.print != 0) {
            if packet.at.since(open.at) > latest {
                *open = Open::default();
                self.score = self.score.saturating_sub(1);
                self.single = self.single.saturating_add(1);
            }
        }
        self.open[usize::from(self.next) % OPEN] = Open { print: packet.value, at: packet.at };
        self.next = self.next.wrapping_add(1);
        self.acks.add(packet, adjacent);
        if self.acks.twins >= TWINS && back.single < SINGLE {
            self.score = self.score.max(ESTABLISHED);
            self.spacing = self.spacing.max(self.acks.spacing);
        }
    }

    /// Maximum delay of a copy.
    fn latest(&self) -> Span {
        Span(self.spacing.0.saturating_mul(SPACING)).max(JITTER)
    }
}
