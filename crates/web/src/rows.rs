//! Every event as a row of numbers.

use core::mem::{Discriminant, discriminant};
use std::collections::BTreeMap;

use lasthop_observe::Sink;
use lasthop_observe::csv::EventCsv;
use lasthop_observe::layout::{Layout, flow_name};
use lasthop_proto::air::{FrameFate, FrameKind};
use lasthop_proto::event::{AgentNote, ClientNews, Event, EventKind, LinkNote, Op, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Flags, FlowKey, Packet, PacketId, Seq};
use serde_json::{Value, json};

use crate::envelope::Columns;
use crate::words;

/// Maximum number of events in an answer, the first ones, of 31 bytes each.
pub const MOST_ROWS: usize = 300_000;

/// Maximum number of flows with their own number.
const MOST_FLOWS: usize = 1000;

/// The key of an event's code.
#[derive(PartialEq, Debug)]
enum Kind {
    Packet(Op),
    Tcp(Discriminant<TcpKind>),
    Split(Discriminant<TcpKind>),
    Agent(Discriminant<AgentNote>),
    Channel(bool),
    Air(FrameKind, FrameFate),
    Doze(bool),
    Link(LinkNote),
    Handoff(bool),
    State(bool),
    Client(Discriminant<ClientNews>),
}

/// The key of an event; `None` for events that traces do not show.
fn kind(kind: &EventKind) -> Option<Kind> {
    Some(match kind {
        EventKind::Packet { op, .. } => Kind::Packet(*op),
        EventKind::Tcp(tcp) => Kind::Tcp(discriminant(&tcp.kind)),
        EventKind::Split(tcp) => Kind::Split(discriminant(&tcp.kind)),
        EventKind::Agent { note, .. } => Kind::Agent(discriminant(note)),
        EventKind::Channel { good, .. } => Kind::Channel(*good),
        EventKind::Air(air) => Kind::Air(air.kind, air.fate),
        EventKind::Doze { asleep, .. } => Kind::Doze(*asleep),
        EventKind::Link { note, .. } => Kind::Link(*note),
        EventKind::Handoff { arrived, .. } => Kind::Handoff(*arrived),
        EventKind::State { arrived, .. } => Kind::State(*arrived),
        EventKind::Client(client) => Kind::Client(discriminant(&client.news)),
        EventKind::Work(_) | EventKind::Datagram { .. } => return None,
    })
}

/// First sequence numbers of flows, so that positions count from zero.
#[derive(Default, Debug)]
pub(crate) struct Positions {
    known: BTreeMap<FlowKey, (Seq, u64)>,
}

impl Positions {
    /// First and last byte of a segment, in the stream of its flow.
    pub(crate) fn of(&mut self, packet: &Packet) -> Option<(u64, u64)> {
        let (flow, segment) = (packet.flow()?, packet.segment()?);
        let syn = segment.flags.has(Flags::SYN);
        let seq = segment.seq + u32::from(syn);
        if syn {
            self.known.insert(flow, (seq, 0));
        }
        let full = self.known.len() >= MOST_FLOWS;
        if full && !self.known.contains_key(&flow) {
            return None;
        }
        let (origin, highest) = self.known.entry(flow).or_insert((seq, 0));
        let start = seq.unwrap_near(*origin, *highest)?;
        let end = start + u64::from(packet.body.len());
        *highest = (*highest).max(end);
        Some((start, end))
    }

    /// The acknowledged position, in the stream of the data.
    pub(crate) fn ack(&self, packet: &Packet) -> Option<u64> {
        let (flow, segment) = (packet.flow()?, packet.segment()?);
        self.position(flow.reversed(), segment.ack).filter(|_| segment.flags.has(Flags::ACK))
    }

    /// The position of a sequence number in the stream of `flow`.
    pub(crate) fn position(&self, flow: FlowKey, seq: Seq) -> Option<u64> {
        let (origin, highest) = self.known.get(&flow)?;
        seq.unwrap_near(*origin, *highest)
    }
}

/// A sink that stores the first events of a run, in columns.
#[derive(Default)]
pub(crate) struct Rows {
    seen: u64,
    time: Vec<f64>,
    code: Vec<u16>,
    stage: Vec<u16>,
    side: Vec<u8>,
    packet: Vec<u32>,
    flow: Vec<u16>,
    from: Vec<f64>,
    to: Vec<f64>,
    /// Each kind of event, with the first event of this kind.
    kinds: Vec<(Kind, Event)>,
    packets: BTreeMap<PacketId, u32>,
    flows: Vec<FlowKey>,
    by_flow: BTreeMap<FlowKey, u16>,
    positions: Positions,
}

impl Rows {
    pub(crate) fn new() -> Rows {
        Rows::default()
    }

    /// Number of events in the run.
    pub(crate) fn event_count(&self) -> u64 {
        self.seen
    }

    /// Number of stored events.
    pub(crate) fn len(&self) -> usize {
        self.time.len()
    }

    /// The flows in order of appearance.
    pub(crate) fn flows(&self) -> Vec<String> {
        self.flows.iter().map(flow_name).collect()
    }

    /// Writes the columns. Returns the meaning of each code.
    pub(crate) fn pack(&self, layout: &Layout, columns: &mut Columns) -> Vec<Value> {
        columns.numbers("event.t", &self.time);
        columns.numbers("event.from", &self.from);
        columns.numbers("event.to", &self.to);
        columns.words("event.packet", &self.packet);
        columns.halves("event.code", &self.code);
        columns.halves("event.stage", &self.stage);
        columns.halves("event.flow", &self.flow);
        columns.bytes("event.side", &self.side);
        self.kinds.iter().map(|(_, event)| code(event, layout)).collect()
    }

    fn of_flow(&mut self, flow: FlowKey) -> u16 {
        if let Some(number) = self.by_flow.get(&flow) {
            return *number;
        }
        if self.flows.len() == MOST_FLOWS {
            return u16::MAX;
        }
        let number = self.flows.len() as u16;
        self.flows.push(flow);
        self.by_flow.insert(flow, number);
        number
    }
}

/// The meaning of a code: its name in traces, and a sentence.
fn code(event: &Event, layout: &Layout) -> Value {
    let fields = fields(event, layout);
    let word = |name: &str| fields.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| v);
    json!({
        "event": word("event"),
        "cause": word("cause"),
        "what": words::sentence(&event.kind),
        "source": words::source(&event.kind),
        "loss": words::is_loss(&event.kind),
    })
}

/// The fields of an event, as in traces.
pub(crate) fn fields(event: &Event, layout: &Layout) -> Vec<(&'static str, String)> {
    let mut csv = EventCsv::new(layout, Vec::new());
    csv.event(event);
    let text = csv.finish().expect("writing to memory does not fail");
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines();
    let (_, row) = (lines.next(), lines.next().unwrap_or_default());
    let names = lasthop_observe::csv::EVENT_COLUMNS.trim_end().split(',');
    // A stage's name with a comma is quoted; such a row is only partly split.
    names.zip(row.split(',').map(str::to_owned)).filter(|(_, value)| !value.is_empty()).collect()
}

impl Sink for Rows {
    fn event(&mut self, event: &Event) {
        if let EventKind::Packet { op, side, packet } = &event.kind {
            return self.packet(event.at, event.stage, *op, *side, packet);
        }
        let Some(kind) = kind(&event.kind) else { return };
        let Some(code) = self.code(kind, || event.clone()) else { return };
        let mut row = Row::new(event.at, event.stage, code);
        match &event.kind {
            EventKind::Tcp(tcp) | EventKind::Split(tcp) => {
                row.flow = Some(tcp.flow);
                (row.from, row.to) = (tcp.tcb.snd_una as f64, tcp.tcb.snd_nxt as f64);
            }
            EventKind::Agent { flow: of, .. } => row.flow = Some(*of),
            // The station, counted from one, and the time on the air.
            EventKind::Air(air) => {
                let station = f64::from(air.station.0) + 1.0;
                (row.from, row.to) = (station, air.airtime.as_secs_f64());
            }
            EventKind::Channel { side: towards, .. } => {
                row.side = u8::from(*towards == Side::Right)
            }
            _ => {}
        }
        self.push(row);
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        let first = || {
            let kind = EventKind::Packet { op, side, packet: packet.clone() };
            Event { at, stage, kind }
        };
        let Some(code) = self.code(Kind::Packet(op), first) else { return };
        let mut row = Row::new(at, stage, code);
        row.side = u8::from(side == Side::Right);
        let next = self.packets.len() as u32 + 1;
        row.number = *self.packets.entry(packet.id).or_insert(next);
        row.flow = packet.flow();
        let bytes = self.positions.of(packet);
        if !packet.body.is_empty() {
            if let Some((start, end)) = bytes {
                (row.from, row.to) = (start as f64, end as f64);
            }
        } else if let Some(ack) = self.positions.ack(packet) {
            (row.from, row.to) = (ack as f64, ack as f64);
        }
        self.push(row);
    }
}

/// An event as numbers.
struct Row {
    at: Time,
    stage: StageId,
    code: u16,
    /// 0 for left, 1 for right, 2 for neither.
    side: u8,
    number: u32,
    flow: Option<FlowKey>,
    from: f64,
    to: f64,
}

impl Row {
    fn new(at: Time, stage: StageId, code: u16) -> Row {
        Row { at, stage, code, side: 2, number: 0, flow: None, from: f64::NAN, to: f64::NAN }
    }
}

impl Rows {
    /// The code of events of this kind, created from `event` for the first one; `None` if there are enough rows.
    fn code(&mut self, kind: Kind, event: impl FnOnce() -> Event) -> Option<u16> {
        self.seen += 1;
        if self.time.len() == MOST_ROWS {
            return None;
        }
        let known = self.kinds.iter().position(|(known, _)| *known == kind);
        let code = known.unwrap_or_else(|| {
            self.kinds.push((kind, event()));
            self.kinds.len() - 1
        });
        Some(code as u16)
    }

    fn push(&mut self, row: Row) {
        let flow = row.flow.map_or(u16::MAX, |flow| self.of_flow(flow));
        self.time.push(row.at.as_secs_f64());
        self.code.push(row.code);
        self.stage.push(row.stage.0);
        self.side.push(row.side);
        self.packet.push(row.number);
        self.flow.push(flow);
        self.from.push(row.from);
        self.to.push(row.to);
    }
}
