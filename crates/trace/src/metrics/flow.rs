//! What is remembered of one flow while a run goes on.

use std::collections::VecDeque;

use lasthop_proto::event::{Cause, Tcb, TcpKind};
use lasthop_proto::machine::Side;
use lasthop_proto::units::{Due, Span, Time};
use lasthop_proto::wire::{Flags, FlowKey, PacketId, Segment, Seq};

use super::flow_metrics::{Delay, FlowMetrics, Samples};
use crate::completion::Completion;
use crate::counts::CauseCounts;
use crate::histogram::Histogram;
use crate::layout::{ExchangeInfo, FlowInfo, Layout, ShortInfo, flow_name};
use crate::ranges::Ranges;
use crate::stalls::StallWatch;
use crate::stats::Moments;

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
    timeouts: u32,
    opening_timeouts: u32,
    fast_retransmits: u32,
    recoveries: u32,
    dupacks: u64,
    partial_acks: u32,
    loss_notifications: u32,
    bad_state_notices: u32,
    quenches: u32,
    congestion_echoes: u32,
    srtt: Samples,
    rto: Samples,
}

/// One direction of a connection. There may be a hundred thousand of them, so what only the direction of data has, and
/// what few flows have, is made when it is first needed.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    /// What there is of its data.
    carried: Option<Box<Carried>>,
    /// Sequence number of the SYN: position 0 of the stream.
    origin: Option<Seq>,
    opened: Due,
    episodes: Option<Box<Episodes>>,
    dropped: CauseCounts,
    rare: Option<Box<Rare>>,
    /// Packets put into the path for [`Cause::Control`], as SYN and FIN of each flow are.
    control: u32,
    pub(super) towards: Side,
    aborted: bool,
}

/// What there is of a flow that carries data, in the order in which it is touched: a cache line or two by a packet that
/// enters the path, the others by one that arrives.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Carried {
    /// One past the highest position offered to the path.
    offered: u64,
    /// Ends of packets offered and not yet delivered, with the time of the first offer. In order of both.
    waiting: VecDeque<(u64, Time)>,
    /// Packets put into the path with data that is sent for the first time: of all causes the one that nearly all have.
    data: u64,
    new_packets: u64,
    pub(super) wired_packets: u64,
    pub(super) wireless_packets: u64,
    largest: u32,
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
    declared: Option<Box<Declared>>,
}

impl Default for Carried {
    fn default() -> Carried {
        Carried {
            offered: 0,
            waiting: VecDeque::new(),
            data: 0,
            new_packets: 0,
            wired_packets: 0,
            wireless_packets: 0,
            largest: 0,
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
            declared: None,
        }
    }
}

impl Carried {
    /// Bytes up to position `end` entered the path in a packet with `len` of them. Whether they are the first.
    #[inline]
    pub(super) fn offer(&mut self, at: Time, end: u64, len: u32) -> bool {
        self.largest = self.largest.max(len);
        if end <= self.offered {
            return false;
        }
        self.new_packets += 1;
        self.waiting.push_back((end, at));
        core::mem::replace(&mut self.offered, end) == 0
    }

    /// An unharmed packet with these positions crosses the last link.
    #[inline]
    pub(super) fn cross(&mut self, id: PacketId, start: u64, end: u64) {
        let new = self.crossed.insert(start, end);
        self.redundant += u64::from(!new);
        let at = usize::from(self.crossing);
        (self.recent[at], self.news[at]) = (id, new);
        self.crossing = (self.crossing + 1) % REMEMBERED as u8;
    }
}

/// What few flows have.
#[derive(Debug, Default)]
pub(super) struct Rare {
    pub(super) marked: u64,
    /// Packets put into the path for other causes than data and control.
    originated: CauseCounts,
    pub(super) repeated: CauseCounts,
    /// Packets of all kinds that entered the path, where exchanges are made.
    pub(super) entered: u64,
    /// When its client asked, and how long answers took.
    pub(super) asked: Option<Box<Asked>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<Flow>() == 112 && size_of::<Carried>() == 304 && size_of::<Episodes>() == 144
);

/// The exchanges of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// When was asked what is not answered yet, the oldest first.
    pub(super) open: VecDeque<Time>,
    /// What each exchange took that was answered.
    pub(super) times: Vec<Span>,
}

impl Flow {
    pub(super) fn new(key: FlowKey, towards: Side) -> Flow {
        Flow {
            key,
            carried: None,
            origin: None,
            opened: Due::NEVER,
            episodes: None,
            dropped: CauseCounts::default(),
            rare: None,
            control: 0,
            towards,
            aborted: false,
        }
    }

    /// What there is of its data, from now on.
    #[inline]
    pub(super) fn carried(&mut self) -> &mut Carried {
        if self.carried.is_none() {
            self.begin_to_carry();
        }
        self.carried.get_or_insert_default()
    }

    #[cold]
    fn begin_to_carry(&mut self) {
        let mut carried = Box::<Carried>::default();
        if let Some(at) = self.opened.get() {
            carried.stalls.begin(at);
        }
        self.carried = Some(carried);
    }

    /// What few flows have, from now on.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// What it has of that.
    pub(super) fn has_rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// A packet was put into the path for this reason.
    #[inline]
    pub(super) fn originate(&mut self, cause: Cause) {
        match cause {
            Cause::Data => self.carried().data += 1,
            Cause::Control => self.control = self.control.saturating_add(1),
            cause => self.rare().originated.add(cause),
        }
    }

    /// The packet held no bytes, although it was to carry data.
    pub(super) fn originate_empty(&mut self) {
        self.carried().new_packets += 1;
    }

    /// A packet of it was dropped for this reason.
    pub(super) fn drop_for(&mut self, cause: Cause) {
        self.dropped.add(cause);
    }

    /// Packets put into the path, by cause.
    fn all_originated(&self) -> CauseCounts {
        CauseCounts::from_fn(|cause| match cause {
            Cause::Data => self.carried.as_ref().map_or(0, |carried| carried.data),
            Cause::Control => self.control.into(),
            cause => self.rare.as_ref().map_or(0, |rare| rare.originated.get(cause)),
        })
    }

    /// Takes what the layout says of it.
    pub(super) fn declare(&mut self, info: &FlowInfo) {
        let carried = self.carried();
        carried.wanted = info.bytes.unwrap_or(u64::MAX);
        carried.declared = Some(Box::new(Declared {
            bytes: info.bytes,
            mss: info.mss,
            split_mss: info.split_mss,
            cross: info.cross,
        }));
    }

    /// What the layout says of it, if it is the direction of the data of a transfer that the layout names.
    fn declared(&self) -> Option<&Declared> {
        self.carried.as_ref()?.declared.as_deref()
    }

    /// Whether it is that direction.
    pub(super) fn is_declared(&self) -> bool {
        self.declared().is_some()
    }

    /// A datagram of its transfer passes. What is in it only its ends can tell, so that each counts as one with data.
    pub(super) fn datagram(&mut self, len: u32) {
        /// Of UDP, in bytes.
        const HEADER: u32 = 8;
        let carried = self.carried();
        carried.largest = carried.largest.max(len.saturating_sub(HEADER));
    }

    /// Whether this direction carried data or was meant to.
    pub(super) fn counts(&self) -> bool {
        let carried = self.carried.as_ref();
        carried.is_some_and(|c| c.declared.is_some() || c.offered > 0 || c.delivered > 0)
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
        !self.is_declared() && (self.key.src, self.key.dst) == (info.from, info.to)
    }

    /// Whether its connection was opened from this end.
    pub(super) fn begun(&self) -> bool {
        self.opened.is_set()
    }

    /// A SYN passed: it fixes the origin of the stream.
    pub(super) fn syn(&mut self, at: Time, segment: &Segment) {
        self.origin = Some(segment.seq);
        self.open(at);
    }

    fn open(&mut self, at: Time) {
        if !self.opened.is_set() {
            self.opened = Due::at(at);
        }
        if let Some(carried) = &mut self.carried {
            carried.stalls.begin(at);
        }
    }

    /// Stream positions of a data packet's payload, 1 for the first byte, with what there is of the flow's data.
    #[inline(always)]
    pub(super) fn span(&mut self, segment: &Segment, len: u32) -> (&mut Carried, u64, u64) {
        let first = segment.seq + u32::from(segment.flags.has(Flags::SYN));
        // A flow that was joined midway begins with the first packet seen.
        let origin = *self.origin.get_or_insert(Seq(first.0.wrapping_sub(1)));
        let carried = self.carried();
        let start = first.unwrap_near(origin, carried.offered).unwrap_or(0);
        (carried, start, start + u64::from(len))
    }

    /// A data packet entered the path: its host put it there, or, where hosts are not ours, it was seen on
    /// the first link. Only the first sight of its bytes counts.
    #[inline]
    pub(super) fn offer(&mut self, at: Time, segment: &Segment, len: u32) {
        let (carried, _, end) = self.span(segment, len);
        if carried.offer(at, end, len) {
            self.open_with_data(at);
        }
    }

    /// Its first bytes enter the path: whoever has offered anything is open.
    pub(super) fn open_with_data(&mut self, at: Time) {
        if !self.opened.is_set() {
            self.open(at);
        }
    }

    /// It did not arrive after all: the channel damaged it, or it was dropped behind the last link.
    #[cold]
    pub(super) fn uncross(&mut self, id: PacketId, segment: &Segment, len: u32) {
        let carried = self.carried();
        let Some(at) = carried.recent.iter().position(|recent| *recent == id) else { return };
        carried.recent[at] = PacketId(u64::MAX);
        if carried.news[at] {
            let (carried, start, end) = self.span(segment, len);
            carried.crossed.remove(start, end);
        } else {
            carried.redundant -= 1;
        }
    }

    /// Data was delivered to the application at the other end.
    pub(super) fn deliver(&mut self, at: Time, bytes: u32) {
        let carried = self.carried();
        carried.delivered += u64::from(bytes);
        carried.stalls.progress(at);
        while let Some((end, offered)) = carried.waiting.front() {
            if *end > 1 + carried.delivered {
                break;
            }
            carried.delay.add(at.since(*offered).as_secs_f64());
            carried.delays.add(at.since(*offered));
            carried.waiting.pop_front();
        }
        if carried.delivered >= carried.wanted {
            self.episodes().completion.received(at);
        }
    }

    fn episodes(&mut self) -> &mut Episodes {
        self.episodes.get_or_insert_default()
    }

    fn end_if_complete(&mut self, at: Time) {
        if self.episodes().completion.at().is_some() {
            self.carried().stalls.end(at);
        }
    }

    /// Something happened to the end from which a base station sends this flow on.
    pub(super) fn relay_event(&mut self, at: Time, kind: TcpKind) {
        self.episodes().completion.relay_event(at, kind);
        self.end_if_complete(at);
    }

    /// Payload of a full segment on the wired links, or on the radio hop.
    fn mss(&self, radio: bool) -> u32 {
        let Some(carried) = &self.carried else { return 0 };
        let Some(declared) = &carried.declared else { return carried.largest };
        // A base station without room for another connection lets it pass as it is.
        let relayed = self.episodes.as_ref().is_some_and(|own| own.completion.is_relayed());
        let split = declared.split_mss.filter(|_| relayed);
        split.map(|mss| mss[usize::from(radio)]).or(declared.mss).unwrap_or(carried.largest)
    }

    fn delivered(&self) -> u64 {
        self.carried.as_ref().map_or(0, |carried| carried.delivered)
    }

    /// Full segments needed there for what was delivered.
    pub(super) fn ideal(&self, radio: bool) -> u64 {
        match self.mss(radio) {
            0 => 0,
            mss => self.delivered().div_ceil(mss.into()),
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
                own.opening_timeouts += u32::from(tcb.snd_una == 0);
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
                self.carried().stalls.end(at);
            }
            TcpKind::Asked => {
                self.rare().asked.get_or_insert_default().open.push_back(at);
                return;
            }
            TcpKind::Answered => {
                let asked = self.rare().asked.get_or_insert_default();
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

    fn marked(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.marked)
    }

    /// The numbers of this flow; `acks` is the opposite direction of its connection.
    pub(super) fn metrics(&self, acks: &Flow, end: Time) -> FlowMetrics {
        // The connection may have been opened by the receiver of the data.
        let opened = self.opened.or_never().min(acks.opened.or_never()).or_none();
        let none = Carried::default();
        let carried = self.carried.as_deref().unwrap_or(&none);
        let own = self.episodes.as_deref().cloned().unwrap_or_default();
        let completed = own.completion.at_last();
        let until = completed.unwrap_or(end);
        let transfer_time_s = opened.map_or(0.0, |opened| until.since(opened).as_secs_f64());
        let per_second = if transfer_time_s > 0.0 { 1.0 / transfer_time_s } else { 0.0 };
        let declared = carried.declared.as_deref().copied().unwrap_or_default();
        let goodput = |radio: bool, packets: u64| {
            (packets > 0).then(|| self.ideal(radio) as f64 / packets as f64)
        };
        let mut stall_list = carried.stalls.stalls(end);
        let (unlisted, unlisted_time) = carried.stalls.unlisted();
        let lengths = || stall_list.iter().map(|s| s.length_s());
        let (stall_time_s, longest_stall_s) =
            (lengths().sum::<f64>(), lengths().fold(0.0, f64::max));
        let stalls = stall_list.len() as u64 + unlisted;
        // A class may reach beyond the longest delay, which is known.
        let quantile = |q| carried.delays.quantile(q).as_secs_f64().min(carried.delay.max());
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
            delivered: carried.delivered,
            transfer_time_s,
            throughput: carried.delivered as f64 * per_second,
            mss: self.mss(false),
            ideal_packets: self.ideal(false),
            wired_packets: carried.wired_packets,
            wireless_packets: carried.wireless_packets,
            wired_goodput: goodput(false, carried.wired_packets),
            wireless_goodput: goodput(true, carried.wireless_packets),
            timeouts: own.timeouts.into(),
            opening_timeouts: own.opening_timeouts.into(),
            fast_retransmits: own.fast_retransmits.into(),
            recoveries: own.recoveries.into(),
            dupacks: own.dupacks,
            partial_acks: own.partial_acks.into(),
            loss_notifications: own.loss_notifications.into(),
            bad_state_notices: own.bad_state_notices.into(),
            quenches: own.quenches.into(),
            congestion_echoes: own.congestion_echoes.into(),
            marked: self.marked(),
            marked_acks: acks.marked(),
            new_packets: carried.new_packets,
            originated: self.all_originated(),
            originated_acks: acks.all_originated(),
            dropped: self.dropped.clone(),
            repeated: self
                .rare
                .as_ref()
                .map_or_else(CauseCounts::default, |rare| rare.repeated.clone()),
            dropped_acks: acks.dropped.clone(),
            redundant: carried.redundant,
            delay: Delay {
                packets: carried.delay.n(),
                mean_s: carried.delay.mean(),
                sd_s: carried.delay.sd(),
                max_s: carried.delay.max(),
                p50_s: quantile(0.50),
                p95_s: quantile(0.95),
                p99_s: quantile(0.99),
            },
            srtt: own.srtt.metrics(),
            rto: own.rto.metrics(),
            stalls,
            stall_time_s: stall_time_s + unlisted_time.as_secs_f64(),
            longest_stall_s,
            typical_gap_s: carried.stalls.typical_gap().as_secs_f64(),
            stall_list,
        }
    }
}
