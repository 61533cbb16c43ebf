//! Counters of events per stage of a running station.
//!
//! One thread counts, and any number of others read. Only plain loads and stores are used, no locks and no
//! read-modify-write operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lasthop_observe::Sink;
use lasthop_observe::counts::CauseCounts;
use lasthop_proto::air::FrameFate;
use lasthop_proto::event::{AgentNote, Cause, Event, EventKind, Interest, Op, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::Packet;
use serde::{Deserialize, Serialize};

const CAUSES: usize = Cause::ALL.len();

/// Names of the notes of hosts and agents.
const NOTES: [&str; 31] = [
    "connections-opened",
    "connections-complete",
    "connections-aborted",
    "timeouts",
    "fast-retransmits",
    "dup-acks",
    "delivered-bytes",
    "flows-seen",
    "flows-forgotten",
    "cache-evictions",
    "sender-retransmissions",
    "congestion-holes",
    "other-notes",
    "frames-received",
    "frames-damaged",
    "frames-collided",
    "link-notes",
    "notices-withheld",
    "segments-clamped",
    "bad-state-notices",
    "quenches",
    "congestion-marks",
    "congestion-echoes",
    "frames-missed",
    "blocks-hidden",
    "losses-left",
    "flows-left-alone",
    "flows-repaired",
    "passed-no-room",
    "passed-half-open-limit",
    "half-open-evicted",
];

#[derive(Debug, Default)]
struct Cell(AtomicU64);

impl Cell {
    /// Must be called by the counting thread only.
    fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct DirectionCells {
    originated: [Cell; CAUSES],
    dropped: [Cell; CAUSES],
    repeated: [Cell; CAUSES],
    transmitted: Cell,
    transmitted_bytes: Cell,
    damaged: Cell,
}

impl Default for DirectionCells {
    fn default() -> DirectionCells {
        let by_cause = || core::array::from_fn(|_| Cell::default());
        DirectionCells {
            originated: by_cause(),
            dropped: by_cause(),
            repeated: by_cause(),
            transmitted: Cell::default(),
            transmitted_bytes: Cell::default(),
            damaged: Cell::default(),
        }
    }
}

#[derive(Debug, Default)]
struct StageCells {
    /// Indexed by the side to which packets travel.
    directions: [DirectionCells; 2],
    notes: [Cell; NOTES.len()],
}

/// Counters of packets at one stage in one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Originated packets by cause, without pure ACKs of hosts.
    pub originated: CauseCounts,
    /// Dropped packets by cause.
    pub dropped: CauseCounts,
    /// Retransmissions of the stage's link layer by cause.
    #[serde(default)]
    pub repeated: CauseCounts,
    /// Packets carried by a link or radio.
    pub transmitted: u64,
    /// IP bytes of the carried packets.
    pub transmitted_bytes: u64,
    /// Packets damaged by the channel.
    pub damaged: u64,
}

/// Counters of one stage.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Happened {
    /// Packets to the wireless side.
    pub right: DirectionCounts,
    /// Packets to the wired side.
    pub left: DirectionCounts,
    /// Notes of hosts and agents by name; only those that occurred.
    pub notes: BTreeMap<String, u64>,
}

/// Counters of a station.
#[derive(Debug)]
pub struct Counters {
    stages: Vec<StageCells>,
    /// Whether only frames are counted.
    idle: AtomicBool,
}

impl Counters {
    /// All zero, for `stages` stages, hosts included.
    pub fn new(stages: usize) -> Arc<Counters> {
        let stages = (0..stages).map(|_| StageCells::default()).collect();
        Arc::new(Counters { stages, idle: AtomicBool::new(false) })
    }

    /// An idle station forwards frames without reading them, so only interfaces count.
    pub fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Counters of stage `i`.
    pub fn at(&self, i: usize) -> Happened {
        let Some(stage) = self.stages.get(i) else { return Happened::default() };
        let direction = |side: Side| {
            let cells = &stage.directions[side.index()];
            DirectionCounts {
                originated: CauseCounts::from_fn(|cause| cells.originated[cause as usize].get()),
                dropped: CauseCounts::from_fn(|cause| cells.dropped[cause as usize].get()),
                repeated: CauseCounts::from_fn(|cause| cells.repeated[cause as usize].get()),
                transmitted: cells.transmitted.get(),
                transmitted_bytes: cells.transmitted_bytes.get(),
                damaged: cells.damaged.get(),
            }
        };
        let notes = NOTES.iter().zip(&stage.notes).map(|(name, cell)| (*name, cell.get()));
        Happened {
            right: direction(Side::Right),
            left: direction(Side::Left),
            notes: notes.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect(),
        }
    }
}

/// The sink that counts.
#[derive(Clone, Debug)]
pub struct Tap(pub Arc<Counters>);

impl Sink for Tap {
    fn interest(&self) -> Interest {
        match self.0.idle.load(Ordering::Relaxed) {
            true => Interest::NOTHING,
            false => Interest::METRICS,
        }
    }

    fn event(&mut self, event: &Event) {
        let Some(stage) = self.0.stages.get(usize::from(event.stage.0)) else { return };
        let (note, n) = match &event.kind {
            EventKind::Packet { op, side, packet } => return stage.packet(*op, *side, packet),
            EventKind::Tcp(event) | EventKind::Split(event) => match event.kind {
                TcpKind::Opening => (0, 1),
                TcpKind::Complete => (1, 1),
                TcpKind::Aborted => (2, 1),
                TcpKind::Timeout => (3, 1),
                TcpKind::FastRetransmit => (4, 1),
                TcpKind::DupAck => (5, 1),
                TcpKind::BadStateNotified => (19, 1),
                TcpKind::Quenched => (20, 1),
                TcpKind::CongestionEchoed => (22, 1),
                TcpKind::Delivered { bytes } => (6, bytes.into()),
                _ => return,
            },
            EventKind::Agent { note, .. } => match note {
                AgentNote::FlowSeen => (7, 1),
                AgentNote::FlowForgotten => (8, 1),
                AgentNote::CacheEvicted => (9, 1),
                AgentNote::SenderRetransmission => (10, 1),
                AgentNote::CongestionHole => (11, 1),
                AgentNote::NoticeWithheld => (17, 1),
                AgentNote::SegmentClamped { .. } => (18, 1),
                AgentNote::BlocksHidden => (24, 1),
                AgentNote::LossLeft => (25, 1),
                AgentNote::FlowLeftAlone => (26, 1),
                AgentNote::FlowRepaired => (27, 1),
                AgentNote::NoRoom => (28, 1),
                AgentNote::HalfOpenLimit => (29, 1),
                AgentNote::HalfOpenEvicted => (30, 1),
                _ => (12, 1),
            },
            EventKind::Air(air) => match air.fate {
                FrameFate::Received => (13, 1),
                FrameFate::Damaged => (14, 1),
                FrameFate::Collided => (15, 1),
                FrameFate::Missed => (23, 1),
            },
            EventKind::Link { .. } => (16, 1),
            EventKind::Channel { .. }
            | EventKind::Work(_)
            | EventKind::Datagram { .. }
            | EventKind::Client(_)
            | EventKind::Doze { .. }
            | EventKind::Handoff { .. }
            | EventKind::State { .. } => {
                return;
            }
        };
        stage.notes[note].add(n);
    }

    fn packet(&mut self, _: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if let Some(stage) = self.0.stages.get(usize::from(stage.0)) {
            stage.packet(op, side, packet);
        }
    }
}

impl StageCells {
    fn packet(&self, op: Op, side: Side, packet: &Packet) {
        let cells = &self.directions[side.index()];
        match op {
            Op::Originated(cause) => cells.originated[cause as usize].add(1),
            Op::Dropped(cause) => cells.dropped[cause as usize].add(1),
            Op::Repeated(cause) => cells.repeated[cause as usize].add(1),
            Op::Marked | Op::MarkedBy(_) => self.notes[21].add(1),
            Op::Damaged => cells.damaged.add(1),
            Op::Transmitted => {
                cells.transmitted.add(1);
                cells.transmitted_bytes.add(packet.wire_len().into());
            }
            // Real packets have a single cell.
            Op::Received | Op::Redirected(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::wire::{Addr, FlowKey};

    #[test]
    fn agent_notes_are_counted_by_stage_and_name() {
        let counters = Counters::new(2);
        let mut tap = Tap(counters.clone());
        let addr = Addr::v4(10, 0, 0, 1);
        let flow = FlowKey { src: addr, dst: addr, src_port: 1, dst_port: 2 };
        for (stage, note) in [
            (1, AgentNote::FlowSeen),
            (1, AgentNote::CongestionHole),
            (1, AgentNote::CongestionHole),
            (7, AgentNote::FlowSeen),
        ] {
            let kind = EventKind::Agent { flow, note };
            tap.event(&Event { at: Default::default(), stage: StageId(stage), kind });
        }
        let notes: Vec<_> = counters.at(1).notes.into_iter().collect();
        assert_eq!(notes, [("congestion-holes".to_owned(), 2), ("flows-seen".to_owned(), 1)]);
        assert_eq!(counters.at(0), Happened::default());
        assert_eq!(counters.at(7), Happened::default());
    }

    #[test]
    fn an_idle_station_needs_no_events() {
        let counters = Counters::new(1);
        let tap = Tap(counters.clone());
        assert_eq!(tap.interest(), Interest::METRICS);
        counters.set_idle(true);
        assert_eq!(tap.interest(), Interest::NOTHING);
    }

    /// Each named event has its own counter; an unlisted one has none.
    #[test]
    fn each_thing_that_happens_is_counted_by_its_name() {
        use lasthop_proto::air::{AirEvent, FrameKind, Station};
        use lasthop_proto::event::{LinkNote, Tcb, TcpEvent};
        use lasthop_proto::units::Span;
        use lasthop_proto::wire::{Body, Flags, Packet, Segment, Seq};

        let addr = Addr::v4(10, 0, 0, 1);
        let flow = FlowKey { src: addr, dst: addr, src_port: 1, dst_port: 2 };
        let tcp = |kind| EventKind::Tcp(TcpEvent { flow, kind, tcb: Tcb::default() });
        let split = |kind| EventKind::Split(TcpEvent { flow, kind, tcb: Tcb::default() });
        let agent = |note| EventKind::Agent { flow, note };
        let (station, to) = (Station::BASE, Station(1));
        let air = |fate| {
            let (kind, airtime) = (FrameKind::Data, Span::ZERO);
            EventKind::Air(AirEvent { station, to, kind, bytes: 9, airtime, fate })
        };
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let packet = Packet::tcp(addr, addr, segment, Body::copy_of(&[0; 60]));
        let marked = |op| EventKind::Packet { op, side: Side::Right, packet: packet.clone() };
        let cases = [
            (tcp(TcpKind::Opening), Some(("connections-opened", 1))),
            (split(TcpKind::Complete), Some(("connections-complete", 1))),
            (tcp(TcpKind::Aborted), Some(("connections-aborted", 1))),
            (tcp(TcpKind::Timeout), Some(("timeouts", 1))),
            (split(TcpKind::FastRetransmit), Some(("fast-retransmits", 1))),
            (tcp(TcpKind::DupAck), Some(("dup-acks", 1))),
            (tcp(TcpKind::Delivered { bytes: 77 }), Some(("delivered-bytes", 77))),
            (tcp(TcpKind::BadStateNotified), Some(("bad-state-notices", 1))),
            (tcp(TcpKind::Quenched), Some(("quenches", 1))),
            (tcp(TcpKind::CongestionEchoed), Some(("congestion-echoes", 1))),
            (tcp(TcpKind::Acked), None),
            (tcp(TcpKind::Closed), None),
            (agent(AgentNote::FlowSeen), Some(("flows-seen", 1))),
            (agent(AgentNote::FlowForgotten), Some(("flows-forgotten", 1))),
            (agent(AgentNote::CacheEvicted), Some(("cache-evictions", 1))),
            (agent(AgentNote::SenderRetransmission), Some(("sender-retransmissions", 1))),
            (agent(AgentNote::CongestionHole), Some(("congestion-holes", 1))),
            (agent(AgentNote::NoticeWithheld), Some(("notices-withheld", 1))),
            (agent(AgentNote::SegmentClamped { mss: 500 }), Some(("segments-clamped", 1))),
            (agent(AgentNote::BlocksHidden), Some(("blocks-hidden", 1))),
            (agent(AgentNote::LossLeft), Some(("losses-left", 1))),
            (agent(AgentNote::FlowLeftAlone), Some(("flows-left-alone", 1))),
            (agent(AgentNote::FlowRepaired), Some(("flows-repaired", 1))),
            (agent(AgentNote::NoRoom), Some(("passed-no-room", 1))),
            (agent(AgentNote::HalfOpenLimit), Some(("passed-half-open-limit", 1))),
            (agent(AgentNote::HalfOpenEvicted), Some(("half-open-evicted", 1))),
            (agent(AgentNote::Bypassed), Some(("other-notes", 1))),
            (air(FrameFate::Received), Some(("frames-received", 1))),
            (air(FrameFate::Damaged), Some(("frames-damaged", 1))),
            (air(FrameFate::Collided), Some(("frames-collided", 1))),
            (air(FrameFate::Missed), Some(("frames-missed", 1))),
            (
                EventKind::Link { station, peer: to, note: LinkNote::Duplicate },
                Some(("link-notes", 1)),
            ),
            (marked(Op::Marked), Some(("congestion-marks", 1))),
            (marked(Op::MarkedBy(Cause::Data)), Some(("congestion-marks", 1))),
            (EventKind::Channel { side: Side::Left, good: true }, None),
        ];
        for (kind, expected) in cases {
            let counters = Counters::new(1);
            let event = Event { at: Default::default(), stage: StageId(0), kind };
            Tap(counters.clone()).event(&event);
            let expected = expected.map(|(name, n)| (name.to_owned(), n));
            let happened = counters.at(0);
            assert_eq!(happened.notes.into_iter().next(), expected, "{event:?}");
            let none = DirectionCounts::default();
            assert_eq!((happened.right, happened.left), (none.clone(), none), "{event:?}");
        }
    }

    /// Packets are counted by direction and by cause.
    #[test]
    fn each_fate_of_a_packet_is_counted_in_its_direction() {
        use lasthop_proto::wire::{Body, Flags, Packet, Segment, Seq};
        let addr = Addr::v4(10, 0, 0, 1);
        let segment = Segment::new(1, 2, Seq(0), Seq(0), Flags::ACK);
        let packet = Packet::tcp(addr, addr, segment, Body::copy_of(&[0; 60]));
        let counters = Counters::new(1);
        let mut tap = Tap(counters.clone());
        let causes = [Cause::Data, Cause::LocalTimeout];
        for (side, factor) in [(Side::Right, 1), (Side::Left, 10)] {
            let ops = [
                (Op::Originated(causes[0]), 1),
                (Op::Originated(causes[1]), 2),
                (Op::Dropped(causes[1]), 3),
                (Op::Repeated(causes[0]), 4),
                (Op::Damaged, 5),
                (Op::Transmitted, 6),
                (Op::Received, 7),
                (Op::Redirected(causes[0]), 8),
            ];
            for (op, times) in ops {
                let kind = EventKind::Packet { op, side, packet: packet.clone() };
                let event = Event { at: Default::default(), stage: StageId(0), kind };
                (0..times * factor).for_each(|_| tap.event(&event));
            }
        }
        let expected = |factor: u64| {
            let of = |counts: [u64; 2]| {
                CauseCounts::from_fn(|cause| {
                    let place = causes.iter().position(|known| *known == cause);
                    place.map_or(0, |place| counts[place] * factor)
                })
            };
            DirectionCounts {
                originated: of([1, 2]),
                dropped: of([0, 3]),
                repeated: of([4, 0]),
                damaged: 5 * factor,
                transmitted: 6 * factor,
                transmitted_bytes: 6 * factor * u64::from(packet.wire_len()),
            }
        };
        let happened = counters.at(0);
        assert_eq!(happened.right, expected(1), "to the right");
        assert_eq!(happened.left, expected(10), "to the left");
        assert_eq!(happened.notes, BTreeMap::new());
    }
}
