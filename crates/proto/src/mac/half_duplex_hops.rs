//! Packet radio over several hops: half-duplex stations in a row that poll each other before each packet.
//!
//! Model of Metricom's Ricochet, with which the authors of balakrishnan97 simulated (4.4.2; H. Balakrishnan,
//! V. Padmanabhan and R. Katz, "The Effects of Asymmetry on TCP Performance", MOBICOM 1997; their multi-hop
//! medium access for ns). A station has one radio that handles one exchange at a time. A relay in the middle
//! of a path cannot receive on one hop while it sends on the other. Data in one direction and ACKs in the
//! other share the radio.
//!
//! - A station with a packet polls the next one. An idle station answers after the radio turnaround time
//!   between sending and receiving, and then the packet is sent.
//! - A busy station does not answer. The polling station waits for a turnaround and four polls, during which
//!   it can hear no other station. Then it backs off: two units, plus between one and two times a value that
//!   doubles with each failure.
//! - The two directions of a station have one queue each. They contend for its radio as they do for the
//!   neighbour's: a packet that finds the radio busy counts as a poll without an answer.
//!
//! **Not modelled**: interference between exchanges of different stations, since neighbours hop on separate
//! frequencies; hidden stations; the time on the air of the link layer's acknowledgement, which ends each
//! exchange of this radio; retransmission by the link layer: a frame damaged by the channel is lost with
//! cause `frame-lost`. Propagation takes no time; the radio's `delay` is the time in which a station passes a
//! received packet to its queue.

use super::{Chosen, Read};
use crate::describe::{Descriptor, Keys, Kind, System};
use serde::Serialize;

use crate::air::{AirEvent, FrameFate, FrameKind, Station};
use crate::channel::Channel;
use crate::event::{Cause, EventKind, Interest, Op};
use crate::link::RadioConfig;
use crate::link::transmitter::Pipe;
use crate::machine::{Machine, Out, Side, catch_up};
use crate::queue::Queue;
use crate::rng::Stream;
use crate::units::{Span, Time};
use crate::wire::Packet;

/// Wait for an answer, in polls after the turnaround.
const PATIENCE: u64 = 4;
/// Maximum number of doublings of the backoff: up to 64 units.
const DOUBLINGS: u32 = 6;
/// Both directions of travel.
const SIDES: [Side; 2] = [Side::Right, Side::Left];

pub(super) const WORDS: &[Descriptor<Read>] = &[Descriptor {
    word: "half-duplex-hops",
    system: System::new(
        Kind::Mac,
        "half-duplex-hops",
        "path: mac = \"half-duplex-hops\"",
        "packet radio over several hops: stations poll each other, and turn around for each packet",
        "balakrishnan97 4.4.2",
    ),
    read: |k| Chosen::Hops(HalfDuplexHops::keys(k)),
}];

impl HalfDuplexHops {
    /// Reads the keys.
    pub fn keys(k: &mut Keys<'_>) -> HalfDuplexHops {
        let mut c = HalfDuplexHops::default();
        k.table("half-duplex-hops", "options of `half-duplex-hops`", |k| {
            k.count("hops", &mut c.hops, 1..=16, "hops in a row; one less than that are relays");
            let doc = "the time that radios take to turn around, once for each packet";
            k.within("turnaround", &mut c.turnaround, Span::ZERO..=Span::secs(60), doc);
            let unit = Span::micros(1)..=Span::secs(60);
            k.within("backoff", &mut c.backoff, unit, "the unit of the backoff");
            k.bytes("poll", &mut c.poll, 1..=65_535, "the length of a poll, and of its answer");
        });
        c
    }
}

/// Settings of the multi-hop radio.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HalfDuplexHops {
    /// Hops in a row, one more than the number of relays.
    pub hops: u8,
    /// Radio turnaround time between sending and receiving, once for each packet.
    pub turnaround: Span,
    /// Unit of the backoff.
    pub backoff: Span,
    /// Length of a poll, and of its answer, in bytes.
    pub poll: u32,
}

impl Default for HalfDuplexHops {
    /// One hop, with times and lengths of the authors' model of the Ricochet network.
    fn default() -> HalfDuplexHops {
        HalfDuplexHops {
            hops: 1,
            turnaround: Span::micros(13_250),
            backoff: Span::millis(20),
            poll: 16,
        }
    }
}

/// Activity of a radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Radio {
    Idle,
    /// It has polled the neighbour on `side`. The poll arrives at `arrival`; without an answer it stops at
    /// `until`.
    Polling {
        side: Side,
        arrival: Time,
        until: Time,
        answered: bool,
    },
    /// It sends a packet to the neighbour on `side` until `until`, the poll's answer included.
    Sending {
        side: Side,
        until: Time,
        damaged: bool,
    },
    /// It receives a packet until `until`.
    Receiving {
        until: Time,
    },
}

impl Radio {
    /// Whether it works for the direction `side`.
    fn serves(self, to: Side) -> bool {
        match self {
            Radio::Polling { side, .. } | Radio::Sending { side, .. } => side == to,
            Radio::Idle | Radio::Receiving { .. } => false,
        }
    }
}

/// Packets of a station in one direction.
#[derive(Clone, Debug)]
struct Lane {
    queue: Queue,
    /// The packet of the current poll, already removed from the queue.
    head: Option<Packet>,
    /// Polls for it without an answer.
    failures: u32,
    /// No poll before this time.
    not_before: Time,
    /// Received packets, each with its arrival time at the next queue.
    pipe: Pipe,
}

impl Lane {
    fn waits(&self) -> bool {
        self.head.is_some() || !self.queue.is_empty()
    }
}

#[derive(Clone, Debug)]
struct Node {
    radio: Radio,
    /// By the direction of packets.
    lanes: [Lane; 2],
    /// Direction that goes first if both are ready at the same instant.
    turn: Side,
}

/// Stations in a row. See the module documentation.
#[derive(Clone, Debug)]
pub struct Hops {
    radio: RadioConfig,
    config: HalfDuplexHops,
    nodes: Vec<Node>,
    /// The channels of each hop, by the direction of packets.
    channels: Vec<[Option<Channel>; 2]>,
    rng: Stream,
    inside: u64,
}

impl Hops {
    /// Creates idle stations; `channels` has those of each hop from the left, towards the left and towards
    /// the right, and `stream` gives the random stream of each part.
    pub fn new(
        radio: &RadioConfig,
        config: &HalfDuplexHops,
        channels: Vec<[Option<Channel>; 2]>,
        stream: impl Fn(&str) -> Stream,
    ) -> Hops {
        let lane = |i: u8, side: Side| Lane {
            queue: radio.queue(side, || stream(&format!("queue.{i}.{}", side.word()))),
            head: None,
            failures: 0,
            not_before: Time::ZERO,
            pipe: Pipe::default(),
        };
        let node = |i| Node {
            radio: Radio::Idle,
            lanes: Side::BOTH.map(|side| lane(i, side)),
            turn: Side::Right,
        };
        Hops {
            radio: radio.clone(),
            config: config.clone(),
            nodes: (0..=config.hops.max(1)).map(node).collect(),
            channels,
            rng: stream("mac"),
            inside: 0,
        }
    }

    /// Stops all damage from now on, also to packets in progress.
    pub fn forget_channels(&mut self) {
        self.channels.clear();
    }

    /// The channel of the first hop towards `side`.
    pub fn channel(&self, side: Side) -> Option<&Channel> {
        self.channels.first()?[side.index()].as_ref()
    }

    /// The same, to change its script.
    pub fn channel_mut(&mut self, side: Side) -> Option<&mut Channel> {
        self.channels.first_mut()?[side.index()].as_mut()
    }

    fn poll_time(&self) -> Span {
        self.radio.rate.transmit(self.config.poll.into())
    }

    /// The station on `side` of station `i`, if there is one.
    fn neighbour(&self, i: usize, side: Side) -> Option<usize> {
        match side {
            Side::Left => i.checked_sub(1),
            Side::Right => Some(i + 1).filter(|i| *i < self.nodes.len()),
        }
    }

    fn report(
        &self,
        from: usize,
        side: Side,
        frame: (FrameKind, u32, Span),
        fate: FrameFate,
        out: &mut Out,
    ) {
        let Some(to) = self.neighbour(from, side).filter(|_| out.accepts(Interest::RESULTS)) else {
            return;
        };
        let (kind, bytes, airtime) = frame;
        let (station, to) = (Station(from as u8), Station(to as u8));
        out.event(EventKind::Air(AirEvent { station, to, kind, bytes, airtime, fate }));
    }

    /// Moves received packets to the next queue, or out of the last station.
    fn deliver(&mut self, at: Time, out: &mut Out) {
        for i in 0..self.nodes.len() {
            for side in SIDES {
                let is_last = self.neighbour(i, side).is_none();
                let Lane { pipe, queue, .. } = &mut self.nodes[i].lanes[side.index()];
                if is_last {
                    pipe.deliver(at, side, out);
                }
                while let Some(packet) = pipe.take(at) {
                    let bytes = packet.wire_len();
                    queue.enqueue(at, side, packet, bytes, out);
                }
            }
        }
    }

    /// Handles all ends by `at`: exchanges first, then received polls, then polls without an answer.
    fn end(&mut self, at: Time, out: &mut Out) {
        for i in 0..self.nodes.len() {
            match self.nodes[i].radio {
                Radio::Sending { side, until, damaged } if until <= at => {
                    self.nodes[i].radio = Radio::Idle;
                    let lane = &mut self.nodes[i].lanes[side.index()];
                    (lane.failures, lane.not_before) = (0, Time::ZERO);
                    let (head, next) = (lane.head.take(), self.neighbour(i, side));
                    let (Some(packet), Some(next)) = (head, next) else { continue };
                    if damaged {
                        out.packet_event(Op::Damaged, side, &packet);
                        out.discard(side, packet, Cause::FrameLost);
                        continue;
                    }
                    let due = until + self.radio.delay;
                    self.nodes[next].lanes[side.index()].pipe.push(due, packet);
                }
                Radio::Receiving { until } if until <= at => self.nodes[i].radio = Radio::Idle,
                _ => {}
            }
        }
        for i in 0..self.nodes.len() {
            let Radio::Polling { side, arrival, until, answered: false } = self.nodes[i].radio
            else {
                continue;
            };
            if arrival <= at {
                self.nodes[i].radio = Radio::Polling { side, arrival, until, answered: true };
                self.poll(at, i, side, out);
            }
        }
        for i in 0..self.nodes.len() {
            match self.nodes[i].radio {
                Radio::Polling { side, until, .. } if until <= at => {
                    self.nodes[i].radio = Radio::Idle;
                    self.back_off(until, i, side);
                }
                _ => {}
            }
        }
    }

    /// The neighbour on `side` of station `i` hears its poll.
    fn poll(&mut self, at: Time, i: usize, side: Side, out: &mut Out) {
        let Some(next) = self.neighbour(i, side) else { return };
        let (poll, bytes) = (self.poll_time(), self.config.poll);
        if self.nodes[next].radio != Radio::Idle {
            return self.report(i, side, (FrameKind::Rts, bytes, poll), FrameFate::Collided, out);
        }
        let Some(packet) = &self.nodes[i].lanes[side.index()].head else { return };
        let kind = if packet.bears_data() { FrameKind::Data } else { FrameKind::Ack };
        let length = packet.wire_len();
        self.report(i, side, (FrameKind::Rts, bytes, poll), FrameFate::Received, out);
        self.report(next, side.other(), (FrameKind::Cts, bytes, poll), FrameFate::Received, out);
        //= balakrishnan97#4.4.2: there is a significant latency for sending each packet
        let start = at + self.config.turnaround + poll;
        let airtime = self.radio.overhead + self.radio.rate.transmit(length.into());
        let hop = i.min(next);
        let channel = self.channels.get_mut(hop).and_then(|pair| pair[side.index()].as_mut());
        let damaged = channel
            .filter(|channel| channel.applies_to(kind.traffic()))
            .is_some_and(|channel| channel.pass(start, airtime, length).damaged_at.is_some());
        self.report(i, side, (kind, length, airtime), FrameFate::of(damaged), out);
        let until = start + airtime;
        self.nodes[i].radio = Radio::Sending { side, until, damaged };
        self.nodes[next].radio = Radio::Receiving { until };
    }

    /// The poll of station `i` towards `side` had no answer by `at`.
    fn back_off(&mut self, at: Time, i: usize, side: Side) {
        let unit = self.config.backoff;
        let lane = &mut self.nodes[i].lanes[side.index()];
        lane.failures = lane.failures.saturating_add(1);
        let most = unit * (1 << lane.failures.min(DOUBLINGS));
        lane.not_before = at + unit * 2 + most + Span(self.rng.below(most.0));
    }

    /// Polls for waiting packets that may be sent at `at`.
    fn start(&mut self, at: Time, out: &mut Out) {
        let poll = self.poll_time();
        let patience = self.config.turnaround + poll * PATIENCE;
        for i in 0..self.nodes.len() {
            let turn = self.nodes[i].turn;
            for side in [turn, turn.other()] {
                let node = &mut self.nodes[i];
                let lane = &mut node.lanes[side.index()];
                if node.radio.serves(side) || !lane.waits() || lane.not_before > at {
                    continue;
                }
                if lane.head.is_none() {
                    lane.head = lane.queue.dequeue(at, side, out).map(|waiting| waiting.packet);
                }
                let until = at + patience;
                if node.radio == Radio::Idle {
                    node.turn = side.other();
                    let arrival = at + poll;
                    node.radio = Radio::Polling { side, arrival, until, answered: false };
                } else {
                    self.back_off(until, i, side);
                }
            }
        }
    }

    fn step(&mut self, at: Time, out: &mut Out) {
        self.end(at, out);
        self.deliver(at, out);
        self.start(at, out);
    }
}

impl Machine for Hops {
    fn check(&self) {
        debug_assert!(self.channels.len() < self.nodes.len(), "a channel is between two stations");
        for lane in self.nodes.iter().flat_map(|node| &node.lanes) {
            lane.queue.check();
            debug_assert!(
                lane.head.is_some() || lane.failures == 0,
                "{} failed polls without a packet",
                lane.failures
            );
        }
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hops::step);
        let gone = out.gone();
        self.inside += 1;
        let side = from.other();
        let node = match from {
            Side::Left => self.nodes.first_mut(),
            Side::Right => self.nodes.last_mut(),
        };
        if let Some(node) = node {
            let bytes = packet.wire_len();
            node.lanes[side.index()].queue.enqueue(now, side, packet, bytes, out);
        }
        self.start(now, out);
        self.inside -= out.gone() - gone;
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hops::step);
    }

    fn next_wake(&self) -> Option<Time> {
        let of_node = |node: &Node| {
            let radio = match node.radio {
                Radio::Idle => None,
                Radio::Polling { arrival, answered: false, .. } => Some(arrival),
                Radio::Polling { until, .. }
                | Radio::Sending { until, .. }
                | Radio::Receiving { until } => Some(until),
            };
            let lanes = SIDES.into_iter().flat_map(move |side| {
                let lane = &node.lanes[side.index()];
                let poll = (!node.radio.serves(side) && lane.waits()).then_some(lane.not_before);
                poll.into_iter().chain(lane.pipe.next().or_none())
            });
            radio.into_iter().chain(lanes).min()
        };
        self.nodes.iter().filter_map(of_node).min()
    }

    fn holds(&self) -> usize {
        self.inside as usize
    }
}
