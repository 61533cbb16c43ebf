//! No link layer: each packet is sent once, in the order of arrival.

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Header};
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Kind, System};
use crate::units::Time;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "none",
    system: System::new(
        Kind::Link,
        "none",
        "path: link-layer = \"none\"",
        "each packet is sent once",
        "RFC 3819",
    )
    .tier(System::UNLISTED),
    read: |_, _| LinkLayerConfig::None,
}];

/// An end without a protocol.
#[derive(Clone, Debug)]
pub struct Plain {
    station: Station,
}

impl Plain {
    /// The end at `station`.
    pub fn new(station: Station) -> Plain {
        Plain { station }
    }
}

impl LinkEnd for Plain {
    fn on_frame(&mut self, _: Time, frame: Frame, above: &mut dyn Above) {
        above.release(frame.from, frame.load);
    }

    fn on_mac(&mut self, _: Time, _: MacSignal, _: &mut dyn Above) {}

    fn on_wake(&mut self, _: Time, _: &mut dyn Above) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }

    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame> {
        let to = above.next_destination()?;
        self.next_frame_to(now, to, above)
    }

    fn next_frame_to(&mut self, _: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let load = above.take(to)?;
        let bytes = load.bytes();
        Some(Frame { from: self.station, to, header: Header::Plain, load, bytes, stored: false })
    }
}
