//! Analysis of the data of one side of a connection: bytes, gaps, round trips, retransmissions, losses and stalls.

mod gaps;
mod held_back;
mod input;
mod lost;
mod memory;
mod order;
mod repairs;
mod round_trips;
mod sacked;
mod space;
mod verdict;

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Seq;

use crate::config::Config;
use crate::over_time::{InFlight, Volume};
use crate::reading::{Direction, Point, PointKind, Retransmission, Stall, StallCause};
use crate::stats::Series;
use crate::verdict::{Label, Trials};
use gaps::{Behind, Filled, Gaps};
pub(crate) use input::{Acked, Data};
use lost::Lost;
use order::{Evidence, Ids, SHORTEST_TIMEOUT};
use sacked::Sacked;
use space::{Candidate, Origin};

/// Maximum number of stored outstanding segments for each direction; beyond it the oldest gives no round-trip time.
const OUTSTANDING: usize = 4096;

/// Maximum number of stored round-trip times, to look up that of a lost segment's neighbour.
const SAMPLES: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct OutstandingSegment {
    start: i64,
    end: i64,
    at: Time,
    /// Whether it gives no round-trip time, because it was retransmitted or measured already.
    spent: bool,
    /// Segments of it that were not retransmitted.
    segments: u64,
    label: Label,
}

/// An unacknowledged retransmission.
#[derive(Clone, Copy, Debug)]
struct Repair {
    start: i64,
    end: i64,
    at: Time,
    /// When the original was sent.
    sent: Option<Time>,
    timestamp: Option<u32>,
    /// Minimum time until an ACK can answer the retransmission.
    soon: Span,
    after_timeout: bool,
    /// Index of its loss in `reading.losses`, if listed.
    loss: Option<usize>,
    /// Label of its original, if that is a trial (see [`crate::verdict`]).
    trial: Option<Label>,
    /// An earlier retransmission of the same bytes is in flight: an early ACK may answer that one.
    repeatedly: bool,
    /// Whether another part of the same lost segment was retransmitted before, so that this is no separate loss.
    part: bool,
    /// Bytes of the lost segment, and the number of its segments on the wire.
    size: i64,
    segments: u64,
    unseen: bool,
    needless: bool,
}

/// A recovery: from the first retransmission to the ACK of all data outstanding at that time.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Time,
    after_timeout: bool,
    recover: i64,
    number: u32,
}

/// The state of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    origin: Option<Origin>,
    candidate: Option<Candidate>,
    /// The end of the SYN's data that the peer has declined.
    declined: Option<i64>,
    /// Whether the capture has data of the present numbers.
    carried: bool,
    /// One past the highest offset sent.
    next: i64,
    /// Payload of the packet that ends there, in bytes.
    edge_len: u32,
    /// The lowest offset of captured bytes, and of bytes known to be missing.
    lowest: i64,
    /// The first packet with data of the present numbers, and its offset.
    first_packet: Option<Behind>,
    first_offset: Option<i64>,
    /// The largest window that the peer may have announced, in bytes.
    pub(crate) room: u64,
    pub(crate) ids: Ids,
    /// The highest ACK of the peer.
    una: i64,
    acked_at: Option<Time>,
    /// The latest ACK of the peer.
    latest_ack: Option<Time>,
    /// The latest duplicate ACK.
    latest_duplicate_ack: Option<Time>,
    /// Duplicate ACKs since the latest new one.
    duplicates: u32,
    /// Whether the packet with the latest new ACK carried payload: an answer.
    answered: bool,
    /// Whether the capture has an ACK without payload for data of this side.
    plainly_acked: bool,
    /// The highest offset in SACK blocks of the peer.
    sacked: i64,
    any_sack: bool,
    arrived: Sacked,
    /// The latest transmission of a packet that is known to have arrived.
    delivered: Time,
    gaps: Gaps,
    lost_segments: Lost,
    outstanding: VecDeque<OutstandingSegment>,
    pub(crate) rtt: Series,
    last_rtt: Option<f64>,
    /// The latest samples, ordered by the end of the segment that gave them.
    samples: VecDeque<(i64, f64)>,
    episode: Option<Episode>,
    episodes: u32,
    /// The episode of each loss, parallel to `reading.losses`.
    episode_of: Vec<u32>,
    /// Whether each loss was spurious, parallel to `reading.losses`.
    disproved: Vec<bool>,
    repairs: VecDeque<Repair>,
    /// The latest repairs that were acknowledged.
    settled: VecDeque<Repair>,
    /// Number of lost segments, and number of those that did not reach the point of capture.
    lost: u64,
    unseen: u64,
    trials: Trials,
    /// Bytes and timestamp of the first retransmission of an episode, until it is acknowledged.
    stamped: Option<(i64, i64, u32)>,
    first_data: Option<Time>,
    last_data: Option<Time>,
    outstanding_after_last: u64,
    /// The first and the latest timestamp of packets with data.
    stamps: Option<[(Time, u32); 2]>,
    /// Ticks of the sender's clock during each stall, parallel to `reading.stalls`.
    ticks: Vec<Option<u32>>,
    /// The largest payload of a packet on the wire, in bytes.
    full: u32,
    /// Whether the peer's window was closed since the last data.
    pub(crate) closed: bool,
    /// The peer's latest window in bytes, if its scale is known.
    window: Option<u64>,
    pub(crate) reading: Direction,
}

impl Tracker {
    fn point(&mut self, config: &Config, at: Time, offset: i64, len: u32, kind: PointKind) {
        if self.reading.points.len() < config.points {
            self.reading.points.push(Point { at, offset, len, kind });
        } else {
            self.reading.points_omitted += 1;
        }
    }

    /// Whether a packet at `seq` begins below the highest offset sent.
    pub(crate) fn is_behind(&self, seq: Seq) -> bool {
        self.offset(seq).is_none_or(|start| start < self.next)
    }

    /// This side sent `data`.
    pub(crate) fn data(&mut self, config: &Config, data: Data) {
        let Some(start) = self.offset(data.seq) else { return };
        let end = start + i64::from(data.len);
        self.full = data.full.max(1);
        self.reading.data_packets += 1;
        self.reading.data_segments += self.segments(i64::from(data.len));
        self.reading.bytes += u64::from(data.len);
        if self.is_stray(data.seq) {
            return;
        }
        self.carried = true;
        let len = data.len.max(self.edge_len);
        let behind = Behind { at: data.at, ip_id: data.ip_id, timestamp: data.timestamp, len };
        if start > self.next {
            self.gaps.add(self.next, start, behind);
        }
        let fresh = (end - start.max(self.next)).max(0) as u64;
        let mut filled = self.gaps.fill(start, end, self.una);
        self.fill_below(start, end, behind, &mut filled);
        self.reading.unique_bytes += fresh + filled.bytes;
        let seen = u64::from(data.len).saturating_sub(fresh + filled.bytes);
        let repeated = seen.saturating_sub(self.before_syn(start, end));
        let volume = Volume { bytes: u64::from(data.len), fresh: fresh + filled.bytes };
        self.reading.over_time.volumes.add(data.since, volume);
        if let Some(stamp) = data.timestamp {
            self.reading.over_time.stamped(data.at, stamp);
        }
        let late = repeated > 0 && self.is_late(data, start, end);
        if late {
            self.received_twice(start, end);
        }
        let repeats = repeated > 0 && !late;
        let overtaken = late || !repeats && filled.open > 0 && !self.is_repair(data, filled);
        // The missed packets had these bytes: with others there were a gap.
        let silent = self.last_data.is_some_and(|last| data.at.since(last) >= SHORTEST_TIMEOUT);
        let waited = self.sent_after(data).is_none_or(|sent| sent >= SHORTEST_TIMEOUT);
        let unseen = data.missed && silent && waited && start == self.next;
        let mut kind = PointKind::Data;
        let mut repair = None;
        if repeats || unseen || filled.open > 0 && !overtaken {
            kind = PointKind::Retransmission;
            if let (Some(gap), Some(behind)) = (filled.gap, filled.behind) {
                self.lost_segments.original(gap, behind.len.min(data.full), start, end);
            }
            repair = Some(self.retransmission(config, data, start, end, repeated == 0));
        } else if overtaken {
            kind = PointKind::OutOfOrder;
            self.reading.out_of_order += 1;
        } else if start < self.una && seen == 0 {
            self.reading.acked_before_seen += 1;
        }
        self.point(config, data.at, start, data.len, kind);
        self.stall(config, &data, start, repair);
        if let Some(stamp) = data.timestamp {
            let latest = (data.at, stamp);
            self.stamps = Some([self.stamps.map_or(latest, |[first, _]| first), latest]);
        }
        if fresh > 0 {
            if end > self.una {
                if self.outstanding.len() >= OUTSTANDING {
                    self.outstanding.pop_front();
                }
                let again = repair.is_some();
                let segments = if again { 0 } else { self.segments(end - start.max(self.next)) };
                let label = self.trials.label(data.at);
                let spent = again || start < self.una;
                let start = start.max(self.next);
                self.outstanding.push_back(OutstandingSegment {
                    start,
                    end,
                    at: data.at,
                    spent,
                    segments,
                    label,
                });
            }
            self.next = end;
            self.edge_len = data.len;
        }
        self.first_data.get_or_insert(data.at);
        self.last_data = Some(data.at);
        self.closed = false;
        self.outstanding_after_last = self.in_flight(config, data.at);
    }

    /// Time between the latest packet with data and `data` by the sender's timestamps.
    fn sent_after(&self, data: Data) -> Option<Span> {
        let [(began, first), (at, latest)] = self.stamps?;
        let ticks = |from: u32, to: u32| f64::from(to.wrapping_sub(from));
        let tick = at.since(began).as_secs_f64() / ticks(first, latest);
        let sent = Span::from_secs_f64(tick * ticks(latest, data.timestamp?));
        (latest != first).then_some(sent)
    }

    /// Number of segments of `len` bytes on the wire.
    fn segments(&self, len: i64) -> u64 {
        (len.max(0) as u64).div_ceil(u64::from(self.full.max(1)))
    }

    /// Number of bytes of `start..end` before the SYN, which no sender sends.
    fn before_syn(&self, start: i64, end: i64) -> u64 {
        let below = end.min(self.lowest) - start;
        if self.has_syn() { below.max(0) as u64 } else { 0 }
    }

    /// Processes bytes below the lowest captured offset: they are new, unless the capture has the SYN.
    fn fill_below(&mut self, start: i64, end: i64, behind: Behind, filled: &mut Filled) {
        let first = *self.first_packet.get_or_insert(behind);
        self.first_offset.get_or_insert(start);
        if start >= self.lowest || self.has_syn() {
            return;
        }
        let below = (start, end.min(self.lowest));
        filled.add(below, below, self.una, first);
        self.add_below(end, first);
        self.lowest = start;
    }

    /// Adds a gap from `from` up to the lowest captured offset.
    fn add_below(&mut self, from: i64, behind: Behind) {
        if from < self.lowest {
            self.gaps.add(from, self.lowest, behind);
            self.lowest = from;
        }
    }

    /// Whether the data that fills a gap was retransmitted, instead of reordered.
    fn is_repair(&mut self, data: Data, filled: Filled) -> bool {
        let Data { at, ip_id, timestamp, round_trip, .. } = data;
        let (later, evidence) = order::sent_later(
            at,
            ip_id,
            timestamp,
            filled.behind,
            &self.ids,
            self.latest_ack,
            round_trip,
        );
        let order = &mut self.reading.order_evidence;
        *match evidence {
            Evidence::Timestamps => &mut order.timestamps,
            Evidence::IpIds => &mut order.ip_ids,
            Evidence::Unreported => &mut order.unreported,
            Evidence::RoundTrip => &mut order.round_trip,
            Evidence::Age => &mut order.age_alone,
        } += 1;
        later
    }

    /// Records the number of outstanding bytes, and returns it.
    fn in_flight(&mut self, config: &Config, at: Time) -> u64 {
        let outstanding = (self.next - self.una).max(0) as u64;
        let sample = InFlight { at, acked: self.una, outstanding, window: self.window };
        self.reading.over_time.in_flight.add(config.points, sample);
        outstanding
    }

    fn stall(&mut self, config: &Config, data: &Data, offset: i64, repair: Option<Retransmission>) {
        let Some(from) = self.last_data else { return };
        let at = data.at;
        // Near the receiver the samples lack the path to the sender.
        let handshake = data.first_rtt.map_or(0.0, Span::as_secs_f64);
        let rtt = self.rtt.spread().map_or(0.0, |rtt| rtt.min).max(handshake);
        let gap = at.since(from);
        if gap <= Span::millis(200).max(Span::from_secs_f64(2.0 * rtt)) {
            return;
        }
        let idle = self.una >= self.next;
        let acked = self.acked_at.filter(|acked| *acked > from);
        let cause = match repair {
            _ if self.closed => StallCause::ZeroWindow,
            Some(Retransmission::Timeout) => StallCause::Timeout,
            // The peer has answered, so this data is a new request.
            None if idle && self.answered => StallCause::ApplicationIdle,
            // A sender without an ACK retransmits: the ACK is not in the capture.
            None if self.lacks_acks(gap, (rtt > 0.0).then(|| Span::from_secs_f64(rtt))) => {
                StallCause::ApplicationIdle
            }
            // The ACK that ended the wait came just before this packet.
            None if acked.is_some_and(|acked| at.since(acked) * 4 < gap) => StallCause::AckDelayed,
            None if idle => StallCause::ApplicationIdle,
            _ => StallCause::Unclear,
        };
        let outstanding = self.outstanding_after_last;
        let latest = self.stamps.map(|[_, latest]| latest).filter(|(at, _)| *at == from);
        let ticks = latest.zip(data.timestamp).map(|((_, before), own)| own.wrapping_sub(before));
        self.list_stall(config, Stall { from, to: at, offset, outstanding, cause }, ticks);
    }

    /// The peer acknowledged.
    pub(crate) fn acked(&mut self, config: &Config, acked: Acked) {
        let Acked { at, ack, .. } = acked;
        self.confirms(ack);
        if self.origin.is_none() {
            // An ACK before any data of this side: the capture may have only the other direction.
            self.begins(ack, false, 0);
        }
        let Some(ack) = self.offset(ack).filter(|ack| self.is_plausible(*ack)) else {
            self.reading.foreign_acks += 1;
            return;
        };
        self.latest_ack = Some(at);
        if acked.duplicate {
            self.latest_duplicate_ack = Some(at);
            self.duplicates = self.duplicates.saturating_add(1);
            self.point(config, at, ack, 0, PointKind::DuplicateAck);
        }
        self.window = acked.window;
        if ack > self.una {
            self.answered = acked.answer;
            self.advance(config, acked, ack);
        }
        // A window before the first data gives no information on the flight.
        if self.first_data.is_some() {
            self.in_flight(config, at);
        }
    }

    fn advance(&mut self, config: &Config, acked: Acked, ack: i64) {
        let Acked { at, echo, .. } = acked;
        let una = core::mem::replace(&mut self.una, ack);
        self.duplicates = 0;
        self.lost_segments.acked(ack);
        self.arrived.acked(ack);
        self.acked_at = Some(at);
        self.point(config, at, ack, 0, PointKind::Ack);
        self.settle_up_to(at, una, ack, echo);
        self.measure(config, acked, ack);
        if self.episode.is_some_and(|episode| ack >= episode.recover) {
            self.episode = None;
        }
        if let Some((start, end, stamp)) = self.stamped
            && ack >= end
        {
            self.stamped = None;
            if start <= una && is_older(echo, Some(stamp)) {
                self.reading.retransmissions.spurious_by_timestamps += 1;
            }
        }
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
        for &(left, right) in blocks.iter().skip(usize::from(duplicate)) {
            let Some(right) = self.offset(right).filter(|right| self.is_plausible(*right)) else {
                continue;
            };
            if let Some(left) = self.offset(left).filter(|left| (self.una..right).contains(left)) {
                self.arrived.insert(left, right);
            }
            if right <= self.sacked {
                continue;
            }
            (self.sacked, self.any_sack) = (right, true);
            // While the ACK number does not advance, SACK blocks are the only measure of the path.
            let edge = self.outstanding.partition_point(|sent| sent.end < right);
            if let Some(sent) = self.outstanding.get_mut(edge).filter(|sent| sent.end == right) {
                if sent.segments > 0 {
                    self.delivered = self.delivered.max(sent.at);
                }
                if !core::mem::replace(&mut sent.spent, true) {
                    let rtt = at.since(sent.at);
                    self.measured(config, at, right, rtt);
                }
            }
        }
        if !duplicate && !self.repairs.is_empty() {
            self.repair_arrived(at, left, right);
        }
        if duplicate {
            let counts = &mut self.reading.retransmissions;
            // A duplicate that no retransmission explains was made by the network.
            counts.spurious_by_dsack = (counts.spurious_by_dsack + 1).min(counts.total());
            if let (Some(left), Some(right)) = (self.offset(left), self.offset(right)) {
                self.received_twice(left, right);
            }
        }
        duplicate
    }

    /// Records the stall of a sender that still probes a closed window when the connection ends in the capture.
    fn stall_to_end(&mut self, config: &Config, ended: Time) {
        let Some(from) = self.last_data.filter(|from| *from < ended) else { return };
        if self.closed && self.window == Some(0) && self.reading.window_probes > 0 {
            let (offset, outstanding) = (self.next, self.outstanding_after_last);
            let cause = StallCause::ZeroWindow;
            let stall = Stall { from, to: ended, offset, outstanding, cause };
            self.list_stall(config, stall, None);
            self.last_data = Some(ended);
            self.reading.ends_stalled = true;
        }
    }

    fn list_stall(&mut self, config: &Config, stall: Stall, ticks: Option<u32>) {
        if self.reading.stalls.len() < config.losses {
            self.reading.stalls.push(stall);
            self.ticks.push(ticks);
        } else {
            self.reading.stalls_omitted += 1;
        }
    }

    /// The finished reading of a connection whose last packet was captured at `ended`.
    pub(crate) fn finish(mut self, config: &Config, ended: Time) -> Direction {
        self.stall_to_end(config, ended);
        self.held_back();
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
        self.reading.verdict = self.verdict();
        self.reading.missed_bytes = self.missed_bytes();
        let reading = &mut self.reading;
        reading.over_time.finish();
        reading.rtt = rtt;
        if reading.bytes > 0 {
            reading.goodput = Some(reading.unique_bytes as f64 / reading.bytes as f64);
        }
        if let (Some(first), Some(last)) = (self.first_data, self.last_data)
            && last > first
        {
            let seconds = last.since(first).as_secs_f64();
            reading.duration = Some(seconds);
            reading.throughput = Some(reading.unique_bytes as f64 * 8.0 / seconds);
        }
        reading.lost_segments = self.lost;
        self.reading
    }
}

/// Whether an ACK whose timestamp echo is `echo` answers a packet before the retransmission with `stamp`, which begins at
/// the lowest unacknowledged byte. Of other retransmissions it shows nothing: an ACK of several segments echoes that of
/// the first one.
//= rfc3522#section-3.2: an echo older than the retransmission shows that the original arrived
//= rfc7323#section-4.3: the echo is that of the segment at the left edge of the window
fn is_older(echo: Option<u32>, stamp: Option<u32>) -> bool {
    echo.zip(stamp).is_some_and(|(echo, stamp)| (echo.wrapping_sub(stamp) as i32) < 0)
}
