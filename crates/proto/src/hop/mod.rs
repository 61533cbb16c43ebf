//! A radio hop with a link layer and medium access: the stations, what they say to each other, and the medium.
//!
//! Each station has a queue, a link layer's end, and a place in the medium. The hop hands what one tells to the
//! others, in the order in which it happens. A hop without either is a [`Radio`](crate::link::Radio), which needs no
//! more than a wake for each frame.

mod air;
pub(crate) mod pieces;
mod upper;

use std::collections::VecDeque;

use serde::Serialize;

use crate::channel::{Channel, Turns};
use crate::event::{Cause, Op, Wants, What};
use crate::link::transmitter::tell_turn;
use crate::mac::{Access, Air, Mac, MacConfig, Medium, Outcome};
use crate::machine::{Machine, Out, Side, Signal, catch_up};
use crate::rng::Stream;
use crate::units::Time;
use crate::wire::{Addr, Damage, Packet, PacketId};

use crate::air::Station;
use crate::link::RadioConfig;
use crate::link::end::{Above, LinkEnd, MacSignal};
use crate::link::fec::Coding;
use crate::link::frame::{Frame, Load};
use crate::link::layer::{LinkLayer, LinkLayerConfig};
use air::AirView;
use pieces::{Cutter, Gatherer};
use upper::{Upper, UpperView};

/// What a radio hop has beside its medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HopConfig {
    /// Medium access.
    pub mac: MacConfig,
    /// Link layer.
    pub link: LinkLayerConfig,
    /// Longest piece of a packet that a frame carries, in bytes; `None` cuts nothing.
    pub fragment: Option<u32>,
    /// What is done to the bytes of a frame before they go on the air.
    pub coding: Coding,
    /// The mobile hosts that have stations of their own; without any, everything on the right is one station.
    #[serde(serialize_with = "shown")]
    pub mobiles: Vec<Addr>,
}

fn shown<S: serde::Serializer>(addrs: &[Addr], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(addrs.iter().map(Addr::to_string))
}

impl Default for HopConfig {
    fn default() -> HopConfig {
        HopConfig {
            mac: MacConfig::Ideal,
            link: LinkLayerConfig::None,
            fragment: None,
            coding: Coding::NONE,
            mobiles: Vec::new(),
        }
    }
}

/// The channels of one mobile station: to the base station, and from it.
pub type Channels = [Option<Channel>; 2];

/// A radio hop.
#[derive(Debug)]
pub struct Hop {
    mobiles: Vec<Addr>,
    uppers: Vec<Upper>,
    ends: Vec<LinkLayer>,
    medium: Medium,
    coding: Coding,
    /// By mobile station, the first being station 1.
    channels: Vec<Channels>,
    /// The packets handed up last, by station.
    released: Vec<VecDeque<PacketId>>,
    /// The turns of the channels, where they are to be told when they happen; by mobile station and side.
    turns: Vec<(Side, Turns)>,
    /// What the medium has told and has not been handled.
    outcomes: VecDeque<Outcome>,
    inside: u64,
}

impl Hop {
    /// A silent hop; `channels` has those of each mobile station, and `stream` gives the random draws of its parts.
    pub fn new(
        radio: &RadioConfig,
        config: &HopConfig,
        channels: Vec<Channels>,
        stream: impl Fn(&str) -> Stream,
    ) -> Hop {
        let count = channels.len().clamp(1, 254) as u8 + 1;
        let medium = Medium::new(&config.mac, radio, count, config.coding, stream("mac"));
        let timing = medium.timing();
        let stations = (0..count).map(Station);
        let fragment = config.fragment.filter(|_| !config.link.takes_whole());
        let upper = |station: Station| {
            let own = if station == Station::BASE { Side::Left } else { Side::Right };
            let queue =
                |to: u8| radio.queue(own.other(), || stream(&format!("queue.{}.{to}", station.0)));
            Upper {
                station,
                own,
                queues: (0..count).map(queue).collect(),
                order: VecDeque::new(),
                cutter: fragment.map(|limit| Cutter::new(limit, count)),
                gatherers: (0..count).map(|_| Gatherer::default()).collect(),
                given_up: VecDeque::new(),
            }
        };
        let turns = channels.iter().flat_map(|pair| {
            let sides = Side::BOTH.into_iter().zip(pair);
            let telling = |(side, channel): (Side, &Option<Channel>)| {
                let turns = channel.as_ref().filter(|c| c.tells())?.turns()?;
                Some((side, turns))
            };
            sides.filter_map(telling).collect::<Vec<_>>()
        });
        Hop {
            turns: turns.collect(),
            mobiles: config.mobiles.clone(),
            uppers: stations.clone().map(upper).collect(),
            ends: stations
                .map(|s| {
                    LinkLayer::new(&config.link, s, count, timing, stream(&format!("link.{}", s.0)))
                })
                .collect(),
            medium,
            coding: config.coding,
            channels,
            released: vec![VecDeque::new(); usize::from(count)],
            outcomes: VecDeque::new(),
            inside: 0,
        }
    }

    /// The link layer's ends, by station.
    pub fn ends(&self) -> &[LinkLayer] {
        &self.ends
    }

    /// From now on nothing damages what goes over the hop: another takes its place, and this one has only to hand
    /// on what it holds, however often its channel would have had that sent again.
    pub fn forget_channels(&mut self) {
        self.channels.iter_mut().for_each(|pair| *pair = [None, None]);
        self.turns.clear();
    }

    /// The station of a mobile host; hosts that are not named share the first one.
    fn mobile(&self, addr: Addr) -> Station {
        let i = self.mobiles.iter().position(|m| *m == addr).unwrap_or(0);
        Station(i as u8 + 1)
    }

    /// Calls the end at station `i`.
    fn with_end<T>(
        &mut self,
        i: usize,
        out: &mut Out,
        call: impl FnOnce(&mut LinkLayer, &mut dyn Above) -> T,
    ) -> T {
        let upper = &mut self.uppers[i];
        call(&mut self.ends[i], &mut UpperView { upper, released: &mut self.released, out })
    }

    /// Calls medium access.
    fn with_medium(&mut self, out: &mut Out, call: impl FnOnce(&mut Medium, &mut dyn Air)) {
        let mut view = AirView {
            coding: self.coding,
            channels: &mut self.channels,
            outcomes: &mut self.outcomes,
            out,
        };
        call(&mut self.medium, &mut view);
    }

    /// Hands a frame to medium access.
    fn request(&mut self, now: Time, frame: Frame, access: Access, out: &mut Out) {
        let packet = frame.load.packet();
        if let Some(packet) = packet.filter(|packet| packet.is_data())
            && let (Some(flow), Some(segment)) = (packet.flow(), packet.segment())
        {
            let end = segment.seq + segment.seq_len(packet.body.len());
            let own = self.uppers[frame.from.index()].own;
            out.signal(own, Signal::Departing { flow, end });
        }
        self.with_medium(out, |mac, air| mac.request(now, frame, access, air));
    }

    /// Handles what the medium has told, and hands frames to it, until nothing moves at `now`.
    fn exchange(&mut self, now: Time, out: &mut Out) {
        loop {
            while let Some(outcome) = self.outcomes.pop_front() {
                self.handle(now, outcome, out);
            }
            for i in 0..self.ends.len() {
                if self.medium.is_idle(Station(i as u8))
                    && let Some(frame) =
                        self.with_end(i, out, |end, above| end.next_frame(now, above))
                {
                    self.request(now, frame, Access::Contend, out);
                }
            }
            if self.outcomes.is_empty() {
                return;
            }
        }
    }

    fn handle(&mut self, now: Time, outcome: Outcome, out: &mut Out) {
        let (station, signal) = match outcome {
            Outcome::Trans { station, to, airtime } => (station, MacSignal::Trans { to, airtime }),
            Outcome::Wait { station, from, hold } => (station, MacSignal::Wait { from, hold }),
            Outcome::Done { station, to, acked } => (station, MacSignal::Done { to, acked }),
            Outcome::Arrived { frame, intact, may_reply } => {
                return self.arrived(now, frame, intact, may_reply, out);
            }
            Outcome::Doze { station, asleep } => {
                if out.wants(Wants::METRICS) {
                    out.event(What::Doze { station, asleep });
                }
                return;
            }
            Outcome::Failed { frame, cause, delivered } => {
                if !delivered && !frame.kept {
                    self.lost(frame.from, frame.to, frame.load, cause, out);
                }
                return;
            }
        };
        self.with_end(station.index(), out, |end, above| end.on_mac(now, signal, above));
    }

    /// A frame has reached its receiver.
    fn arrived(
        &mut self,
        now: Time,
        mut frame: Frame,
        intact: bool,
        may_reply: bool,
        out: &mut Out,
    ) {
        let (from, to) = (frame.from, frame.to);
        let side = self.uppers[from.index()].own.other();
        if let Load::Packet(packet) = &mut frame.load
            && !intact
        {
            packet.damage = Damage::Ip;
            out.packet_event(Op::Damaged, side, packet);
        }
        if let Some(packet) = frame.load.packet()
            && frame.load.is_last()
        {
            out.packet_event(Op::Transmitted, side, packet);
        }
        if !intact {
            if !frame.kept {
                self.lost(from, to, frame.load, Cause::FrameLost, out);
            }
            return;
        }
        self.with_end(to.index(), out, |end, above| end.on_frame(now, frame, above));
        if !may_reply {
            return;
        }
        if self.medium.is_idle(to) {
            let reply = self.with_end(to.index(), out, |end, above| end.reply(now, from, above));
            if let Some(reply) = reply {
                self.request(now, reply, Access::Reply, out);
            }
        } else if let Some(frame) = self.medium.waiting(to).filter(|frame| frame.to == from)
            && self.ends[to.index()].amend(now, frame)
        {
            self.with_medium(out, |mac, air| mac.hurry(now, to, air));
        }
    }

    /// What `load` carries is lost for good.
    fn lost(&mut self, from: Station, to: Station, load: Load, cause: Cause, out: &mut Out) {
        let side = self.uppers[from.index()].own.other();
        match load {
            Load::None => {}
            Load::Packet(packet) => out.discard(side, packet, cause),
            // The other pieces are still on their way: the packet ends once, with its last one.
            Load::Piece(piece) => {
                let gatherer = &mut self.uppers[to.index()].gatherers[from.index()];
                gatherer.spoil(piece.id);
                if piece.index + 1 == piece.count {
                    gatherer.forget(piece.id);
                    out.discard(side, piece.packet, Cause::PieceLost);
                }
            }
        }
    }
}

impl Hop {
    /// Does what is due at `at`, the nominal time of the next wake.
    fn step(&mut self, at: Time, out: &mut Out) {
        for (side, turns) in &mut self.turns {
            while let Some(good) = turns.take(at) {
                tell_turn(*side, good, true, out);
            }
        }
        if self.medium.next_wake().is_some_and(|wake| wake <= at) {
            self.with_medium(out, |mac, air| mac.on_wake(at, air));
        }
        for i in 0..self.ends.len() {
            if self.ends[i].next_wake().is_some_and(|wake| wake <= at) {
                self.with_end(i, out, |end, above| end.on_wake(at, above));
            }
        }
        self.exchange(at, out);
    }
}

impl Machine for Hop {
    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hop::step);
        let gone = out.gone();
        self.inside += 1;
        let (i, to) = match from {
            Side::Left => (0, self.mobile(packet.dst)),
            Side::Right => (self.mobile(packet.src).index(), Station::BASE),
        };
        let bytes = packet.wire_len();
        let upper = &mut self.uppers[i];
        let queue = &mut upper.queues[to.index()];
        let before = queue.len();
        queue.enter(now, from.other(), packet, bytes, out);
        // A discipline may have ended any number of those that waited.
        for _ in before..queue.len() {
            upper.order.push_back(to);
        }
        for _ in queue.len()..before {
            if let Some(i) = upper.order.iter().position(|s| *s == to) {
                upper.order.remove(i);
            }
        }
        self.exchange(now, out);
        self.inside -= out.gone() - gone;
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hop::step);
    }

    fn next_wake(&self) -> Option<Time> {
        let ends = self.ends.iter().filter_map(LinkEnd::next_wake);
        let turns =
            self.turns.iter().map(|(_, turns)| turns.next()).filter(|at| *at != Time::NEVER);
        ends.chain(self.medium.next_wake()).chain(turns).min()
    }

    fn holds(&self) -> usize {
        self.inside as usize
    }
}
