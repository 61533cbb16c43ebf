//! Packets that a capture has twice: from a mirror port of both ways, or from two interfaces of one router.
//!
//! A copy has the same bytes from the IP addresses to the last option, and the same IP identification; only the hop count
//! may be lower. A retransmission has another identification where its sender counts or draws them. Where all are
//! equal or there are none (IPv6, Linux in some states), time and order decide:
//!
//! - A SYN is sent again after 200 ms at least.
//! - Data is sent again upon a packet of the peer or a timer, so not at once behind itself. Where a path delays both, the
//!   original and a needless repetition, the two look like copies; nothing was lost then either.
//! - Duplicate ACKs look like copies. They count as such only while other packets of their direction come twice.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{FlowKey, Segment};

/// A router stores a packet at most this long between two of its interfaces.
const WITHIN: Span = Span::secs(1);

/// So long, packets of two taps may be in the wrong order.
const SWAPPED: Span = Span::millis(2);

/// No SYN is sent again sooner.
const SYN_WITHIN: Span = Span::millis(100);

/// A packet that follows itself so soon is a copy.
const AT_ONCE: Span = Span::millis(1);

/// A sender that has heard of nothing yet for this share of the least round trip repeats nothing.
const UNHEARD: u64 = 4;

/// Copies come at most so many times later than those before.
const SPACING: u64 = 4;

/// Copies may always come so late.
const JITTER: Span = Span::micros(50);

/// What a copy adds to the score of a direction, and a packet without one takes; from `ESTABLISHED` on, packets come
/// twice there.
const COPY: u8 = 2;
const ESTABLISHED: u8 = 2;
const MOST: u8 = 8;

/// Sets of packets that are remembered, at first and at most.
const FIRST_SETS: usize = 1 << 6;
const SETS: usize = 1 << 14;
/// Packets of one set; the oldest leaves. Fewer lose the original where a copy comes a thousand packets later.
const WAYS: usize = 4;

/// A packet that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    print: u64,
    at: Time,
    ttl: u8,
    /// Its copy has come.
    paired: bool,
}

/// The latest packets of a capture, by their fingerprints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    sets: Vec<[Slot; WAYS]>,
    packets: usize,
}

/// The fields by which two packets are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Print {
    pub(crate) value: u64,
    pub(crate) at: Time,
    pub(crate) ttl: u8,
    /// Whether its sender gives each packet another IP identification.
    pub(crate) identified: bool,
    /// SYN.
    pub(crate) opens: bool,
    /// Payload or FIN: nothing that may be sent twice without a reason.
    pub(crate) counts: bool,
    /// From here to the peer and back at least: its sender cannot know of a loss sooner.
    pub(crate) feedback: Option<Span>,
}

/// Whether packets of one direction come twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubling {
    score: u8,
    spacing: Span,
    /// The latest packet that was no copy, if it has none yet.
    open: Option<(u64, Time)>,
}

/// A number that packets share only if they are equal in all that a router leaves alone.
pub(crate) fn fingerprint(flow: &FlowKey, segment: &Segment, len: u32, ip_id: Option<u16>) -> u64 {
    let mut hash = 0;
    let mut add = |value: u64| {
        hash = (u64::rotate_left(hash, 23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    };
    for addr in [flow.src, flow.dst] {
        match addr.ip() {
            core::net::IpAddr::V4(v4) => add(u64::from(v4.to_bits())),
            core::net::IpAddr::V6(v6) => {
                add((v6.to_bits() >> 64) as u64);
                add(v6.to_bits() as u64);
            }
        }
    }
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let ports = pair(flow.src_port.into(), flow.dst_port.into());
    add(ports << 16 | u64::from(segment.flags.0));
    add(pair(segment.seq.0, segment.ack.0));
    add(pair(len, u32::from(segment.window) << 16 | u32::from(ip_id.unwrap_or(0))));
    if let Some(stamps) = segment.timestamps {
        add(pair(stamps.value, stamps.echo));
    }
    for (left, right) in segment.options().sack.as_slice() {
        add(pair(left.0, right.0));
    }
    hash
}

impl Copies {
    /// Whether the packet is a copy of an earlier one of its direction; `adjacent` is the fingerprint of the packet
    /// just before it in its connection.
    pub(crate) fn is_copy(
        &mut self,
        doubling: &mut Doubling,
        packet: Print,
        adjacent: Option<u64>,
    ) -> bool {
        self.grow();
        let mask = self.sets.len() - 1;
        let set = &mut self.sets[(packet.value >> 40) as usize & mask];
        if let Some(slot) = set.iter_mut().find(|slot| slot.print == packet.value) {
            let after = packet.at.since(slot.at);
            if packet.at >= slot.at && doubling.is_copy(packet, *slot, after, adjacent) {
                slot.paired = true;
                doubling.copied(packet.value, after);
                return true;
            }
            slot.print = 0;
        }
        if let Some(oldest) =
            set.iter_mut().min_by_key(|slot| if slot.print == 0 { Time::ZERO } else { slot.at })
        {
            *oldest = Slot { print: packet.value, at: packet.at, ttl: packet.ttl, paired: false };
        }
        doubling.first(packet.value, packet.at);
        false
    }

    fn grow(&mut self) {
        self.packets += 1;
        if self.packets > self.sets.len() && self.sets.len() < SETS {
            let many = (self.sets.len() * 4).clamp(FIRST_SETS, SETS);
            let old = core::mem::replace(&mut self.sets, vec![[Slot::default(); WAYS]; many]);
            let mut filled = vec![0; many];
            for slot in old.into_iter().flatten().filter(|slot| slot.print != 0) {
                let at = (slot.print >> 40) as usize & (many - 1);
                self.sets[at][filled[at] % WAYS] = slot;
                filled[at] += 1;
            }
        }
    }
}

impl Doubling {
    fn is_copy(&self, packet: Print, slot: Slot, after: Span, adjacent: Option<u64>) -> bool {
        if packet.identified {
            return after <= WITHIN && (packet.ttl <= slot.ttl || after <= SWAPPED);
        }
        let usual = self.score >= ESTABLISHED && after <= self.latest();
        let at_once = after <= AT_ONCE && adjacent == Some(packet.value);
        match packet {
            Print { opens: true, .. } => after <= SYN_WITHIN,
            Print { counts: true, feedback, .. } => {
                let unheard = feedback.is_some_and(|least| after.0 <= least.0 / UNHEARD);
                at_once || (usual || unheard) && !slot.paired
            }
            _ => usual && !slot.paired && after <= SWAPPED,
        }
    }

    fn copied(&mut self, print: u64, after: Span) {
        self.score = (self.score + COPY).min(MOST);
        self.spacing = self.spacing.max(after);
        if self.open.is_some_and(|(open, _)| open == print) {
            self.open = None;
        }
    }

    /// A packet that is no copy; one whose copy is overdue shows that they do not all come twice.
    fn first(&mut self, print: u64, at: Time) {
        let before = self.open.replace((print, at));
        if before.is_some_and(|(_, before)| at.since(before) > self.latest()) {
            self.score = self.score.saturating_sub(1);
        }
    }

    /// How much later than its packet a copy may come.
    fn latest(&self) -> Span {
        Span(self.spacing.0.saturating_mul(SPACING)).max(JITTER)
    }
}
