//! AIRMAIL: asymmetric, reliable mobile access in the link layer (Ayanoglu, Paul, LaPorta, Sabnani and Gitlin
//! 1995).
//!
//! The base station controls the protocol, and the mobile host answers. All timers are at the base station.
//!
//! **Downwards** the base station sends a window of packets and polls for a status with its last frame. The
//! mobile host does not answer before, so one frame acknowledges a whole window: a cumulative number, and a
//! bit for each packet behind it. Missing packets are retransmitted and polled for again until the window is
//! complete; then the next one begins. Without a status in time the base station polls again, with a doubled
//! timeout after each failure.
//!
//! **Upwards** the base station sends its status periodically, with or without new data. The mobile host
//! sends while its buffer has room, and retransmits packets that a status shows as lost: those sent before an
//! arrived one, and those missing in two successive statuses that were both started after the transmission.
//!
//! **Forward error correction** has three levels. The radio codes the bits (`coding` of the hop). A
//! Reed-Solomon code of adaptive strength protects the bytes of a frame ([`levels`]). And an adaptive number
//! of parity packets may follow a downward window: each can replace any one lost packet ([`parity`]).
//!
//! Packets are delivered in order, each once. None is given up.
//!
//! **Relation to the paper.** Its abstract and lecture slides were available, not its text. They contain the
//! asymmetry, the timers, combined statuses, the periodic upward status, retransmissions before new data, and
//! the three adaptive levels of coding. A status per whole window is from parsa98 section 2. The lengths of
//! headers, the values of timers, and the rules for codes are choices of this model. Hand-offs, which move
//! windows to the next base station, and the cost of encoding and decoding are not modelled.
//!
//! The header on the air:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | type; whether a status is requested, whether one is present, and which code the bytes have |
//! | 2 + 2 | number of the packet (of the first one that parity covers), number of the transmission |
//! | 2 | parity alone: how many packets it covers, and which of the parity packets it is |
//! | 7 + n | a status: last packet in order (2), last transmission heard (2), frames that came, code to be used, bits |
//! | 2 | check |

mod base;
#[cfg(test)]
mod erasure;
pub mod header;
pub mod levels;
mod mobile;
pub mod parity;
mod window;

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Header, Load, Timing};
use super::in_order::Order;
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Form, Keys, Kind, Need, System, Value};
use crate::units::{Span, Time};
use base::Base;
use header::AirmailHeader;
use levels::Strength;
use mobile::Mobile;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "airmail",
    system: System::new(
        Kind::Link,
        "airmail",
        "path: link-layer = \"airmail\"",
        "whole-window retransmission with forward error correction, most of the work at the base station",
        "parsa98 2, ayanoglu95",
    )
    .tier(2),
    read: |k, _| LinkLayerConfig::Airmail(AirmailConfig::keys(k)),
}];

/// Configuration of AIRMAIL.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AirmailConfig {
    /// Window in packets, for each direction.
    pub window: u16,
    /// Period of the base station's status while packets arrive. `None` means the time of a quarter of a
    /// window, but long enough for a status to be received before the next one.
    pub status_period: Option<Span>,
    /// Time limit for a polled status; `None` computes it from the hop.
    pub poll_timeout: Option<Span>,
    /// Strength of the code over the bytes of a frame; `None` is adaptive.
    pub byte_fec: Option<Strength>,
    /// Number of parity packets after a long window; `None` is adaptive.
    pub packet_fec: Option<u8>,
    /// Whether packets are released in order.
    #[serde(skip_serializing_if = "Order::is_in_order")]
    pub order: Order,
}

impl Default for AirmailConfig {
    fn default() -> AirmailConfig {
        AirmailConfig {
            window: 32,
            status_period: None,
            poll_timeout: None,
            byte_fec: None,
            packet_fec: None,
            order: Order::Kept,
        }
    }
}

impl AirmailConfig {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> AirmailConfig {
        let mut c = AirmailConfig::default();
        k.table("airmail", "options of `airmail`", |k| {
            k.count("window", &mut c.window, 1..=128, "packets of a window");
            c.order.key(k);
            let times = Span(1)..=Span::secs(60);
            let doc = "the interval of the base station's status frames while packets arrive; computed by default";
            k.maybe("status-period", &mut c.status_period, times.clone(), doc);
            let doc =
                "how long the base station waits for a requested status; computed by default";
            k.maybe("poll-timeout", &mut c.poll_timeout, times, doc);
            let strengths = [
                ("adaptive", None),
                ("none", Some(Strength::None)),
                ("light", Some(Strength::Light)),
                ("medium", Some(Strength::Medium)),
                ("strong", Some(Strength::Strong)),
            ];
            let doc =
                "the code over the bytes of a frame: 0, 16, 32 or 64 check bytes in a block of 255";
            k.word("byte-fec", &mut c.byte_fec, &strengths, doc);
            let most = u64::from(parity::MOST);
            let form = Form::or(vec!["adaptive"], 0..=most);
            let doc = "parity packets after each window of at least a quarter of `window`";
            let default = Value::Keyword("adaptive");
            if let Value::Count(count) = k.value("packet-fec", form, Need::Default, default, doc) {
                c.packet_fec = Some(count as u8);
            }
        });
        c
    }
}

impl AirmailHeader {
    /// The frame from `from` to `to` with this header and `load`.
    fn frame(self, from: Station, to: Station, load: Load) -> Frame {
        let plain = self.plain_bytes(&load);
        let bytes = self.strength.code().map_or(plain, |code| code.on_air(plain));
        let stored = self.seq.is_some();
        Frame { from, to, header: Header::Airmail(self), load, bytes, stored }
    }
}

impl Frame {
    /// The link layer's code of the frame, and the frame's length without it.
    pub fn code(&self) -> Option<(super::fec::Code, u32)> {
        let Header::Airmail(header) = &self.header else { return None };
        header.strength.code().map(|code| (code, header.plain_bytes(&self.load)))
    }
}

/// The end at one station: the base station's or a mobile host's.
#[derive(Clone, Debug)]
pub enum Airmail {
    /// The end that controls the protocol.
    Base(Base),
    /// The end that answers.
    Mobile(Mobile),
}

impl Airmail {
    /// The end at `station` of a hop with `stations` stations.
    pub fn new(config: &AirmailConfig, station: Station, stations: u8, timing: Timing) -> Airmail {
        match station {
            Station::BASE => Airmail::Base(Base::new(config, stations, timing)),
            mobile => Airmail::Mobile(Mobile::new(config, mobile)),
        }
    }
}

macro_rules! either {
    ($self:ident, $end:ident => $call:expr) => {
        match $self {
            Airmail::Base($end) => $call,
            Airmail::Mobile($end) => $call,
        }
    };
}

impl LinkEnd for Airmail {
    fn check(&self) {
        either!(self, end => end.check());
    }

    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        either!(self, end => end.stored_loads(each));
    }

    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above) {
        let Frame { from, header: Header::Airmail(header), load, .. } = frame else { return };
        either!(self, end => end.on_frame(now, from, header, load, above));
    }

    fn on_mac(&mut self, now: Time, signal: MacSignal, _: &mut dyn Above) {
        let MacSignal::Done { .. } = signal else { return };
        either!(self, end => end.on_sent(now));
    }

    fn on_wake(&mut self, now: Time, _: &mut dyn Above) {
        if let Airmail::Base(base) = self {
            base.on_wake(now);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        match self {
            Airmail::Base(base) => base.next_wake(),
            //= ayanoglu95: the bulk of the intelligence is in the base station, the acknowledgement of the mobile
            // terminal is event-driven
            Airmail::Mobile(_) => None,
        }
    }

    fn next_frame(&mut self, _: Time, above: &mut dyn Above) -> Option<Frame> {
        either!(self, end => end.next_frame(above))
    }

    fn reply(&mut self, _: Time, _: Station, _: &mut dyn Above) -> Option<Frame> {
        match self {
            Airmail::Base(_) => None,
            Airmail::Mobile(mobile) => mobile.status(),
        }
    }
}
