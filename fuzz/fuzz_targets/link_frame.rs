//! Frames of the link layer: read or refused, written again as they were; an end of TULIP takes them without harm, one
//! after the other, while it sends frames of its own.
#![no_main]

mod shared;

use lasthop_proto::air::Station;
use lasthop_proto::event::{Cause, LinkNote};
use lasthop_proto::link::end::{Above, LinkEnd, MacSignal};
use lasthop_proto::link::frame::{Frame, Header, Load, Timing};
use lasthop_proto::link::tulip::{Pacing, Tulip, TulipConfig, codec};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, Segment, Seq};
use libfuzzer_sys::fuzz_target;
use shared::{Feed, wake_until};

/// A queue of packets; what is handed up is counted.
struct Upper {
    queue: u32,
    released: u32,
}

impl Above for Upper {
    fn waits(&self, _: Station) -> bool {
        self.queue > 0
    }
    fn next_destination(&self) -> Option<Station> {
        (self.queue > 0).then_some(Station(0))
    }
    fn take(&mut self, _: Station) -> Option<Load> {
        self.queue = self.queue.checked_sub(1)?;
        let segment = Segment::new(1, 2, Seq(self.queue), Seq(0), Flags::ACK);
        let body = Body::Pattern { stream: 1, len: 1000, offset: 0 };
        Some(Load::Packet(Packet::tcp(Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2), segment, body)))
    }
    fn release(&mut self, _: Station, _: Load) {
        self.released += 1;
    }
    fn give_up(&mut self, _: Station, _: Load, _: Cause) {}
    fn repeat(&mut self, _: Station, _: &Load, _: Cause) {}
    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
    fn note(&mut self, _: Station, _: LinkNote) {}
}

// The first byte chooses the pacing and the window; frames follow, each with its length and what happens around it.
fuzz_target!(|bytes: &[u8]| {
    let mut feed = Feed(bytes);
    let setup = feed.byte();
    let timing = Timing {
        byte_ps: 8_000_000,
        frame: Span::ZERO,
        propagation: Span::millis(1),
        turnaround: Span::ZERO,
        processing: Span::ZERO,
        turn: Span::ZERO,
    };
    let pacing = if setup & 1 == 0 { Pacing::HalfDuplex } else { Pacing::FullDuplex };
    let window = [1, 2, 8, 63, 64, 65, 1000, 4096][usize::from(setup >> 1 & 7)];
    let config = TulipConfig { pacing, window, ..TulipConfig::default() };
    let mut end = Tulip::new(&config, Station(1), 2, timing);
    let mut upper = Upper { queue: 0, released: 0 };
    let mut now = Time::ZERO;
    while !feed.is_over() {
        let (what, len) = (feed.byte(), usize::from(feed.byte()));
        let bytes = feed.take(len);
        if let Ok((header, load)) = codec::parse(bytes) {
            let mut again = Vec::new();
            codec::emit(&header, load, &mut again);
            assert_eq!(again, bytes);
            assert_eq!(codec::header_len(&header) as usize + load.len(), bytes.len());
            let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
            let packet = Packet::tcp(
                Addr::v4(2, 2, 2, 2),
                Addr::v4(1, 1, 1, 1),
                segment,
                Body::copy_of(load),
            );
            let frame = Frame {
                from: Station(0),
                to: Station(1),
                header: Header::Arq(header),
                load: if load.is_empty() { Load::None } else { Load::Packet(packet) },
                bytes: bytes.len() as u32,
                stored: false,
            };
            end.on_frame(now, frame, &mut upper);
        }
        upper.queue += u32::from(what & 3);
        now += Span::millis(u64::from(what >> 4));
        wake_until(now, end.next_wake(), |at| {
            end.on_wake(at, &mut upper);
            end.next_wake()
        });
        if what & 4 != 0
            && let Some(frame) = end.next_frame(now, &mut upper)
        {
            let airtime = Span::millis(1);
            end.on_mac(now, MacSignal::Trans { to: frame.to, airtime }, &mut upper);
            if let Header::Arq(header) = &frame.header {
                let mut written = Vec::new();
                let load: &[u8] = if frame.load == Load::None { &[] } else { b"load" };
                codec::emit(header, load, &mut written);
                let (read, _) = codec::parse(&written).expect("a written value can be read");
                assert_eq!((read.seq, &read.ack), (header.seq, &header.ack));
            }
            end.on_mac(now, MacSignal::Done { to: frame.to, acked: None }, &mut upper);
        }
        let (under_way, waiting) = end.memory(Station(0));
        assert!(under_way <= usize::from(window) && waiting <= usize::from(window));
    }
});
