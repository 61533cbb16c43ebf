//! Radio link control of LTE and NR (3GPP TS 36.322, 38.322), with the order of PDCP (38.323).
//!
//! Medium access repeats failed blocks ([`crate::mac::granted`]), so frames arrive late rather than never, and
//! out of order. The receiver numbers and reorders them ([`crate::link::in_order`]). A missing frame holds back
//! those after it for at most `reorder`:
//!
//! - unacknowledged mode (`um`): then it is given up, and discarded if it arrives later;
//! - acknowledged mode (`am`): then a status reports it missing, and the sender sends it again. A status also
//!   acknowledges. At most one is sent in each `status` (t-StatusProhibit). Without a status for `poll`
//!   (t-PollRetransmit) the sender repeats its last unacknowledged frame.
//!
//! Frames carry whole packets, since blocks carry parts of frames. Not modelled: concatenation and segments in
//! retransmissions, so a repeated frame is a whole packet, and the failure of the radio link after a maximum
//! number of retransmissions.

use std::collections::VecDeque;

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{ArqHeader, BitVector, Frame, Header, LinkAck, Load};
use super::in_order::{Accepted, InOrder, Order};
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Form, Keys, Kind, Need, SIM, System, Value};
use crate::event::{Cause, LinkNote};
use crate::units::{Span, Time};

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "rlc",
    system: System::new(
        Kind::Link,
        "rlc",
        "path: link-layer = \"rlc\"",
        "LTE and NR: frames are reordered, missing ones given up or requested again",
        "3GPP TS 38.322, 38.323",
    )
    .runs(SIM)
    .tier(0),
    read: |k, _| LinkLayerConfig::Rlc(RlcConfig::keys(k)),
}];

/// Bytes of the headers of RLC and PDCP: two each with short sequence numbers.
const HEADER: u32 = 4;
/// Bytes of a status without its bits for missing frames.
const STATUS: u32 = 5;

/// Treatment of missing frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Acknowledged mode: they are sent again.
    #[default]
    Am,
    /// Unacknowledged mode: they are lost.
    Um,
}

/// Settings of radio link control.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RlcConfig {
    /// Treatment of missing frames.
    pub mode: Mode,
    /// How long a frame waits for a missing one before it.
    pub reorder: Span,
    /// Minimum time between two statuses.
    pub status: Span,
    /// Time without a status until the sender repeats a frame.
    pub poll: Span,
    /// Time for which the sender stores a packet; `None` until it is acknowledged.
    pub discard: Option<Span>,
    /// Frames from the first missing one on.
    pub window: u32,
    /// Whether packets are released in order.
    pub order: Order,
}

impl Default for RlcConfig {
    fn default() -> RlcConfig {
        RlcConfig {
            mode: Mode::Am,
            reorder: Span::millis(40),
            status: Span::millis(20),
            poll: Span::millis(45),
            discard: None,
            window: 8192,
            order: Order::Kept,
        }
    }
}

impl RlcConfig {
    /// Reads the keys; defaults are usual settings of networks.
    pub fn keys(k: &mut Keys<'_>) -> RlcConfig {
        let mut c = RlcConfig::default();
        k.table("rlc", "options of `rlc`", |k| {
            let modes = [("am", Mode::Am), ("um", Mode::Um)];
            k.word("mode", &mut c.mode, &modes, "whether missing frames are sent again, or lost");
            let times = Span::millis(1)..=Span::secs(10);
            let doc = "how long a packet waits for a missing one before it";
            k.within("reorder", &mut c.reorder, times.clone(), doc);
            let doc = "the minimum time between two statuses of the receiver";
            k.within("status", &mut c.status, times.clone(), doc);
            let doc = "the time without a status until the sender repeats its last frame";
            k.within("poll", &mut c.poll, times, doc);
            let form = Form::or(vec!["none"], Span::millis(1)..=Span::secs(60));
            let doc = "how long the sender tries to deliver a packet in acknowledged mode";
            let none = Value::Keyword("none");
            if let Value::Time(limit) = k.value("discard", form, Need::Default, none, doc) {
                c.discard = Some(limit);
            }
            let doc = "frames from the first missing one on that the receiver buffers";
            k.count("window", &mut c.window, 32..=65_536, doc);
            c.order.key(k);
        });
        c
    }
}

/// A frame that is not acknowledged.
#[derive(Clone, Debug)]
struct Unacked {
    load: Load,
    first_sent: Time,
    last_sent: Time,
    repeated: bool,
    acked: bool,
    /// Cause of its pending retransmission.
    again: Option<Cause>,
}

/// State towards one station and from it.
#[derive(Clone, Debug)]
struct Peer {
    /// Number of the first of `unacked`, or of the next frame.
    first: u64,
    unacked: VecDeque<Unacked>,
    /// When the last frame is repeated, unless a status arrives.
    poll_at: Option<Time>,
    buffer: InOrder<Load>,
    /// Frames below this number that are missing are reported.
    missing_before: u64,
    /// When the next status is due, and whether it is.
    status_at: Option<Time>,
    owes_status: bool,
    last_status: Option<Time>,
}

impl Peer {
    fn new(config: &RlcConfig) -> Peer {
        Peer {
            first: 0,
            unacked: VecDeque::new(),
            poll_at: None,
            buffer: InOrder::new(config.order, config.window.into()),
            missing_before: 0,
            status_at: None,
            owes_status: false,
            last_status: None,
        }
    }

    /// Requests a status: now, or when the time since the last one has passed.
    fn owe_status(&mut self, now: Time, config: &RlcConfig) {
        let at = self.last_status.map_or(now, |last| last + config.status);
        if at <= now {
            self.owes_status = true;
        } else if !self.owes_status {
            self.status_at = Some(at);
        }
    }

    /// Releases packets that need not wait, and updates the timer.
    fn release(&mut self, now: Time, from: Station, config: &RlcConfig, above: &mut dyn Above) {
        while let Some(load) = self.buffer.take_next() {
            above.release(from, load);
        }
        self.buffer.watch(now, config.reorder);
    }

    /// The status of the received frames.
    fn status(&mut self, now: Time) -> LinkAck {
        (self.status_at, self.owes_status, self.last_status) = (None, false, Some(now));
        let expected = self.buffer.expected();
        let reported = self.missing_before.saturating_sub(expected);
        let received = self.buffer.received().take(reported.min(65_535) as usize);
        let mut vector = BitVector::zeros(received.len() as u16);
        received.enumerate().filter(|(_, got)| *got).for_each(|(i, _)| vector.set(i as u16));
        LinkAck { cumulative: (expected as u32).wrapping_sub(1), vector, last_received: 0 }
    }

    /// Handles a status. Returns false if it is impossible.
    fn on_status(&mut self, now: Time, ack: &LinkAck, config: &RlcConfig) -> bool {
        let covered = ack.cumulative.wrapping_add(1).wrapping_sub(self.first as u32);
        if (covered as i32) < 0 {
            // An old status.
            return true;
        }
        let bits = usize::from(ack.vector.len());
        if covered as usize + bits > self.unacked.len() {
            return false;
        }
        self.unacked.drain(..covered as usize);
        self.first += u64::from(covered);
        for (i, frame) in self.unacked.iter_mut().enumerate().take(bits) {
            if ack.vector.get(i as u16) {
                (frame.acked, frame.again) = (true, None);
            } else if now.since(frame.last_sent) >= config.reorder {
                // A frame sent after the status, or repeated by medium access, is still under way.
                frame.again = Some(Cause::LinkNack);
            }
        }
        self.poll_at = (!self.unacked.is_empty()).then(|| now + config.poll);
        true
    }

    /// Drops packets that are stored for too long; their numbers remain.
    fn discard_old(&mut self, now: Time, to: Station, limit: Span, above: &mut dyn Above) {
        let old = |frame: &&mut Unacked| now.since(frame.first_sent) >= limit;
        for frame in self.unacked.iter_mut().take_while(old) {
            if !frame.acked && !matches!(frame.load, Load::None) {
                let load = core::mem::replace(&mut frame.load, Load::None);
                above.give_up(to, load, Cause::LinkGaveUp);
                frame.again = Some(Cause::LinkTimeout);
            }
        }
    }

    /// When the oldest stored packet is dropped.
    fn discard_at(&self, limit: Option<Span>) -> Option<Time> {
        let stored = |frame: &&Unacked| !frame.acked && !matches!(frame.load, Load::None);
        let first = self.unacked.iter().find(stored)?;
        limit.map(|limit| first.first_sent + limit)
    }
}

/// One end of radio link control.
#[derive(Clone, Debug)]
pub struct Rlc {
    station: Station,
    config: RlcConfig,
    peers: Vec<Peer>,
    /// The station served last.
    turn: usize,
}

impl Rlc {
    /// The end at `station` of a hop with `stations` stations.
    pub fn new(config: &RlcConfig, station: Station, stations: u8) -> Rlc {
        let peers = (0..stations).map(|_| Peer::new(config)).collect();
        Rlc { station, config: config.clone(), peers, turn: 0 }
    }

    fn frame(&self, to: Station, header: ArqHeader, load: Load, stored: bool) -> Frame {
        let ack = header.ack.as_ref();
        let status = ack.map_or(0, |ack| STATUS + u32::from(ack.vector.len()).div_ceil(8));
        let bytes = HEADER + status + load.bytes();
        Frame { from: self.station, to, header: Header::Arq(header), load, bytes, stored }
    }

    fn data(&self, to: Station, number: u64, load: Load) -> Frame {
        let header = ArqHeader { seq: Some(number as u32), transmission: 0, ack: None };
        self.frame(to, header, load, self.config.mode == Mode::Am)
    }
}

impl LinkEnd for Rlc {
    fn check(&self) {
        debug_assert!(self.turn < self.peers.len(), "station {} is served", self.turn);
        for peer in &self.peers {
            debug_assert!(
                peer.unacked.len() <= self.config.window as usize,
                "{} unacknowledged frames exceed the window",
                peer.unacked.len()
            );
            debug_assert!(
                peer.unacked.iter().take(16).all(|frame| frame.first_sent <= frame.last_sent),
                "a frame is repeated before its first transmission"
            );
            debug_assert!(
                peer.unacked.iter().take(16).all(|frame| !frame.acked || frame.again.is_none()),
                "an acknowledged frame is repeated"
            );
        }
    }

    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above) {
        let Frame { from, header, load, .. } = frame;
        let (Header::Arq(header), Some(peer)) = (header, self.peers.get_mut(from.index())) else {
            return above.note(from, LinkNote::OutOfWindow);
        };
        if let Some(ack) = &header.ack
            && !peer.on_status(now, ack, &self.config)
        {
            above.note(from, LinkNote::BadAck);
        }
        let Some(seq) = header.seq else { return };
        // The number closest to the expected one.
        let ahead = seq.wrapping_sub(peer.buffer.expected() as u32) as i32;
        let number = peer.buffer.expected().checked_add_signed(ahead.into());
        let last = load.is_last().then(|| load.packet().cloned()).flatten();
        let am = self.config.mode == Mode::Am;
        let late = if am { None } else { Some(load.clone()) };
        let accepted = number.map_or(Accepted::Old, |number| peer.buffer.accept(number, load));
        match accepted {
            Accepted::Ready => {}
            Accepted::Waits => {
                if let Some(packet) = &last {
                    above.waits_for_order(packet);
                }
            }
            // The sender repeated it, because a status was late.
            Accepted::Old | Accepted::OutOfWindow if am => {
                above.note(from, LinkNote::Duplicate);
            }
            Accepted::Old | Accepted::OutOfWindow => {
                above.note(from, LinkNote::OutOfWindow);
                late.into_iter().for_each(|load| above.discard(from, load, Cause::ReorderLost));
            }
        }
        if am {
            peer.owe_status(now, &self.config);
        }
        peer.release(now, from, &self.config, above);
    }

    fn on_mac(&mut self, _: Time, _: MacSignal, _: &mut dyn Above) {}

    fn on_wake(&mut self, now: Time, above: &mut dyn Above) {
        for (i, peer) in self.peers.iter_mut().enumerate() {
            let station = Station(i as u8);
            if let Some(before) = peer.buffer.expired(now) {
                match self.config.mode {
                    Mode::Um => peer.buffer.give_up_before(before),
                    Mode::Am => {
                        peer.missing_before = peer.missing_before.max(before);
                        peer.owe_status(now, &self.config);
                    }
                }
                peer.release(now, station, &self.config, above);
            }
            if peer.status_at.take_if(|at| *at <= now).is_some() {
                peer.owes_status = true;
            }
            if let Some(limit) = self.config.discard {
                peer.discard_old(now, station, limit, above);
            }
            if peer.poll_at.is_some_and(|at| at <= now) {
                peer.poll_at = Some(now + self.config.poll);
                let frame = peer.unacked.iter_mut().rfind(|frame| !frame.acked);
                frame.into_iter().for_each(|frame| frame.again = Some(Cause::LinkTimeout));
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let each = self.peers.iter().flat_map(|peer| {
            let discard = peer.discard_at(self.config.discard);
            [peer.buffer.deadline(), peer.poll_at, peer.status_at, discard]
        });
        each.flatten().min()
    }

    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame> {
        let count = self.peers.len();
        let turn = self.turn;
        let order = (1..=count).map(|i| Station(((turn + i) % count) as u8));
        let frame = order.into_iter().find_map(|to| self.next_frame_to(now, to, above))?;
        self.turn = frame.to.index();
        Some(frame)
    }

    fn next_frame_to(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let peer = self.peers.get_mut(to.index()).filter(|_| to != self.station)?;
        if peer.owes_status {
            let ack = Some(peer.status(now));
            let header = ArqHeader { ack, ..ArqHeader::default() };
            return Some(self.frame(to, header, Load::None, false));
        }
        if let Some(i) = peer.unacked.iter().position(|frame| frame.again.is_some()) {
            let frame = &mut peer.unacked[i];
            let cause = frame.again.take().unwrap_or(Cause::LinkNack);
            (frame.last_sent, frame.repeated) = (now, true);
            peer.poll_at = Some(now + self.config.poll);
            let (number, load) = (peer.first + i as u64, frame.load.clone());
            above.repeat(to, &load, cause);
            return Some(self.data(to, number, load));
        }
        if peer.unacked.len() >= self.config.window as usize {
            return None;
        }
        let load = above.take(to)?;
        if self.config.mode == Mode::Um {
            let number = peer.first;
            peer.first += 1;
            return Some(self.data(to, number, load));
        }
        let number = peer.first + peer.unacked.len() as u64;
        peer.unacked.push_back(Unacked {
            load: load.clone(),
            first_sent: now,
            last_sent: now,
            repeated: false,
            acked: false,
            again: None,
        });
        peer.poll_at.get_or_insert(now + self.config.poll);
        Some(self.data(to, number, load))
    }

    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        let unacked = self.peers.iter().flat_map(|peer| &peer.unacked);
        unacked.filter(|frame| !frame.acked && !matches!(frame.load, Load::None)).for_each(
            |frame| {
                each(&frame.load, frame.repeated || frame.again.is_some());
            },
        );
    }
}
