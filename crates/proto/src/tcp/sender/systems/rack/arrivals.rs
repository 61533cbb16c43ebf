//! RACK's processing of the segments that an ACK reports.

use crate::tcp::sender::congestion_control::rate::RateMeter;
use crate::tcp::sender::recovery::AckSummary;
use crate::tcp::sender::recovery::flight::SentSegment;
use crate::tcp::sender::recovery::tlp::Probed;
use crate::tcp::sender::{AckInfo, Window};
use crate::units::{Span, Time};

use super::Rack;
use super::growing::DUPTHRESH;

/// Maximum extent of reordering in segments (`tcp_max_reordering`).
pub(super) const MOST_REORDERED: u64 = 300;

/// Information from arrived segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The arrived segment that was sent last: number of its transmission, and one past its end.
    pub(super) newest: (u64, u64),
    /// Round trip of the segment that was reported last.
    pub(super) rtt: Span,
    /// Whether a segment has arrived since the last loss detection.
    pub(super) advanced: bool,
    /// The shortest round trip of the connection.
    pub(super) min_rtt: Option<Span>,
    /// One past the highest position that arrived.
    pub(super) highest: u64,
    /// Whether a segment that was sent once has arrived after later ones.
    pub(super) reordered: bool,
    /// Maximum known extent of reordering in segments.
    pub(super) reordered_by: u64,
    /// Number of ACKs that have shown reordering.
    pub(super) reorderings: u32,
    /// Number of arrived segments.
    pub(super) delivered: u32,
    /// Unit of timestamps.
    pub(super) tick: Span,
}

impl Facts {
    /// State before the first arrival.
    pub(super) fn new(tick: Span) -> Facts {
        Facts {
            newest: (0, 0),
            rtt: Span::ZERO,
            advanced: false,
            min_rtt: None,
            highest: 0,
            reordered: false,
            reordered_by: DUPTHRESH.into(),
            reorderings: 0,
            delivered: 0,
            tick,
        }
    }

    /// Records that data from position `from` on has arrived after later positions. Its extent of reordering reaches
    /// to the highest position that arrived, in this ACK as well (`tcp_check_sack_reordering`).
    pub(super) fn note_reordering(&mut self, from: u64, mss: u64) {
        if from < self.highest {
            let distance = (self.highest - from).div_ceil(mss.max(1));
            self.reordered = true;
            self.reordered_by = self.reordered_by.max(distance.min(MOST_REORDERED));
            self.reorderings = self.reorderings.saturating_add(1);
        }
    }
}

/// Results of the last ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    /// Newly acknowledged or reported bytes, including duplicates.
    pub(super) delivered: u64,
    /// Bytes that were reported as duplicates.
    pub(super) needless: u64,
    /// Bytes in the network before the ACK.
    pub(super) pipe: u64,
    /// Whether a SACK block had news; without SACK, whether it was a duplicate ACK.
    pub(super) reported: bool,
    /// Whether it has set the timer for reordered segments.
    pub(super) waits: bool,
    /// Whether it is a duplicate ACK by its number, with a report or without.
    pub(super) repeats: bool,
    /// Whether the left edge moves.
    pub(super) moved: bool,
    /// Whether a segment is completely acknowledged; without the rules of Linux, whether the left edge moves.
    pub(super) completes: bool,
    /// Whether a recovery ends.
    pub(super) ended: bool,
    /// Whether a recovery was reverted before its end.
    pub(super) reopened: bool,
    /// Whether a timeout was being repaired before.
    pub(super) after_timeout: bool,
    /// Whether a segment has arrived that was sent once, before the last reaction to a loss.
    pub(super) original: bool,
    /// Longest round trip of the reported segments that were sent once.
    pub(super) oldest: Option<Span>,
    /// Whether a probe has repaired a loss without other evidence.
    pub(super) repaired: bool,
    /// Segments that the left edge has passed.
    pub(super) acked: u64,
}

/// Processes the reported segments of one ACK.
struct Arrived<'a> {
    now: Time,
    /// When the segment was sent whose timestamp the ACK echoes.
    echoed: Option<Time>,
    meter: &'a mut RateMeter,
    facts: &'a mut Facts,
    /// The left edge before the ACK.
    una: u64,
    /// One past the data that was sent before the last reaction to a loss.
    recover: u64,
    /// Round trips are measured as Linux does.
    kernel: bool,
    /// Whether a SACK block reports the segments, instead of the left edge.
    by_block: bool,
    /// Last round trip for RACK of the segments below the left edge.
    edge_rtt: Option<Span>,
    original: bool,
    /// Lowest position that has arrived after later ones.
    reordered_from: Option<u64>,
    /// Whether the left edge has passed a segment that was sent more than once.
    repeated: bool,
    /// Round trips of segments that were sent once: below the left edge, and in SACK blocks.
    trips: [Trips; 2],
}

/// Round trips of an ACK: with the rules of Linux the first and the last, otherwise the shortest and the longest.
#[derive(Clone, Copy, Debug, Default)]
struct Trips {
    first: Option<Span>,
    last: Option<Span>,
    least: Option<Span>,
    most: Option<Span>,
}

impl Trips {
    #[inline]
    fn add(&mut self, rtt: Span, kernel: bool) {
        if kernel {
            self.first.get_or_insert(rtt);
            self.last = Some(rtt);
        } else {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.most = self.most.max(Some(rtt));
        }
    }
}

impl Arrived<'_> {
    /// Records the arrival of `bytes` of the segment `sent`.
    #[inline]
    fn take(&mut self, sent: &SentSegment, bytes: u64) {
        self.meter.delivered(self.now, bytes, sent.stamp, sent.at);
        let facts = &mut *self.facts;
        let rtt = self.now.since(sent.at);
        //= rfc8985#section-6.2: step 3: RACK.fack is that of all segments, also of those without a round trip
        facts.highest = facts.highest.max(sent.to());
        if sent.again {
            self.repeated |= !self.by_block;
            //= rfc8985#section-6.2: step 2: the echo or the round trip shows which transmission has arrived
            // Linux compares the echo only where the left edge moves (`tcp_clean_rtx_queue`, `tcp_sacktag_one`).
            let echoed = self.echoed.filter(|_| !self.kernel || !self.by_block);
            let older = echoed.is_some_and(|echoed| echoed + facts.tick <= sent.at);
            if older || facts.min_rtt.is_some_and(|min| rtt < min) {
                return;
            }
        } else {
            self.original |= sent.to() <= self.recover;
            self.trips[usize::from(self.by_block)].add(rtt, self.kernel);
            if !self.kernel {
                facts.min_rtt = Some(facts.min_rtt.map_or(rtt, |min| min.min(rtt)));
            }
            //= rfc8985#section-6.2: step 3: sent once, and arrived after later positions
            // In Linux also one of which a part was acknowledged before (`tcp_clean_rtx_queue`).
            if sent.to() < facts.highest || self.kernel && sent.from < self.una {
                let lowest = self.reordered_from.map_or(sent.from, |from| from.min(sent.from));
                self.reordered_from = Some(lowest);
            }
        }
        //= rfc8985#section-6.2: step 2: RACK.rtt is that of each segment, the newest or not
        (facts.rtt, facts.advanced) = (rtt, true);
        if !self.by_block {
            self.edge_rtt = Some(rtt);
        }
        facts.newest = facts.newest.max((sent.order, sent.to()));
    }

    /// The longest round trip, for the timeout, and that of the newest segment, for the congestion control.
    #[inline]
    fn round_trips(&self) -> (Option<Span>, Option<Span>) {
        let [edge, block] = self.trips;
        if !self.kernel {
            return (
                edge.most.max(block.most),
                [edge.least, block.least].into_iter().flatten().min(),
            );
        }
        // If the left edge passes a retransmission, it gives no sample (`tcp_clean_rtx_queue`).
        let edge = if self.repeated { Trips::default() } else { edge };
        (edge.first.or(block.first), block.last.or(edge.last))
    }
}

impl Rack {
    /// Processes the reports of the ACK and its SACK blocks.
    //= rfc8985#section-6.2: steps 1 to 3
    pub(super) fn take_ack(&mut self, now: Time, w: &Window, info: &AckInfo<'_>) -> AckSummary {
        // Linux processes the SACK blocks of a late ACK (`tcp_ack`, `old_ack`).
        let late = info.ack < w.una;
        if late && (!self.kernel || info.sacked.is_empty()) {
            return AckSummary::default();
        }
        let edge = info.ack.max(w.una);
        self.repairs = false;
        self.remember_window(w);
        let (total, pipe) = (self.meter.total(), self.in_network(w));
        let mss = u64::from(w.mss);
        let after_timeout = self.after_timeout(w);
        let kernel = self.kernel;
        let mut arrived = Arrived {
            now,
            echoed: info.echoed,
            meter: &mut self.meter,
            facts: &mut self.facts,
            una: w.una,
            recover: self.recover,
            kernel,
            by_block: false,
            edge_rtt: None,
            original: false,
            reordered_from: None,
            repeated: false,
            trips: [Trips::default(); 2],
        };
        let (counts, moved) = (self.counts, info.ack > w.una);
        let reported_again = info.sacked.first().filter(|_| is_duplicate(info.ack, info.sacked));
        let repeated = reported_again.map_or(0, |(from, to)| match kernel && *to > w.una {
            // Linux looks at the segments that are not acknowledged yet. One that was reported before its retransmission
            // arrived is reordered (`tcp_sacktag_one`).
            true => {
                let (repeated, reported) = self.flight.repeated_within(*from, *to);
                arrived.reordered_from = reported;
                repeated
            }
            false => (to - from).div_ceil(mss.max(1)),
        });
        // Without SACK each acknowledged segment but one stands for a duplicate ACK before (`tcp_remove_reno_sacks`).
        let counted = if counts { self.flight.sacked_segments() } else { 0 };
        let (mut acked, mut new) = (0, 0);
        self.flight.acknowledge(edge, |sent, bytes, segments| {
            // In Linux a part of a segment is no arrival (`tcp_clean_rtx_queue`). An arrival that was only counted gives its
            // round trip now.
            arrived.repeated |= sent.again && sent.sacked && kernel;
            if (!sent.sacked || counts) && (segments > 0 || !kernel) {
                let known = segments.min(counted.saturating_sub(acked));
                let whole = if sent.sacked && !counts { 0 } else { (segments - known) as u32 };
                new += whole;
                arrived.take(sent, if kernel { u64::from(whole) * mss } else { bytes });
                arrived.facts.delivered = arrived.facts.delivered.wrapping_add(whole);
            }
            acked += segments;
        });
        let completes = acked > 0;
        if counts && completes {
            self.flight.keep_counted(counted.saturating_sub(acked - 1));
            if new == 0 {
                arrived.meter.delivered_again(now, mss);
                arrived.facts.delivered = arrived.facts.delivered.wrapping_add(1);
            }
        }
        self.reneged =
            self.kernel && !counts && moved && self.flight.first().is_some_and(|r| r.sacked);
        arrived.by_block = true;
        let mut reported = false;
        if !info.sacked.is_empty() {
            // Lowest first: otherwise several new blocks in one ACK would look like reordering.
            let mut blocks: [(u64, u64); 4] =
                core::array::from_fn(|i| info.sacked.get(i).copied().unwrap_or_default());
            blocks.sort_unstable();
            for (from, to) in blocks {
                if to > from && from >= edge && to <= w.nxt {
                    self.flight.report(from, to, |sent| {
                        reported = true;
                        arrived.take(sent, if kernel { mss } else { sent.bytes() });
                        arrived.facts.delivered = arrived.facts.delivered.wrapping_add(1);
                    });
                }
            }
        }
        // Without SACK an ACK that also covers a retransmission is no evidence: the receiver may have had the data behind
        // it (`tcp_clean_rtx_queue`).
        let original = arrived.original && !(counts && arrived.repeated);
        let edge_rtt = arrived.edge_rtt;
        let (oldest, rtt) = arrived.round_trips();
        if let Some(from) = arrived.reordered_from {
            self.facts.note_reordering(from, mss);
        }
        let known = (!counts).then_some(reported);
        let part = kernel && moved && !completes && w.una > 0 && !self.flight.is_empty();
        let mut news = AckSummary { reported: known, oldest, rtt, repaired: false, part };
        if self.kernel {
            // Linux processes the left edge last.
            self.facts.rtt = edge_rtt.unwrap_or(self.facts.rtt);
            if late {
                // A late ACK gives no samples (`tcp_ack`, `old_ack`).
                (news.oldest, news.rtt) = (None, None);
            } else if oldest.is_none() && completes {
                news.rtt = info.echoed.map(|sent| now.since(sent).max(self.facts.tick));
            }
            if let Some(rtt) = news.rtt {
                self.facts.min_rtt = Some(self.facts.min_rtt.map_or(rtt, |min| min.min(rtt)));
            }
        }
        let mut delivered = self.meter.total() - total;
        let (widens, needless) = reported_again
            .map_or((false, 0), |block| self.take_duplicate(now, *block, (repeated, mss)));
        delivered += needless;
        if !self.kernel {
            self.reordering.adapt(edge, w.nxt, widens);
        } else {
            self.reordering.pending |= widens;
            if let Some(prior) = self.meter.prior().filter(|_| !late) {
                self.reordering.adapt_by_delivery(prior, self.meter.total());
            }
        }
        let repeats = info.ack == w.una && !reported && !info.carries;
        news.repaired =
            self.probe.on_ack(info.ack, reported_again.is_some(), repeats) == Probed::Repaired;
        let oldest = news.oldest.filter(|_| reported);
        let repaired = news.repaired;
        self.last = Last {
            delivered,
            acked: acked as u64,
            needless,
            pipe,
            reported,
            waits: false,
            repeats: false,
            moved,
            completes: completes || moved && !kernel,
            ended: false,
            reopened: false,
            after_timeout,
            original,
            oldest,
            repaired,
        };
        news
    }
}

/// Whether the first block reports a duplicate segment. A block that ends before it begins is ignored.
//= rfc2883#section-4: it lies below the acknowledged position, or within the second block
fn is_duplicate(ack: u64, blocks: &[(u64, u64)]) -> bool {
    match blocks {
        [first, ..] if first.0 >= first.1 => false,
        [first, ..] if first.0 < ack && first.1 <= ack => true,
        [first, second, ..] => first.0 >= second.0 && first.1 <= second.1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_lies_below_the_ack_or_in_the_second_block() {
        for (ack, blocks, duplicate) in [
            (5000, &[(3000, 4000)][..], true),
            (5000, &[(4000, 5000)], true),
            (5000, &[(4500, 5500)], false),
            (5000, &[(6000, 7000)], false),
            (5000, &[(6000, 7000), (6000, 8000)], true),
            (5000, &[(6000, 7000), (6500, 8000)], false),
            (5000, &[(4000, 3000)], false),
            (5000, &[(7000, 6000), (5500, 8000)], false),
            (5000, &[(7000, 7000), (5500, 8000)], false),
            (5000, &[], false),
        ] {
            assert_eq!(is_duplicate(ack, blocks), duplicate, "{blocks:?}");
        }
    }
}
