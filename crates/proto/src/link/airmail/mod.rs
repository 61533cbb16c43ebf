//! AIRMAIL: asymmetric, reliable mobile access in the link layer (Ayanoglu, Paul, LaPorta, Sabnani and Gitlin 1995).
//!
//! The base station does the work, the mobile host answers. All timers are at the base station.
//!
//! **Down**, the base station sends a window of packets and asks for a status with the last frame of it. The mobile
//! host says nothing before it is asked, so that one frame acknowledges a whole window: cumulative, and a bit for each
//! packet behind it. What is missing is sent again, and asked for again, until the window is complete; then the next
//! one begins. If no status comes in time, the base station asks once more, after twice the time if that remains
//! silent as well.
//!
//! **Up**, the base station sends its status by a timer, whether or not anything has come. The mobile host sends as
//! long as its buffer has room, and sends again what a status shows to be lost: what was sent before something that
//! has arrived, and what two statuses in a row, one after the other begun behind its transmission, do not know of.
//!
//! **Forward error correction** has three levels. The bits are coded by the radio (`coding` of the hop). The bytes of
//! a frame are coded by a Reed-Solomon code of adaptive strength ([`levels`]). And a window down may be followed by
//! parity packets, whose number is adaptive too: any of them makes up for any one packet that was lost ([`parity`]).
//!
//! Packets are handed up in order, each once. None is given up.
//!
//! **What is after the paper, and what is not.** The abstract of the paper was read, and lecture slides on it; its
//! text could not be. From them are the asymmetry, the timers, combined statuses, the periodic status up with
//! retransmissions before new data, and the three levels of coding that are changed adaptively. That a status is for a
//! whole window is from parsa98 section 2. The lengths of headers, the timers' values, and the rules by which codes
//! are chosen are ours. Not modelled are hand-offs, in which windows move to the next base station, and the work of
//! encoding and decoding.
//!
//! The header on the air:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | type; whether a status is asked for, is there, and which code the bytes have |
//! | 2 + 2 | number of the packet (of the first one that parity covers), number of the transmission |
//! | 2 | parity alone: how many packets it covers, and which of the parity packets it is |
//! | 7 + n | a status: last packet in order (2), last transmission heard (2), frames that came, code to be used, bits |
//! | 2 | check |

mod base;
pub mod erasure;
pub mod levels;
mod mobile;
pub mod parity;
mod window;

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{Frame, Header, LinkAck, Load, Timing};
use super::layer::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Form, Keys, Kind, Need, System, Value};
use crate::units::{Span, Time};
use base::Base;
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

/// What AIRMAIL does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AirmailConfig {
    /// Packets of a window, down and up.
    pub window: u16,
    /// From one status of the base station to the next while packets come; `None` is the time of a quarter of a window,
    /// and long enough for a status to be heard before the next one.
    pub status_period: Option<Span>,
    /// How long the base station waits for a status that it has asked for; `None` computes it from the hop.
    pub poll_timeout: Option<Span>,
    /// How strong the code over the bytes of a frame is; `None` is as the losses demand.
    pub byte_fec: Option<Strength>,
    /// Parity packets behind a long window; `None` is as the losses demand.
    pub packet_fec: Option<u8>,
}

impl Default for AirmailConfig {
    fn default() -> AirmailConfig {
        AirmailConfig {
            window: 32,
            status_period: None,
            poll_timeout: None,
            byte_fec: None,
            packet_fec: None,
        }
    }
}

impl AirmailConfig {
    /// Goes over the keys.
    pub fn keys(k: &mut Keys<'_>) -> AirmailConfig {
        let mut c = AirmailConfig::default();
        k.table("airmail", "options of `airmail`", |k| {
            k.count("window", &mut c.window, 1..=128, "packets of a window");
            let times = Span(1)..=Span::secs(60);
            let what = "from one status of the base station to the next while packets come; computed without it";
            k.maybe("status-period", &mut c.status_period, times.clone(), what);
            let what = "how long the base station waits for a status that it asked for; computed without it";
            k.maybe("poll-timeout", &mut c.poll_timeout, times, what);
            let strengths = [
                ("adaptive", None),
                ("none", Some(Strength::None)),
                ("light", Some(Strength::Light)),
                ("medium", Some(Strength::Medium)),
                ("strong", Some(Strength::Strong)),
            ];
            let what = "the code over the bytes of a frame: 0, 16, 32 or 64 check bytes in a block of 255";
            k.word("byte-fec", &mut c.byte_fec, &strengths, what);
            let most = u64::from(parity::MOST);
            let form = Form::Or(vec!["adaptive"], Box::new(Form::Count(0, most)));
            let what = "parity packets behind each window of at least a quarter of `window`";
            let default = Value::Word("adaptive");
            if let Value::Count(count) = k.value("packet-fec", form, Need::Default, default, what) {
                c.packet_fec = Some(count as u8);
            }
        });
        c
    }
}

/// What AIRMAIL says in a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AirmailHeader {
    /// Number of the packet that it carries.
    pub seq: Option<u32>,
    /// Number of this transmission to its receiver; a repetition has one of its own.
    pub transmission: u32,
    /// Whether the mobile host is to send its status.
    pub poll: bool,
    /// What has arrived the other way.
    pub status: Option<Status>,
    /// The frame is parity of a window.
    pub parity: Option<Box<parity::Parity>>,
    /// The code of its bytes.
    pub strength: Strength,
}

/// What has arrived, and how the other end shall code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Which packets have arrived.
    pub ack: LinkAck,
    /// Frames of any kind that have arrived, modulo 256: how many were lost follows from the transmissions.
    pub came: u8,
    /// From the base station: the code for what goes up.
    pub strength: Strength,
}

impl AirmailHeader {
    /// Length of the frame in bytes before its bytes are coded; see the table of the module.
    fn plain_bytes(&self, load: &Load) -> u32 {
        let status =
            self.status.as_ref().map_or(0, |s| 7 + u32::from(s.ack.vector.len()).div_ceil(8));
        let parity = self.parity.as_ref().map_or(0, |parity| 2 + parity.bytes());
        7 + status + parity + load.bytes()
    }

    /// The frame from `from` to `to` that says this and carries `load`.
    fn frame(self, from: Station, to: Station, load: Load) -> Frame {
        let plain = self.plain_bytes(&load);
        let bytes = self.strength.code().map_or(plain, |code| code.on_air(plain));
        let kept = self.seq.is_some();
        Frame { from, to, header: Header::Airmail(self), load, bytes, kept }
    }
}

impl Frame {
    /// The code that the link layer has put over its bytes, and how long it is without.
    pub fn code(&self) -> Option<(super::fec::Code, u32)> {
        let Header::Airmail(header) = &self.header else { return None };
        header.strength.code().map(|code| (code, header.plain_bytes(&self.load)))
    }
}

/// The end at one station: that of the base station, or that of a mobile host.
#[derive(Clone, Debug)]
pub enum Airmail {
    /// It does the work.
    Base(Base),
    /// It answers.
    Mobile(Mobile),
}

impl Airmail {
    /// The end at `station` of a hop with `stations` of them.
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
    fn kept(&self, tell: &mut dyn FnMut(&Load, bool)) {
        either!(self, end => end.kept(tell));
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
