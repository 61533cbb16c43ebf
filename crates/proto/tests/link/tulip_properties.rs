//! TULIP over media that lose, delay and copy, and against invalid frames.

use lasthop_proto::air::Station;
use lasthop_proto::event::LinkNote;
use lasthop_proto::link::end::LinkEnd;
use lasthop_proto::link::frame::{ArqHeader, BitVector, Frame, Header, LinkAck, Load};
use lasthop_proto::link::tulip::{Pacing, Tulip, TulipConfig};
use lasthop_proto::units::{Span, Time};
use proptest::prelude::*;

use crate::support::{Fate, Upper, World, packet, timing};

fn windows() -> impl Strategy<Value = u16> {
    prop_oneof![Just(1u16), Just(2), Just(3), Just(8), Just(64), 1u16..200]
}

fn config(window: u16, full: bool) -> TulipConfig {
    let pacing = if full { Pacing::FullDuplex } else { Pacing::HalfDuplex };
    TulipConfig { window, pacing, ..TulipConfig::default() }
}

/// Fate of each transmission in order; after the end of the list, all arrive.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let delay = prop_oneof![4 => Just(0u64), 1 => 0u64..20_000_000, 1 => 0u64..300_000_000];
    let one = prop_oneof![
        5 => delay.clone().prop_map(|d| vec![Span(d)]),
        2 => Just(vec![]),
        1 => (delay.clone(), delay).prop_map(|(a, b)| vec![Span(a), Span(b)]),
    ];
    prop::collection::vec(one, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Reliable packets are released once, in order, for any behaviour of the medium without permanent loss.
    #[test]
    fn everything_reliable_is_released_once_and_in_order(
        window in windows(),
        full in any::<bool>(),
        acceleration in any::<bool>(),
        fates in fates(),
        counts in [0u64..120, 0u64..120, 0u64..40],
    ) {
        let config = TulipConfig { acceleration, ..config(window, full) };
        let mut world = World::new(&config, 3, timing(Span::millis(2)), !full);
        let [to_mobile, to_base, to_other] = counts;
        for id in 0..to_mobile {
            world.put(0, 1, packet(id, 500));
        }
        for id in 0..to_base {
            world.put(1, 0, packet(1000 + id, 700));
        }
        for id in 0..to_other {
            world.put(0, 2, packet(2000 + id, 100));
        }
        let mut fates = fates.into_iter();
        let mut fate = |_: &Frame| fates.next().unwrap_or_else(|| vec![Span::ZERO]);
        world.run(Time(600_000_000_000), &mut fate);
        let released = |i: usize| world.uppers[i].released.iter().map(|(_, id)| *id);
        prop_assert!(released(1).eq(0..to_mobile), "{:?}", world.uppers[1]);
        prop_assert!(released(0).eq(1000..1000 + to_base), "{:?}", world.uppers[0]);
        prop_assert!(released(2).eq(2000..2000 + to_other), "{:?}", world.uppers[2]);
        for (end, peer) in [(0, 1), (0, 2), (1, 0), (2, 0)] {
            prop_assert_eq!(world.ends[end].memory(Station(peer)), (0, 0));
        }
    }

    /// An unreachable station does not block the packets of the others.
    #[test]
    fn an_unreachable_station_does_not_block_others(window in windows(), full in any::<bool>()) {
        let mut world = World::new(&config(window, full), 3, timing(Span::millis(2)), !full);
        for id in 0..60 {
            world.put(0, 1, packet(id, 500));
            world.put(0, 2, packet(1000 + id, 500));
        }
        let mut fate = |frame: &Frame| match frame.to {
            Station(1) => vec![],
            _ => vec![Span::ZERO],
        };
        world.run(Time(5_000_000_000), &mut fate);
        prop_assert_eq!(world.uppers[2].released.len(), 60);
        prop_assert_eq!(world.ends[0].memory(Station(1)).0, 60.min(usize::from(window)));
    }

    /// Frames with any header are counted and dropped; memory stays within the window.
    #[test]
    fn memory_is_bounded_for_any_frames(
        window in windows(),
        full in any::<bool>(),
        headers in prop::collection::vec(headers(), 1..200),
    ) {
        let mut end = Tulip::new(&config(window, full), Station(1), 2, timing(Span::millis(2)));
        let mut upper = Upper::default();
        for id in 0..20 {
            upper.queue.push_back((Station(0), packet(id, 500)));
        }
        let mut now = Time::ZERO;
        for (n, (from, header, load)) in headers.into_iter().enumerate() {
            now += Span::millis(3);
            let load = if load { Load::Packet(packet(5000 + n as u64, 9)) } else { Load::None };
            let (to, from) = (Station(1), Station(from));
            let frame = Frame { from, to, header, bytes: 10 + load.bytes(), load, stored: true };
            end.on_frame(now, frame, &mut upper);
            end.on_wake(now, &mut upper);
            if n % 3 == 0 {
                let _ = end.next_frame(now, &mut upper);
            }
            let (sent, buffered) = end.memory(Station(0));
            prop_assert!(sent <= usize::from(window) && buffered < usize::from(window).max(1));
        }
    }
}

fn headers() -> impl Strategy<Value = (u8, Header, bool)> {
    let number = || prop_oneof![3 => 0u32..600, 1 => any::<u32>()];
    let bits = (prop_oneof![0u16..300, any::<u16>()], prop::collection::vec(0u16..300, 0..20));
    let vector = bits.prop_map(|(len, set)| {
        let mut vector = BitVector::zeros(len);
        set.into_iter().for_each(|i| vector.set(i));
        vector
    });
    let ack = (number(), vector, number()).prop_map(|(cumulative, vector, last_received)| {
        LinkAck { cumulative, vector, last_received }
    });
    let arq = (prop::option::of(number()), number(), prop::option::of(ack))
        .prop_map(|(seq, transmission, ack)| Header::Arq(ArqHeader { seq, transmission, ack }));
    let header = prop_oneof![9 => arq, 1 => Just(Header::Plain)];
    (prop_oneof![5 => Just(0u8), 1 => any::<u8>()], header, any::<bool>())
}

fn notes(header: ArqHeader) -> Vec<LinkNote> {
    let mut end = Tulip::new(&TulipConfig::default(), Station(1), 2, timing(Span::millis(2)));
    let mut upper = Upper::default();
    let load = if header.seq.is_some() { Load::Packet(packet(1, 9)) } else { Load::None };
    let header = Header::Arq(header);
    let (from, to) = (Station(0), Station(1));
    end.on_frame(Time(5), Frame { from, to, header, bytes: 60, load, stored: true }, &mut upper);
    assert!(upper.released.is_empty());
    upper.notes
}

#[test]
fn dropped_frames_are_noted_with_a_cause() {
    let ack = |cumulative, len, last_received| {
        let ack = LinkAck { cumulative, vector: BitVector::zeros(len), last_received };
        notes(ArqHeader { ack: Some(ack), ..ArqHeader::default() })
    };
    assert_eq!(ack(15, 8, 0), [], "nothing was sent, and nothing is acknowledged");
    assert_eq!(ack(3, 8, 0), [LinkNote::BadAck], "never sent");
    assert_eq!(ack(16, 8, 0), [LinkNote::BadAck], "no such number");
    assert_eq!(ack(15, 9, 0), [LinkNote::BadAck], "longer than the window");
    assert_eq!(ack(15, 8, 1), [LinkNote::BadAck], "no such transmission");
    let seq = |seq| notes(ArqHeader { seq: Some(seq), transmission: 1, ack: None });
    assert_eq!(seq(16), [LinkNote::OutOfWindow]);
    assert_eq!(seq(8), [LinkNote::Duplicate], "the numbers behind the window have been received");
}
