//! A frame of the link layer: read or refused, written again as it was; an end takes it without harm.
#![no_main]

use lasthop_proto::air::Station;
use lasthop_proto::event::{Cause, LinkNote};
use lasthop_proto::link::end::{Above, LinkEnd};
use lasthop_proto::link::frame::{Frame, Header, Load, Timing};
use lasthop_proto::link::tulip::{Tulip, TulipConfig, codec};
use lasthop_proto::units::{Span, Time};
use libfuzzer_sys::fuzz_target;

/// Nothing waits, and what is handed up is dropped.
struct Nobody;

impl Above for Nobody {
    fn waits(&self, _: Station) -> bool {
        false
    }
    fn next_destination(&self) -> Option<Station> {
        None
    }
    fn take(&mut self, _: Station) -> Option<Load> {
        None
    }
    fn release(&mut self, _: Station, _: Load) {}
    fn give_up(&mut self, _: Station, _: Load, _: Cause) {}
    fn repeat(&mut self, _: Station, _: &Load, _: Cause) {}
    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}
    fn note(&mut self, _: Station, _: LinkNote) {}
}

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, load)) = codec::parse(bytes) else { return };
    let mut again = Vec::new();
    codec::emit(&header, load, &mut again);
    assert_eq!(again, bytes);
    assert_eq!(codec::header_len(&header) as usize + load.len(), bytes.len());
    let timing = Timing {
        byte_ps: 8_000_000,
        frame: Span::ZERO,
        propagation: Span::millis(1),
        turnaround: Span::ZERO,
        processing: Span::ZERO,
        turn: Span::ZERO,
    };
    let mut end = Tulip::new(&TulipConfig::default(), Station(1), 2, timing);
    let frame = Frame {
        from: Station(0),
        to: Station(1),
        header: Header::Arq(header),
        load: Load::None,
        bytes: bytes.len() as u32,
        kept: false,
    };
    end.on_frame(Time(1), frame, &mut Nobody);
    let _ = end.next_frame(Time(1), &mut Nobody);
});
