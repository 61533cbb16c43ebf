//! The tables of states against what the ends do, and the manual against the tables.

use std::collections::BTreeSet;

use lasthop_proto::air::Station;
use lasthop_proto::link::end::{LinkEnd, MacSignal};
use lasthop_proto::link::frame::Frame;
use lasthop_proto::link::tulip::states::{RECEIVER, SENDER, SendEvent, markdown};
use lasthop_proto::link::tulip::{Tulip, TulipConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};

use crate::support::{Upper, World, packet, timing};

#[test]
fn the_ends_do_what_the_tables_say_and_all_of_it() {
    let (mut moves, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..300 {
        let mut stream = Stream::new(seed, "medium");
        let acceleration = seed % 2 == 0;
        let config = TulipConfig { acceleration, ..TulipConfig::default() };
        let mut world = World::new(&config, 2, timing(Span::millis(1)), true);
        for id in 0..40 {
            // Among them some that are sent once, such as TCP ACKs.
            world.put(0, 1, packet(id, if id % 4 == 3 { 0 } else { 500 }));
            if seed % 3 == 0 {
                world.put(1, 0, packet(1000 + id, 500));
            }
        }
        let mut left = 300;
        let mut fate = |_: &Frame| {
            left -= i32::from(left > 0);
            match stream.below(10) {
                _ if left == 0 => vec![Span::ZERO],
                0..2 => vec![],
                2 => vec![Span::millis(stream.below(30))],
                _ => vec![Span::ZERO],
            }
        };
        world.run(Time(60_000_000_000), &mut fate);
        moves.append(&mut world.moves);
        taken.append(&mut world.taken);
    }
    let mut end = Tulip::new(&TulipConfig::default(), Station(0), 2, timing(Span::millis(1)));
    let mut upper = Upper::default();
    upper.queue.push_back((Station(1), packet(1, 500)));
    assert!(end.next_frame(Time(1), &mut upper).is_some());
    let before = end.send_state(Station(1));
    end.on_mac(Time(9), MacSignal::Done { to: Station(1), acked: None }, &mut upper);
    moves.insert((before, SendEvent::Refused, end.send_state(Station(1))));
    assert!(end.next_frame(Time(9), &mut upper).is_some(), "the packet goes again");

    let table: BTreeSet<_> =
        SENDER.iter().map(|(from, event, to, _)| (*from, *event, *to)).collect();
    assert_eq!(moves.difference(&table).collect::<Vec<_>>(), [] as [&_; 0], "not in the table");
    assert_eq!(table.difference(&moves).collect::<Vec<_>>(), [] as [&_; 0], "never seen");
    assert_eq!(table.len(), SENDER.len());
    let table: BTreeSet<_> =
        RECEIVER.iter().map(|(from, event, to, _)| (*from, *event, *to)).collect();
    assert_eq!(taken, table);
}

#[test]
fn the_manual_has_the_tables_as_they_are() {
    let manual = include_str!("../../../../docs/systems/tulip.md");
    assert!(manual.contains(&markdown()), "docs/systems/tulip.md must have:\n\n{}", markdown());
}
