//! Selection of packets whose checksum the station need not verify: packets with the next sequence number of their
//! flow. A damaged header has this number only with a probability of 1 in 4,000,000,000. The payload is verified at a
//! retransmission. So the station reads only the headers of most packets.

use lasthop_proto::wire::{Addr, Flags, Segment, Seq};

/// Number of slots for flows. Two flows in one slot are verified at each packet.
const PLACES: usize = 4096;

/// The next sequence numbers of flows from the left.
#[derive(Debug)]
pub(super) struct Order {
    /// For each slot, the bits of a flow's hash that do not select the slot, and the flow's next sequence number.
    next: Vec<Option<(u32, Seq)>>,
}

impl Order {
    pub fn new() -> Order {
        Order { next: vec![None; PLACES] }
    }

    /// Whether a segment with data is trusted: it continues its flow, or `intact` verifies it. `intact` is called
    /// only if it does not continue.
    pub fn trusts(
        &mut self,
        ends: [Addr; 2],
        segment: &Segment,
        len: u32,
        intact: impl FnOnce() -> bool,
    ) -> bool {
        let (place, tag) = place_of(ends, segment);
        let plain =
            !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST | Flags::URG) && len > 0;
        let continues = self.next[place] == Some((tag, segment.seq));
        if !(plain && continues || intact()) {
            return false;
        }
        self.next[place] = Some((tag, segment.seq + segment.seq_len(len)));
        true
    }
}

fn place_of(ends: [Addr; 2], segment: &Segment) -> (usize, u32) {
    let ports = u64::from(segment.src_port) << 16 | u64::from(segment.dst_port);
    let [from, to] = ends.map(|addr| match addr.ip() {
        core::net::IpAddr::V4(ip) => u64::from(u32::from(ip)),
        core::net::IpAddr::V6(ip) => {
            let ip = u128::from(ip);
            ip as u64 ^ (ip >> 64) as u64
        }
    });
    let mut hash = ports;
    // The last round mixes the upper bits of the addresses into the used bits.
    for part in [from, to, 0] {
        hash = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    (hash as usize % PLACES, (hash >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn segment(seq: u32, flags: Flags) -> Segment {
        Segment::new(1000, 80, Seq(seq), Seq(0), flags)
    }

    #[test]
    fn a_segment_that_continues_no_flow_is_verified() {
        let ends = [1, 2].map(|i| Addr::from(IpAddr::V4(Ipv4Addr::new(10, 0, 0, i))));
        let mut order = Order::new();
        let mut outcome = |seq, flags, len, intact| {
            let mut verified = false;
            let trusted = order.trusts(ends, &segment(seq, flags), len, || {
                verified = true;
                intact
            });
            (verified, trusted)
        };
        assert_eq!(outcome(100, Flags::ACK, 50, true), (true, true), "the first one");
        assert_eq!(outcome(150, Flags::ACK, 50, false), (false, true), "the next");
        assert_eq!(outcome(1 << 30, Flags::ACK, 50, false), (true, false), "damaged");
        assert_eq!(outcome(200, Flags::ACK, 50, false), (false, true), "continues after it");
        assert_eq!(outcome(250, Flags::ACK | Flags::FIN, 50, true), (true, true), "the last one");
        assert_eq!(outcome(301, Flags::ACK, 0, true), (true, true), "without data");
        assert_eq!(outcome(200, Flags::ACK, 50, true), (true, true), "again");
        assert_eq!(outcome(250, Flags::ACK, 50, false), (false, true), "its successor");
    }

    /// A segment continues only its own flow, and none with another address or port.
    #[test]
    fn flows_are_distinguished_by_addresses_and_ports() {
        use core::net::Ipv6Addr;
        let v4 = |i| Addr::from(IpAddr::V4(Ipv4Addr::new(10, 0, 0, i)));
        let v6 = |high, low| Addr::from(IpAddr::V6(Ipv6Addr::new(high, 0, 0, 0, 0, 0, 0, low)));
        let flows = [
            (v4(1), v4(2), 1000, 80),
            (v4(2), v4(1), 1000, 80),
            (v4(3), v4(2), 1000, 80),
            (v4(1), v4(3), 1000, 80),
            (v4(1), v4(2), 80, 1000),
            (v4(1), v4(2), 1001, 80),
            (v4(1), v4(2), 1000, 81),
            (v6(0xfd00, 1), v6(0xfd00, 2), 1000, 80),
            (v6(0xfd01, 1), v6(0xfd00, 2), 1000, 80),
            (v6(0xfd00, 1), v6(0xfd01, 2), 1000, 80),
            (v6(0xfd00, 3), v6(0xfd00, 2), 1000, 80),
        ];
        let place = |(from, to, src, dst): (Addr, Addr, u16, u16)| {
            place_of([from, to], &Segment::new(src, dst, Seq(1), Seq(0), Flags::ACK))
        };
        for (i, one) in flows.into_iter().enumerate() {
            let (at, tag) = place(one);
            assert!(at < PLACES, "{one:?}");
            for other in &flows[..i] {
                assert_ne!(place(*other).1, tag, "{one:?} is taken for {other:?}");
                assert_ne!(place(*other).0, at, "{one:?} has the place of {other:?}");
            }
        }
        // The hash is uniform: with as many flows as slots, about 63 % of the slots are in use.
        let mut used = vec![false; PLACES];
        for port in 0..PLACES as u16 {
            used[place((v4(1), v4(2), 10_000 + port, 80)).0] = true;
        }
        let share = used.iter().filter(|used| **used).count() as f64 / PLACES as f64;
        assert!(share > 0.5, "{share}");
    }

    /// Segments without data, and those that open, end or interrupt a connection, never continue a flow.
    #[test]
    fn only_plain_data_is_accepted_unverified() {
        let ends = [1, 2].map(|i| Addr::from(IpAddr::V4(Ipv4Addr::new(10, 0, 0, i))));
        let is_verified = |flags, len| {
            let mut order = Order::new();
            assert!(order.trusts(ends, &segment(10, Flags::ACK), 5, || true));
            let mut verified = false;
            let trusted = order.trusts(ends, &segment(15, flags), len, || {
                verified = true;
                false
            });
            assert_eq!(trusted, !verified);
            verified
        };
        for plain in
            [Flags::ACK, Flags::ACK | Flags::PSH, Flags::ACK | Flags::CWR, Flags::ACK | Flags::ECE]
        {
            assert_eq!(
                [0, 1, 2].map(|len| is_verified(plain, len)),
                [true, false, false],
                "{plain:?}"
            );
        }
        for other in [Flags::SYN, Flags::FIN, Flags::RST, Flags::URG] {
            assert!(is_verified(Flags::ACK | other, 1), "{other:?}");
        }
    }

    /// An untrusted segment does not change the state. Sequence numbers wrap (RFC 9293, section 3.4).
    #[test]
    fn a_trusted_flow_continues_across_sequence_wraparound() {
        let ends = [1, 2].map(|i| Addr::from(IpAddr::V4(Ipv4Addr::new(10, 0, 0, i))));
        let mut order = Order::new();
        let never = || panic!("it was verified");
        assert!(order.trusts(ends, &segment(u32::MAX - 4, Flags::ACK), 5, || true));
        assert!(order.trusts(ends, &segment(0, Flags::ACK), 1, never));
        assert!(!order.trusts(ends, &segment(2, Flags::ACK), 1, || false), "one too far");
        assert!(!order.trusts(ends, &segment(0, Flags::ACK), 1, || false), "one too early");
        assert!(order.trusts(ends, &segment(1, Flags::ACK), 1, never));
    }
}
