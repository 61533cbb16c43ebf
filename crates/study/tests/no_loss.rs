//! Advice from captures in which the first transmission of every byte arrived: no loss is reported, whatever the order of the file, its
//! copies, and needless retransmissions.

#[path = "../../analyze/tests/common/mod.rs"]
mod common;

use self::common::Script;
use lasthop_proto::wire::Flags;
use lasthop_study::advise::Estimate;
use lasthop_study::capture::Capture;
use proptest::prelude::*;

/// What happens to the packets of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Each packet of one side some places earlier in the file than on the wire.
    Order,
    /// Each packet twice.
    Copies,
    /// The receiver resets without an acknowledgment number in the midst.
    Reset,
    /// A packet is retransmitted after its ACK has passed.
    Needless,
    /// Captured at the receiver: neighbours change places on their way.
    Overtaken,
}

const KINDS: [Kind; 5] = [Kind::Order, Kind::Copies, Kind::Reset, Kind::Needless, Kind::Overtaken];

/// From which side, number, length, acknowledgment, timestamp.
type Packet = (usize, u32, u32, u32, u32);

fn transfer(segments: u32, len: u32) -> Vec<Packet> {
    let mut packets = vec![(0, 1, 100, 1, 1), (1, 1, 0, 101, 1)];
    for i in 0..segments {
        packets.push((1, 1 + i * len, len, 101, 10 + i));
        packets.push((0, 101, 0, 1 + (i + 1) * len, 10 + i));
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_loss_where_every_byte_arrived_at_first(
        isn in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 9000, u32::MAX - 20_000])],
        v6 in any::<bool>(), counted in any::<bool>(), opened in any::<bool>(), rtt in 2.0f64..600.0,
        len in prop_oneof![Just(1460u32), Just(1448), 500u32..1448, Just(14_600)],
        kind in prop::sample::select(&KINDS[..]), at in 4usize..60, by in 1usize..6,
    ) {
        let segments = 40;
        let mut packets = transfer(segments, len);
        let acked = |place: usize| 1 + (place as u32 / 2 - 1) * len;
        let place = at / 2 * 2;
        match kind {
            Kind::Order => {
                let acks: Vec<usize> = (3..packets.len()).step_by(2).collect();
                for from in acks {
                    let packet = packets.remove(from);
                    // An ACK passes data, never an ACK.
                    let least = packets[..from].iter().rposition(|p| p.0 == 0).map_or(0, |i| i + 1);
                    packets.insert(from.saturating_sub(by % 2).max(least), packet);
                }
            }
            Kind::Copies => packets = packets.into_iter().flat_map(|p| [p; 2]).collect(),
            Kind::Reset => {
                packets.truncate(place);
                let from = (packets.len() - 2) as u32 / 2;
                packets.push((2, 101, 0, 0, 0));
                packets.extend((from..from + 5).map(|i| (1, 1 + i * len, len, 101, 10 + i)));
            }
            Kind::Needless => {
                let seq = acked(place) - len;
                packets.insert(place + 2, (1, seq.max(1), len, 101, 99));
                packets.insert(place + 3, (0, 101, 0, acked(place) + len, 99));
            }
            Kind::Overtaken => {
                packets.swap(place, place + 2);
                packets[place + 1].3 = acked(place);
                packets[place + 3].3 = acked(place) + 2 * len;
            }
        }
        let mut s = Script::new();
        (s.isn, s.v6) = (isn, v6);
        s.ids = (counted && !v6).then_some([7, 65_530]);
        if opened {
            s.handshake(0.0, rtt);
        }
        for (n, (from, seq, len, ack, stamp)) in packets.into_iter().enumerate() {
            s.stamps = Some((stamp, 1));
            if from == 1 && len > 0 {
                // The sender counts in the order in which it sends.
                let id = 65_530_u16.wrapping_add(stamp as u16);
                s.ids = (counted && !v6).then_some([7, id]);
            }
            let at = rtt + 10.0 + n as f64 * 0.2;
            match from {
                2 => s.send(at, 0, Flags::RST, seq, 0, 0),
                _ => s.send(at, from, Flags::ACK, seq, len, ack),
            }
        }
        let capture = Capture { file: "test".to_owned(), analysis: s.analyze(), left_out: 0 };
        // Without a round trip there is no estimate, and no loss either.
        let Ok(estimate) = Estimate::of(&capture, "") else { return Ok(()) };
        prop_assert_eq!(estimate.loss.map_or(0.0, |(loss, _)| loss.get()), 0.0, "{:?}", kind);
        prop_assert_eq!(estimate.captured.map_or(0.0, |captured| captured.loss), 0.0, "{:?}", kind);
    }

    /// The receiver has everything, and its latest ACKs are lost behind the capture or before it. The sender waits for its timer.
    /// If an ACK reports that the segment is missing, it is a loss.
    #[test]
    fn no_loss_where_the_ack_may_have_been_lost(
        isn in any::<[u32; 2]>(), v6 in any::<bool>(), counted in any::<bool>(), stamped in any::<bool>(),
        sack in any::<bool>(), rtt in 2.0f64..150.0, flights in 2u32..12, last in 1u32..4, timeouts in 1u32..4,
        reported in any::<bool>(), tail in 0u32..3,
    ) {
        let mut s = Script::new();
        (s.isn, s.v6, s.sack_permitted) = (isn, v6, [sack; 2]);
        s.ids = (counted && !v6).then_some([7, 65_530]);
        // An ACK echoes the timestamp of what it answers.
        let stamp = |s: &mut Script, at: f64, of: f64| s.stamps = stamped.then_some((at as u32, of as u32));
        s.handshake(0.0, rtt);
        let mut at = rtt + 10.0;
        let flight = |s: &mut Script, at: f64, n: u32| {
            stamp(s, at, 1.0);
            (0..4).for_each(|i| s.data(at + 0.1 * f64::from(i), 1 + 4000 * n + 1000 * i, 1000));
        };
        for n in 0..flights {
            flight(&mut s, at, n);
            stamp(&mut s, at + rtt, at);
            (1..=4).for_each(|i| s.ack(at + rtt + 0.1 * f64::from(i), 1 + 4000 * n + 1000 * i));
            at += rtt + 1.0;
        }
        // Of this flight the segments from `last` on are not acknowledged in time.
        let first = 1 + 4000 * flights;
        flight(&mut s, at, flights);
        let acked = first + 1000 * last;
        stamp(&mut s, at + rtt, at);
        (1..=last).for_each(|i| s.ack(at + rtt + 0.1 * f64::from(i), first + 1000 * i));
        if reported {
            // A segment behind it arrives, so the receiver repeats its ACK.
            s.ack(at + rtt + 1.0, acked);
        }
        for n in 1..=timeouts {
            at += 300.0 * f64::from(n);
            stamp(&mut s, at, 1.0);
            s.data(at, acked, 1000);
        }
        stamp(&mut s, at + rtt, at);
        s.ack(at + rtt, first + 4000);
        at += rtt + 1.0;
        for n in 1..=tail {
            flight(&mut s, at, flights + n);
            stamp(&mut s, at + rtt, at);
            (1..=4).for_each(|i| s.ack(at + rtt + 0.1 * f64::from(i), 1 + 4000 * (flights + n) + 1000 * i));
            at += rtt + 1.0;
        }
        let capture = Capture { file: "test".to_owned(), analysis: s.analyze(), left_out: 0 };
        let estimate = Estimate::of(&capture, "").unwrap();
        let lost = estimate.captured.map_or(0.0, |captured| captured.loss);
        let loss = estimate.loss.map_or(0.0, |(loss, _)| loss.get());
        if reported {
            prop_assert!(lost > 0.0);
        } else {
            prop_assert_eq!((loss, lost), (0.0, 0.0));
            // Where an echoed timestamp shows that the repair was needless, there is nothing to note.
            let all = capture.transfers();
            let counted = all.iter().any(|transfer| !transfer.data.losses.is_empty());
            let noted =
                estimate.notes.iter().any(|note| note.contains("capture at the receiver as well"));
            prop_assert_eq!(counted, noted, "{:?}", estimate.notes);
        }
    }
}
