//! What is remembered of one flow while a run goes on.

use core::hash::{BuildHasher, BuildHasherDefault};
use std::collections::VecDeque;

use hashbrown::HashTable;
use lasthop_proto::event::{Cause, Tcb, TcpKind};
use lasthop_proto::flows::FlowHasher;
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Flags, FlowKey, Packet, PacketId, Segment, Seq, Transport};

use super::flow_metrics::{Delay, FlowMetrics, Samples};
use crate::completion::Completion;
use crate::counts::CauseCounts;
use crate::histogram::Histogram;
use crate::layout::{ExchangeInfo, FlowInfo, Layout, ShortInfo, flow_name};
use crate::ranges::Ranges;
use crate::stalls::StallWatch;
use crate::stats::Moments;

/// Flows in pairs: both directions of a connection stand side by side, so that the peer of index `i` is
/// `i ^ 1`.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The first of the two. It has no keys: the flow that is found is looked at anyway.
    index: HashTable<u32>,
    pub(super) all: Vec<Flow>,
    /// The connection asked for last, in both directions: packets of one flow come in trains, and
    /// deliveries at the other end between them.
    last: Option<[(FlowKey, u32); 2]>,
}

impl Flows {
    /// The flow with this key, made if it is new.
    #[inline]
    pub(super) fn id(&mut self, key: FlowKey, towards: Side) -> usize {
        if let Some(pair) = &self.last {
            for (last, id) in pair {
                if *last == key {
                    return *id as usize;
                }
            }
        }
        self.find(key, towards)
    }

    /// The flow with this key, if there is one.
    pub(super) fn known(&self, key: FlowKey) -> Option<usize> {
        let connection = connection(key);
        let back = key.reversed();
        let is_it = |first: &u32| [key, back].contains(&self.all[*first as usize].key);
        let first = *self.index.find(hash(connection), is_it)? as usize;
        Some(first + usize::from(self.all[first].key != key))
    }

    #[inline(never)]
    fn find(&mut self, key: FlowKey, towards: Side) -> usize {
        let id = self.known(key).unwrap_or_else(|| self.add(key, towards));
        self.last = Some([(key, id as u32), (key.reversed(), id as u32 ^ 1)]);
        id
    }

    #[cold]
    fn add(&mut self, key: FlowKey, towards: Side) -> usize {
        let id = self.all.len();
        self.all.push(Flow::new(key, towards));
        self.all.push(Flow::new(key.reversed(), towards.other()));
        let hash_of = |first: &u32| hash(connection(self.all[*first as usize].key));
        self.index.insert_unique(hash(connection(key)), id as u32, hash_of);
        id
    }

    /// Makes the flow that `info` declares.
    pub(super) fn declare(&mut self, info: &FlowInfo) {
        let id = self.id(info.key, info.towards);
        let flow = &mut self.all[id];
        flow.wanted = info.bytes.unwrap_or(u64::MAX);
        flow.declared = Some(Box::new(Declared {
            bytes: info.bytes,
            mss: info.mss,
            split_mss: info.split_mss,
            cross: info.cross,
        }));
    }

    /// The flow of a packet, if it is TCP, or UDP on which a transfer was declared; a message to a source counts among the
    /// packets that travel to it.
    #[inline]
    pub(super) fn of_packet(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.flow() {
            Some(key) => Some(self.id(key, towards)),
            None => self.of_other(packet, towards),
        }
    }

    /// The same of what is not TCP.
    #[cold]
    fn of_other(&mut self, packet: &Packet, towards: Side) -> Option<usize> {
        match packet.transport {
            Transport::Icmp(_) => Some(self.id(packet.quote()?.1.flow.reversed(), towards)),
            Transport::Other(_) => self.known(packet.datagram_flow()?),
            _ => None,
        }
    }
}

/// The same name for both directions of a connection.
fn connection(key: FlowKey) -> FlowKey {
    let back = key.reversed();
    if (back.src, back.src_port) < (key.src, key.src_port) { back } else { key }
}

fn hash(key: FlowKey) -> u64 {
    BuildHasherDefault::<FlowHasher>::default().hash_one(key)
}

/// How many packets that crossed the last link are remembered, should one be lost behind it after all.
const REMEMBERED: usize = 4;

/// What the layout says of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Declared {
    bytes: Option<u64>,
    mss: Option<u32>,
    split_mss: Option<[u32; 2]>,
    cross: bool,
}

/// What its sender went through. The direction of the ACKs has none of it.
#[derive(Clone, Debug, Default)]
struct Episodes {
    completion: Completion,
    timeouts: u64,
    opening_timeouts: u64,
    fast_retransmits: u64,
    recoveries: u64,
    dupacks: u64,
    partial_acks: u64,
    loss_notifications: u64,
    bad_state_notices: u64,
    quenches: u64,
    congestion_echoes: u64,
    srtt: Samples,
    rto: Samples,
}

/// One direction of a connection. There may be a hundred thousand of them, so it lies in the order in which it is touched:
/// two cache lines by a packet that enters the path, four by one that arrives, and behind them what few packets or few
/// flows have.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Flow {
    key: FlowKey,
    /// Sequence number of the SYN: position 0 of the stream.
    origin: Option<Seq>,
    /// One past the highest position offered to the path.
    offered: u64,
    /// Ends of packets offered and not yet delivered, with the time of the first offer. In order of both.
    waiting: VecDeque<(u64, Time)>,
    /// Packets put into the path with data that is sent for the first time: of all causes the one that nearly all have.
    data: u64,
    pub(super) new_packets: u64,
    pub(super) wired_packets: u64,
    pub(super) wireless_packets: u64,
    largest: u32,
    pub(super) towards: Side,
    aborted: bool,
    // ---- what arrives
    /// The place of the next in `recent`.
    crossing: u8,
    /// Positions that crossed the last link unharmed.
    crossed: Ranges,
    redundant: u64,
    /// The last packets that crossed; a ring.
    recent: [PacketId; REMEMBERED],
    /// Whether they held anything new.
    news: [bool; REMEMBERED],
    delivered: u64,
    /// Bytes whose delivery completes it, if the layout names a number.
    wanted: u64,
    delay: Moments,
    delays: Histogram,
    stalls: StallWatch,
    // ---- what is rare
    opened: Option<Time>,
    declared: Option<Box<Declared>>,
    episodes: Option<Box<Episodes>>,
    pub(super) marked: u64,
    originated: CauseCounts,
    pub(super) dropped: CauseCounts,
    pub(super) repeated: CauseCounts,
    /// Packets of all kinds that entered the path, where exchanges are made.
    pub(super) entered: u64,
    /// When its client asked, and how long answers took.
    pub(super) asked: Option<Box<Asked>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Flow>() == 512);

/// The exchanges of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// When was asked what is not answered yet, the oldest first.
    pub(super) open: VecDeque<Time>,
    /// What each exchange took that was answered.
    pub(super) times: Vec<Span>,
}

impl Flow {
    fn new(key: FlowKey, towards: Side) -> Flow {
        Flow {
            key,
            origin: None,
            offered: 0,
            waiting: VecDeque::new(),
            data: 0,
            new_packets: 0,
            wired_packets: 0,
            wireless_packets: 0,
            largest: 0,
            towards,
            aborted: false,
            crossing: 0,
            crossed: Ranges::default(),
            redundant: 0,
            recent: [PacketId(u64::MAX); REMEMBERED],
            news: [false; REMEMBERED],
            delivered: 0,
            wanted: u64::MAX,
            delay: Moments::default(),
            delays: Histogram::default(),
            stalls: StallWatch::default(),
            opened: None,
            declared: None,
            episodes: None,
            marked: 0,
            originated: CauseCounts::default(),
            dropped: CauseCounts::default(),
            repeated: CauseCounts::default(),
            entered: 0,
            asked: None,
        }
    }

    /// A packet was put into the path for this reason.
    #[inline]
    pub(super) fn originate(&mut self, cause: Cause) {
        match cause {
            Cause::Data => self.data += 1,
            cause => self.originated.add(cause),
        }
    }

    /// Packets put into the path, by cause.
    fn all_originated(&self) -> CauseCounts {
        let of = |cause| if cause == Cause::Data { self.data } else { self.originated.get(cause) };
        CauseCounts::from_fn(of)
    }

    /// Whether it is the direction of the data of a transfer that the layout names.
    pub(super) fn is_declared(&self) -> bool {
        self.declared.is_some()
    }

    /// A datagram of its transfer passes. What is in it only its ends can tell, so that each counts as one with data.
    pub(super) fn datagram(&mut self, len: u32) {
        /// Of UDP, in bytes.
        const HEADER: u32 = 8;
        self.largest = self.largest.max(len.saturating_sub(HEADER));
    }

    /// Whether this direction carried data or was meant to.
    pub(super) fn counts(&self) -> bool {
        self.declared.is_some() || self.offered > 0 || self.delivered > 0
    }

    /// Whether it is one of many that are told together.
    pub(super) fn is_grouped(&self, layout: &Layout) -> bool {
        let carries =
            |info: &ExchangeInfo| info.asks_on(&self.key) || info.asks_on(&self.key.reversed());
        layout.short.iter().any(|info| self.is_between(info))
            || layout.exchanges.iter().any(carries)
    }

    /// Whether clients of this table ask on it.
    pub(super) fn asks(&self, info: &ExchangeInfo) -> bool {
        info.asks_on(&self.key)
    }

    /// Whether it is one of those short transfers.
    pub(super) fn is_between(&self, info: &ShortInfo) -> bool {
        self.declared.is_none() && (self.key.src, self.key.dst) == (info.from, info.to)
    }

    /// Whether its connection was opened from this end.
    pub(super) fn begun(&self) -> bool {
        self.opened.is_some()
    }

    /// A SYN passed: it fixes the origin of the stream.
    pub(super) fn syn(&mut self, at: Time, segment: &Segment) {
        self.origin = Some(segment.seq);
        self.open(at);
    }

    fn open(&mut self, at: Time) {
        self.opened.get_or_insert(at);
        self.stalls.begin(at);
    }

    /// Stream positions of a data packet's payload, 1 for the first byte.
    #[inline]
    fn span(&mut self, segment: &Segment, len: u32) -> (u64, u64) {
        let first = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        // A flow that was joined midway begins with the first packet seen.
        let origin = *self.origin.get_or_insert(Seq(first.0.wrapping_sub(1)));
        let start = first.unwrap_near(origin, self.offered).unwrap_or(0);
        (start, start + u64::from(len))
    }

    /// A data packet entered the path: its host put it there, or, where hosts are not ours, it was seen on
    /// the first link. Only the first sight of its bytes counts.
    #[inline]
    pub(super) fn offer(&mut self, at: Time, segment: &Segment, len: u32) {
        let (_, end) = self.span(segment, len);
        self.largest = self.largest.max(len);
        if end > self.offered {
            // Whoever has offered anything is open.
            if self.offered == 0 && self.opened.is_none() {
                self.open(at);
            }
            self.offered = end;
            self.new_packets += 1;
            self.waiting.push_back((end, at));
        }
    }

    /// An unharmed data packet crosses the last link.
    #[inline]
    pub(super) fn cross(&mut self, id: PacketId, segment: &Segment, len: u32) {
        let (start, end) = self.span(segment, len);
        let new = self.crossed.insert(start, end);
        self.redundant += u64::from(!new);
        let at = usize::from(self.crossing);
        (self.recent[at], self.news[at]) = (id, new);
        self.crossing = (self.crossing + 1) % REMEMBERED as u8;
    }

    /// It did not arrive after all: the channel damaged it, or it was dropped behind the last link.
    #[cold]
    pub(super) fn uncross(&mut self, id: PacketId, segment: &Segment, len: u32) {
        let Some(at) = self.recent.iter().position(|recent| *recent == id) else { return };
        self.recent[at] = PacketId(u64::MAX);
        if self.news[at] {
            let (start, end) = self.span(segment, len);
            self.crossed.remove(start, end);
        } else {
            self.redundant -= 1;
        }
    }

    /// Data was delivered to the application at the other end.
    pub(super) fn deliver(&mut self, at: Time, bytes: u32) {
        self.delivered += u64::from(bytes);
        if self.delivered >= self.wanted {
            self.episodes().completion.received(at);
        }
        self.stalls.progress(at);
        while let Some((end, offered)) = self.waiting.front() {
            if *end > 1 + self.delivered {
                break;
            }
            self.delay.add(at.since(*offered).as_secs_f64());
            self.delays.add(at.since(*offered));
            self.waiting.pop_front();
        }
    }

    fn episodes(&mut self) -> &mut Episodes {
        self.episodes.get_or_insert_default()
    }

    fn end_if_complete(&mut self, at: Time) {
        if self.episodes().completion.at().is_some() {
            self.stalls.end(at);
        }
    }

    /// Something happened to the end from which a base station sends this flow on.
    pub(super) fn relay_event(&mut self, at: Time, kind: TcpKind) {
        self.episodes().completion.relay_event(at, kind);
        self.end_if_complete(at);
    }

    /// Payload of a full segment on the wired links, or on the radio hop.
    fn mss(&self, radio: bool) -> u32 {
        let Some(declared) = &self.declared else { return self.largest };
        // A base station without room for another connection lets it pass as it is.
        let relayed = self.episodes.as_ref().is_some_and(|own| own.completion.is_relayed());
        let split = declared.split_mss.filter(|_| relayed);
        split.map(|mss| mss[usize::from(radio)]).or(declared.mss).unwrap_or(self.largest)
    }

    /// Full segments needed there for what was delivered.
    pub(super) fn ideal(&self, radio: bool) -> u64 {
        match self.mss(radio) {
            0 => 0,
            mss => self.delivered.div_ceil(mss.into()),
        }
    }

    /// Something happened to the end point that sends this flow.
    pub(super) fn sender_event(&mut self, at: Time, kind: TcpKind, tcb: &Tcb) {
        let own = self.episodes.get_or_insert_default();
        match kind {
            TcpKind::Opening => self.open(at),
            TcpKind::DupAck => own.dupacks += 1,
            TcpKind::FastRetransmit => own.fast_retransmits += 1,
            TcpKind::RecoveryEnded => own.recoveries += 1,
            TcpKind::Timeout => {
                own.timeouts += 1;
                own.opening_timeouts += u64::from(tcb.snd_una == 0);
            }
            TcpKind::PartialAck => own.partial_acks += 1,
            TcpKind::LossNotified => own.loss_notifications += 1,
            TcpKind::BadStateNotified => own.bad_state_notices += 1,
            TcpKind::Quenched => own.quenches += 1,
            TcpKind::CongestionEchoed => own.congestion_echoes += 1,
            TcpKind::Complete => {
                own.completion.sender_complete(at);
                self.end_if_complete(at);
            }
            TcpKind::Aborted => {
                self.aborted = true;
                self.stalls.end(at);
            }
            TcpKind::Asked => {
                self.asked.get_or_insert_default().open.push_back(at);
                return;
            }
            TcpKind::Answered => {
                let asked = self.asked.get_or_insert_default();
                let begun = asked.open.pop_front();
                asked.times.extend(begun.map(|begun| at.since(begun)));
                return;
            }
            // Of the other direction, or seen only in a full trace.
            TcpKind::Delivered { .. }
            | TcpKind::Acked
            | TcpKind::Sampled
            | TcpKind::AckFactor { .. } => return,
            TcpKind::Established | TcpKind::TailLossProbe | TcpKind::WindowProbe => {}
            TcpKind::Corrupted | TcpKind::Closed | TcpKind::Undone => {}
        }
        let own = self.episodes();
        own.srtt.add(tcb.srtt);
        own.rto.add(tcb.rto);
    }

    /// The numbers of this flow; `acks` is the opposite direction of its connection.
    pub(super) fn metrics(&self, acks: &Flow, end: Time) -> FlowMetrics {
        // The connection may have been opened by the receiver of the data.
        let opened = self.opened.into_iter().chain(acks.opened).min();
        let own = self.episodes.as_deref().cloned().unwrap_or_default();
        let completed = own.completion.at_last();
        let until = completed.unwrap_or(end);
        let transfer_time_s = opened.map_or(0.0, |opened| until.since(opened).as_secs_f64());
        let per_second = if transfer_time_s > 0.0 { 1.0 / transfer_time_s } else { 0.0 };
        let declared = self.declared.as_deref().copied().unwrap_or_default();
        let goodput = |radio: bool, packets: u64| {
            (packets > 0).then(|| self.ideal(radio) as f64 / packets as f64)
        };
        let mut stall_list = self.stalls.stalls(end);
        let (unlisted, unlisted_time) = self.stalls.unlisted();
        let lengths = || stall_list.iter().map(|s| s.length_s());
        let (stall_time_s, longest_stall_s) =
            (lengths().sum::<f64>(), lengths().fold(0.0, f64::max));
        let stalls = stall_list.len() as u64 + unlisted;
        // A class may reach beyond the longest delay, which is known.
        let quantile = |q| self.delays.quantile(q).as_secs_f64().min(self.delay.max());
        stall_list.truncate(super::LISTED_STALLS);
        FlowMetrics {
            flow: flow_name(&self.key),
            towards: Some(self.towards),
            opened_s: opened.map(Time::as_secs_f64),
            completed_s: completed.map(Time::as_secs_f64),
            complete: completed.is_some(),
            aborted: completed.is_none() && (self.aborted || acks.aborted),
            wanted: declared.bytes,
            cross: declared.cross,
            delivered: self.delivered,
            transfer_time_s,
            throughput: self.delivered as f64 * per_second,
            mss: self.mss(false),
            ideal_packets: self.ideal(false),
            wired_packets: self.wired_packets,
            wireless_packets: self.wireless_packets,
            wired_goodput: goodput(false, self.wired_packets),
            wireless_goodput: goodput(true, self.wireless_packets),
            timeouts: own.timeouts,
            opening_timeouts: own.opening_timeouts,
            fast_retransmits: own.fast_retransmits,
            recoveries: own.recoveries,
            dupacks: own.dupacks,
            partial_acks: own.partial_acks,
            loss_notifications: own.loss_notifications,
            bad_state_notices: own.bad_state_notices,
            quenches: own.quenches,
            congestion_echoes: own.congestion_echoes,
            marked: self.marked,
            marked_acks: acks.marked,
            new_packets: self.new_packets,
            originated: self.all_originated(),
            originated_acks: acks.all_originated(),
            dropped: self.dropped.clone(),
            repeated: self.repeated.clone(),
            dropped_acks: acks.dropped.clone(),
            redundant: self.redundant,
            delay: Delay {
                packets: self.delay.n(),
                mean_s: self.delay.mean(),
                sd_s: self.delay.sd(),
                max_s: self.delay.max(),
                p50_s: quantile(0.50),
                p95_s: quantile(0.95),
                p99_s: quantile(0.99),
            },
            srtt: own.srtt.metrics(),
            rto: own.rto.metrics(),
            stalls,
            stall_time_s: stall_time_s + unlisted_time.as_secs_f64(),
            longest_stall_s,
            typical_gap_s: self.stalls.typical_gap().as_secs_f64(),
            stall_list,
        }
    }
}
