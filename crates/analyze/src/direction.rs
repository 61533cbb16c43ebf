//! What one side of a connection sent: bytes, gaps, round trips, retransmissions, losses and stalls.

mod repairs;

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Seq;

use crate::config::Config;
use crate::over_time::{InFlight, MeasuredBy, RoundTrip, Volume};
use crate::reading::{Direction, Point, PointKind, Retransmission, Stall, StallCause};
use crate::stats::Series;
use crate::verdict::{Label, Trials};

/// Outstanding segments kept for each direction; beyond, the oldest gives no round-trip time.
const OUTSTANDING: usize = 4096;

/// Gaps kept for each direction; beyond, the oldest counts as seen.
const GAPS: usize = 1024;

/// Round-trip times kept to look up what a lost segment's neighbour met.
const SAMPLES: usize = 1024;

/// Sequence numbers as offsets that do not wrap.
#[derive(Clone, Copy, Debug)]
struct Origin {
    first: Seq,
    near: i64,
}

impl Origin {
    fn offset(self, seq: Seq) -> i64 {
        self.near.saturating_add(i64::from(seq - (self.first + self.near as u32)))
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: i64,
    at: Time,
    /// Sent again, or measured already: gives no round-trip time any more.
    spent: bool,
    /// Sent again.
    again: bool,
    label: Label,
}

/// A retransmission that was not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Repair {
    start: i64,
    end: i64,
    at: Time,
    /// When the original was sent.
    sent: Option<Time>,
    timestamp: Option<u32>,
    /// An answer takes at least this long.
    soon: Span,
    after_timeout: bool,
    /// Its place in `reading.losses`, if it has one.
    loss: Option<usize>,
    /// Whether its original is a trial, and of which label.
    trial: Option<Label>,
    /// An earlier retransmission of the same bytes is under way: an early ACK may answer that one.
    repeatedly: bool,
    unseen: bool,
    needless: bool,
}

/// From the first retransmission to the ACK of all that was outstanding then.
#[derive(Clone, Copy, Debug)]
struct Episode {
    after_timeout: bool,
    recover: i64,
    number: u32,
}

/// The state of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    origin: Option<Origin>,
    /// One past the highest offset sent.
    next: i64,
    /// The highest ACK of the peer.
    una: i64,
    acked_at: Option<Time>,
    /// Whether the packet with the latest new ACK carried payload: an answer.
    answered: bool,
    /// The highest offset in SACK blocks of the peer.
    sacked: i64,
    gaps: BTreeMap<i64, (i64, Time)>,
    outstanding: VecDeque<Sent>,
    rtt: Series,
    last_rtt: Option<f64>,
    /// The latest samples by the end of the segment that gave them.
    samples: BTreeMap<i64, f64>,
    episode: Option<Episode>,
    episodes: u32,
    /// The episode of each loss, beside `reading.losses`.
    episode_of: Vec<u32>,
    /// Whether each loss was none, beside `reading.losses`.
    disproved: Vec<bool>,
    repairs: VecDeque<Repair>,
    /// Losses, kept or omitted; and of these, those of segments that never came here.
    lost: u64,
    unseen: u64,
    trials: Trials,
    /// End and timestamp of the first retransmission of an episode, until it is acknowledged.
    stamped: Option<(i64, u32)>,
    first_data: Option<Time>,
    last_data: Option<Time>,
    outstanding_after_last: u64,
    /// Whether the peer's window was closed since the last data.
    closed: bool,
    /// The peer's latest window in bytes, if its scale is known.
    window: Option<u64>,
    pub(crate) reading: Direction,
}

/// A packet with payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) at: Time,
    pub(crate) seq: Seq,
    pub(crate) len: u32,
    pub(crate) timestamp: Option<u32>,
    /// All of it was acknowledged before.
    pub(crate) acked: bool,
    /// Duplicate ACKs of the peer so far.
    pub(crate) dupacks: i64,
    pub(crate) first_rtt: Option<Span>,
    /// Time since the connection began.
    pub(crate) since: Span,
}

/// What a packet of the peer says about the data of this side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) at: Time,
    pub(crate) ack: Seq,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<u32>,
    pub(crate) duplicate: bool,
    /// The packet has payload as well.
    pub(crate) answer: bool,
    /// The peer's window in bytes, if its scale is known.
    pub(crate) window: Option<u64>,
}

impl Tracker {
    fn offset(&self, seq: Seq) -> Option<i64> {
        self.origin.map(|origin| Origin { near: self.next, ..origin }.offset(seq))
    }

    /// A packet begins at `seq`, with a SYN or without.
    pub(crate) fn begins(&mut self, seq: Seq, syn: bool) {
        if self.origin.is_none() {
            let near = i64::from(!syn);
            self.origin = Some(Origin { first: Seq(seq.0.wrapping_sub(near as u32)), near });
            (self.next, self.una, self.sacked) = (1, near, 0);
        }
    }

    /// The peer's window is closed.
    pub(crate) fn window_closed(&mut self) {
        self.closed = true;
    }

    fn point(&mut self, config: &Config, at: Time, offset: i64, len: u32, kind: PointKind) {
        if self.reading.points.len() < config.points {
            self.reading.points.push(Point { at, offset, len, kind });
        } else {
            self.reading.points_omitted += 1;
        }
    }

    /// This side sent `data`.
    pub(crate) fn data(&mut self, config: &Config, data: Data) {
        let Some(start) = self.offset(data.seq) else { return };
        let end = start + i64::from(data.len);
        self.reading.data_packets += 1;
        self.reading.bytes += u64::from(data.len);
        let fresh = (end - start.max(self.next)).max(0) as u64;
        if start > self.next {
            self.add_gap(self.next, start, data.at);
        }
        let (filled, opened) = self.fill(start, end);
        self.reading.unique_bytes += fresh + filled;
        let repeated = u64::from(data.len) - fresh - filled;
        let volume = Volume { bytes: u64::from(data.len), fresh: fresh + filled };
        self.reading.over_time.volume(data.since, volume);
        if let Some(stamp) = data.timestamp {
            self.reading.over_time.stamped(data.at, stamp);
        }
        let reorder = data.first_rtt.unwrap_or(Span::millis(3));
        let late = filled > 0 && opened.is_none_or(|opened| data.at.since(opened) >= reorder);
        let mut kind = PointKind::Data;
        let mut repair = None;
        if repeated > 0 || late || data.acked {
            kind = PointKind::Retransmission;
            repair =
                Some(self.retransmission(config, data, start, end, filled > 0 && repeated == 0));
        } else if filled > 0 {
            kind = PointKind::OutOfOrder;
            self.reading.out_of_order += 1;
        }
        self.point(config, data.at, start, data.len, kind);
        self.stall(config, data.at, start, repair);
        if fresh > 0 {
            if self.outstanding.len() >= OUTSTANDING {
                self.outstanding.pop_front();
            }
            let again = repair.is_some();
            let label = self.trials.label(data.at);
            self.outstanding.push_back(Sent { end, at: data.at, spent: again, again, label });
            self.next = end;
        }
        self.first_data.get_or_insert(data.at);
        self.last_data = Some(data.at);
        self.closed = false;
        self.outstanding_after_last = self.in_flight(config, data.at);
    }

    /// Notes how much is outstanding, and returns it.
    fn in_flight(&mut self, config: &Config, at: Time) -> u64 {
        let outstanding = (self.next - self.una).max(0) as u64;
        let sample = InFlight { at, acked: self.una, outstanding, window: self.window };
        self.reading.over_time.in_flight(config.points, sample);
        outstanding
    }

    fn add_gap(&mut self, from: i64, to: i64, at: Time) {
        if self.gaps.len() >= GAPS {
            self.gaps.pop_first();
        }
        self.gaps.insert(from, (to, at));
    }

    /// Takes `start..end` out of the gaps: how many bytes that filled, and when the oldest gap opened.
    fn fill(&mut self, start: i64, end: i64) -> (u64, Option<Time>) {
        let (mut filled, mut opened) = (0, None);
        // Gaps do not overlap: at most one begins before `start` and reaches into the range.
        let before = self.gaps.range(..start).next_back().map(|(&from, _)| from);
        let first = before.unwrap_or(start);
        while let Some((&from, &(to, at))) =
            self.gaps.range(first..end).find(|(_, (to, _))| *to > start)
        {
            self.gaps.remove(&from);
            if from < start {
                self.gaps.insert(from, (start, at));
            }
            if to > end {
                self.gaps.insert(end, (to, at));
            }
            filled += (to.min(end) - from.max(start)) as u64;
            opened = Some(opened.map_or(at, |earlier: Time| earlier.min(at)));
        }
        (filled, opened)
    }

    fn stall(&mut self, config: &Config, at: Time, offset: i64, repair: Option<Retransmission>) {
        let Some(from) = self.last_data else { return };
        let rtt = self.rtt.spread().map_or(0.0, |rtt| rtt.min);
        let gap = at.since(from);
        if gap <= Span::millis(200).max(Span::from_secs_f64(2.0 * rtt)) {
            return;
        }
        let idle = self.una >= self.next;
        let acked = self.acked_at.filter(|acked| *acked > from);
        let cause = match repair {
            _ if self.closed => StallCause::ZeroWindow,
            Some(Retransmission::Timeout) => StallCause::Timeout,
            // An answer has come, and what follows is a new request.
            None if idle && self.answered => StallCause::ApplicationIdle,
            // The ACK that ended the wait came just before this packet.
            None if acked.is_some_and(|acked| at.since(acked) * 4 < gap) => StallCause::AckDelayed,
            None if idle => StallCause::ApplicationIdle,
            _ => StallCause::Unclear,
        };
        if self.reading.stalls.len() >= config.losses {
            self.reading.stalls_omitted += 1;
            return;
        }
        let outstanding = self.outstanding_after_last;
        self.reading.stalls.push(Stall { from, to: at, offset, outstanding, cause });
    }

    /// The peer acknowledged.
    pub(crate) fn acked(&mut self, config: &Config, acked: Acked) {
        let Acked { at, ack, echo, .. } = acked;
        // Acknowledged before anything was seen: only the other direction is captured.
        self.begins(ack, false);
        let Some(ack) = self.offset(ack) else { return };
        if acked.duplicate {
            self.point(config, at, ack, 0, PointKind::DuplicateAck);
        }
        self.window = acked.window;
        if ack > self.una {
            self.answered = acked.answer;
            self.advance(config, at, ack, echo);
        }
        // Before any data a window says nothing that the first segment will not.
        if self.first_data.is_some() {
            self.in_flight(config, at);
        }
    }

    fn advance(&mut self, config: &Config, at: Time, ack: i64, echo: Option<u32>) {
        self.una = ack;
        self.acked_at = Some(at);
        self.point(config, at, ack, 0, PointKind::Ack);
        // What was acknowledged need not be kept, captured or not.
        while let Some(entry) = self.gaps.first_entry()
            && entry.get().0 <= ack
        {
            entry.remove();
        }
        self.next = self.next.max(ack);
        self.settle_up_to(at, ack, echo);
        let by_timestamp = echo.and_then(|echo| self.reading.over_time.echoed(at, echo));
        let measured = self.sample(config, at, ack);
        if let Some(rtt) = by_timestamp.filter(|_| !measured) {
            let sample = RoundTrip { at, rtt: rtt.as_secs_f64(), by: MeasuredBy::Timestamp };
            self.reading.over_time.round_trip(config.points, sample);
        }
        if self.episode.is_some_and(|episode| ack >= episode.recover) {
            self.episode = None;
        }
        if let Some((end, stamp)) = self.stamped
            && ack >= end
        {
            self.stamped = None;
            //= rfc3522#section-3.2: an echo older than the retransmission shows that the original arrived
            if echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0) {
                self.reading.retransmissions.spurious_by_timestamps += 1;
            }
        }
    }

    /// Measures the round trip of the newest segment that is acknowledged; whether that may be done.
    fn sample(&mut self, config: &Config, at: Time, ack: i64) -> bool {
        let (mut newest, mut spent) = (None, false);
        while let Some(&sent) = self.outstanding.front()
            && sent.end <= ack
        {
            self.outstanding.pop_front();
            spent |= sent.spent;
            newest = Some(sent.at);
            if !sent.again {
                self.trials.arrived(sent.at, sent.label);
            }
        }
        //= rfc6298#section-3: no sample from segments that were retransmitted
        let Some(sent) = newest.filter(|_| !spent) else { return false };
        self.measured(config, at, ack, at.since(sent));
        true
    }

    fn measured(&mut self, config: &Config, at: Time, end: i64, rtt: Span) {
        let rtt = rtt.as_secs_f64();
        let sample = RoundTrip { at, rtt, by: MeasuredBy::Segment };
        self.reading.over_time.round_trip(config.points, sample);
        if self.samples.len() >= SAMPLES {
            self.samples.pop_first();
        }
        self.samples.insert(end, rtt);
        self.rtt.add(rtt);
        self.last_rtt = Some(rtt);
        self.trials.measured(at, rtt);
    }

    /// The peer's SACK blocks, in its ACK of `ack`. True if the first reports a duplicate.
    //= rfc2883#section-4: a first block below the ACK, or within the second block, is a DSACK
    pub(crate) fn sacked(
        &mut self,
        config: &Config,
        at: Time,
        ack: Seq,
        blocks: &[(Seq, Seq)],
    ) -> bool {
        let Some(&(left, right)) = blocks.first() else { return false };
        let within = |outer: &(Seq, Seq)| outer.0.le(left) && right.le(outer.1);
        let duplicate = right.le(ack) || blocks.get(1).is_some_and(within);
        for &(_, right) in blocks.iter().skip(usize::from(duplicate)) {
            let Some(right) = self.offset(right) else { continue };
            if right <= self.sacked {
                continue;
            }
            self.sacked = right;
            // While ACKs stand still, SACK blocks are the only measure of the path.
            let edge = self.outstanding.partition_point(|sent| sent.end < right);
            if let Some(sent) = self.outstanding.get_mut(edge).filter(|sent| sent.end == right)
                && !core::mem::replace(&mut sent.spent, true)
            {
                let rtt = at.since(sent.at);
                self.measured(config, at, right, rtt);
            }
        }
        if duplicate {
            let counts = &mut self.reading.retransmissions;
            // A duplicate that no retransmission explains was made by the network.
            counts.spurious_by_dsack = (counts.spurious_by_dsack + 1).min(counts.total());
        }
        duplicate
    }

    /// The finished reading.
    pub(crate) fn finish(mut self) -> Direction {
        let rtt = self.rtt.spread();
        core::mem::take(&mut self.repairs).into_iter().for_each(|repair| self.settle(repair));
        let mut bursts: BTreeMap<u32, u32> = BTreeMap::new();
        let lost = self.episode_of.iter().zip(&self.disproved).filter(|(_, none)| !**none);
        for (episode, _) in lost.filter(|(episode, _)| **episode > 0) {
            *bursts.entry(*episode).or_default() += 1;
        }
        for (loss, episode) in self.reading.losses.iter_mut().zip(&self.episode_of) {
            loss.burst = bursts.get(episode).copied().unwrap_or(1);
        }
        let mut disproved = self.disproved.iter();
        self.reading.losses.retain(|_| disproved.next() != Some(&true));
        self.reading.verdict = self.trials.verdict(self.lost, self.unseen);
        let reading = &mut self.reading;
        reading.over_time.finish();
        reading.rtt = rtt;
        if reading.bytes > 0 {
            reading.goodput = Some(reading.unique_bytes as f64 / reading.bytes as f64);
        }
        if let (Some(first), Some(last)) = (self.first_data, self.last_data)
            && last > first
        {
            let bits = reading.unique_bytes as f64 * 8.0;
            reading.throughput = Some(bits / last.since(first).as_secs_f64());
        }
        self.reading
    }
}
