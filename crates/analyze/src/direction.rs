//! What one side of a connection sent: bytes, gaps, round trips, retransmissions, losses and stalls.

use std::collections::{BTreeMap, VecDeque};

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Seq;

use crate::config::Config;
use crate::reading::{Direction, Loss, Point, PointKind, Retransmission, Seen, Stall, StallCause};
use crate::stats::Series;
use crate::verdict::{Label, Trials};

/// Outstanding segments kept for each direction; beyond, the oldest gives no round-trip time.
const OUTSTANDING: usize = 4096;

/// Gaps kept for each direction; beyond, the oldest counts as seen.
const GAPS: usize = 1024;

/// Round-trip times kept to look up what a lost segment's neighbour met.
const SAMPLES: usize = 1024;

/// No common retransmission timer is shorter (Linux: 200 ms), less some slack for the clock of the capture.
const SHORTEST_TIMEOUT: Span = Span::millis(180);

/// An ACK sooner than this share of the smallest round-trip time, that of the handshake included, does not answer a
/// retransmission.
const TOO_SOON: f64 = 0.9;

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
        self.outstanding_after_last = (self.next - self.una).max(0) as u64;
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

    fn retransmission(
        &mut self,
        config: &Config,
        data: Data,
        start: i64,
        end: i64,
        unseen: bool,
    ) -> Retransmission {
        let (original, label, repeatedly) = self.mark_again(start, end);
        // The segment just before the lost one met the same queue; what was lost again met the present one.
        let before = self.samples.range(..=start).next_back().map(|(_, rtt)| *rtt);
        let rtt_before = before.filter(|_| !repeatedly).or(self.last_rtt);
        let repair = self.classify(data, start);
        let counts = &mut self.reading.retransmissions;
        *match repair {
            Retransmission::Fast => &mut counts.fast,
            Retransmission::Recovery => &mut counts.recovery,
            Retransmission::Timeout => &mut counts.timeout,
            Retransmission::AfterTimeout => &mut counts.after_timeout,
            Retransmission::Spurious => &mut counts.spurious,
            Retransmission::Other => &mut counts.other,
        } += 1;
        if repair == Retransmission::Spurious {
            return repair;
        }
        if matches!(repair, Retransmission::Fast | Retransmission::Timeout) {
            self.episodes += 1;
            let after_timeout = repair == Retransmission::Timeout;
            let recover = self.next.max(end);
            self.episode = Some(Episode { after_timeout, recover, number: self.episodes });
            self.stamped = data.timestamp.map(|stamp| (end, stamp));
        }
        let first = original.is_some_and(|sent| self.trials.repaired(sent, data.at));
        // Data may always have met a queue, above all that of a sender limited by its window; the handshake did not.
        let handshake = data.first_rtt.map_or(0.0, Span::as_secs_f64);
        let shortest = self.rtt.spread().map_or(0.0, |rtt| rtt.min.min(handshake));
        let kept = self.reading.losses.len() < config.losses;
        if self.repairs.len() >= OUTSTANDING
            && let Some(oldest) = self.repairs.pop_front()
        {
            self.settle(oldest);
        }
        self.repairs.push_back(Repair {
            start,
            end,
            at: data.at,
            sent: original,
            timestamp: data.timestamp,
            soon: Span::from_secs_f64(shortest * TOO_SOON),
            after_timeout: repair == Retransmission::AfterTimeout,
            loss: kept.then_some(self.reading.losses.len()),
            trial: (first && !repeatedly && !unseen).then_some(label),
            repeatedly,
            unseen,
            needless: false,
        });
        if !kept {
            self.reading.losses_omitted += 1;
            return repair;
        }
        self.disproved.push(false);
        self.episode_of.push(self.episode.map_or(0, |episode| episode.number));
        self.reading.losses.push(Loss {
            at: data.at,
            sent: original,
            offset: start,
            len: data.len,
            seen: if unseen { Seen::Never } else { Seen::Before },
            repair,
            rtt_before,
            burst: 1,
        });
        repair
    }

    /// Marks what is outstanding of `start..end` as sent again; when the first of it was sent and with which label,
    /// and whether it had been sent again before.
    fn mark_again(&mut self, start: i64, end: i64) -> (Option<Time>, Label, bool) {
        let from = self.outstanding.partition_point(|sent| sent.end <= start);
        let (mut original, mut label, mut repeatedly) = (None, None, false);
        for sent in self.outstanding.iter_mut().skip(from) {
            if original.is_none() {
                (original, label) = (Some(sent.at), sent.label);
            }
            sent.spent = true;
            repeatedly |= core::mem::replace(&mut sent.again, true);
            if sent.end >= end {
                break;
            }
        }
        (original, label, repeatedly)
    }

    /// Whether `repair` was of a loss is known now, as well as it ever will be.
    fn settle(&mut self, repair: Repair) {
        if let Some(label) = repair.trial {
            self.trials.count(label, u64::from(!repair.needless));
        }
        if repair.needless {
            self.reading.retransmissions.needless += 1;
            if let Some(disproved) = repair.loss.and_then(|i| self.disproved.get_mut(i)) {
                *disproved = true;
            } else {
                self.reading.losses_omitted = self.reading.losses_omitted.saturating_sub(1);
            }
        } else {
            self.lost += 1;
            if let Some(sent) = repair.sent.filter(|_| !repair.repeatedly) {
                self.trials.lost(sent);
            }
            self.unseen += u64::from(repair.unseen);
        }
    }

    /// Settles the repairs up to `ack`, which came at `at` and echoed `echo`.
    fn settle_up_to(&mut self, at: Time, ack: i64, echo: Option<u32>) {
        if self.repairs.is_empty() {
            return;
        }
        let una = self.repairs.iter().map(|repair| repair.start).min().unwrap_or(ack);
        for mut repair in core::mem::take(&mut self.repairs) {
            if repair.end > ack {
                self.repairs.push_back(repair);
                continue;
            }
            //= rfc3522#section-3.2: an echo older than the retransmission shows that the original arrived
            let older = |stamp: u32| echo.is_some_and(|e| (e.wrapping_sub(stamp) as i32) < 0);
            let early = at.since(repair.at) < repair.soon || repair.timestamp.is_some_and(older);
            // Without SACK a sender goes back to the first loss. An ACK that then jumps answers the first one or two
            // segments; the others it covers had been waiting at the receiver.
            let len = repair.end - repair.start;
            let jumped = self.sacked == 0 && repair.after_timeout && repair.start >= una + 2 * len;
            repair.needless |= (early || jumped) && !repair.repeatedly && !repair.unseen;
            self.settle(repair);
        }
    }

    fn classify(&self, data: Data, start: i64) -> Retransmission {
        if data.acked {
            return Retransmission::Spurious;
        }
        // A timer is restarted by every new ACK and every transmission.
        //= rfc6298#section-5: (5.1) when data is sent, (5.3) when an ACK acknowledges new data
        let active = self.last_data.max(self.acked_at);
        let wait = active.map_or(Span::ZERO, |active| data.at.since(active));
        let round = self.last_rtt.map_or(Span::ZERO, Span::from_secs_f64);
        let told = data.dupacks >= 2 && start >= self.una || self.sacked > start;
        let answers = wait < SHORTEST_TIMEOUT.max(round);
        match self.episode {
            _ if !answers && (start == self.una || !told) => Retransmission::Timeout,
            Some(Episode { after_timeout: true, .. }) => Retransmission::AfterTimeout,
            Some(_) => Retransmission::Recovery,
            None if told => Retransmission::Fast,
            None => Retransmission::Other,
        }
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

    /// The peer acknowledged up to `ack`, echoing `echo`, with SACK blocks.
    pub(crate) fn acked(
        &mut self,
        config: &Config,
        at: Time,
        ack: Seq,
        echo: Option<u32>,
        duplicate: bool,
    ) {
        // Acknowledged before anything was seen: only the other direction is captured.
        self.begins(ack, false);
        let Some(ack) = self.offset(ack) else { return };
        if duplicate {
            self.point(config, at, ack, 0, PointKind::DuplicateAck);
        }
        if ack <= self.una {
            return;
        }
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
        self.sample(at, ack);
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

    fn sample(&mut self, at: Time, ack: i64) {
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
        if let Some(sent) = newest.filter(|_| !spent) {
            self.measured(at, ack, at.since(sent));
        }
    }

    fn measured(&mut self, at: Time, end: i64, rtt: Span) {
        let rtt = rtt.as_secs_f64();
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
    pub(crate) fn sacked(&mut self, at: Time, ack: Seq, blocks: &[(Seq, Seq)]) -> bool {
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
                self.measured(at, right, rtt);
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
