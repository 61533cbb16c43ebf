//! Ends on a medium with a scripted fate for each transmission.

use std::collections::{BTreeSet, VecDeque};

use lasthop_proto::air::Station;
use lasthop_proto::event::{Cause, LinkNote};
use lasthop_proto::link::end::{Above, LinkEnd, MacSignal};
use lasthop_proto::link::frame::{ArqHeader, Frame, Header, Load, Timing};
use lasthop_proto::link::tulip::states::{ReceiveState, SendState};
use lasthop_proto::link::tulip::{Tulip, TulipConfig};
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Addr, Body, Flags, Packet, PacketId, Segment, Seq};

use crate::tulip_states::{ReceiveEvent, SendEvent};

/// A TCP packet with `len` bytes of payload.
pub fn packet(id: u64, len: u32) -> Packet {
    let segment = Segment::new(1, 2, Seq(id as u32), Seq(0), Flags::ACK);
    let body = Body::Pattern { stream: 1, len, offset: 0 };
    let tcp = Packet::tcp(Addr::v4(10, 0, 0, 1), Addr::v4(10, 0, 0, 2), segment, body);
    tcp.with(|packet| packet.id = PacketId(id))
}

/// 1 Mb/s, 0.1 ms per frame, `propagation`.
pub fn timing(propagation: Span) -> Timing {
    Timing {
        byte_ps: 8_000_000,
        frame: Span::micros(100),
        propagation,
        turnaround: Span::ZERO,
        processing: Span::ZERO,
        turn: Span::ZERO,
    }
}

/// The layer above an end: its queue, and the released packets.
#[derive(Default, Debug)]
pub struct Upper {
    pub queue: VecDeque<(Station, Packet)>,
    pub released: Vec<(Station, u64)>,
    pub repeated: Vec<(u64, Cause)>,
    pub notes: Vec<LinkNote>,
}

impl Above for Upper {
    fn waits(&self, to: Station) -> bool {
        self.queue.iter().any(|(station, _)| *station == to)
    }

    fn next_destination(&self) -> Option<Station> {
        self.queue.front().map(|(station, _)| *station)
    }

    fn take(&mut self, to: Station) -> Option<Load> {
        let i = self.queue.iter().position(|(station, _)| *station == to)?;
        self.queue.remove(i).map(|(_, packet)| Load::Packet(packet))
    }

    fn release(&mut self, from: Station, load: Load) {
        if let Some(packet) = load.packet() {
            self.released.push((from, packet.id.0));
        }
    }

    fn give_up(&mut self, _: Station, load: Load, cause: Cause) {
        panic!("{load:?} given up: {cause:?}");
    }

    fn repeat(&mut self, _: Station, load: &Load, cause: Cause) {
        self.repeated.push((load.packet().unwrap().id.0, cause));
    }

    fn attempt_failed(&mut self, _: &Load, _: u32, _: bool) {}

    fn note(&mut self, _: Station, note: LinkNote) {
        self.notes.push(note);
    }
}

/// Fate of a transmission: the delays of its copies in addition to propagation. An empty list is a loss.
pub type Fate = Vec<Span>;

/// An event.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// A frame was sent.
    Sent { frame: Box<Frame>, lost: bool },
    /// Packets were released at a station.
    Released(Vec<u64>),
    /// Retransmission list of a receiver after the arrival of a frame.
    List(Vec<u32>),
}

/// Ends on one medium.
pub struct World {
    pub now: Time,
    pub ends: Vec<Tulip>,
    pub uppers: Vec<Upper>,
    /// All events, in order.
    pub log: Vec<LogEntry>,
    /// Transitions of the sender of each end to its only peer, in a world of two.
    pub moves: BTreeSet<(SendState, SendEvent, SendState)>,
    /// Transitions of the receivers.
    pub taken: BTreeSet<(ReceiveState, ReceiveEvent, ReceiveState)>,
    timing: Timing,
    half_duplex: bool,
    /// By station: end of its transmission, and its receiver.
    sending: Vec<Option<(Time, Station)>>,
    /// Frames that wait for the medium, by station.
    waiting: Vec<Option<Frame>>,
    flying: Vec<(Time, u64, Frame)>,
    counter: u64,
}

pub fn arq(frame: &Frame) -> &ArqHeader {
    match &frame.header {
        Header::Arq(header) => header,
        _ => panic!("{frame:?}"),
    }
}

impl World {
    pub fn new(config: &TulipConfig, stations: u8, timing: Timing, half_duplex: bool) -> World {
        let end = |i| Tulip::new(config, Station(i), stations, timing);
        let n = usize::from(stations);
        World {
            now: Time::ZERO,
            ends: (0..stations).map(end).collect(),
            uppers: (0..n).map(|_| Upper::default()).collect(),
            log: Vec::new(),
            moves: BTreeSet::new(),
            taken: BTreeSet::new(),
            timing,
            half_duplex,
            sending: vec![None; n],
            waiting: vec![None; n],
            flying: Vec::new(),
            counter: 0,
        }
    }

    pub fn put(&mut self, from: u8, to: u8, packet: Packet) {
        self.uppers[usize::from(from)].queue.push_back((Station(to), packet));
    }

    /// The times of all future events.
    fn next(&self) -> Option<Time> {
        let ends = self.ends.iter().filter_map(LinkEnd::next_wake);
        let sending = self.sending.iter().flatten().map(|(at, _)| *at);
        let flying = self.flying.iter().map(|(at, ..)| *at);
        ends.chain(sending).chain(flying).min()
    }

    /// The state of an end's sender, in a world of two.
    fn send_state(&self, i: usize) -> SendState {
        self.ends[i].send_state(Station(1 - i.min(1) as u8))
    }

    fn chosen(&mut self, i: usize, before: SendState) {
        if self.waiting[i].as_ref().is_some_and(|frame| arq(frame).seq.is_some()) {
            self.moves.insert((before, SendEvent::Choose, self.send_state(i)));
        }
    }

    /// Passes a frame to an end, and records the transition.
    fn take(&mut self, i: usize, now: Time, frame: Frame) {
        let from = frame.from;
        let (has_ack, has_seq) = (arq(&frame).ack.is_some(), arq(&frame).seq.is_some());
        let (sends, receives) = (self.send_state(i), self.ends[i].receive_state(from));
        let (notes, released) = (self.uppers[i].notes.len(), self.uppers[i].released.len());
        self.ends[i].on_frame(now, frame, &mut self.uppers[i]);
        if has_ack {
            self.moves.insert((sends, SendEvent::Lack, self.send_state(i)));
        }
        if has_seq {
            let upper = &self.uppers[i];
            let event = match (upper.notes[notes..].last(), upper.released.len() > released) {
                (Some(LinkNote::Duplicate), _) => ReceiveEvent::Again,
                (_, true) => ReceiveEvent::Next,
                _ => ReceiveEvent::Ahead,
            };
            self.taken.insert((receives, event, self.ends[i].receive_state(from)));
        }
    }

    /// Puts all frames on the air that may be sent.
    fn start(&mut self, fate: &mut impl FnMut(&Frame) -> Fate) {
        for i in 0..self.ends.len() {
            let (end, upper) = (&mut self.ends[i], &mut self.uppers[i]);
            if self.waiting[i].is_none() && self.sending[i].is_none() {
                let before = end.send_state(Station(1 - i.min(1) as u8));
                self.waiting[i] = end.next_frame(self.now, upper);
                self.chosen(i, before);
            }
        }
        for i in 0..self.ends.len() {
            let busy = self.sending.iter().any(Option::is_some);
            if self.sending[i].is_some() || (self.half_duplex && busy) {
                continue;
            }
            let Some(frame) = self.waiting[i].take() else { continue };
            let airtime = self.timing.on_air(frame.bytes);
            let ends_at = self.now + airtime;
            self.sending[i] = Some((ends_at, frame.to));
            let trans = MacSignal::Trans { to: frame.to, airtime };
            let before = self.send_state(i);
            self.ends[i].on_mac(self.now, trans, &mut self.uppers[i]);
            if arq(&frame).seq.is_some() {
                self.moves.insert((before, SendEvent::Trans, self.send_state(i)));
            }
            let copies = fate(&frame);
            self.log
                .push(LogEntry::Sent { frame: Box::new(frame.clone()), lost: copies.is_empty() });
            for more in copies {
                self.counter += 1;
                let arrives = ends_at + self.timing.propagation + more;
                self.flying.push((arrives, self.counter, frame.clone()));
            }
        }
    }

    /// Runs until no event remains or until `end`.
    pub fn run(&mut self, end: Time, fate: &mut impl FnMut(&Frame) -> Fate) {
        self.start(fate);
        let mut idle = 0;
        while let Some(at) = self.next().filter(|at| *at <= end) {
            idle = if at > self.now { 0 } else { idle + 1 };
            assert!(idle < 1000, "no progress at {at}");
            self.now = self.now.max(at);
            let now = self.now;
            for i in 0..self.ends.len() {
                if let Some((_, to)) = self.sending[i].filter(|(at, _)| *at <= now) {
                    self.sending[i] = None;
                    let done = MacSignal::Done { to, acked: None };
                    self.ends[i].on_mac(now, done, &mut self.uppers[i]);
                }
            }
            let mut due: Vec<_> = self.flying.extract_if(.., |(at, ..)| *at <= now).collect();
            due.sort_by_key(|(at, n, _)| (*at, *n));
            for (_, _, frame) in due {
                let (i, from) = (frame.to.index(), frame.from);
                let before = self.uppers[i].released.len();
                self.take(i, now, frame);
                let list = self.ends[i].retransmission_list(from);
                let released =
                    self.uppers[i].released[before..].iter().map(|(_, id)| *id).collect();
                self.log.extend([LogEntry::List(list), LogEntry::Released(released)]);
                if self.waiting[i].is_none() && self.sending[i].is_none() {
                    let before = self.send_state(i);
                    self.waiting[i] = self.ends[i].reply(now, from, &mut self.uppers[i]);
                    self.chosen(i, before);
                }
            }
            for i in 0..self.ends.len() {
                if self.ends[i].next_wake().is_some_and(|wake| wake <= now) {
                    let before = self.send_state(i);
                    self.ends[i].on_wake(now, &mut self.uppers[i]);
                    let after = self.send_state(i);
                    if before == SendState::Waiting && after != before {
                        self.moves.insert((before, SendEvent::T1, after));
                    }
                }
            }
            self.start(fate);
        }
    }
}
