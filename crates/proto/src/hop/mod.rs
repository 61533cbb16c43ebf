//! A radio hop with a link layer and medium access: its stations, their frames, and the medium.
//!
//! Each station has a queue, an end of the link layer, and a medium access entity. The hop passes the output
//! of each to the others, in the order of the events. A hop without both is a [`Radio`](crate::link::Radio),
//! which needs only one deadline per frame.

mod air;
pub(crate) mod pieces;
mod upper;
mod waiting;
mod wakes;

use std::collections::VecDeque;

use serde::Serialize;

use crate::channel::{Channel, Traffic, Turns};
use crate::event::{Cause, EventKind, Interest, LinkNote, Op};
use crate::mac::{Access, Air, Mac, MacConfig, Medium, Outcome};
use crate::machine::{Machine, Out, Side, catch_up};
use crate::queue::{Discipline, Queue};
use crate::rng::Stream;
use crate::units::Time;
use crate::wire::{Addr, Damage, Packet};

use crate::air::Station;
use crate::link::RadioConfig;
use crate::link::end::{Above, LinkEnd, MacSignal};
use crate::link::fec::{Code, Coding};
use crate::link::frame::{Frame, Load};
use crate::link::varied::Sky;
use crate::link::{LinkLayer, LinkLayerConfig};
use air::{AirView, report_departure};
use pieces::{Cutter, Gatherer};
use upper::{Ended, Upper, UpperView};
pub use waiting::Tally;
use waiting::{Scheduler, Waiting};
use wakes::{Due, PollCache};

/// Configuration of a radio hop, in addition to its medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HopConfig {
    /// Medium access.
    pub mac: MacConfig,
    /// Link layer.
    pub link: LinkLayerConfig,
    /// Fragment size in bytes; `None` disables fragmentation.
    pub fragment: Option<u32>,
    /// Coding of frames on the air.
    pub coding: Coding,
    /// Mobile hosts with separate stations; if empty, all hosts on the right share one station.
    #[serde(serialize_with = "addresses")]
    pub mobiles: Vec<Addr>,
}

fn addresses<S: serde::Serializer>(addrs: &[Addr], s: S) -> Result<S::Ok, S::Error> {
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
#[derive(Clone, Debug)]
pub struct Hop {
    mobiles: Vec<Addr>,
    uppers: Vec<Upper>,
    ends: Vec<LinkLayer>,
    medium: Medium,
    coding: Coding,
    /// Indexed by station: the link layer's code of its present frame, and the frame's length without it.
    codes: Vec<Option<(Code, u32)>>,
    /// Indexed by mobile station; the first is station 1.
    channels: Vec<Channels>,
    /// Varying values, if there are any.
    sky: Option<Box<Sky>>,
    /// Recently ended packets, by station.
    ended: Vec<Ended>,
    /// Changes of the channels that are reported immediately, by mobile station and side.
    turns: Vec<(Side, Turns)>,
    /// Unhandled outcomes of the medium.
    outcomes: VecDeque<Outcome>,
    inside: u64,
    /// Deadlines of medium access, of the ends, and the earliest of all. Each is updated only when it may
    /// have changed, since the driver and the hop read them more often.
    due: Due,
    /// Cached poll results, by station.
    polled: Vec<PollCache>,
}

impl Hop {
    /// Calls `each` with each packet that the base station's end of the link layer stores until it has
    /// crossed the hop, and whether it is sent more than once. A fragmented packet is reported with its last
    /// fragment.
    pub fn stored_packets(&self, each: &mut dyn FnMut(&Packet, bool)) {
        let Some(base) = self.ends.first() else { return };
        base.stored_loads(&mut |load, again| {
            let whole = !matches!(load, Load::Piece(piece) if piece.index + 1 < piece.count);
            load.packet().filter(|_| whole).into_iter().for_each(|packet| each(packet, again));
        });
    }

    /// An idle hop. `channels` has those of each mobile station; `stream` returns the random streams of its
    /// parts.
    pub fn new(
        radio: &RadioConfig,
        config: &HopConfig,
        channels: Vec<Channels>,
        stream: impl Fn(&str) -> Stream,
    ) -> Hop {
        let count = channels.len().clamp(1, 254) as u8 + 1;
        let mut medium = Medium::new(&config.mac, radio, count, config.coding, stream("mac"));
        if let Some(attempts) = Scheduler::attempts(&radio.discipline_right) {
            medium.hand_back(Station::BASE, attempts);
        }
        let timing = medium.timing();
        let stations = (0..count).map(Station);
        let fragment = config.fragment.filter(|_| !config.link.takes_whole());
        let upper = |station: Station| {
            let own = if station == Station::BASE { Side::Left } else { Side::Right };
            let queue =
                |to: u8| radio.queue(own.other(), || stream(&format!("queue.{}.{to}", station.0)));
            let waiting = match radio.discipline_right {
                Discipline::Csdp(csdp) if station == Station::BASE => {
                    Waiting::scheduled(csdp, radio.queue, count)
                }
                Discipline::Airtime(airtime) if station == Station::BASE => {
                    let own = airtime.discipline();
                    let queue = |to: u8| {
                        Queue::new(radio.queue, own, || {
                            stream(&format!("queue.{}.{to}", station.0))
                        })
                    };
                    Waiting::by_airtime(&airtime, (0..count).map(queue).collect())
                }
                _ => Waiting::new((0..count).map(queue).collect()),
            };
            Upper {
                station,
                own,
                waiting,
                cutter: fragment.map(|limit| Cutter::new(limit, count)),
                gatherers: (0..count).map(|_| Gatherer::default()).collect(),
                given_up: VecDeque::new(),
            }
        };
        let turns = channels.iter().flat_map(|pair| {
            let sides = Side::BOTH.into_iter().zip(pair);
            let telling = |(side, channel): (Side, &Option<Channel>)| {
                let turns = channel.as_ref().filter(|c| c.reports_changes())?.turns()?;
                Some((side, turns))
            };
            sides.filter_map(telling).collect::<Vec<_>>()
        });
        let mut hop = Hop {
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
            codes: vec![None; usize::from(count)],
            channels,
            sky: None,
            ended: vec![Ended::default(); usize::from(count)],
            outcomes: VecDeque::new(),
            inside: 0,
            due: Due::NOTHING,
            polled: vec![PollCache::NOTHING; usize::from(count)],
        };
        hop.update_deadlines();
        hop
    }

    /// The same hop, whose rate, delay, losses and outages vary.
    #[must_use]
    pub fn varied(mut self, sky: Sky) -> Hop {
        self.medium.vary(sky.clone());
        self.sky = Some(Box::new(sky));
        self.update_deadlines();
        self
    }

    /// Counts of the base station's scheduler for each station, itself first; empty without a scheduler.
    pub fn served(&self) -> Vec<Tally> {
        match &self.uppers[0].waiting {
            Waiting::Scheduled(scheduler) => scheduler.tallies().collect(),
            Waiting::InOrder { .. } | Waiting::Airtime { .. } => Vec::new(),
        }
    }

    /// Disables all further damage. Another hop replaces this one, which only forwards its remaining packets,
    /// without retransmissions by its channel.
    pub fn forget_channels(&mut self) {
        self.channels.iter_mut().for_each(|pair| *pair = [None, None]);
        self.sky = None;
        self.turns.clear();
        self.update_deadlines();
    }

    /// The channel between the base station and the first mobile station, towards `side`.
    pub fn channel(&self, side: Side) -> Option<&Channel> {
        self.channels.first()?[side.index()].as_ref()
    }

    /// The same, to change its script.
    pub fn channel_mut(&mut self, side: Side) -> Option<&mut Channel> {
        self.channels.first_mut()?[side.index()].as_mut()
    }

    /// The station of a mobile host; unlisted hosts share the first one.
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
        self.polled[i].forget();
        let upper = &mut self.uppers[i];
        let view = &mut UpperView { upper, ended: &mut self.ended, inside: &mut self.inside, out };
        call(&mut self.ends[i], view)
    }

    /// Calls medium access.
    fn with_medium(&mut self, out: &mut Out, call: impl FnOnce(&mut Medium, &mut dyn Air)) {
        let mut view = AirView {
            coding: self.coding,
            codes: &self.codes,
            channels: &mut self.channels,
            sky: &mut self.sky,
            ends: &mut self.ends,
            uppers: &mut self.uppers,
            ended: &mut self.ended,
            inside: &mut self.inside,
            polled: &mut self.polled,
            outcomes: &mut self.outcomes,
            out,
        };
        call(&mut self.medium, &mut view);
    }

    /// Passes a frame to medium access.
    fn request(&mut self, now: Time, frame: Frame, access: Access, out: &mut Out) {
        report_departure(&frame, self.uppers[frame.from.index()].own, out);
        self.codes[frame.from.index()] = frame.code();
        self.with_medium(out, |mac, air| mac.request(now, frame, access, air));
    }

    /// Handles outcomes of the medium and passes frames to it, until both are idle at `now`.
    fn exchange(&mut self, now: Time, out: &mut Out) {
        // Without reports of all changes, every idle station must be polled.
        let silent = self.is_scheduled() || !self.medium.reports_idle();
        loop {
            while let Some(outcome) = self.outcomes.pop_front() {
                self.handle(now, outcome, out);
            }
            for i in 0..self.ends.len() {
                if !(self.polled[i].may_send || silent) || !self.medium.is_idle(Station(i as u8)) {
                    continue;
                }
                match self.with_end(i, out, |end, above| end.next_frame(now, above)) {
                    Some(frame) => self.request(now, frame, Access::Contend, out),
                    None => self.polled[i].may_send = false,
                }
            }
            if self.outcomes.is_empty() {
                return;
            }
        }
    }

    fn handle(&mut self, now: Time, outcome: Outcome, out: &mut Out) {
        let (station, signal) = match outcome {
            Outcome::Trans { station, to, airtime } => {
                let mobile = if station == Station::BASE { to } else { station };
                self.uppers[0].waiting.charge(mobile, airtime);
                (station, MacSignal::Trans { to, airtime })
            }
            Outcome::Wait { station, from, hold } => (station, MacSignal::Wait { from, hold }),
            Outcome::Done { station, to, acked } => {
                self.judge(station, to, acked, out);
                (station, MacSignal::Done { to, acked })
            }
            Outcome::Arrived { frame, intact, may_reply } => {
                return self.arrived(now, frame, intact, may_reply, out);
            }
            Outcome::Doze { station, asleep } => {
                if out.accepts(Interest::RESULTS) {
                    out.event(EventKind::Doze { station, asleep });
                }
                return;
            }
            Outcome::Failed { frame, cause, delivered } => {
                if !delivered && !frame.stored {
                    let Some(frame) = self.put_back(frame, cause, out) else { return };
                    self.lost(frame.from, frame.to, frame.load, cause, out);
                }
                return;
            }
        };
        self.with_end(station.index(), out, |end, above| end.on_mac(now, signal, above));
    }

    /// Handles a frame that has reached its receiver.
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
            if !frame.stored {
                self.lost(from, to, frame.load, Cause::FrameLost, out);
            }
            return;
        }
        if to == Station::BASE
            && let Some(scheduler) = self.uppers[0].waiting.scheduler()
        {
            scheduler.record_arrival(from);
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
        } else if let Some(frame) = self.medium.waiting(to).filter(|frame| frame.to == from) {
            self.polled[to.index()].forget();
            if !self.ends[to.index()].amend(now, frame) {
                return;
            }
            self.with_medium(out, |mac, air| mac.hurry(now, to, air));
        }
    }

    /// Handles the final loss of `load`.
    fn lost(&mut self, from: Station, to: Station, load: Load, cause: Cause, out: &mut Out) {
        let side = self.uppers[from.index()].own.other();
        match load {
            Load::None => {}
            Load::Packet(packet) => out.discard(side, packet, cause),
            // The other fragments are still under way: the packet ends with its last one.
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

/// Input of the base station's scheduler.
impl Hop {
    /// Updates the scheduler's time; the oracle reports the channels whose states depend on time.
    fn update_scheduler(&mut self, now: Time) {
        let Some(scheduler) = self.uppers[0].waiting.scheduler() else { return };
        scheduler.advance(now);
        if !scheduler.uses_oracle() {
            return;
        }
        for (i, pair) in self.channels.iter_mut().enumerate() {
            // Data must arrive, and so must the answer of medium access.
            let needed = pair.iter_mut().zip([Traffic::Control, Traffic::Data]);
            let channels = needed.filter_map(|(c, kind)| c.as_mut().filter(|c| c.applies_to(kind)));
            let bad_until = channels.filter_map(|channel| {
                channel.advance(now);
                channel.next_turn().filter(|_| !channel.is_good())
            });
            let until = bad_until.max().unwrap_or(Time::ZERO);
            scheduler.set_bad_until(Station(i as u8 + 1), until);
        }
    }

    /// Handles the result of a transmission to `to`: whether the receiver has acknowledged it.
    fn judge(&mut self, station: Station, to: Station, acked: Option<bool>, out: &mut Out) {
        if station != Station::BASE {
            return;
        }
        let Some(scheduler) = self.uppers[0].waiting.scheduler() else { return };
        match acked {
            Some(true) => scheduler.record_arrival(to),
            Some(false) if scheduler.failed(to) && out.accepts(Interest::RESULTS) => {
                out.event(EventKind::Link { station, peer: to, note: LinkNote::ChannelBad });
            }
            _ => {}
        }
    }

    /// Returns a frame that medium access gave up to the scheduler. Returns the frame if the scheduler does
    /// not accept it.
    fn put_back(&mut self, frame: Frame, cause: Cause, out: &mut Out) -> Option<Frame> {
        let scheduler = match self.uppers[0].waiting.scheduler() {
            Some(scheduler) if frame.from == Station::BASE => scheduler,
            _ => return Some(frame),
        };
        match frame.load {
            Load::Packet(packet) if scheduler.takes_back(frame.to, &packet) => {
                out.packet_event(Op::Repeated(cause), Side::Right, &packet);
                scheduler.put_back(frame.to, packet);
                None
            }
            load => Some(Frame { load, ..frame }),
        }
    }
}

impl Machine for Hop {
    fn check(&self) {
        debug_assert_eq!(self.uppers.len(), self.ends.len(), "a link layer for each station");
        debug_assert_eq!(self.polled.len(), self.ends.len(), "a cached poll for each station");
        for upper in &self.uppers {
            upper.waiting.check();
            debug_assert!(upper.given_up.len() <= 1 << 16, "forgotten packets");
        }
        self.ends.iter().for_each(LinkEnd::check);
        self.medium.check();
        let waiting = self.uppers.iter().map(|upper| upper.waiting.len()).sum::<usize>();
        debug_assert!(
            waiting as u64 <= self.inside,
            "{waiting} packets wait, and {} are inside",
            self.inside
        );
    }

    fn on_packet(&mut self, now: Time, from: Side, packet: Packet, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hop::step);
        let gone = out.gone();
        self.inside += 1;
        let (i, to) = match from {
            Side::Left => (0, self.mobile(packet.dst)),
            Side::Right => (self.mobile(packet.src).index(), Station::BASE),
        };
        self.update_scheduler(now);
        if let Some(sky) = &self.sky {
            sky.arrives(now, from.other(), &packet, out);
        }
        self.uppers[i].waiting.enter(now, from.other(), to, packet, out);
        self.polled[i].may_send = true;
        self.exchange(now, out);
        self.update_deadlines();
        self.inside -= out.gone() - gone;
    }

    fn on_wake(&mut self, now: Time, out: &mut Out) {
        self.inside -= catch_up(self, now, out, Hop::step);
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        self.due.any.or_none()
    }

    fn holds(&self) -> usize {
        self.inside as usize
    }
}
