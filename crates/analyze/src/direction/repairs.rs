//! Retransmissions: their cause, whether there was a loss, and whether the repair was needed.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::Seq;

use super::lost::RevealedLoss;
use super::order::SHORTEST_TIMEOUT;
use super::{Data, Episode, OUTSTANDING, Repair, Tracker, is_older};
use crate::config::Config;
use crate::reading::{Loss, LossLocation, Retransmission};
use crate::verdict::Label;

/// Duplicate ACKs that start a fast retransmission (RFC 5681, 3.2).
pub(super) const DUPLICATES: u32 = 3;

/// A sender answers the last duplicate ACK within this time, or within a quarter of the round trip.
const AT_ONCE: Span = Span::millis(20);

/// Maximum number of repairs stored after their ACK, for a DSACK one round trip later.
const SETTLED: usize = 1024;

/// An ACK sooner than this share of the smallest round-trip time, that of the handshake included, does not answer a
/// retransmission.
const TOO_SOON: f64 = 0.9;

impl Repair {
    /// A needless retransmission, of bytes acknowledged before.
    fn needless(start: i64, end: i64, at: Time) -> Repair {
        Repair {
            start,
            end,
            at,
            sent: None,
            timestamp: None,
            soon: Span::ZERO,
            after_timeout: false,
            loss: None,
            trial: None,
            repeatedly: false,
            part: false,
            size: end - start,
            segments: 0,
            unseen: false,
            needless: true,
        }
    }
}

impl Tracker {
    pub(super) fn retransmission(
        &mut self,
        config: &Config,
        data: Data,
        start: i64,
        end: i64,
        unseen: bool,
    ) -> Retransmission {
        let (original, label) = self.mark_again(start, end, data.full);
        let RevealedLoss { loss, repeatedly } = self.lost_segments.sent_again(start, end);
        let (from, to) = loss.unwrap_or((start, end));
        // The segment just before the lost one met the same queue. A lost retransmission met the current queue.
        let behind = self.samples.partition_point(|(end, _)| *end <= start);
        let before = behind.checked_sub(1).map(|latest| self.samples[latest].1);
        let rtt_before = before.filter(|_| !repeatedly).or(self.last_rtt);
        let arrived = self.arrived.covers(start.max(self.una), end);
        // Data of the SYN that the peer has declined is retransmitted without a loss.
        let edge = self.declined.filter(|edge| end <= *edge || self.next <= *edge);
        self.declined = self.declined.filter(|edge| end < *edge);
        let repair = match edge {
            Some(_) => Retransmission::Other,
            None => {
                let acked = end <= self.una && !unseen || arrived;
                self.classify(data, start, end, original, acked)
            }
        };
        let reported = unseen || self.is_reported(data, start, end, original);
        let counts = &mut self.reading.retransmissions;
        *match repair {
            Retransmission::Fast => &mut counts.fast,
            Retransmission::Recovery => &mut counts.recovery,
            Retransmission::Timeout => &mut counts.timeout,
            Retransmission::AfterTimeout => &mut counts.after_timeout,
            Retransmission::Spurious => &mut counts.spurious,
            Retransmission::Other => &mut counts.other,
        } += 1;
        if edge.is_some() {
            return repair;
        }
        if repair == Retransmission::Spurious {
            self.remember(Repair::needless(start, end, data.at));
            return repair;
        }
        if matches!(repair, Retransmission::Fast | Retransmission::Timeout) {
            self.episodes += 1;
            let after_timeout = repair == Retransmission::Timeout;
            let recover = self.next.max(end);
            let (began, number) = (data.at, self.episodes);
            self.episode = Some(Episode { began, after_timeout, recover, number });
            self.stamped = data.timestamp.map(|stamp| (start, end, stamp));
        }
        let part = loss.is_none();
        let first = original.is_some_and(|sent| !part && self.trials.repaired(sent, data.at));
        // All data may have waited in a queue, especially that of a window-limited sender. The handshake did not.
        let handshake = data.first_rtt.map_or(0.0, Span::as_secs_f64);
        let shortest = self.rtt.spread().map_or(0.0, |rtt| rtt.min.min(handshake));
        let listed = self.reading.losses.len() < config.losses;
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
            loss: (listed && !part).then_some(self.reading.losses.len()),
            trial: (first && !repeatedly && !unseen).then_some(label),
            repeatedly,
            part,
            size: to - from,
            segments: self.segments(to - from),
            unseen,
            needless: false,
        });
        if part {
            return repair;
        }
        if !listed {
            self.reading.losses_omitted += 1;
            return repair;
        }
        self.disproved.push(false);
        self.episode_of.push(self.episode.map_or(0, |episode| episode.number));
        self.reading.losses.push(Loss {
            at: data.at,
            sent: original,
            offset: from,
            len: u32::try_from(to - from).unwrap_or(data.len),
            segments: u32::try_from(self.segments(to - from)).unwrap_or(u32::MAX),
            seen: if unseen { LossLocation::Never } else { LossLocation::Before },
            repair,
            reported,
            rtt_before,
            burst: 1,
        });
        repair
    }

    /// Whether `data` is the original of a retransmission that overtook it.
    pub(super) fn is_late(&self, data: Data, start: i64, end: i64) -> bool {
        let covers = |repair: &&Repair| repair.start < end && start < repair.end;
        let latest = self.repairs.iter().rfind(covers);
        latest
            .or_else(|| self.settled.iter().rfind(covers))
            .is_some_and(|repair| is_older(data.timestamp, repair.timestamp))
    }

    /// Marks the outstanding part of `start..end` as retransmitted. Returns send time and label of its first byte.
    /// `full` is the largest payload of a packet.
    fn mark_again(&mut self, start: i64, end: i64, full: u32) -> (Option<Time>, Label) {
        let from = self.outstanding.partition_point(|sent| sent.end <= start);
        let (mut original, mut label) = (None, None);
        for sent in self.outstanding.iter_mut().skip(from) {
            if original.is_none() {
                (original, label) = (Some(sent.at), sent.label);
            }
            sent.spent = true;
            let overlap = end.min(sent.end) - start.max(sent.start);
            let lost = overlap.max(0).cast_unsigned().div_ceil(full.max(1).into());
            sent.segments = sent.segments.saturating_sub(lost);
            self.lost_segments.original((sent.start, sent.end), full, start, end);
            if sent.end >= end {
                break;
            }
        }
        (original, label)
    }

    /// Counts `repair` as the repair of a loss, or as needless: there will be no further evidence except a DSACK block.
    pub(super) fn settle(&mut self, repair: Repair) {
        if let Some(label) = repair.trial {
            self.trials.count(label, 1, u64::from(!repair.needless));
        }
        if repair.needless {
            self.reading.retransmissions.needless += 1;
            self.disprove(&repair);
        } else if !repair.part {
            self.lost += repair.segments;
            if let Some(sent) = repair.sent.filter(|_| !repair.repeatedly) {
                self.trials.lost(sent, repair.segments);
            }
            self.unseen += if repair.unseen { repair.segments } else { 0 };
        }
        self.remember(repair);
    }

    fn remember(&mut self, repair: Repair) {
        if self.settled.len() >= SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back(repair);
    }

    /// Processes a report that `left..right` arrived twice: the latest retransmission in this range was needless.
    //= rfc3708#section-3: a DSACK block shows which retransmission was unnecessary
    pub(super) fn received_twice(&mut self, left: i64, right: i64) {
        let covers = |repair: &Repair| repair.start < right && left < repair.end;
        let pending = self.repairs.iter_mut().rev().find(|r| covers(r) && !r.needless);
        if let Some(repair) = pending {
            repair.needless = true;
            return;
        }
        let Some(repair) =
            self.settled.iter().rposition(covers).and_then(|at| self.settled.remove(at))
        else {
            return;
        };
        if repair.needless {
            return;
        }
        self.reading.retransmissions.needless += 1;
        self.disprove(&repair);
        if repair.part {
            return;
        }
        if let Some(label) = repair.trial {
            self.trials.withdraw(label);
        }
        self.lost = self.lost.saturating_sub(repair.segments);
        self.unseen = self.unseen.saturating_sub(if repair.unseen { repair.segments } else { 0 });
    }

    /// Withdraws the loss that `repair` had revealed. An omitted loss has no index.
    fn disprove(&mut self, repair: &Repair) {
        if let Some(disproved) = repair.loss.and_then(|i| self.disproved.get_mut(i)) {
            *disproved = true;
        } else if !repair.part {
            self.reading.losses_omitted = self.reading.losses_omitted.saturating_sub(1);
        }
    }

    /// Settles the repairs up to `ack`, which was captured at `at` and echoes `echo`. The ACK before was `edge`.
    pub(super) fn settle_up_to(&mut self, at: Time, edge: i64, ack: i64, echo: Option<u32>) {
        if self.repairs.is_empty() {
            return;
        }
        let una = self.repairs.iter().map(|repair| repair.start).min().unwrap_or(ack);
        for mut repair in core::mem::take(&mut self.repairs) {
            if repair.end > ack {
                self.repairs.push_back(repair);
                continue;
            }
            let older = repair.start <= edge && is_older(echo, repair.timestamp);
            let early = at.since(repair.at) < repair.soon || older;
            // After a timeout without SACK, a sender retransmits from the first loss on. If an ACK then jumps, the
            // receiver already had the segments behind the first one or two.
            let len = repair.size;
            let jumped = !self.any_sack && repair.after_timeout && repair.start >= una + 2 * len;
            repair.needless |= (early || jumped) && !repair.repeatedly && !repair.unseen;
            if !early {
                self.delivered = self.delivered.max(repair.at);
            }
            self.settle(repair);
        }
    }

    /// Whether the receiver has reported that `start..end` is missing.
    fn is_reported(&self, data: Data, start: i64, end: i64, sent: Option<Time>) -> bool {
        let is_next = start <= self.una && self.una < end;
        let answers = |episode: Episode| self.acked_at.is_some_and(|at| at > episode.began);
        self.sacked > start
            || self.is_overtaken(sent)
            || is_next && (data.dupacks > 0 || self.episode.is_some_and(answers))
    }

    /// Whether a packet that was sent after `sent` has arrived, which is how a sender finds losses among retransmissions too.
    //= rfc8985#section-6.2: a segment is lost if one that was sent later has been delivered
    fn is_overtaken(&self, sent: Option<Time>) -> bool {
        sent.is_some_and(|sent| sent < self.delivered)
    }

    /// The first SACK block of an ACK at `at` is `left..right`: the latest repair in it has arrived, unless the ACK is too
    /// early for that.
    pub(super) fn repair_arrived(&mut self, at: Time, left: Seq, right: Seq) {
        let (Some(left), Some(right)) = (self.offset(left), self.offset(right)) else { return };
        let mut latest = self.repairs.iter().rev();
        if let Some(repair) = latest.find(|r| left <= r.start && r.end <= right)
            && at.since(repair.at) >= repair.soon
        {
            self.delivered = self.delivered.max(repair.at);
        }
    }

    fn classify(
        &self,
        data: Data,
        start: i64,
        end: i64,
        sent: Option<Time>,
        acked: bool,
    ) -> Retransmission {
        if acked {
            return Retransmission::Spurious;
        }
        // Every new ACK and every transmission restart the timer.
        //= rfc6298#section-5: (5.1) when data is sent, (5.3) when an ACK acknowledges new data
        let active = self.last_data.max(self.acked_at);
        let wait = active.map_or(Span::ZERO, |active| data.at.since(active));
        let round = self.last_rtt.map_or(Span::ZERO, Span::from_secs_f64);
        let signalled = data.dupacks >= 2 && start >= self.una
            || self.sacked > start
            || self.is_overtaken(sent);
        // Here the reaction to an ACK comes later than at the sender, by the path in between.
        let shortest = self.rtt.spread().map_or(0.0, |rtt| rtt.min);
        let behind = data.first_rtt.unwrap_or(Span::ZERO);
        let behind = behind.saturating_sub(Span::from_secs_f64(shortest));
        let answers = wait < SHORTEST_TIMEOUT.max(round) + behind;
        // On a long path, a loss in the first flight is repaired a round trip later, before the first ACK of data.
        let reports = data.dupacks >= DUPLICATES || self.sacked > start;
        let recent_duplicate = self
            .latest_duplicate_ack
            .is_some_and(|at| data.at.since(at) < AT_ONCE.max(Span(round.0 / 4)));
        // The timer retransmits the first outstanding segment (RFC 6298, 5.4), a probe the last one (RFC 8985, 7.3).
        let probes_tail = start > self.una && end >= self.next && !signalled;
        match self.episode {
            None if probes_tail => Retransmission::Other,
            None if reports && recent_duplicate => Retransmission::Fast,
            _ if !answers && (start == self.una || !signalled) => Retransmission::Timeout,
            Some(Episode { after_timeout: true, .. }) => Retransmission::AfterTimeout,
            Some(_) => Retransmission::Recovery,
            None if signalled => Retransmission::Fast,
            None => Retransmission::Other,
        }
    }
}
