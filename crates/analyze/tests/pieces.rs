//! A lost segment is one loss, however its sender cuts the repair.

use crate::common::Script;
use lasthop_analyze::{Connection, LossLocation};
use lasthop_proto::wire::Flags;
use proptest::prelude::*;

const FULL: u32 = 1448;

/// How lost segments are repaired.
#[derive(Clone, Debug)]
struct Repair {
    isn: [u32; 2],
    v6: bool,
    sack: bool,
    /// At the receiver: the capture never contains lost packets.
    unseen: bool,
    /// Segments of the flight, the first that is lost, and how many in a row are.
    segments: u32,
    first: u32,
    lost: u32,
    /// Lengths of the pieces, which may cross the boundaries of segments.
    pieces: Vec<u32>,
    /// Upon a timeout, without duplicate ACKs.
    timeout: bool,
}

prop_compose! {
    fn repair()(
        isn in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 5000, 7])], v6 in any::<bool>(), sack in any::<bool>(),
        unseen in any::<bool>(), first in 1u32..6, lost in 1u32..4, behind in 3u32..8,
        pieces in prop::collection::vec(200u32..1448, 24), timeout in any::<bool>(),
    ) -> Repair {
        Repair { isn, v6, sack, unseen, segments: first + lost + behind, first, lost, pieces, timeout }
    }
}

impl Repair {
    /// The pieces as offsets and lengths.
    fn cut(&self) -> Vec<(u32, u32)> {
        let (mut at, end) = (1 + self.first * FULL, 1 + (self.first + self.lost) * FULL);
        let mut cut = Vec::new();
        for len in self.pieces.iter().cycle() {
            if at >= end {
                break;
            }
            let len = (*len).min(end - at);
            cut.push((at, len));
            at += len;
        }
        cut
    }

    fn analyze(&self) -> Connection {
        let mut s = Script::new();
        (s.isn, s.v6, s.mss) = (self.isn, self.v6, [Some(1460); 2]);
        s.sack_permitted = [self.sack; 2];
        s.stamps = Some((10, 10));
        // Next to the sender, or next to the receiver.
        let (rtt, back) = (40.0, if self.unseen { 0.1 } else { 40.0 });
        s.send(0.0, 0, Flags::SYN, 0, 0, 0);
        s.send(back, 1, Flags::SYN | Flags::ACK, 0, 0, 1);
        s.send(rtt + 0.1, 0, Flags::ACK, 1, 0, 1);
        let at = 100.0;
        let is_lost = |n: u32| (self.first..self.first + self.lost).contains(&n);
        let hole = (1 + self.first * FULL, 1 + (self.first + self.lost) * FULL);
        let end = 1 + self.segments * FULL;
        let mut packets: Vec<(f64, usize, u32, u32)> = Vec::new();
        for n in 0..self.segments {
            let sent = at + f64::from(n) * 0.3;
            if !(self.unseen && is_lost(n)) {
                packets.push((sent, 0, 1 + n * FULL, FULL));
            }
            if !(is_lost(n) || self.timeout && n > self.first) {
                packets.push((sent + back, 1, (1 + (n + 1) * FULL).min(hole.0), n));
            }
        }
        let mut at = at + if self.timeout { 400.0 } else { 45.0 };
        for (offset, len) in self.cut() {
            packets.push((at, 0, offset, len));
            let next = offset + len;
            packets.push((at + back + 0.01, 1, if next < hole.1 { next } else { end }, 0));
            at += if self.timeout { back.max(1.0) + 1.0 } else { 0.4 };
        }
        packets.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, from, number, len) in packets {
            // The clock of timestamps has milliseconds.
            // The ACK of a packet echoes its timestamp.
            let echo = if from == 0 { 1 } else { 1000 + (at - back) as u32 };
            s.stamps = Some((1000 + at as u32, echo));
            match from {
                0 => s.data(at, number, len),
                _ if self.sack && number == hole.0 && len > self.first => {
                    s.ack_sack(at, number, &[(hole.1, 1 + (len + 1) * FULL)]);
                }
                _ => s.ack(at, number),
            }
        }
        s.analyze().connections.remove(0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn losses_are_counted_in_segments_not_retransmitted_pieces(repair in repair()) {
        let connection = repair.analyze();
        let sent = &connection.to_server;
        let pieces = repair.cut().len() as u64;
        prop_assert_eq!(sent.retransmissions.total(), pieces, "{:?}", sent.retransmissions);
        prop_assert_eq!(sent.retransmissions.needless, 0);
        prop_assert_eq!((sent.losses.len() as u32, sent.losses_omitted), (repair.lost, 0), "{:?}", sent.losses);
        for (n, loss) in sent.losses.iter().enumerate() {
            let offset = 1 + i64::from((repair.first + n as u32) * FULL);
            prop_assert_eq!((loss.offset, loss.len), (offset, FULL));
            prop_assert_eq!(loss.seen, if repair.unseen { LossLocation::Never } else { LossLocation::Before });
            prop_assert_eq!(loss.burst, repair.lost);
        }
        prop_assert_eq!(sent.unique_bytes, u64::from(repair.segments * FULL));
    }

    /// A super-segment of the sender's stack is cut into packets on the wire: each may be lost.
    #[test]
    fn packets_of_a_super_segment_are_lost_one_by_one(
        isn in any::<[u32; 2]>(), packets in 2u32..20, lost in 1u32..20,
    ) {
        let lost = lost.min(packets);
        let mut s = Script::new();
        (s.isn, s.mss) = (isn, [Some(1460); 2]);
        s.window = [60_000; 2];
        s.handshake(0.0, 40.0);
        s.data(50.0, 1, packets * 1460);
        let end = 1 + packets * 1460;
        s.data(50.1, end, 5 * 1460);
        (1..5).for_each(|n| s.ack_sack(90.0 + f64::from(n), 1, &[(end, end + n * 1460)]));
        for n in 0..lost {
            s.data(95.0 + f64::from(n), 1 + n * 1460, 1460);
        }
        s.ack(140.0, end + 5 * 1460);
        let analysis = s.analyze();
        let sent = &analysis.connections[0].to_server;
        prop_assert_eq!(sent.losses.len() as u32, lost);
    }
}

/// What arrived by the SACK blocks of the receiver was not lost, though its sender goes back to the hole.
#[test]
fn data_in_sack_blocks_is_not_counted_as_lost() {
    let mut s = Script::new();
    s.sack_permitted = [true; 2];
    s.handshake(0.0, 40.0);
    (0..6).for_each(|n| s.data(50.0 + f64::from(n), 1 + 1000 * n, 1000));
    s.ack_sack(92.0, 1, &[(1001, 2001)]);
    s.ack_sack(93.0, 1, &[(1001, 6001)]);
    for n in 0..6 {
        s.data(400.0 + 50.0 * f64::from(n), 1 + 1000 * n, 1000);
    }
    s.ack(440.0, 6001);
    let sent = &s.analyze().connections[0].to_server;
    assert_eq!((sent.retransmissions.total(), sent.losses.len()), (6, 1));
    assert_eq!(sent.losses[0].offset, 1);
}
