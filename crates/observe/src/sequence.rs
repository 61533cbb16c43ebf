//! The time-sequence series of one flow: the data of plots such as west97's Figures 9, 10, 12 and 13.

use lasthop_proto::event::{Cause, Event, EventKind, Op, TcpKind};
use lasthop_proto::machine::{Side, StageId};
use lasthop_proto::units::Time;
use lasthop_proto::wire::{Damage, Flags, FlowKey, Packet, Seq};
use serde::{Deserialize, Serialize};

mod stays;

pub use stays::CellStay;
use stays::Stays;

use crate::Sink;
use crate::completion::Completion;
use crate::layout::{Layout, flow_name};
use crate::stalls::{Stall, StallWatch};

/// Reason for a data packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendKind {
    /// First transmission.
    First,
    /// Retransmission after duplicate ACKs, partial ACKs or SACK blocks.
    Fast,
    /// Retransmission after a timeout.
    Timeout,
    /// Retransmission after a notification of a wireless loss.
    Eln,
    /// Retransmission of the last segment as a tail loss probe.
    Probe,
    /// Retransmission by the base station.
    Local,
    /// Retransmission for a reason that the observation point does not show.
    Again,
}

impl SendKind {
    /// All kinds, in the order of their declaration, with their names in files and pages.
    pub const NAMED: [(&str, SendKind); 7] = [
        ("sent", SendKind::First),
        ("fast", SendKind::Fast),
        ("timeout", SendKind::Timeout),
        ("eln", SendKind::Eln),
        ("probe", SendKind::Probe),
        ("local", SendKind::Local),
        ("retransmitted", SendKind::Again),
    ];

    /// Its name in files and pages.
    pub fn name(self) -> &'static str {
        SendKind::NAMED[self as usize].0
    }
}

/// An originated data packet.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SentPacket {
    /// Time, seconds since the start of the run.
    pub at_s: f64,
    /// First byte, from 0.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Reason.
    pub kind: SendKind,
}

/// A data packet that was damaged or dropped.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lost {
    /// Time, seconds since the start of the run.
    pub at_s: f64,
    /// First byte, from 0.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// The sender's window at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Time, seconds since the start of the run.
    pub at_s: f64,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
}

/// A bad period of the channel that the data crosses.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct BadPeriod {
    /// Start, seconds since the start of the run.
    pub from_s: f64,
    /// End of the period or of the observation.
    pub to_s: f64,
}

/// Content of a time-sequence plot. Positions are bytes of the stream, from 0.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// `source:port>destination:port`.
    pub flow: String,
    /// Sent data packets, oldest first.
    pub sent: Vec<SentPacket>,
    /// The ACK line: time in seconds, and the first unacknowledged byte at the sender.
    pub acked: Vec<(f64, u64)>,
    /// Lost data packets, oldest first.
    pub lost: Vec<Lost>,
    /// Retransmission timeouts of the sender, seconds.
    pub timeouts: Vec<f64>,
    /// The sender's window.
    pub windows: Vec<Window>,
    /// Stalls in delivery.
    pub stalls: Vec<Stall>,
    /// Bad periods of the channel in the direction of the data, if the radio reports its state.
    #[serde(default)]
    pub bad: Vec<BadPeriod>,
    /// Visits of the mobile host to cells, if hosts move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellStay>,
    /// Completion of the flow or end of the observation, seconds.
    pub end_s: f64,
}

/// Observation point of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Its TCP end points, which report the reason for each packet.
    EndPoints,
    /// A link, for foreign end points: retransmissions have no reason, and stalls and the ACK line follow the
    /// passing ACKs.
    Link(StageId),
}

/// A list of bounded length. When it is full, every second entry is removed, and from then on every second
/// new one is skipped. The remaining entries are evenly spread.
#[derive(Debug)]
struct Thinned<T> {
    items: Vec<T>,
    stride: usize,
    offered: usize,
}

impl<T> Thinned<T> {
    const LIMIT: usize = 1 << 17;

    fn new() -> Thinned<T> {
        Thinned { items: Vec::new(), stride: 1, offered: 0 }
    }

    fn push(&mut self, item: T) {
        if self.offered.is_multiple_of(self.stride) {
            self.items.push(item);
            if self.items.len() == Self::LIMIT {
                let mut keep = false;
                self.items.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
        }
        self.offered += 1;
    }
}

/// The sink that collects a [`Series`] in bounded memory.
#[derive(Debug)]
pub struct Sequence {
    flow: FlowKey,
    watch: Watch,
    /// Sequence number of the first data byte, from the sender's SYN.
    first_byte: Option<Seq>,
    highest: u64,
    acked_to: u64,
    completion: Completion,
    aborted: Option<Time>,
    // Retransmissions are few and all relevant, so they are not thinned together with first transmissions.
    first: Thinned<SentPacket>,
    again: Thinned<SentPacket>,
    acked: Thinned<(f64, u64)>,
    lost: Thinned<Lost>,
    timeouts: Thinned<f64>,
    windows: Thinned<Window>,
    stalls: StallWatch,
    /// Direction of the data, known after its first packet.
    towards: Side,
    bad: BadPeriods,
    stays: Stays,
}

/// Collects the bad periods of every radio in both directions, since the direction of the data is known
/// later.
#[derive(Debug)]
struct BadPeriods {
    /// Bad channels with the start of the period.
    open: Vec<(StageId, Side, f64)>,
    /// Indexed by direction.
    closed: [Thinned<BadPeriod>; 2],
}

impl BadPeriods {
    fn turn(&mut self, stage: StageId, side: Side, good: bool, at_s: f64) {
        let found = self.open.iter().position(|(s, d, _)| (*s, *d) == (stage, side));
        match (good, found) {
            (false, None) => self.open.push((stage, side, at_s)),
            (true, Some(i)) => {
                let (_, _, from_s) = self.open.swap_remove(i);
                self.closed[side.index()].push(BadPeriod { from_s, to_s: at_s });
            }
            _ => {}
        }
    }

    fn finish(self, towards: Side, end_s: f64) -> Vec<BadPeriod> {
        let [left, right] = self.closed;
        let mut all = if towards == Side::Left { left.items } else { right.items };
        let open = self.open.iter().filter(|(_, side, _)| *side == towards);
        all.extend(open.map(|(_, _, from_s)| BadPeriod { from_s: *from_s, to_s: end_s }));
        all.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        all
    }
}

impl Sequence {
    /// Observes `flow`, given in the direction of its data.
    pub fn new(flow: FlowKey, watch: Watch) -> Sequence {
        Sequence {
            flow,
            watch,
            first_byte: None,
            highest: 0,
            acked_to: 0,
            completion: Completion::default(),
            aborted: None,
            first: Thinned::new(),
            again: Thinned::new(),
            acked: Thinned::new(),
            lost: Thinned::new(),
            timeouts: Thinned::new(),
            windows: Thinned::new(),
            stalls: StallWatch::default(),
            towards: Side::Right,
            bad: BadPeriods { open: Vec::new(), closed: [Thinned::new(), Thinned::new()] },
            stays: Stays::default(),
        }
    }

    /// Also records the visits of the mobile host to cells of `layout`.
    pub fn in_cells(mut self, layout: &Layout) -> Sequence {
        self.stays = Stays::of(layout);
        self
    }

    /// The series of a run that ended at `end`.
    pub fn finish(self, end: Time) -> Series {
        let end_s = self.completion.at().or(self.aborted).unwrap_or(end).as_secs_f64();
        let cells = self.stays.listed(end);
        let mut sent = self.first.items;
        sent.extend(self.again.items);
        sent.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        Series {
            cells,
            flow: flow_name(&self.flow),
            sent,
            acked: self.acked.items,
            lost: self.lost.items,
            timeouts: self.timeouts.items,
            windows: self.windows.items,
            stalls: self.stalls.stalls(end),
            bad: self.bad.finish(self.towards, end.as_secs_f64()),
            end_s,
        }
    }

    fn span(&mut self, packet: &Packet) -> Option<(u64, u64)> {
        let segment = packet.segment()?;
        let seq = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        let origin = *self.first_byte.get_or_insert(seq);
        let start = seq.unwrap_near(origin, self.highest)?;
        Some((start, start + u64::from(packet.body.len())))
    }

    fn data(&mut self, at: Time, op: Op, stage: StageId, packet: &Packet) {
        let kind = match (self.watch, op) {
            (Watch::EndPoints, Op::Originated(cause)) => match cause {
                Cause::FastRetransmit => SendKind::Fast,
                Cause::TimeoutRetransmit => SendKind::Timeout,
                Cause::ElnRetransmit => SendKind::Eln,
                Cause::TailLossProbe => SendKind::Probe,
                cause if cause.is_local_retransmission() => SendKind::Local,
                // The base station forwards the sender's data: this is no retransmission.
                Cause::SplitData | Cause::SplitProbe => return,
                _ => SendKind::First,
            },
            (Watch::Link(link), Op::Transmitted) if link == stage => SendKind::Again,
            (_, Op::Damaged) => return self.loss(at, packet),
            // A damaged packet is dropped later where the damage is detected: one loss, not two.
            (_, Op::Dropped(cause)) if packet.damage == Damage::None && cause.is_loss() => {
                return self.loss(at, packet);
            }
            _ => return,
        };
        let Some((start, end)) = self.span(packet) else { return };
        let kind =
            if kind == SendKind::Again && end > self.highest { SendKind::First } else { kind };
        self.highest = self.highest.max(end);
        self.stalls.begin(at);
        let sent = SentPacket { at_s: at.as_secs_f64(), start, end, kind };
        if kind == SendKind::First { self.first.push(sent) } else { self.again.push(sent) }
    }

    /// Records that an end without visible positions has sent data up to `end`.
    fn unseen(&mut self, at: Time, end: u64) {
        let start = self.highest;
        if end > start {
            self.highest = end;
            self.stalls.begin(at);
            self.first.push(SentPacket {
                at_s: at.as_secs_f64(),
                start,
                end,
                kind: SendKind::First,
            });
        }
    }

    fn end_if_complete(&mut self, at: Time) {
        if self.completion.at().is_some() {
            self.stalls.end(at);
        }
    }

    fn loss(&mut self, at: Time, packet: &Packet) {
        if let Some((start, end)) = self.span(packet) {
            self.lost.push(Lost { at_s: at.as_secs_f64(), start, end });
        }
    }

    fn ack(&mut self, at: Time, to: u64) {
        if to > self.acked_to {
            self.acked_to = to;
            self.acked.push((at.as_secs_f64(), to));
        }
    }

    fn follow(&mut self, at: Time, op: Op, stage: StageId, packet: &Packet) {
        let (Some(flow), Some(segment)) = (packet.flow(), packet.segment()) else { return };
        if flow == self.flow {
            if packet.is_data() {
                self.data(at, op, stage, packet);
            } else if segment.flags.has(Flags::SYN) {
                self.first_byte = Some(segment.seq + 1);
            }
        } else if self.watch == Watch::Link(stage)
            && op == Op::Transmitted
            && flow == self.flow.reversed()
            // A forged partial ACK does not reflect the receiver's state.
            && segment.options().ackp.is_none()
            && segment.flags.has(Flags::ACK)
        {
            let Some(origin) = self.first_byte else { return };
            if let Some(to) = segment.ack.unwrap_near(origin, self.acked_to)
                && to > self.acked_to
                && to <= self.highest
            {
                self.stalls.progress(at);
                self.ack(at, to);
            }
        }
    }
}

impl Sink for Sequence {
    fn event(&mut self, event: &Event) {
        let at = event.at;
        match &event.kind {
            EventKind::Packet { op, packet, side } => {
                self.packet(at, event.stage, *op, *side, packet);
            }
            EventKind::Channel { side, good } => {
                self.bad.turn(event.stage, *side, *good, at.as_secs_f64());
            }
            EventKind::Handoff { host, arrived }
                if [self.flow.src, self.flow.dst].contains(host) =>
            {
                self.stays.turn(at, event.stage, *arrived);
            }
            EventKind::Tcp(tcp) if tcp.flow == self.flow => {
                let at_s = at.as_secs_f64();
                match tcp.kind {
                    TcpKind::Opening => self.stalls.begin(at),
                    TcpKind::Timeout => self.timeouts.push(at_s),
                    TcpKind::Complete => {
                        self.completion.sender_complete(at);
                        self.end_if_complete(at);
                    }
                    TcpKind::Aborted => {
                        self.aborted.get_or_insert(at);
                        self.stalls.end(at);
                    }
                    _ => {}
                }
                if self.first_byte.is_none() && tcp.kind == TcpKind::Sampled {
                    self.unseen(at, tcp.tcb.snd_max.saturating_sub(1));
                }
                // Position 1 of the control block is byte 0. A FIN uses a position but is no byte.
                self.ack(at, tcp.tcb.snd_una.saturating_sub(1).min(self.highest));
                let (cwnd, ssthresh) = (tcp.tcb.cwnd, tcp.tcb.ssthresh);
                // The window of a foreign host is unknown.
                if cwnd > 0 {
                    self.windows.push(Window { at_s, cwnd, ssthresh });
                }
            }
            EventKind::Split(tcp) if tcp.flow == self.flow => {
                self.completion.relay_event(at, tcp.kind);
                self.end_if_complete(at);
            }
            EventKind::Tcp(tcp) if tcp.flow == self.flow.reversed() => {
                if let (TcpKind::Delivered { .. }, Watch::EndPoints) = (tcp.kind, self.watch) {
                    self.stalls.progress(at);
                }
            }
            _ => {}
        }
    }

    fn packet(&mut self, at: Time, stage: StageId, op: Op, side: Side, packet: &Packet) {
        if packet.is_data() && packet.flow() == Some(self.flow) {
            self.towards = side;
        }
        self.follow(at, op, stage, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_series_holds_sends_losses_acks_and_stalls() {
        let mut sink = Sequence::new(testing::FLOW, Watch::EndPoints);
        let ms = 1_000_000;
        let events = [
            testing::tcp_at_sender(0, TcpKind::Opening),
            testing::syn(0, 1),
            testing::originated(10 * ms, Cause::Data, 1, 1, 1000),
            testing::originated(11 * ms, Cause::Data, 2, 1001, 1000),
            testing::damaged(12 * ms, 2, 1001, 1000),
            testing::dropped(13 * ms, Cause::TcpChecksum, 2, 1001, 1000),
            testing::tcp_at_receiver(15 * ms, TcpKind::Delivered { bytes: 1000 }),
            testing::tcp_at_sender(1000 * ms, TcpKind::Timeout),
            testing::originated(1000 * ms, Cause::TimeoutRetransmit, 3, 1001, 1000),
            testing::tcp_at_receiver(1015 * ms, TcpKind::Delivered { bytes: 1000 }),
            testing::tcp_at_sender(1020 * ms, TcpKind::Complete),
        ];
        events.iter().for_each(|event| sink.event(event));
        let series = sink.finish(Time(9_000 * ms));
        let sent: Vec<_> = series.sent.iter().map(|s| (s.start, s.end, s.kind)).collect();
        let first = |start| (start, start + 1000, SendKind::First);
        assert_eq!(sent, [first(0), first(1000), (1000, 2000, SendKind::Timeout)]);
        assert_eq!(series.lost, [Lost { at_s: 0.012, start: 1000, end: 2000 }]);
        assert_eq!(series.stalls, [Stall { from_s: 0.015, to_s: 1.015 }]);
        assert_eq!(series.timeouts, [1.0]);
        assert_eq!(series.end_s, 1.02);
    }

    #[test]
    fn bad_periods_are_those_of_the_direction_of_the_data() {
        let mut sink = Sequence::new(testing::FLOW, Watch::EndPoints);
        let turn = |secs: u64, side, good| Event {
            at: Time(secs * 1_000_000_000),
            stage: StageId(3),
            kind: EventKind::Channel { side, good },
        };
        sink.event(&testing::originated(0, Cause::Data, 1, 1, 1000));
        for (secs, side, good) in [
            (10, Side::Right, false),
            (11, Side::Left, false),
            (14, Side::Right, true),
            (15, Side::Right, true),
            (24, Side::Right, false),
        ] {
            sink.event(&turn(secs, side, good));
        }
        let series = sink.finish(Time(26_000_000_000));
        let bad = |from_s, to_s| BadPeriod { from_s, to_s };
        assert_eq!(series.bad, [bad(10.0, 14.0), bad(24.0, 26.0)]);
    }

    #[test]
    fn on_a_link_a_repeated_range_is_a_retransmission() {
        let mut sink = Sequence::new(testing::FLOW, Watch::Link(StageId(1)));
        sink.event(&testing::transmitted(0, 1, 1, 1, 1000));
        sink.event(&testing::transmitted(5, 2, 2, 1001, 1000));
        sink.event(&testing::transmitted(9, 1, 3, 1, 1000));
        let series = sink.finish(Time(10));
        let kinds: Vec<_> = series.sent.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [SendKind::First, SendKind::Again], "the other link is not watched");
    }

    #[test]
    fn thinned_points_remain_evenly_spaced() {
        let mut list = Thinned::new();
        (0..5 * Thinned::<usize>::LIMIT).for_each(|i| list.push(i));
        assert!(list.items.len() <= Thinned::<usize>::LIMIT);
        assert!(list.items.windows(2).all(|w| w[1] - w[0] == list.stride));
    }
}
