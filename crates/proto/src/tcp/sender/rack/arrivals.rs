//! What RACK learns from the segments that an ACK shows to have arrived.

use crate::tcp::sender::flight::Sent;
use crate::tcp::sender::rate::RateMeter;
use crate::tcp::sender::recovery::News;
use crate::units::{Span, Time};

/// Reordering by more segments than these counts as so many (`tcp_max_reordering`).
const MOST_REORDERED: u64 = 300;

/// What is known from segments that have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The segment that was sent last among those that arrived: when, and one past its end.
    pub(super) newest: (Time, u64),
    /// Round trip of the segment whose arrival was reported last.
    pub(super) rtt: Span,
    /// The shortest round trip of the connection.
    pub(super) min_rtt: Option<Span>,
    /// One past the highest position that arrived.
    highest: u64,
    /// Whether a segment that was sent once has arrived after later ones.
    pub(super) reordered: bool,
    /// By how many segments at most, as far as that is known.
    pub(super) reordered_by: u64,
    /// How often reordering was seen.
    pub(super) reorderings: u32,
    /// Segments that have arrived.
    pub(super) delivered: u32,
    /// Timestamps count in this unit.
    pub(super) tick: Span,
}

impl Facts {
    /// Nothing has arrived.
    pub(super) fn new(tick: Span) -> Facts {
        Facts {
            newest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            min_rtt: None,
            highest: 0,
            reordered: false,
            reordered_by: 0,
            reorderings: 0,
            delivered: 0,
            tick,
        }
    }
}

/// What the last ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    /// Bytes newly acknowledged or reported.
    pub(super) delivered: u64,
    /// Bytes in the network before.
    pub(super) pipe: u64,
    /// Whether anything was reported.
    pub(super) reported: bool,
    /// Whether anything arrived that was sent once, before the last reaction to a loss.
    pub(super) original: bool,
    /// Longest round trip among the segments that were sent once and of which this tells.
    pub(super) oldest: Option<Span>,
    /// Whether a probe has repaired a loss that nothing else showed.
    pub(super) repaired: bool,
}

/// Takes in the segments of one ACK.
pub(super) struct Arrived<'a> {
    pub(super) now: Time,
    /// When the segment was sent that brought forth the ACK, if timestamps tell.
    pub(super) echoed: Option<Time>,
    pub(super) meter: &'a mut RateMeter,
    pub(super) facts: &'a mut Facts,
    /// Where the last reaction to a loss began.
    pub(super) recover: u64,
    /// Segment size.
    pub(super) mss: u64,
    pub(super) original: bool,
    /// Whether reordering was seen.
    pub(super) reorders: bool,
    pub(super) news: News,
}

impl Arrived<'_> {
    /// `bytes` of `sent` are newly known to have arrived.
    pub(super) fn take(&mut self, sent: &Sent, bytes: u64) {
        self.meter.delivered(self.now, bytes, sent.stamp, sent.at);
        let facts = &mut *self.facts;
        let rtt = self.now.since(sent.at);
        if sent.again {
            //= rfc8985#section-6.2: step 2: which transmission arrived? The echo tells, or the time that it took
            let older = self.echoed.is_some_and(|echoed| echoed + facts.tick <= sent.at);
            if older || facts.min_rtt.is_some_and(|min| rtt < min) {
                return;
            }
        } else {
            self.original |= sent.to() <= self.recover;
            facts.min_rtt = Some(facts.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.news.oldest = self.news.oldest.max(Some(rtt));
            self.news.rtt = Some(self.news.rtt.map_or(rtt, |least| least.min(rtt)));
            //= rfc8985#section-6.2: step 3: sent once, and arrived after later positions
            if sent.to() < facts.highest {
                let distance = (facts.highest - sent.from).div_ceil(self.mss.max(1));
                facts.reordered = true;
                self.reorders = true;
                facts.reordered_by = facts.reordered_by.max(distance.min(MOST_REORDERED));
            }
        }
        facts.highest = facts.highest.max(sent.to());
        //= rfc8985#section-6.2: step 2: RACK.rtt is that of each segment, the newest or not
        facts.rtt = rtt;
        if (sent.at, sent.to()) > facts.newest {
            facts.newest = (sent.at, sent.to());
        }
    }
}

/// Whether the first block reports a segment that came twice. A block that ends before it begins reports nothing.
//= rfc2883#section-4: it lies below the acknowledged position, or within the second block
pub(super) fn is_duplicate(ack: u64, blocks: &[(u64, u64)]) -> bool {
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
