//! Two ends of any link layer over a medium that loses what it likes: no packet is handed up twice or from nowhere, and
//! the ends come to rest.
#![no_main]

mod shared;

use std::collections::VecDeque;
use std::sync::LazyLock;

use lasthop_proto::air::Station;
use lasthop_proto::event::{Cause, LinkNote};
use lasthop_proto::link::end::{Above, LinkEnd as _, MacSignal};
use lasthop_proto::link::frame::{Frame, Load, Timing};
use lasthop_proto::link::{LinkLayer, LinkLayerConfig, words};
use lasthop_proto::rng::Stream;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Packet, PacketId};
use lasthop_scenario::{StageKind, parse};
use libfuzzer_sys::fuzz_target;
use shared::{Feed, segment, wake_until};

/// Every link layer that there is, as a file has it that says no more.
static LAYERS: LazyLock<Vec<LinkLayerConfig>> = LazyLock::new(|| {
    let config = |word: &str| {
        let text = format!(
            "transfer = {{ from = \"fixed\", to = \"mobile\", bytes = \"1MB\" }}\n[host.fixed]\n[host.mobile]\n\
             [[path]]\nradio = {{ rate = \"1mbit\" }}\nlink-layer = \"{word}\"\n"
        );
        let (plan, _) = parse(&text, "fuzz", &[]).unwrap_or_else(|error| panic!("{word}: {error}"));
        let stages = plan.cells.into_iter().flat_map(|cell| cell.scenario.path);
        let mut hops = stages.filter_map(|stage| match stage.kind {
            StageKind::Radio(radio) => radio.hop.map(|hop| hop.link),
            _ => None,
        });
        hops.next().unwrap_or_default()
    };
    words().map(|word| config(word.word)).collect()
});

/// What stands above an end.
struct Upper {
    queue: VecDeque<Packet>,
    /// Packets that this end was given, by number, and whether the other end may still hand them up.
    given: Vec<u64>,
    released: Vec<u64>,
    peer: Station,
    closed: bool,
}

impl Upper {
    fn with_peer(peer: Station) -> Upper {
        let (queue, given, released) = (VecDeque::new(), Vec::new(), Vec::new());
        Upper { queue, given, released, peer, closed: false }
    }
}

impl Above for Upper {
    fn waits(&self, to: Station) -> bool {
        to == self.peer && !self.queue.is_empty()
    }
    fn next_destination(&self) -> Option<Station> {
        (!self.queue.is_empty()).then_some(self.peer)
    }
    fn is_open(&self, _: Station) -> bool {
        !self.closed
    }
    fn take(&mut self, to: Station) -> Option<Load> {
        assert_eq!(to, self.peer);
        self.queue.pop_front().map(Load::Packet)
    }
    fn release(&mut self, _: Station, load: Load) {
        if let Some(packet) = load.packet() {
            assert!(!self.released.contains(&packet.id.0), "{} is handed up twice", packet.id.0);
            self.released.push(packet.id.0);
        }
    }
    fn give_up(&mut self, _: Station, load: Load, _: Cause) {
        let packet = load.packet().expect("a packet is given up");
        assert!(self.given.contains(&packet.id.0), "it was never given");
    }
    fn repeat(&mut self, _: Station, _: &Load, _: Cause) {}
    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
    fn note(&mut self, _: Station, _: LinkNote) {}
}

struct End {
    layer: LinkLayer,
    upper: Upper,
    /// What medium access has, and whether TRANS was said of it.
    at_mac: Option<Frame>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut feed = Feed(bytes);
    let config = &LAYERS[usize::from(feed.byte()) % LAYERS.len()];
    let setup = feed.byte();
    let acks = setup & 1 == 0;
    let timing = Timing {
        byte_ps: 8_000_000,
        frame: Span::micros(100),
        propagation: Span::millis(u64::from(setup >> 4)),
        turnaround: Span::ZERO,
        processing: Span::ZERO,
        turn: Span::ZERO,
    };
    let make = |i: u8| End {
        layer: LinkLayer::new(config, Station(i), 2, timing, Stream::new(u64::from(setup), "fuzz")),
        upper: Upper::with_peer(Station(1 - i)),
        at_mac: None,
    };
    let mut ends = [make(0), make(1)];
    let mut now = Time::ZERO;
    let mut packets = 0_u64;
    while !feed.is_over() {
        let what = feed.byte();
        let i = usize::from(what & 1);
        match what >> 1 & 7 {
            0 => {
                let then = now + feed.span();
                for End { layer, upper, .. } in &mut ends {
                    let next = layer.next_wake();
                    wake_until(then, next, |at| {
                        layer.on_wake(at, upper);
                        layer.next_wake()
                    });
                }
                now = then;
            }
            1 | 2 => {
                let (_, packet) = segment(&mut feed);
                packets += 1;
                ends[i].upper.given.push(packets);
                ends[i].upper.queue.push_back(packet.with(|packet| packet.id = PacketId(packets)));
            }
            3 => ends[i].upper.closed = what & 128 != 0,
            _ => {
                let End { layer, upper, at_mac } = &mut ends[i];
                if at_mac.is_none() {
                    *at_mac = layer.next_frame(now, upper);
                }
                let Some(frame) = at_mac.take() else { continue };
                let (from, to) = (frame.from, frame.to);
                assert_eq!((usize::from(from.0), usize::from(to.0)), (i, 1 - i));
                let airtime = timing.frame + Span::micros(8 * u64::from(frame.bytes));
                layer.on_mac(now, MacSignal::Trans { to, airtime }, upper);
                now += airtime;
                let lost = what & 128 != 0;
                // An answer of medium access may be lost, too.
                let acked = acks.then_some(!lost && what & 64 == 0);
                layer.on_mac(now, MacSignal::Done { to, acked }, upper);
                if lost {
                    continue;
                }
                if let Some(packet) = frame.load.packet() {
                    assert!(ends[i].upper.given.contains(&packet.id.0), "sent and never given");
                }
                let End { layer, upper, at_mac } = &mut ends[1 - i];
                layer.on_frame(now, frame, upper);
                if what & 32 != 0 && at_mac.is_none() {
                    // A medium access that lets an answer go at once.
                    *at_mac = layer.reply(now, from, upper);
                }
            }
        }
    }
});
