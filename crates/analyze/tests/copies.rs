//! Captures that have packets more than once: of a mirror port, of two interfaces, of two taps. The counts are those of
//! one copy.

use crate::common::Script;
use crate::packets::{Packet, any_numbers, connection, faults, one, write_sorted};
use lasthop_analyze::{Analysis, Finding};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

/// IP identifications of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    /// IPv6.
    V6,
    /// IPv4, zero in all.
    Zero,
    /// Counted by each sender.
    Counted([u16; 2]),
    /// Random ones.
    Random(u16),
}

fn any_ids() -> impl Strategy<Value = Ids> {
    prop_oneof![
        Just(Ids::V6),
        Just(Ids::Zero),
        any::<[u16; 2]>().prop_map(Ids::Counted),
        any::<u16>().prop_map(Ids::Random),
    ]
}

/// What does not matter.
#[derive(Clone, Copy, Debug)]
struct Member {
    isn: [u32; 2],
    ids: Ids,
    stamped: bool,
    rtt: f64,
    lost: Option<u32>,
}

prop_compose! {
    fn member()(
        isn in any_numbers(), ids in any_ids(), stamped in any::<bool>(), rtt in 5.0f64..300.0,
        lost in proptest::option::of(8u32..36),
    ) -> Member {
        Member { isn, ids, stamped, rtt, lost }
    }
}

impl Member {
    fn packets(&self) -> Vec<Packet> {
        let counted = match self.ids {
            Ids::Counted(ids) => Some(ids),
            _ => None,
        };
        let mut packets = connection(self.rtt, 40, self.lost, counted);
        if let Ids::Random(seed) = self.ids {
            for (n, packet) in packets.iter_mut().enumerate() {
                let id = (n as u16).wrapping_add(seed).wrapping_mul(40_503) | 1;
                packet.ids = Some([id; 2]);
            }
        }
        packets
    }

    fn analyze(&self, packets: Vec<Packet>) -> Analysis {
        let mut s = Script::new();
        (s.isn, s.v6) = (self.isn, self.ids == Ids::V6);
        s.stamps = self.stamped.then_some((5, 6));
        write_sorted(&mut s, packets);
        s.analyze()
    }

    fn losses(&self) -> [u64; 3] {
        let lost = u64::from(self.lost.is_some());
        [lost, 0, lost]
    }
}

/// `packets` once more, `after` milliseconds later and `hops` further.
fn again(packets: &[Packet], after: f64, hops: u8) -> Vec<Packet> {
    packets.iter().map(|p| Packet { at: p.at + after, ttl: p.ttl - hops, ..*p }).collect()
}

fn duplicate_acks(analysis: &Analysis) -> u64 {
    one(analysis).to_server.duplicate_acks + one(analysis).to_client.duplicate_acks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The capture has each packet two or three times; one loss is real.
    #[test]
    fn any_copies(member in member(), after in 0.001f64..0.3, hops in 0u8..2, times in 1u8..3) {
        let packets = member.packets();
        let mut all = packets.clone();
        for n in 1..=times {
            all.extend(again(&packets, after * f64::from(n), hops * n));
        }
        let (plain, copied) = (member.analyze(packets), member.analyze(all));
        prop_assert_eq!(plain.copied_packets, 0);
        prop_assert_eq!(faults(one(&plain)), member.losses());
        prop_assert_eq!(copied.copied_packets, plain.tcp_packets * u64::from(times));
        prop_assert_eq!(faults(one(&copied)), member.losses());
        prop_assert_eq!(one(&copied).handshake_rtt, one(&plain).handshake_rtt);
        prop_assert_eq!(duplicate_acks(&copied), duplicate_acks(&plain));
    }

    /// A mirror port of one direction on two interfaces: only the packets of one side arrive twice.
    #[test]
    fn any_copies_of_one_direction(
        member in member(), after in 0.001f64..0.3, from in 0usize..2, hops in 0u8..2,
    ) {
        let packets = member.packets();
        let side: Vec<Packet> = packets.iter().copied().filter(|p| p.from == from).collect();
        let all = [packets.clone(), again(&side, after, hops)].concat();
        let (plain, copied) = (member.analyze(packets), member.analyze(all));
        prop_assert_eq!(faults(one(&copied)), member.losses());
        let data_comes_twice = from == 1;
        if data_comes_twice || !matches!(member.ids, Ids::V6 | Ids::Zero) {
            prop_assert_eq!(copied.copied_packets, side.len() as u64);
            prop_assert_eq!(duplicate_acks(&copied), duplicate_acks(&plain));
        }
    }

    /// Two taps write to one file, and the clock of the second is alternately behind: times run backwards.
    #[test]
    fn any_copies_with_times_that_run_backwards(
        member in member(), skew in -0.4f64..0.4, hops in 0u8..2,
    ) {
        let packets = member.packets();
        let mut sorted = packets.clone();
        sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut s = Script::new();
        (s.isn, s.v6) = (member.isn, member.ids == Ids::V6);
        s.stamps = member.stamped.then_some((5, 6));
        for packet in sorted {
            for (at, ttl) in [(packet.at, packet.ttl), (packet.at + skew, packet.ttl - hops)] {
                (s.ids, s.ttl) = (packet.ids, ttl);
                let Packet { from, flags, seq, len, ack, .. } = packet;
                s.send(at.max(0.0), from, flags, seq, len, ack);
            }
        }
        let (plain, copied) = (member.analyze(packets), s.analyze());
        prop_assert_eq!(copied.copied_packets, plain.tcp_packets);
        prop_assert_eq!(faults(one(&copied)), member.losses());
    }

    /// Two taps write to one file, and the clock of the one nearer to the sender is behind by more than the delay.
    #[test]
    fn any_copies_with_more_hops_left(
        member in member(), after in 2.0f64..80.0, random in any::<bool>(),
        ids in proptest::array::uniform2(1u16..60_000),
    ) {
        let ids = if random { Ids::Random(ids[0]) } else { Ids::Counted(ids) };
        let member = Member { ids, ..member };
        let packets = member.packets();
        let first = packets.iter().map(|p| Packet { ttl: 63, ..*p });
        let second = packets.iter().map(|p| Packet { at: p.at + after, ttl: 64, ..*p });
        let all: Vec<Packet> = first.chain(second).collect();
        let (plain, copied) = (member.analyze(packets), member.analyze(all));
        prop_assert_eq!(copied.copied_packets, plain.tcp_packets);
        prop_assert_eq!(faults(one(&copied)), member.losses());
        prop_assert_eq!(duplicate_acks(&copied), duplicate_acks(&plain));
    }

    /// Two taps write to one file, and the clock of the farther one is behind by up to 90 ms: a copy has an earlier time
    /// than its original.
    #[test]
    fn any_copies_with_earlier_times(
        member in member(), behind in 0.0f64..90.0, random in any::<bool>(), hops in 0u8..2,
        ids in proptest::array::uniform2(1u16..60_000),
    ) {
        let ids = if random { Ids::Random(ids[0]) } else { Ids::Counted(ids) };
        let member = Member { ids, ..member };
        let mut sorted = member.packets();
        sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut s = Script::new();
        s.isn = member.isn;
        s.stamps = member.stamped.then_some((5, 6));
        for packet in sorted {
            for (at, ttl) in [(packet.at + 100.0, 64), (packet.at + 100.0 - behind, 64 - hops)] {
                (s.ids, s.ttl) = (packet.ids, ttl);
                let Packet { from, flags, seq, len, ack, .. } = packet;
                s.send(at, from, flags, seq, len, ack);
            }
        }
        let plain = member.analyze(member.packets());
        let copied = s.analyze();
        prop_assert_eq!(copied.copied_packets, plain.tcp_packets);
        prop_assert_eq!(faults(one(&copied)), member.losses());
        prop_assert_eq!(duplicate_acks(&copied), duplicate_acks(&plain));
    }

    /// Only the ACKs were captured, each twice: most of the copies are found, and no duplicate ACK is one of them.
    #[test]
    fn any_copies_of_acks_alone(member in member(), after in 0.001f64..0.01, count in 40u32..200) {
        let mut s = Script::new();
        (s.isn, s.v6) = (member.isn, member.ids == Ids::V6);
        s.stamps = member.stamped.then_some((5, 6));
        let mut ids = [7, 9];
        for n in 0..count {
            for copy in 0..2 {
                s.ids = (!matches!(member.ids, Ids::V6 | Ids::Zero)).then_some(ids);
                let at = f64::from(n) * 0.5 + f64::from(copy) * after;
                s.send(at, 1, Flags::ACK, 1, 0, 1001 + 1000 * n);
            }
            ids[1] += 1;
        }
        let analysis = s.analyze();
        let copies = analysis.copied_packets;
        prop_assert!(copies >= u64::from(count) - 10, "{} of {}", copies, count);
        let sent = &one(&analysis).to_server;
        let sent = if sent.diagnoses.is_empty() { &one(&analysis).to_client } else { sent };
        let Finding::OnlyAcks { acks, acked_bytes, duplicate_acks, .. } = sent.diagnoses[0].finding else {
            panic!("{:?}", sent.diagnoses)
        };
        prop_assert_eq!((acks, acked_bytes), (2 * u64::from(count) - copies, 1000 * u64::from(count - 1)));
        prop_assert!(duplicate_acks <= 10);
    }

    /// Near the receiver, without the handshake: the copy of a packet comes from another hop, behind its ACK.
    #[test]
    fn any_copies_behind_their_acks(
        isn in any_numbers(), v6 in any::<bool>(), after in 0.5f64..5.0, every in 0.2f64..2.0,
        lost in proptest::option::of(10u32..30),
    ) {
        let mut packets: Vec<Packet> = Vec::new();
        let mut send = |at: f64, from: usize, seq, len, ack| {
            packets.push(Packet { at, from, flags: Flags::ACK, seq, len, ack, ids: None, ttl: 64 });
        };
        for n in (0..40).filter(|n| Some(*n) != lost) {
            let arrived = lost.filter(|lost| *lost < n).unwrap_or(n + 1);
            send(f64::from(n) * every, 1, 1 + 1000 * n, 1000, 1);
            send(f64::from(n) * every + 0.02, 0, 1, 0, 1 + 1000 * arrived);
        }
        if let Some(lost) = lost {
            send(40.0 * every + 5.0, 1, 1 + 1000 * lost, 1000, 1);
            send(40.0 * every + 5.02, 0, 1, 0, 40_001);
        }
        let ids = if v6 { Ids::V6 } else { Ids::Zero };
        let member = Member { isn, ids, stamped: false, rtt: 0.0, lost };
        let all = [packets.clone(), again(&packets, after, 1)].concat();
        let (plain, copied) = (member.analyze(packets), member.analyze(all));
        prop_assert_eq!(copied.copied_packets, plain.tcp_packets);
        prop_assert_eq!(faults(one(&plain)), member.losses());
        prop_assert_eq!(faults(one(&copied)), member.losses());
        prop_assert_eq!(duplicate_acks(&copied), duplicate_acks(&plain));
    }

    /// Two interfaces of a router with a queue in between: the second copy of a packet comes ever later.
    #[test]
    fn any_copies_behind_a_queue(
        isn in any_numbers(), v6 in any::<bool>(), rtt in 5.0f64..100.0, service in 0.05f64..3.0, lost in 0u32..12,
    ) {
        let (analysis, packets) = behind_a_queue(isn, v6, rtt, service, lost);
        prop_assert_eq!(analysis.copied_packets * 2, packets);
        prop_assert_eq!(faults(one(&analysis)), [1, 0, 1]);
        prop_assert_eq!(duplicate_acks(&analysis), u64::from(15 - lost));
    }
}

/// The analysis of 16 segments, of which one is lost, captured at the client, which sends, and behind its queue; and the
/// number of packets in the capture. Times are in milliseconds.
fn behind_a_queue(isn: [u32; 2], v6: bool, rtt: f64, service: f64, lost: u32) -> (Analysis, u64) {
    let mut all: Vec<Packet> = Vec::new();
    let mut send = |at: f64, after: f64, from: usize, flags, seq, len, ack| {
        for (at, ttl) in [(at, 64), (at + after, 63)] {
            all.push(Packet { at, from, flags, seq, len, ack, ids: None, ttl });
        }
    };
    let idle = 0.02;
    send(0.0, idle, 0, Flags::SYN, 0, 0, 0);
    send(rtt, idle, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
    send(rtt + 0.1, idle, 0, Flags::ACK, 1, 0, 1);
    let start = rtt + 1.0;
    let mut answered = start;
    for n in 0..16 {
        let (at, waits) = (start + 0.01 * f64::from(n), idle + service * f64::from(n));
        send(at, waits, 0, Flags::ACK, 1 + 1000 * n, 1000, 1);
        answered = at + waits + rtt;
        if n != lost {
            let ack = 1 + 1000 * if n < lost { n + 1 } else { lost };
            send(answered, idle, 1, Flags::ACK, 1, 0, ack);
        }
    }
    send(answered + 0.1, idle, 0, Flags::ACK, 1 + 1000 * lost, 1000, 1);
    send(answered + 0.2 + rtt, idle, 1, Flags::ACK, 1, 0, 16_001);
    let mut s = Script::new();
    (s.isn, s.v6) = (isn, v6);
    let count = all.len() as u64;
    write_sorted(&mut s, all);
    (s.analyze(), count)
}

/// With these initial numbers more packets between an original and its copy belong to one set than it can hold.
#[test]
fn copies_are_found_when_a_set_is_full() {
    let (analysis, packets) =
        behind_a_queue([4_294_939_908, 2_723_608_311], false, 5.0, 2.620077076000354, 3);
    assert_eq!(analysis.copied_packets * 2, packets);
}
