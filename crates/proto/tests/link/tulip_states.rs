//! The state tables compared with the ends' behaviour, and the manual compared with the tables.

use std::collections::BTreeSet;

use lasthop_proto::air::Station;
use lasthop_proto::link::end::{LinkEnd, MacSignal};
use lasthop_proto::link::frame::Frame;
use lasthop_proto::link::tulip::states::{ReceiveState, SendState};
use lasthop_proto::link::tulip::{Pacing, Tulip, TulipConfig};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};

use crate::support::{Upper, World, packet, timing};

// The tables describe the paper's pacing, in which the stations take turns.
/// Events of a sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SendEvent {
    /// A reliable packet is chosen and passed to medium access.
    Choose,
    /// TRANS: medium access starts to send it.
    Trans,
    /// Medium access gives up the packet without sending it.
    Refused,
    /// An acknowledgement arrives.
    Lack,
    /// T1 expires, including WAIT.
    T1,
}

/// Events of a receiver; each is answered with a LACK.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReceiveEvent {
    /// The next packet in order.
    Next,
    /// A packet behind a missing one.
    Ahead,
    /// A duplicate packet.
    Again,
}

/// A row: state, event, next state, and action.
type Row<S, E> = (S, E, S, &'static str);

use ReceiveEvent::{Again, Ahead, Next};
use ReceiveState::{Gap, InOrder};
use SendEvent::{Choose, Lack, Refused, T1, Trans};
use SendState::{Handed, Idle, Ready, Waiting};

/// The sender of one destination.
const SENDER: [Row<SendState, SendEvent>; 14] = [
    (Idle, Choose, Handed, "a new packet"),
    (Idle, Lack, Idle, "nothing is left to acknowledge"),
    (Handed, Trans, Waiting, "T1 starts"),
    (Handed, Refused, Ready, "the oldest may go again"),
    (Handed, Lack, Handed, "the list is rebuilt"),
    (Waiting, Lack, Idle, "T1 is stopped, all is acknowledged"),
    (Waiting, Lack, Ready, "T1 is stopped, the list is rebuilt"),
    (Waiting, Lack, Waiting, "a late one: the list is rebuilt"),
    (Waiting, Choose, Handed, "a packet is sent with a pending acknowledgement"),
    (Waiting, T1, Ready, "no answer arrived"),
    (Waiting, T1, Idle, "it was acknowledged before it was retransmitted"),
    (Ready, Choose, Handed, "from the list, else a new one, else the oldest"),
    (Ready, Lack, Idle, "all is acknowledged"),
    (Ready, Lack, Ready, "the list is rebuilt"),
];

/// The receiver of one sender.
const RECEIVER: [Row<ReceiveState, ReceiveEvent>; 7] = [
    (InOrder, Next, InOrder, "delivered"),
    (InOrder, Ahead, Gap, "stored, its bit set"),
    (InOrder, Again, InOrder, "dropped"),
    (Gap, Next, InOrder, "delivered, with all packets that waited for it"),
    (Gap, Next, Gap, "delivered, with the packets that follow it in order"),
    (Gap, Ahead, Gap, "stored, its bit set"),
    (Gap, Again, Gap, "dropped"),
];

fn drawn<S: core::fmt::Debug, E: core::fmt::Debug>(title: &str, rows: &[Row<S, E>]) -> String {
    let mut text = format!("{title}\n\n```mermaid\nstateDiagram-v2\n");
    for (from, event, to, _) in rows {
        text += &format!("    {from:?} --> {to:?}: {event:?}\n");
    }
    text += "```\n\n| state | event | next | |\n|---|---|---|---|\n";
    for (from, event, to, meaning) in rows {
        text += &format!("| {from:?} | {event:?} | {to:?} | {meaning} |\n");
    }
    text
}

/// Both tables in the format of the manual.
fn markdown() -> String {
    let sender = drawn("The sender, for each destination:", &SENDER);
    format!(
        "{sender}\n{}",
        drawn("The receiver, for each sender; it answers every event:", &RECEIVER)
    )
}

#[test]
fn both_ends_take_exactly_the_transitions_of_the_tables() {
    let (mut moves, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..300 {
        let mut stream = Stream::new(seed, "medium");
        let acceleration = seed % 2 == 0;
        let config = TulipConfig { acceleration, ..TulipConfig::default() };
        let mut world = World::new(&config, 2, timing(Span::millis(1)), true);
        for id in 0..40 {
            // Including some that are sent once, such as TCP ACKs.
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
    moves.insert((before, Refused, end.send_state(Station(1))));
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

/// In full duplex an acknowledgement covers the packets of a 64th of the window, or the chosen number.
#[test]
fn an_ack_covers_the_configured_number_of_packets() {
    for (window, lack_every, every) in [(64, Some(4), 4), (128, None, 2), (8, None, 1)] {
        let config = TulipConfig {
            window,
            lack_every,
            lack_delay: Some(Span::secs(1)),
            pacing: Pacing::FullDuplex,
            ..TulipConfig::default()
        };
        let timing = timing(Span::millis(1));
        let [mut sender, mut receiver] = [0, 1].map(|i| Tulip::new(&config, Station(i), 2, timing));
        let (mut above, mut below) = (Upper::default(), Upper::default());
        for n in 1..=8 {
            let now = Time(1_000_000 * n);
            above.queue.push_back((Station(1), packet(n, 500)));
            let frame = sender.next_frame(now, &mut above).expect("a packet");
            sender.on_mac(now, MacSignal::Done { to: Station(1), acked: None }, &mut above);
            receiver.on_frame(now, frame, &mut below);
            let answer = receiver.next_frame(now, &mut below);
            assert_eq!(answer.is_some(), n % every == 0, "one for {every}, packet {n}");
            if answer.is_some() {
                receiver.on_mac(now, MacSignal::Done { to: Station(0), acked: None }, &mut below);
            }
        }
        assert_eq!(below.released.len(), 8);
    }
}

/// Two packets are in flight, and the first is acknowledged. The timer for the other restarts, unless a
/// packet to the same station is about to be sent, which sets it then.
#[test]
fn the_alarm_waits_for_a_packet_that_medium_access_has_not_begun() {
    let config = TulipConfig { pacing: Pacing::FullDuplex, ..TulipConfig::default() };
    let timing = timing(Span::millis(1));
    let ms = |ms: u64| Time(ms * 1_000_000);
    for (to, bytes, begun, rings) in [
        (1, 500, false, false),
        (1, 500, true, true),
        // Packets that are sent once start no timer, and another station has a separate one.
        (1, 0, false, true),
        (2, 500, false, true),
    ] {
        let mut sender = Tulip::new(&config, Station(0), 3, timing);
        let mut receiver = Tulip::new(&config, Station(1), 3, timing);
        let (mut above, mut below) = (Upper::default(), Upper::default());
        let trans = |to| MacSignal::Trans { to: Station(to), airtime: Span::millis(4) };
        let mut first = None;
        for n in 1..=2 {
            above.queue.push_back((Station(1), packet(n, 500)));
            let frame = sender.next_frame(ms(n), &mut above).expect("a packet");
            sender.on_mac(ms(n), trans(1), &mut above);
            sender.on_mac(ms(n), MacSignal::Done { to: Station(1), acked: None }, &mut above);
            first.get_or_insert(frame);
        }
        receiver.on_frame(ms(3), first.expect("sent"), &mut below);
        let answer = receiver.next_frame(ms(3), &mut below).expect("an acknowledgement");
        above.queue.push_back((Station(to), packet(3, bytes)));
        assert!(sender.next_frame(ms(4), &mut above).is_some());
        if begun {
            sender.on_mac(ms(4), trans(to), &mut above);
        }
        sender.on_frame(ms(5), answer, &mut above);
        let wake = sender.next_wake();
        assert_eq!(wake.is_some(), rings, "to {to}, {bytes} bytes, begun {begun}: {wake:?}");
        assert!(wake.is_none_or(|at| at > ms(5)), "a new deadline");
    }
}

#[test]
fn the_manual_contains_the_current_tables() {
    let manual = include_str!("../../../../docs/reference/systems/tulip.md");
    assert!(
        manual.contains(&markdown()),
        "docs/reference/systems/tulip.md must have:\n\n{}",
        markdown()
    );
}
