//! TULIP, the transport unaware link improvement protocol (parsa98 3).
//!
//! An end identifies its peers by station and does not depend on TCP. It has a sender and a receiver for
//! each. In the paper's pacing the stations take turns: after a reliable packet the channel is left to its
//! answer for the time of equation 1, or for the time of WAIT if another station sends more. In full duplex
//! no station waits for another. Then a timer from the maximum propagation delay, as in the paper and without
//! measurement of round trips, prevents a deadlock without acknowledgements.

pub mod codec;
mod receiver;
mod sender;
pub mod service;
pub mod states;

use std::collections::VecDeque;

use serde::Serialize;

use super::end::{Above, LinkEnd, MacSignal};
use super::frame::{ArqHeader, Frame, Header, Load, Timing};
use super::in_order::Order;
use super::{LinkLayerConfig, Read};
use crate::air::Station;
use crate::describe::{Descriptor, Keys, Kind, System};
use crate::event::LinkNote;
use crate::units::{Span, Time};

use receiver::Receiver;
use sender::{AckResult, Chosen, Sender};
pub use service::{Opaque, Reliable, Rule, Service};
use states::{ReceiveState, SendState};

/// Limit of the window, packets.
pub const WINDOW_MAX: u16 = 4096;

/// Length of the longest packet that an answer always has room for, bytes: a TCP ACK (parsa98 3.3).
pub const SHORT: u32 = 40;

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "tulip",
    system: System::new(
        Kind::Link,
        "tulip",
        "path: link-layer = \"tulip\"",
        "reliable or plain service by packet type, interleaved with the other direction, in-order release",
        "parsa98 3",
    ),
    read: |k, _| LinkLayerConfig::Tulip(TulipConfig::keys(k)),
}];

/// Sharing of the channel between the ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// They take turns: after each reliable packet the sender waits for its answer (parsa98 equation 1).
    #[default]
    HalfDuplex,
    /// Each sends whenever it can; acknowledgements are thinned.
    FullDuplex,
}

/// Configuration of a TULIP link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TulipConfig {
    /// Window in packets, from 1 to [`WINDOW_MAX`] (parsa98 5: 8).
    pub window: u16,
    /// Whether answers are sent immediately if medium access permits (parsa98 3.3).
    pub acceleration: bool,
    /// Sharing of the channel between the ends.
    pub pacing: Pacing,
    /// Selection of reliable packets.
    pub rule: Rule,
    /// In full duplex, packets per acknowledgement; `None` is a 64th of the window.
    pub lack_every: Option<u16>,
    /// In full duplex, maximum delay of an acknowledgement; `None` is an eighth of the propagation delay, at
    /// least 100 us.
    pub lack_delay: Option<Span>,
    /// Whether packets are released in order.
    #[serde(skip_serializing_if = "Order::is_in_order")]
    pub order: Order,
}

impl Default for TulipConfig {
    fn default() -> TulipConfig {
        TulipConfig {
            window: 8,
            acceleration: true,
            pacing: Pacing::HalfDuplex,
            rule: Rule::default(),
            lack_every: None,
            lack_delay: None,
            order: Order::Kept,
        }
    }
}

impl TulipConfig {
    /// Reads the keys; the defaults are the paper's.
    pub fn keys(k: &mut Keys<'_>) -> TulipConfig {
        let mut c = TulipConfig::default();
        k.table("tulip", "options of TULIP", |k| {
            let windows = 1..=u64::from(WINDOW_MAX);
            k.count("window", &mut c.window, windows.clone(), "packets in flight to one station");
            k.flag("acceleration", &mut c.acceleration, "answers are sent at once if medium access permits");
            let pacings = [("half-duplex", Pacing::HalfDuplex), ("full-duplex", Pacing::FullDuplex)];
            k.word("pacing", &mut c.pacing, &pacings, "whether the stations take turns, or each sends whenever it can");
            let reliable = [("tcp", Reliable::Tcp), ("all", Reliable::All)];
            let doc = "packets that are retransmitted: TCP with payload, or also all that are longer than `ack-size`";
            k.word("reliable", &mut c.rule.reliable, &reliable, doc);
            let opaque = [
                ("by-size", Opaque::BySize),
                ("reliable", Opaque::Reliable),
                ("unreliable", Opaque::Unreliable),
            ];
            let doc =
                "whether ESP and AH are retransmitted: if longer than `ack-size`, always, or never";
            k.word("encrypted", &mut c.rule.opaque, &opaque, doc);
            let doc = "the length up to which an encrypted packet counts as an acknowledgement";
            k.bytes("ack-size", &mut c.rule.ack_size, 20..=65_535, doc);
            let doc =
                "in full duplex, packets per acknowledgement; a 64th of the window by default";
            k.maybe_count("lack-every", &mut c.lack_every, windows, doc);
            let doc = "in full duplex, the maximum delay of an acknowledgement; an eighth of the propagation delay, at \
                        least 100 us, by default";
            k.maybe("lack-delay", &mut c.lack_delay, Span::micros(1)..=Span::secs(60), doc);
            c.order.key(k);
        });
        c
    }

    /// Limit of packets per acknowledgement.
    fn every(&self) -> u32 {
        match self.pacing {
            Pacing::HalfDuplex => 1,
            Pacing::FullDuplex => u32::from(self.lack_every.unwrap_or(self.window / 64).max(1)),
        }
    }

    /// Maximum delay of an acknowledgement.
    fn delay(&self, timing: &Timing) -> Span {
        let derived = || Span::micros(100).max(timing.propagation / 8);
        match self.pacing {
            Pacing::HalfDuplex => Span::ZERO,
            Pacing::FullDuplex => self.lack_delay.unwrap_or_else(derived),
        }
    }
}

/// One end: a state per destination, and the shared state.
#[derive(Clone, Debug)]
pub struct Tulip {
    station: Station,
    config: TulipConfig,
    timing: Timing,
    peers: Vec<Peer>,
    /// The frame at medium access.
    at_mac: Option<AtMac>,
    /// In half duplex: time until which the channel is left to an answer (timer T1).
    hold: Option<Time>,
    /// In half duplex: time until which it is the other end's turn, after an answer to it.
    turn_of_other: Option<Time>,
    /// The station that occupies the channel, and until when (WAIT).
    wait: Option<(Station, Time)>,
    /// Stations to be answered, in the order of arrival.
    owing: VecDeque<Station>,
    /// The station served last.
    turn: usize,
}

#[derive(Clone, Debug)]
struct Peer {
    sender: Sender,
    receiver: Receiver,
}

#[derive(Clone, Debug)]
struct AtMac {
    to: Station,
    reliable: bool,
    /// Whether medium access has started to send it.
    begun: bool,
    /// Whether it answers a packet, and may carry a short one.
    answers: bool,
}

impl Tulip {
    /// The end at `station` of a hop with `stations` stations.
    pub fn new(config: &TulipConfig, station: Station, stations: u8, timing: Timing) -> Tulip {
        let window = config.window.clamp(1, WINDOW_MAX);
        let config = TulipConfig { window, ..config.clone() };
        let peer = |_| Peer {
            sender: Sender::new(window, config.pacing),
            receiver: Receiver::new(window, config.order),
        };
        Tulip {
            station,
            timing,
            peers: (0..stations).map(peer).collect(),
            config,
            at_mac: None,
            hold: None,
            turn_of_other: None,
            wait: None,
            owing: VecDeque::new(),
            turn: 0,
        }
    }

    /// The retransmission list for `to`: sequence numbers modulo 2W.
    pub fn retransmission_list(&self, to: Station) -> Vec<u32> {
        self.peers.get(to.index()).map_or(Vec::new(), |peer| peer.sender.retransmission_list())
    }

    /// Number of unacknowledged packets to `peer`, and of packets from it that wait for an earlier one.
    pub fn memory(&self, peer: Station) -> (usize, usize) {
        let peer = self.peers.get(peer.index());
        peer.map_or((0, 0), |p| (p.sender.outstanding(), p.receiver.buffered()))
    }

    /// State of the sender to `peer`.
    pub fn send_state(&self, peer: Station) -> SendState {
        let handed = |frame: &AtMac| frame.reliable && frame.to == peer && !frame.begun;
        if self.at_mac.as_ref().is_some_and(handed) {
            SendState::Handed
        } else if self.hold.is_some() {
            SendState::Waiting
        } else if self.memory(peer).0 > 0 {
            SendState::Ready
        } else {
            SendState::Idle
        }
    }

    /// State of the receiver from `peer`.
    pub fn receive_state(&self, peer: Station) -> ReceiveState {
        if self.memory(peer).1 > 0 { ReceiveState::Gap } else { ReceiveState::InOrder }
    }

    /// Airtime of the longest short answer: an acknowledgement with a TCP ACK.
    fn answer(&self) -> Span {
        let vector = u32::from(self.config.window).div_ceil(8);
        // One additional byte, since coding may round up.
        self.timing.on_air(10 + vector + SHORT)
    }

    /// Time limit of an answer, from the start of a transmission of `airtime` on.
    //= parsa98#3.2: equation 1; `airtime` and the answer's contain the time to get capture
    fn delta_1(&self, airtime: Span) -> Span {
        let Timing { propagation, turnaround, processing, .. } = self.timing;
        let paced = airtime + propagation * 2 + self.answer() + turnaround * 2 + processing;
        match self.config.pacing {
            Pacing::HalfDuplex => paced,
            // The answer may be delayed, and may have to wait for a frame of its own station.
            Pacing::FullDuplex => paced + self.config.delay(&self.timing) + airtime,
        }
    }

    /// Time before which no transmission may start.
    fn held_until(&self) -> Option<Time> {
        let wait = self.wait.map(|(_, until)| until);
        self.hold.into_iter().chain(self.turn_of_other).chain(wait).max()
    }

    /// Time of a peer's alarm: not while another station occupies the channel.
    fn alarm(&self, at: Time) -> Time {
        self.wait.map_or(at, |(_, until)| until.max(at))
    }

    /// Whether an acknowledgement to `to` is due.
    fn owes(&self, now: Time, to: Station) -> bool {
        let receiver = &self.peers[to.index()].receiver;
        let late = receiver.due_at.is_none_or(|at| at <= now);
        receiver.owed > 0 && (receiver.owed >= self.config.every() || late)
    }

    /// The next frame to `to`, with a due acknowledgement and a packet, if there are any.
    fn frame(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let ack = self.owes(now, to);
        let peer = &mut self.peers[to.index()];
        let chosen = peer.sender.choose(to, &self.config.rule, above);
        if chosen.is_none() && !ack {
            return None;
        }
        let ack = ack.then(|| peer.receiver.acknowledgement());
        if ack.is_some() {
            self.owing.retain(|station| *station != to);
        }
        let Chosen { seq, load } = chosen.unwrap_or(Chosen { seq: None, load: Load::None });
        let transmission = seq.map_or(0, |(_, number)| number);
        let answers = ack.is_some();
        let header = ArqHeader { seq: seq.map(|(seq, _)| seq), transmission, ack };
        self.at_mac = Some(AtMac { to, reliable: seq.is_some(), begun: false, answers });
        if seq.is_some() {
            peer.sender.alarm = None;
        }
        self.turn = to.index();
        Some(Frame {
            from: self.station,
            to,
            bytes: codec::header_len(&header) + load.bytes(),
            header: Header::Arq(header),
            load,
            stored: seq.is_some(),
        })
    }

    fn on_ack(&mut self, now: Time, from: Station, header: &ArqHeader, above: &mut dyn Above) {
        let Some(ack) = &header.ack else { return };
        let peer = &mut self.peers[from.index()];
        match peer.sender.acknowledge(ack) {
            AckResult::Bad => above.note(from, LinkNote::BadAck),
            AckResult::Old => {}
            AckResult::Taken { last } => {
                if last && self.config.pacing == Pacing::HalfDuplex {
                    self.hold = None;
                }
                let sender = &mut peer.sender;
                let restart = last || self.config.pacing == Pacing::FullDuplex;
                let coming = |f: &AtMac| f.reliable && f.to == from && !f.begun;
                if restart {
                    sender.expired = false;
                }
                if !sender.is_waiting() || self.at_mac.as_ref().is_some_and(coming) {
                    sender.alarm = None;
                } else if restart || (sender.alarm.is_none() && !sender.expired) {
                    sender.alarm = Some(now + sender.patience);
                }
            }
        }
    }
}

impl LinkEnd for Tulip {
    fn check(&self) {
        for peer in &self.peers {
            peer.sender.check();
            peer.receiver.check();
        }
        debug_assert!(self.turn < self.peers.len().max(1), "the turn of an unknown station");
        debug_assert!(self.owing.len() <= self.peers.len(), "a station owes one acknowledgement");
        debug_assert!(
            self.at_mac.as_ref().is_none_or(|at_mac| at_mac.to != self.station),
            "a frame to itself"
        );
    }

    fn stored_loads(&self, each: &mut dyn FnMut(&Load, bool)) {
        self.peers.iter().for_each(|peer| peer.sender.stored_loads(each));
    }

    fn on_frame(&mut self, now: Time, frame: Frame, above: &mut dyn Above) {
        let Frame { from, header, load, .. } = frame;
        let Header::Arq(header) = header else {
            return above.note(from, LinkNote::OutOfWindow);
        };
        if from == self.station || from.index() >= self.peers.len() {
            return above.note(from, LinkNote::OutOfWindow);
        }
        if self.wait.is_some_and(|(station, _)| station == from) {
            self.wait = None;
        }
        self.turn_of_other = None;
        self.on_ack(now, from, &header, above);
        match (header.seq, load) {
            (Some(_), Load::None) => above.note(from, LinkNote::OutOfWindow),
            (Some(seq), load) => {
                let due = (self.config.every() > 1).then(|| now + self.config.delay(&self.timing));
                let receiver = &mut self.peers[from.index()].receiver;
                if receiver.owed == 0 {
                    receiver.due_at = due;
                }
                receiver.receive(from, seq, header.transmission, load, above);
                if receiver.owed > 0 && !self.owing.contains(&from) {
                    self.owing.push_back(from);
                }
            }
            (None, Load::None) => {}
            (None, load) => above.release(from, load),
        }
    }

    fn on_mac(&mut self, now: Time, signal: MacSignal, _: &mut dyn Above) {
        match signal {
            MacSignal::Trans { to, airtime } => {
                let delta = self.delta_1(airtime);
                let Some(frame) = self.at_mac.as_mut().filter(|frame| frame.to == to) else {
                    return;
                };
                frame.begun = true;
                if frame.reliable {
                    let sender = &mut self.peers[to.index()].sender;
                    sender.expired = false;
                    sender.patience = delta;
                    let backoff = match self.config.pacing {
                        Pacing::HalfDuplex => 0,
                        // Without any answer the interval grows up to eightfold.
                        Pacing::FullDuplex => sender.silent.min(3),
                    };
                    sender.alarm = Some(now + delta * (1 << backoff));
                    if self.config.pacing == Pacing::HalfDuplex {
                        self.hold = sender.alarm;
                    }
                }
            }
            MacSignal::Wait { from, hold } => {
                if self.config.pacing == Pacing::HalfDuplex {
                    self.turn_of_other = None;
                    let until = now + self.answer() + self.timing.propagation + hold;
                    self.wait = Some((from, until));
                }
            }
            MacSignal::Done { to, .. } => {
                let Some(frame) = self.at_mac.take() else { return };
                // A TCP ACK that arrives now from above waits for the answer to the next packet, and does not
                // contend with that packet for the channel.
                //= parsa98#3.3: what waits to be returned goes with the ACK of the packet that was received
                let paced = self.config.acceleration && self.config.pacing == Pacing::HalfDuplex;
                if paced && frame.answers && !frame.reliable && self.timing.turn > Span::ZERO {
                    self.turn_of_other = Some(now + self.timing.turn);
                }
                // Medium access gave it up without sending it, so the turn is free.
                if frame.reliable && !frame.begun {
                    self.peers[to.index()].sender.expired = true;
                }
            }
        }
    }

    fn on_wake(&mut self, now: Time, _: &mut dyn Above) {
        if self.wait.is_some_and(|(_, until)| until <= now) {
            self.wait = None;
        }
        if self.hold.is_some_and(|until| self.alarm(until) <= now) {
            self.hold = None;
        }
        if self.turn_of_other.is_some_and(|until| until <= now) {
            self.turn_of_other = None;
        }
        let wait = self.wait;
        for Peer { sender, receiver } in &mut self.peers {
            if receiver.due_at.is_some_and(|at| at <= now) {
                receiver.due_at = None;
            }
            let after_wait = |at: Time| wait.map_or(at, |(_, until)| until.max(at));
            if sender.alarm.is_some_and(|at| after_wait(at) <= now) {
                sender.alarm = None;
                sender.expired = true;
                sender.silent = sender.silent.saturating_add(1);
            }
        }
    }

    fn next_wake(&self) -> Option<Time> {
        let mut first = self.held_until().unwrap_or(Time::NEVER);
        for Peer { sender, receiver } in &self.peers {
            if let Some(at) = sender.alarm {
                first = first.min(self.alarm(at));
            }
            if let Some(at) = receiver.due_at {
                first = first.min(at);
            }
        }
        first.or_none()
    }

    fn next_frame(&mut self, now: Time, above: &mut dyn Above) -> Option<Frame> {
        // A station that waits for an answer leaves the channel to it.
        let owed = self.owing.iter().copied().find(|station| self.owes(now, *station));
        if let Some(to) = owed {
            return self.frame(now, to, above);
        }
        if self.held_until().is_some_and(|until| until > now) {
            return None;
        }
        let (n, turn) = (self.peers.len(), self.turn);
        let own = self.station;
        let others = (1..=n).map(|k| Station(((turn + k) % n) as u8)).filter(|to| *to != own);
        for to in others {
            let frame = self.frame(now, to, above);
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    fn amend(&mut self, now: Time, frame: &mut Frame) -> bool {
        let to = frame.to;
        let Header::Arq(header) = &mut frame.header else { return false };
        if !self.config.acceleration || !self.owes(now, to) {
            return false;
        }
        let before = codec::header_len(header);
        header.ack = Some(self.peers[to.index()].receiver.acknowledgement());
        frame.bytes = frame.bytes - before + codec::header_len(header);
        self.owing.retain(|station| *station != to);
        if let Some(at_mac) = &mut self.at_mac {
            at_mac.answers = true;
        }
        true
    }

    //= parsa98#3.3: the answer goes at once, with the packet that waits if there is one
    fn reply(&mut self, now: Time, to: Station, above: &mut dyn Above) -> Option<Frame> {
        let known = to != self.station && to.index() < self.peers.len();
        if !self.config.acceleration || !known || !self.owes(now, to) {
            return None;
        }
        self.frame(now, to, above)
    }
}
