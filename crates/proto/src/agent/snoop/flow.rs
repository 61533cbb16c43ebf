//! State of one flow in snoop, and its conclusions from ACKs and from silence.

mod departure;
mod gap;
mod travel;

use super::super::ackp::Partial;
use super::super::receiver::Receiver;
use super::cache::{Cache, Entry};
use super::config::SnoopConfig;
use super::depth::Depth;
use super::reaction::{Change, Reaction};
use super::rtt::Rtt;
use crate::agent::snoop_smart::Reports;
use crate::units::{Span, Time};
use crate::wire::{Packet, Segment, Seq, Smart};
use gap::Gaps;

/// Position of the first sequence number of a flow at this agent. Retransmissions of older bytes have lower
/// positions, but no position is negative.
const FIRST: u64 = 1 << 32;

/// A flow from a fixed host to a mobile host.
///
/// Duplicate ACKs are matched with transmissions by order. The wireless link delivers in order (west97 2.6),
/// so each transmission causes at most one ACK, in its turn. `sent` counts the flow's data packets passed to
/// the link, `settled` those known to have arrived or been lost. The published code computes the expected
/// number of duplicate ACKs once. The result is the same for the first loss in a window, but the published
/// number is too large for later ones.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Flow {
    origin: Seq,
    /// Whether the flow passed here from its SYN on, so that all acknowledged data has passed.
    pub(super) complete: bool,
    /// Position past the highest byte that has passed.
    pub(super) top: u64,
    /// Position of the last ACK that has passed.
    pub(super) acked: Option<u64>,
    /// Position past the FIN.
    pub(super) fin: Option<u64>,
    pub(super) receiver: Receiver,
    pub(super) partial: Partial,
    pub(super) cache: Cache,
    pub(super) rtt: Rtt,
    reports: Reports,
    sent: u64,
    settled: u64,
    /// Duplicate ACKs since the last new one.
    dups: u32,
    /// Duplicate ACKs caused by retransmissions of bytes acknowledged long ago, which the sender waits for.
    answers: u32,
    /// Deadline of the local retransmission timer.
    timer: Option<Time>,
    /// Time of the flow's last packet in either direction.
    busy: Time,
    /// Time of the last local retransmission.
    repeated: Time,
    /// The first local retransmission since the data plane last reported departures.
    unsettled: Option<u64>,
    /// Latest timestamp of the sender.
    clock: Option<u32>,
    /// Data below this position was sent over a radio that the host has left.
    moved: u64,
    /// The sender's reaction to losses, if it is observed.
    reaction: Option<Box<Reaction>>,
    /// Occupancy of the radio's queue.
    pub(super) depth: Depth,
    /// Losses below this position are left to the sender, since they were congestion.
    left: u64,
    /// Holes in the data that arrived here.
    gaps: Gaps,
}

/// Treatment of a duplicate ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is unrelated to the wireless link, so it must reach the sender.
    Forward,
    /// It must not reach the sender.
    Suppress,
    /// It shows a loss on the wireless link.
    Retransmit,
}

impl Flow {
    /// Asserts the invariants of the positions and the cache.
    pub(super) fn check(&self) {
        self.cache.check();
        let top = self.top;
        debug_assert!(
            self.cache.entries().last().is_none_or(|entry| entry.end <= top),
            "a cached packet above the highest {top}"
        );
        debug_assert!(
            self.cache.front().is_none_or(|e| self.acked.is_none_or(|acked| e.end > acked)),
            "a cached packet is acknowledged"
        );
        self.partial.check(top);
        debug_assert!(
            self.settled <= self.sent,
            "transmissions: {} of {}",
            self.settled,
            self.sent
        );
    }

    /// Starts to track a flow at the sequence number `first`: that of its SYN, or of any data.
    pub(super) fn open(&mut self, first: Seq, syn: bool) {
        let mut cache = core::mem::take(&mut self.cache);
        cache.clear();
        *self = Flow { origin: first, complete: syn, top: FIRST, cache, ..Flow::default() };
    }

    /// Whether this is a SYN of the tracked connection.
    pub(super) fn is_syn_of(&self, seq: Seq) -> bool {
        self.complete && seq == self.origin
    }

    /// Stream position of a sequence number near the data in flight.
    #[inline]
    pub(super) fn position(&self, seq: Seq) -> Option<u64> {
        seq.unwrap_near(self.origin, self.top)
    }

    /// The sequence number at a position.
    pub(super) fn seq(&self, position: u64) -> Seq {
        self.origin + position as u32
    }

    /// Records the passing of a packet.
    #[inline]
    pub(super) fn touch(&mut self, now: Time) {
        self.busy = now;
    }

    /// Records the transmission of a data packet, as `pieces` packets, over the wireless link. Returns the
    /// number of the last one among the flow's transmissions.
    #[inline]
    pub(super) fn transmitted(&mut self, pieces: u32) -> u64 {
        self.sent += u64::from(pieces);
        self.sent
    }

    /// The last ACK; 0 before the first.
    pub(super) fn last_ack(&self) -> u64 {
        self.acked.unwrap_or(0)
    }

    /// Splits super-packets that later ACKs may refer to: the first one, or all if the receiver reports SACK
    /// blocks.
    #[cold]
    pub(super) fn cut(&mut self, all: bool) {
        let acked = self.last_ack();
        let mut i = 0;
        while i < self.cache.len() && (all || i == 0) {
            i += self.cache.cut(i, acked);
        }
    }

    /// Records that the sender retransmitted bytes that the receiver has, which causes one more duplicate
    /// ACK.
    pub(super) fn expect_answer(&mut self) {
        self.answers = self.answers.saturating_add(1);
    }

    /// Records that `segment` arrived at position `start`, past the highest position: data is missing.
    pub(super) fn misses(&mut self, start: u64, now: Time, segment: &Segment) {
        self.gaps.open([self.top, start], now, segment);
    }

    /// Whether data at position `start` was overtaken on its way here, and is no retransmission.
    pub(super) fn is_overtaken(
        &self,
        start: u64,
        now: Time,
        segment: &Segment,
        config: &SnoopConfig,
    ) -> bool {
        self.gaps.is_overtaken(start, now, segment, config)
    }

    /// Stores a copy of `packet`, the flow's transmission number `sent_as`.
    pub(super) fn store(&mut self, span: [u64; 2], packet: &Packet, sent_as: u64, by_sender: bool) {
        let [start, end] = span;
        let packet = packet.clone();
        let entry = Entry { start, end, packet, sent_as, attempts: 0, by_sender, reported: false };
        self.cache.insert(entry);
    }

    /// Records that the sender retransmitted a packet. Returns whether it is cached.
    pub(super) fn store_again(&mut self, span: [u64; 2], packet: &Packet, sent_as: u64) -> bool {
        let [start, end] = span;
        if self.cache.has_supers() {
            // Only this piece of a super-packet was retransmitted by the sender.
            self.cache.cut_holding(start, end, self.last_ack());
        }
        if !self.cache.refresh(start, end, packet) {
            return false;
        }
        if let Some(entry) = self.cache.holding(start, end) {
            entry.sent_as = sent_as;
            entry.attempts = 0;
            entry.by_sender = true;
        }
        true
    }

    /// Starts the local timer if it is not running, or expired while it was stopped.
    #[inline]
    pub(super) fn arm(&mut self, now: Time, config: &SnoopConfig) {
        if self.timer.is_none_or(|at| at < now) {
            self.restart(now, config);
        }
    }

    /// Restarts the local timer.
    #[inline]
    pub(super) fn restart(&mut self, now: Time, config: &SnoopConfig) {
        self.timer = Some(now + self.rtt.timeout(config));
    }

    /// Handles a new ACK: frees the acknowledged packets. Returns the round-trip sample, if it completes one.
    pub(super) fn advance(&mut self, ack: u64, now: Time, config: &SnoopConfig) -> Option<Span> {
        let before = self.last_ack();
        let repaired = self.cache.front().is_some_and(|first| first.attempts > 0);
        let delayed = self.dups > 0 || repaired || self.leaves();
        if let Some(latest) = self.cache.release(ack, self.dups > 0) {
            self.settled = self.settled.max(latest);
        }
        self.acked = Some(ack);
        self.gaps.acked(ack);
        if let (Some(reaction), Some(stamp)) = (&mut self.reaction, self.receiver.stamp()) {
            reaction.acked(now, stamp, ack);
        }
        self.depth.arrived(now, before, ack, delayed);
        self.top = self.top.max(ack);
        (self.dups, self.answers) = (0, 0);
        let sample = self.rtt.acked(ack, now);
        self.timer = None;
        if !self.cache.is_empty() {
            self.restart(now, config);
        }
        sample
    }

    /// End of the first cached packet, if the base station has retransmitted it.
    pub(super) fn repaired(&self) -> Option<u64> {
        self.cache.front().filter(|first| first.attempts > 0).map(|first| first.end)
    }

    /// Whether an ACK of the `repaired` packet alone shows that the next packet was destroyed by the same burst.
    /// Later packets are known to have arrived, as they caused the duplicate ACKs of the repaired one.
    pub(super) fn exposes_burst(&self, repaired: Option<u64>) -> bool {
        let next = self.cache.front().filter(|next| self.cache.len() > 1 && next.attempts == 0);
        repaired.is_some() && self.acked == repaired && next.map(|next| next.start) == repaired
    }

    /// Records the receiver's SACK blocks in `segment`. Returns whether there were any.
    pub(super) fn record_sack(&mut self, now: Time, segment: &Segment) -> bool {
        let mut reported = false;
        for (left, right) in segment.options().sack.as_slice() {
            // Data that never passed here cannot have been received.
            if let (Some(start), Some(end)) = (self.position(*left), self.position(*right))
                && end <= self.top
            {
                self.reports.learn(self.cache.entries_mut(), start, end);
                self.depth.arrived(now, start, end, false);
                reported = true;
            }
        }
        //= balakrishnan97#3.1.2: SMART names the segment that has caused an ACK; here each behind a hole
        if let Some(Smart::Caused(seq)) = segment.options().smart
            && let (Some(start), Some(ack)) = (self.position(seq), self.position(segment.ack))
            && (ack..self.top).contains(&start)
        {
            let caused = self.cache.entries_mut().filter(|entry| entry.start == start);
            self.reports.learn(caused, start, u64::MAX);
            reported = true;
        }
        reported
    }

    /// The first packet that the reports show as lost, for a local retransmission.
    pub(super) fn repair(&mut self, now: Time, config: &SnoopConfig) -> Option<Packet> {
        let reports = self.reports;
        let lost = |e: &Entry| reports.is_lost(e) && e.attempts < config.max_retransmits;
        let i = self.cache.position(lost)?;
        self.resend(i, now, config)
    }

    /// Handles a repetition of the last ACK, without data and with the same window. If the receiver also
    /// reports SACK blocks (`reported`), those determine the retransmissions.
    pub(super) fn duplicate(&mut self, now: Time, reported: bool, config: &SnoopConfig) -> Verdict {
        let Some(acked) = self.acked else { return Verdict::Forward };
        self.settled = (self.settled + 1).min(self.sent);
        if self.answers > 0 {
            self.answers -= 1;
            return Verdict::Forward;
        }
        let Some(first) = self.cache.front() else { return Verdict::Forward };
        if first.start > acked {
            // The requested packet never reached the base station: lost to congestion, and left to the
            // sender.
            return Verdict::Forward;
        }
        if first.by_sender || first.attempts >= config.max_retransmits {
            return Verdict::Forward;
        }
        self.dups += 1;
        if reported {
            return Verdict::Suppress;
        }
        if first.attempts == 0 && !self.gaps.contains(first.start) {
            if self.dups == 1 {
                // The first one was caused by a later packet: the link is past this packet.
                self.settled = self.settled.max(first.sent_as + 1).min(self.sent);
            }
            if self.dups >= config.dupacks { Verdict::Retransmit } else { Verdict::Suppress }
        } else if config.priority && first.attempts > 0 {
            // The number of further duplicate ACKs depends on how many packets the retransmission has
            // overtaken, which is unknown here. If it was lost, the timer expires.
            Verdict::Suppress
        } else if self.settled >= first.sent_as
            && (first.attempts == 0 || now.since(self.repeated) >= self.rtt.usual())
        {
            // More than the packets ahead of this transmission can have caused, so it was lost. If packets
            // vanish behind the agent (a full queue), the account is ahead of reality. So a retransmission is
            // not given up before its answer could have arrived.
            self.settled = (first.sent_as + 1).min(self.sent);
            Verdict::Retransmit
        } else {
            Verdict::Suppress
        }
    }

    /// Observes the sender's reaction to losses in `packet`, with data at the positions of `span`.
    pub(super) fn observe(
        &mut self,
        now: Time,
        [start, end]: [u64; 2],
        packet: &Packet,
        config: &SnoopConfig,
    ) -> Option<Change> {
        let new = || Box::new(Reaction::new(config.leave_loss_tolerant));
        let reaction = self.reaction.get_or_insert_with(new);
        if start < self.top {
            reaction.retransmitted(now);
            return None;
        }
        if start > self.top {
            // Lost before the base station.
            reaction.loss_visible();
        }
        let stamps = packet.segment()?.timestamps?;
        let segment = packet.body.len() / packet.pieces().max(1);
        reaction.data(now, stamps.echo, end, segment.into())
    }

    /// Records that a loss or a congestion mark is visible to the sender.
    pub(super) fn loss_visible(&mut self) {
        self.gaps.dupack_forwarded();
        if let Some(reaction) = &mut self.reaction {
            reaction.loss_visible();
        }
    }

    /// Whether losses are left to the sender at present.
    pub(super) fn leaves(&self) -> bool {
        self.acked.is_some_and(|acked| acked < self.left)
            || self.reaction.as_ref().is_some_and(|reaction| reaction.leaves())
    }

    /// Whether an ACK shows a congestive loss, by its blocks (`reported`) or only by its number. Then the losses
    /// of all packets sent so far are left to the sender: local repairs would reveal its reduction of the window
    /// as spurious. The queue continues to overflow until the sender has reduced its window, so further losses at
    /// the full queue belong to the same congestion.
    pub(super) fn meets_congestion(&mut self, reported: bool) -> bool {
        let Some(acked) = self.acked.filter(|acked| *acked < self.top) else { return false };
        if self.reaction.as_ref().is_some_and(|reaction| reaction.leaves()) {
            return false;
        }
        let far = self.reaction.as_ref().map_or(Span::ZERO, |reaction| reaction.round_trip());
        let (reports, left) = (self.reports, self.left);
        let lost = |e: &&Entry| e.start >= left && reports.is_lost(e) && e.attempts == 0;
        let lost = self.cache.entries().filter(lost).count();
        let full = far > Span::ZERO && self.depth.is_full(far);
        let full = full || Depth::is_many(lost, self.cache.len());
        if !full || lost == 0 && (reported || acked < left) {
            return false;
        }
        self.left = self.top;
        if let Some(reaction) = &mut self.reaction {
            reaction.congested(self.top);
        }
        true
    }

    /// Whether the flow is ignored, so that none of its packets are cached.
    pub(super) fn is_alone(&self) -> bool {
        self.reaction.as_ref().is_some_and(|reaction| reaction.is_alone())
    }

    /// Whether the missing data is a loss of the wireless link that is repaired here, as in
    /// [`Flow::duplicate`].
    pub(super) fn repairs(&self, config: &SnoopConfig) -> bool {
        if self.leaves() {
            return false;
        }
        let own = |first: &Entry| !first.by_sender && first.attempts < config.max_retransmits;
        let first = self.cache.front().filter(|first| Some(first.start) <= self.acked);
        self.answers == 0 && first.is_some_and(own)
    }

    /// The first cached packet that the receiver has not reported, for a local retransmission.
    pub(super) fn retransmit(&mut self, now: Time, config: &SnoopConfig) -> Option<Packet> {
        self.resend(self.cache.first_missing(), now, config)
    }

    fn resend(&mut self, i: usize, now: Time, config: &SnoopConfig) -> Option<Packet> {
        let sent_as = self.sent + 1;
        let entry = self.cache.get_mut(i)?;
        entry.sent_as = sent_as;
        entry.attempts += 1;
        let end = entry.end;
        let packet = entry.packet.clone().with(|packet| packet.urgent = config.priority);
        let packet = self.stamped(packet);
        self.unsettled.get_or_insert(sent_as);
        self.sent = sent_as;
        self.rtt.retransmitted(end, config.rtt_fault);
        self.busy = now;
        self.repeated = now;
        self.restart(now, config);
        Some(packet)
    }

    /// Records the departure of a packet that ends at position `end`. Timers run from there.
    pub(super) fn departs(&mut self, end: u64, now: Time, config: &SnoopConfig) {
        self.busy = now;
        let first = self.cache.front().map(|first| first.end);
        let again = self.cache.attempts(end) > 0;
        self.rtt.departs(end, again, now);
        if first == Some(end) {
            self.restart(now, config);
        }
    }

    /// Whether the receiver's window is closed, so that no data may be sent, and duplicate ACKs answer window probes.
    #[inline]
    pub(super) fn is_shut(&self) -> bool {
        self.receiver.window() == Some(0)
    }

    /// Whether the local timer has expired at `now`.
    pub(super) fn timed_out(&self, now: Time) -> bool {
        self.timer.is_some_and(|at| at <= now)
    }

    /// Deadline of the flow's local or persist timer.
    #[inline]
    pub(super) fn wake(&self, config: &SnoopConfig) -> Option<Time> {
        let first = self.cache.front()?;
        let next = if first.reported { self.cache.get(self.cache.first_missing())? } else { first };
        if self.is_shut() || next.attempts >= config.max_retransmits || self.leaves() {
            return None;
        }
        // The requested packet never reached the base station, and those behind it may have arrived: left to
        // the sender.
        if self.unacknowledged().is_some_and(|acked| first.start > acked) {
            return None;
        }
        // Silence counts only if it is longer than the measured round trips.
        //= parsa98#5.2.2: with the fault the persist timer alone drives retransmissions, whatever the estimate
        let usual = match self.rtt.is_measured() && !config.rtt_fault {
            true => self.rtt.timeout(config),
            false => Span(1),
        };
        let persist = self.busy + config.persist.max(usual);
        Some(self.timer.map_or(persist, |at| at.min(persist)))
    }

    /// Start of the bytes that a partial ACK must cover: the last ACK, or the first byte.
    pub(super) fn unacknowledged(&self) -> Option<u64> {
        self.acked.or_else(|| self.complete.then_some(FIRST + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addr, Body, Flags, Segment};

    /// Two super-packets of two and a half segments each. Without SACK blocks, ACKs can refer only to the
    /// first one, so only this one is split; with SACK blocks, both are split. The unacknowledged part of a
    /// packet remains.
    #[test]
    fn super_packets_are_cut_as_far_as_an_ack_may_be_about_them() {
        for (all, acked, entries) in
            [(false, None, 4), (true, None, 6), (false, Some(2001), 2), (true, Some(2001), 4)]
        {
            let mut flow = Flow { acked, ..Flow::default() };
            flow.cut(all);
            assert_eq!(flow.cache.len(), 0, "nothing is there");
            for start in [1, 2501] {
                let segment = Segment::new(1, 2, Seq(start), Seq(0), Flags::ACK);
                let body = Body::Pattern { stream: 1, len: 2500, offset: start.into() };
                let (src, dst) = (Addr::v4(1, 1, 1, 1), Addr::v4(2, 2, 2, 2));
                let packet =
                    Packet::tcp(src, dst, segment, body).with(|packet| packet.piece = 1000);
                let start = u64::from(start);
                flow.store([start, start + 2500], &packet, start, false);
            }
            flow.cut(all);
            assert_eq!(flow.cache.len(), entries, "all {all}, acknowledged {acked:?}");
            let first = acked.unwrap_or(1);
            assert_eq!(flow.cache.contiguous(first), 5001, "without a gap from {first} on");
            assert_eq!(flow.cache.contiguous(first - 1), first - 1, "and nothing below");
        }
    }
}
