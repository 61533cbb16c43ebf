//! The metrics of a run, computed during the run.
//!
//! [`Metrics`] handles an event for each transmission, so it is built to be cheap. Each packet updates
//! counters by stage and direction. Only data packets need a look-up of their flow, and only where they enter
//! the path and on the first, last and radio link. Counts of flows are buffered there. No event allocates
//! memory. Memory per flow grows with the packets in flight and the holes in the stream, not with time.
//!
//! Only events of [`Interest::METRICS`] count, even if another sink collects a fuller trace, so a run has the
//! same metrics with any set of sinks.

mod air;
mod carried;
mod clients;
mod datagrams;
mod energy;
mod episodes;
mod exchanges;
mod finish;
mod flow;
mod flow_event;
mod flow_metrics;
mod flow_pair;
mod flows;
mod keys;
mod model;
mod scalars;
mod short;
mod timers;
mod visits;
pub mod voice;

pub use air::{AirMetrics, FrameCounts};
pub use clients::{Pages, Videos};
pub use datagrams::{Datagrams, Grade, Load};
pub use energy::{NodeEnergy, Spent};
pub use exchanges::Exchanges;
pub use flow_metrics::{Delay, FlowMetrics, Sampled};
pub use model::{Limits, RunMetrics, StageMetrics};
pub use scalars::{SCALARS, Scalar, ScalarKind};
pub use short::ShortTransfers;
use visits::Visits;
pub use visits::{Handoffs, Visit};

use lasthop_proto::air::AirEvent;
use lasthop_proto::event::{Cause, Event, EventKind, Interest, Op, Tcb, TcpEvent, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Damage, Flags, FlowKey, Packet, Seq, Transport};

use self::air::AirCounter;
use self::clients::Clients;
use self::datagrams::Sources;
use self::flow_event::{FlowEvent, first_byte};
use self::flows::Flows;
use crate::Sink;
use crate::counts::CauseCounts;
use crate::layout::{Layout, Role};

/// Maximum length of [`FlowMetrics::stall_list`].
pub const LISTED_STALLS: usize = 256;

/// Role of a stage, in one direction, for the flows that cross it.
#[derive(Clone, Copy, Default, Debug)]
struct Marks(u8);

impl Marks {
    const FIRST: Marks = Marks(1);
    const LAST: Marks = Marks(2);
    const WIRED: Marks = Marks(4);
    const WIRELESS: Marks = Marks(8);
    /// Stages at which a flow counts each packet.
    const COUNTED: Marks = Marks(1 | 4 | 8);
    /// Stages behind the last link.
    const BEYOND: Marks = Marks(16);

    fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }
}

/// Counters of a stage in one direction.
#[derive(Clone, Default)]
struct Counter {
    marks: Marks,
    packets: u64,
    bytes: u64,
    data_packets: u64,
    data_bytes: u64,
    damaged: u64,
    damaged_data: u64,
    dropped: CauseCounts,
    originated: CauseCounts,
    repeated: CauseCounts,
    redirected: CauseCounts,
    /// Only for radio hops with medium access.
    air: Option<Box<AirCounter>>,
}

/// The sink that computes [`RunMetrics`].
pub struct Metrics {
    layout: Layout,
    /// The first link from the left, if there is one: end points before it send to the right.
    first_link: Option<StageId>,
    /// Indexed by stage, then by direction.
    counters: Vec<[Counter; 2]>,
    flows: Flows,
    sources: Sources,
    clients: Clients,
    powered: Vec<energy::Node>,
    visits: Visits,
    events: u64,
    corrupted: u64,
}

impl Metrics {
    /// Metrics of a run over `layout`.
    pub fn new(layout: Layout) -> Metrics {
        Metrics::of(layout, false)
    }

    /// Metrics of a run for its text, in half of the time. [`RunMetrics::stages`] is empty; delays, redundant
    /// packets, and typical gaps below 50 ms are zero.
    pub fn brief(layout: Layout) -> Metrics {
        Metrics::of(layout, true)
    }

    fn of(mut layout: Layout, brief: bool) -> Metrics {
        let mut counters = vec![<[Counter; 2]>::default(); layout.stages.len()];
        let mut mark = |stage: Option<StageId>, side: Side, mark: Marks| {
            if let Some(stage) = stage {
                counters[usize::from(stage.0)][side.index()].marks.0 |= mark.0;
            }
        };
        let ways =
            (0..layout.cells.len().max(1)).flat_map(|cell| Side::BOTH.map(|side| (cell, side)));
        for (cell, side) in ways {
            let last = layout.last_link(cell, side);
            mark(layout.first_link(cell, side), side, Marks::FIRST);
            mark(layout.first(cell, side, Role::Link), side, Marks::WIRED);
            mark(layout.first(cell, side, Role::Radio), side, Marks::WIRELESS);
            if brief {
                continue;
            }
            mark(last, side, Marks::LAST);
            let beyond = layout.along(cell, side).skip_while(|(id, _)| Some(*id) != last).skip(1);
            beyond.for_each(|(id, _)| mark(Some(id), side, Marks::BEYOND));
        }
        // Packets on the air for a host that has left return to the base station.
        let bases = layout.stages.iter().enumerate();
        let bases = bases.filter(|(_, info)| info.role == Role::Base && !brief);
        bases.for_each(|(i, _)| mark(Some(StageId(i as u16)), Side::Right, Marks::BEYOND));
        let mut flows = Flows::default();
        flows.brief = brief;
        // Moved, not copied: `flows` holds them from now on.
        flows.declare(core::mem::take(&mut layout.flows));
        let powered = layout.powered.iter().map(energy::Node::new).collect();
        let visits = Visits::default();
        let (sources, clients) = (Sources::default(), Clients::default());
        Metrics {
            first_link: layout.first_link(0, Side::Right),
            layout,
            counters,
            flows,
            sources,
            clients,
            powered,
            visits,
            events: 0,
            corrupted: 0,
        }
    }

    /// Handles a transmission on a radio hop.
    fn air(&mut self, at: Time, stage: StageId, event: &AirEvent) {
        self.events += 1;
        self.powered.iter_mut().for_each(|node| node.air(at, stage, event));
        let stage = usize::from(stage.0);
        if stage >= self.counters.len() {
            self.grow(stage);
        }
        // Stations are numbered from the left.
        let side = if event.to > event.station { Side::Right } else { Side::Left };
        self.counters[stage][side.index()].air.get_or_insert_default().add(event);
    }

    /// Counts a packet that enters the path, if this is counted per flow.
    fn enters(&mut self, side: Side, packet: &Packet) {
        if let Some(id) = self.flows.of_packet(packet, side) {
            self.flows.unsettled(id).rare().entered += 1;
        }
    }

    /// Handles a packet that a link has carried.
    fn transmitted(&mut self, at: Time, stage: StageId, side: Side, packet: &Packet) {
        if self.flows.brief && self.marks(stage, side).0 == 0 {
            return;
        }
        let is_data = self.is_data(packet);
        let counter = self.counter(stage, side);
        let (marks, len) = (counter.marks, packet.body.len());
        counter.packets += 1;
        counter.bytes += u64::from(packet.wire_len());
        if is_data {
            counter.data_packets += 1;
            counter.data_bytes += u64::from(len);
        }
        if marks.has(Marks::FIRST) && !self.layout.exchanges.is_empty() {
            self.enters(side, packet);
        }
        if !is_data {
            if marks.has(Marks::FIRST) {
                self.syn_on_link(at, side, packet);
            }
        } else if marks.0 != 0 {
            self.data_on_link(at, marks, side, packet);
        }
    }

    /// Handles all other events of a packet.
    fn happened(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if self.flows.brief && op == Op::Originated(Cause::Data) {
            return;
        }
        let is_data = self.is_data(packet);
        let counter = self.counter(stage, side);
        match op {
            Op::Marked | Op::MarkedBy(_) => {
                if let Some(id) = self.flows.of_packet(packet, side) {
                    self.flows.unsettled(id).rare().marked += 1;
                }
            }
            Op::Damaged => {
                counter.damaged += 1;
                counter.damaged_data += u64::from(is_data);
                // A link that reports damage only at the far end.
                if is_data && counter.marks.has(Marks::LAST) {
                    self.lost_at_the_end(side, packet);
                }
            }
            Op::Dropped(cause) => {
                counter.dropped.add(cause);
                let marks = counter.marks;
                let Some(id) = self.flows.of_packet(packet, side) else { return };
                let flow = id as u32;
                self.flows.note(FlowEvent::Dropped { cause, flow });
                let Some(segment) = packet.segment().filter(|_| is_data) else { return };
                if marks.has(Marks::FIRST) {
                    let (first, len) = (first_byte(segment), packet.body.len());
                    let marks = Marks::FIRST;
                    self.flows.note(FlowEvent::Carried { marks, flow, first, len, at });
                }
                // Damaged packets never counted as crossed.
                if marks.has(Marks::BEYOND) && packet.damage == Damage::None && cause.is_loss() {
                    self.lost_at_the_end(side, packet);
                }
            }
            Op::Originated(cause) => {
                counter.originated.add(cause);
                if let Some(id) = self.flows.of_packet(packet, side) {
                    let (first, len) = match packet.segment().filter(|_| is_data) {
                        Some(segment) => (first_byte(segment), packet.body.len()),
                        None => (Seq(0), 0),
                    };
                    let flow = id as u32;
                    self.flows.note(FlowEvent::Originated { cause, flow, first, len, at });
                }
            }
            Op::Repeated(cause) => {
                counter.repeated.add(cause);
                if let Some(id) = self.flows.of_packet(packet, side) {
                    self.flows.unsettled(id).rare().repeated.add(cause);
                }
            }
            Op::Redirected(cause) => counter.redirected.add(cause),
            Op::Transmitted | Op::Received => {}
        }
    }

    /// Whether a packet carries data. Every datagram of a transfer counts as data, since only its ends can
    /// read it.
    #[inline]
    fn is_data(&self, packet: &Packet) -> bool {
        match packet.transport {
            Transport::Tcp(_) => !packet.body.is_empty(),
            _ => self.is_of_transfer(packet),
        }
    }

    /// The counter of a stage. Counts the event.
    #[inline]
    fn counter(&mut self, stage: StageId, side: Side) -> &mut Counter {
        self.events += 1;
        let stage = usize::from(stage.0);
        if stage >= self.counters.len() {
            self.grow(stage);
        }
        &mut self.counters[stage][side.index()]
    }

    /// The roles of a stage.
    #[inline]
    fn marks(&self, stage: StageId, side: Side) -> Marks {
        let counters = self.counters.get(usize::from(stage.0));
        counters.map_or(Marks::default(), |ways| ways[side.index()].marks)
    }

    /// Whether this is a datagram of a transfer on its way to the receiver.
    #[cold]
    fn is_of_transfer(&self, packet: &Packet) -> bool {
        let flow = packet.datagram_flow().and_then(|key| self.flows.known(key));
        flow.is_some_and(|id| self.flows.flow(id).is_declared())
    }

    /// Handles a data packet that a link with these marks has carried.
    #[inline]
    fn data_on_link(&mut self, at: Time, marks: Marks, side: Side, packet: &Packet) {
        let Some(id) = self.flows.of_packet(packet, side) else { return };
        let (flow, len) = (id as u32, packet.body.len());
        let Some(segment) = packet.segment() else {
            return self.flows.unsettled(id).datagram(marks, len);
        };
        let first = first_byte(segment);
        if marks.has(Marks::COUNTED) {
            self.flows.note(FlowEvent::Carried { marks, flow, first, len, at });
        }
        if marks.has(Marks::LAST) && packet.damage == Damage::None {
            self.flows.note(FlowEvent::Crossed { flow, first, len, id: packet.id });
        }
    }

    #[inline]
    fn syn_on_link(&mut self, at: Time, side: Side, packet: &Packet) {
        let Some(segment) = packet.segment() else { return };
        if segment.flags.has(Flags::SYN)
            && let Some(id) = self.flows.of_packet(packet, side)
        {
            self.flows.settled(id).syn(at, segment);
        }
    }

    #[cold]
    fn lost_at_the_end(&mut self, side: Side, packet: &Packet) {
        let (Some(segment), Some(id)) = (packet.segment(), self.flows.of_packet(packet, side))
        else {
            return;
        };
        self.flows.settled(id).uncross(packet.id, segment, packet.body.len());
    }

    /// Extends the counters for a stage that the layout does not know.
    #[cold]
    fn grow(&mut self, stage: usize) {
        self.counters.resize_with(stage + 1, Default::default);
    }

    /// The side to which the end of a connection at `stage` sends.
    #[inline]
    fn towards(&self, stage: StageId) -> Side {
        match self.first_link {
            Some(first) if stage > first => Side::Left,
            _ => Side::Right,
        }
    }

    fn tcp(&mut self, at: Time, stage: StageId, event: &TcpEvent) {
        if !Interest::METRICS.has(event.kind.level()) {
            return;
        }
        if let TcpKind::Delivered { bytes } = event.kind {
            return self.delivered(at, stage, event.flow, bytes);
        }
        self.events += 1;
        let id = self.flows.id(event.flow, self.towards(stage));
        self.corrupted += u64::from(event.kind == TcpKind::Corrupted);
        match event.kind {
            TcpKind::DupAck => {
                let Tcb { srtt, rto, .. } = event.tcb;
                self.flows.note(FlowEvent::DupAck { flow: id as u32, srtt, rto });
                self.flows.unsettled(id).rare().timers.duplicate_ack(&event.tcb);
            }
            TcpKind::Timeout => {
                let sack = self.flows.flow(id).sack && self.flows.flow(id ^ 1).sack;
                let flow = self.flows.settled(id);
                flow.timer_expired(&event.tcb, sack);
                flow.sender_event(at, event.kind, &event.tcb);
            }
            kind => self.flows.settled(id).sender_event(at, kind, &event.tcb),
        }
    }
}

impl Metrics {
    /// Handles an event of a base station's end of a split connection.
    fn relay(&mut self, at: Time, event: &TcpEvent) {
        if !Interest::METRICS.has(event.kind.level()) {
            return;
        }
        self.events += 1;
        self.corrupted += u64::from(event.kind == TcpKind::Corrupted);
        if let Some(id) = self.flows.known(event.flow) {
            self.flows.settled(id).relay_event(at, event.kind);
        }
    }
}

impl Sink for Metrics {
    fn interest(&self) -> Interest {
        let events = if self.flows.brief { Interest::RESULTS } else { Interest::METRICS };
        match self.powered.is_empty() {
            true => events,
            false => events.union(Interest::WORK),
        }
    }

    #[inline]
    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        match op {
            Op::Transmitted => self.transmitted(at, stage, side, packet),
            op if Interest::METRICS.has(op.level()) => self.happened(at, stage, op, side, packet),
            _ => {}
        }
    }

    #[inline]
    fn delivered(&mut self, at: Time, stage: StageId, flow: FlowKey, bytes: u32) {
        self.events += 1;
        let id = self.flows.id(flow, self.towards(stage));
        self.flows.note(FlowEvent::Delivered { flow: (id ^ 1) as u32, bytes, at });
        self.visits.delivered(at, [flow.src, flow.dst]);
        let nodes = self.powered.iter_mut();
        nodes.for_each(|node| node.delivered(at, stage, flow.dst, bytes.into()));
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Packet { op, side, packet } => {
                self.packet(event.at, event.stage, *op, *side, packet);
            }
            EventKind::Tcp(tcp) => self.tcp(event.at, event.stage, tcp),
            EventKind::Split(tcp) => self.relay(event.at, tcp),
            EventKind::Air(air) => self.air(event.at, event.stage, air),
            EventKind::Agent { .. } | EventKind::Channel { .. } | EventKind::Link { .. } => {
                self.events += 1
            }
            EventKind::Handoff { host, arrived } => {
                self.events += 1;
                self.visits.turn(event.at, event.stage, *host, *arrived);
            }
            EventKind::Datagram { datagram, arrived } => {
                self.events += 1;
                self.sources.event(event.at, datagram, *arrived);
            }
            EventKind::Client(client) => {
                self.events += 1;
                self.clients.event(event.at, client);
            }
            EventKind::State { bytes, arrived, .. } => {
                self.events += 1;
                self.visits.state(*bytes, *arrived);
            }
            EventKind::Work(work) => {
                let nodes = self.powered.iter_mut();
                nodes.for_each(|node| node.work(event.at, event.stage, work));
            }
            EventKind::Doze { station, asleep } => {
                let nodes = self.powered.iter_mut();
                nodes.for_each(|node| node.doze(event.at, event.stage, *station, *asleep));
            }
        }
    }
}

#[cfg(test)]
mod tests;
