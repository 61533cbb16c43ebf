//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00, as in Linux' `tcp_rate.c`). A
//! sample counts the bytes that arrive between the transmission of a segment and its acknowledgement.

use crate::units::{Rate, Span, Time};

/// State of delivery at the transmission of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// Bytes delivered before.
    delivered: u64,
    /// Time of the last delivery before.
    delivered_at: Time,
    /// Start of the measured flight.
    first_at: Time,
    /// Bytes in the network, including this segment. The highest bit is whether the application had too little to send:
    /// with this packing a record fills one cache line.
    flight: u32,
    /// Lower 32 bits of the bytes lost before.
    lost: u32,
}

/// Bit of [`Stamp::flight`]: the application had too little to send.
const LIMITED: u32 = 1 << 31;

impl Stamp {
    /// Bytes in the network when the segment was sent, including it.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.flight & !LIMITED)
    }

    /// Whether the application had too little to send at that time.
    pub fn app_limited(&self) -> bool {
        self.flight & LIMITED != 0
    }
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Delivered bytes.
    pub delivered: u64,
    /// Time of the measurement.
    pub interval: Span,
    /// Bytes delivered before the transmission of the measured segment.
    pub prior: u64,
    /// Whether the application had too little to send. The path may then have a higher rate.
    pub app_limited: bool,
    /// Bytes in the network when that segment was sent, including it.
    pub in_flight: u64,
    /// Bytes lost since then.
    pub lost: u64,
}

impl RateSample {
    /// Bits per second.
    pub fn rate(&self) -> Option<Rate> {
        let bits = u128::from(self.delivered) * 8 * 1_000_000_000;
        Rate::from_bps((bits / u128::from(self.interval.0.max(1))).min(u128::from(u64::MAX)) as u64)
    }
}

/// Measures the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateMeter {
    /// Bytes delivered since the start of the connection: cumulatively or selectively acknowledged.
    total: u64,
    /// Lower 32 bits of the lost bytes.
    lost: u32,
    at: Time,
    first_at: Time,
    /// Samples below this number of delivered bytes are limited by the application.
    app_limited: Option<u64>,
    /// Stamp and time of the last transmission among the segments that this ACK acknowledges.
    newest: Option<(Stamp, Time)>,
}

impl RateMeter {
    /// Starts a flight at a transmission while no data is outstanding.
    pub(in crate::tcp::sender) fn start(&mut self, now: Time) {
        self.at = now;
        self.first_at = now;
    }

    /// The stamp of a segment that is sent now, with `flight` bytes in the network including it.
    pub(in crate::tcp::sender) fn stamp(&self, flight: u64) -> Stamp {
        let limited = if self.app_limited.is_some() { LIMITED } else { 0 };
        Stamp {
            delivered: self.total,
            delivered_at: self.at,
            first_at: self.first_at,
            flight: flight.min(u64::from(LIMITED - 1)) as u32 | limited,
            lost: self.lost,
        }
    }

    /// Records `bytes` as lost.
    #[inline]
    pub(in crate::tcp::sender) fn lose(&mut self, bytes: u64) {
        self.lost = self.lost.wrapping_add(bytes as u32);
    }

    /// Bytes lost since the transmission of the segment with this stamp.
    pub(in crate::tcp::sender) fn lost_since(&self, stamp: &Stamp) -> u64 {
        u64::from(self.lost.wrapping_sub(stamp.lost))
    }

    /// Records the arrival of `bytes` of a segment that was last sent at `sent`, with `stamp`.
    #[inline]
    pub(in crate::tcp::sender) fn delivered(
        &mut self,
        now: Time,
        bytes: u64,
        stamp: Stamp,
        sent: Time,
    ) {
        self.total += bytes;
        self.at = now;
        if self.newest.is_none_or(|(old, at)| (stamp.delivered, sent) > (old.delivered, at)) {
            self.newest = Some((stamp, sent));
        }
    }

    /// Bytes delivered before the transmission of the segment that the next sample measures.
    pub(in crate::tcp::sender) fn prior(&self) -> Option<u64> {
        self.newest.map(|(stamp, _)| stamp.delivered)
    }

    /// Discards the current sample. The next one starts here.
    pub(in crate::tcp::sender) fn discard(&mut self) {
        if let Some((_, sent)) = self.newest.take() {
            self.first_at = sent;
        }
    }

    /// Records `bytes` that have arrived again.
    pub(in crate::tcp::sender) fn delivered_again(&mut self, now: Time, bytes: u64) {
        self.total += bytes;
        self.at = now;
    }

    /// Bytes delivered since the start of the connection.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the application limits the data that is sent now.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// Records that the application has too little to send, with `pipe` bytes in the network.
    pub fn app_limited(&mut self, pipe: u64) {
        self.app_limited = Some(self.total + pipe.max(1));
    }

    /// The sample of a processed ACK. A sample over less than the shortest round trip is discarded.
    pub fn sample(&mut self, min_rtt: Span) -> Option<RateSample> {
        if self.app_limited.is_some_and(|until| self.total > until) {
            self.app_limited = None;
        }
        let (stamp, sent_at) = self.newest.take()?;
        self.first_at = sent_at;
        // The longer time of sending and arriving, so that compressed ACKs do not increase the rate.
        let interval = sent_at.since(stamp.first_at).max(self.at.since(stamp.delivered_at));
        (interval >= min_rtt && interval > Span::ZERO).then_some(RateSample {
            delivered: self.total - stamp.delivered,
            interval,
            prior: stamp.delivered,
            app_limited: stamp.app_limited(),
            in_flight: stamp.in_flight(),
            lost: self.lost_since(&stamp),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Segments of 1000 bytes that are acknowledged in their order.
    #[derive(Clone, Default)]
    struct Line {
        meter: RateMeter,
        sent: VecDeque<(Stamp, Time)>,
        acked: u64,
    }

    /// Sends `n` segments, one each `every` ms from `from` on.
    fn send(line: &mut Line, n: u64, from: u64, every: u64) {
        for i in 0..n {
            let now = Time((from + i * every) * MS);
            if line.sent.is_empty() {
                line.meter.start(now);
            }
            line.sent.push_back((line.meter.stamp(0), now));
        }
    }

    fn ack(line: &mut Line, now: u64, segments: u64) -> Option<RateSample> {
        while line.acked < segments {
            let (stamp, sent) = line.sent.pop_front().unwrap();
            line.meter.delivered(Time(now * MS), 1000, stamp, sent);
            line.acked += 1;
        }
        line.meter.sample(Span::millis(10))
    }

    #[test]
    fn rate_samples_span_from_prior_ack_to_own_ack() {
        let mut f = Line::default();
        send(&mut f, 10, 0, 1);
        // One each 2 ms comes through.
        for i in 0..10 {
            ack(&mut f, 50 + 2 * i, i + 1);
        }
        send(&mut f, 1, 68, 1);
        let sample = ack(&mut f, 118, 11).unwrap();
        assert_eq!((sample.delivered, sample.interval), (1000, Span::millis(50)));
        // A whole flight: 11 segments in the 68 ms from the ninth ACK on.
        let mut f = Line::default();
        send(&mut f, 10, 0, 2);
        for i in 0..9 {
            ack(&mut f, 50 + 2 * i, i + 1);
        }
        send(&mut f, 10, 66, 2);
        ack(&mut f, 68, 10);
        let sample = (10..20).map(|i| ack(&mut f, 116 + 2 * (i - 10), i + 1)).next_back();
        let sample = sample.flatten().unwrap();
        assert_eq!((sample.delivered, sample.interval), (11_000, Span::millis(68)));
        assert_eq!(sample.rate().unwrap().bps(), 1_294_117);
    }

    /// Ten segments leave in 45 ms, and all of their ACKs arrive at once: the sample uses the time of sending.
    #[test]
    fn compressed_acks_do_not_inflate_the_rate() {
        let mut f = Line::default();
        send(&mut f, 10, 0, 5);
        let sample = ack(&mut f, 60, 10).unwrap();
        assert!(sample.interval >= Span::millis(45), "{sample:?}");
    }

    #[test]
    fn application_limited_samples_are_marked() {
        let mut f = Line::default();
        send(&mut f, 2, 0, 1);
        f.meter.app_limited(2000);
        send(&mut f, 1, 5, 1);
        assert!(!ack(&mut f, 30, 2).unwrap().app_limited);
        assert!(ack(&mut f, 35, 3).unwrap().app_limited);
        send(&mut f, 1, 40, 1);
        assert!(!ack(&mut f, 70, 4).unwrap().app_limited);
    }

    #[test]
    fn a_sample_below_the_minimum_round_trip_is_discarded() {
        let mut f = Line::default();
        send(&mut f, 1, 0, 1);
        assert_eq!(ack(&mut f, 9, 1), None);
    }

    /// The stamp of a segment, field by field.
    #[test]
    fn a_stamp_records_flight_app_limit_and_losses_since() {
        let mut meter = RateMeter::default();
        meter.start(Time(3 * MS));
        let most = u64::from(LIMITED) - 1;
        let cases = [(0, 0), (1, 1), (most, most), (most + 1, most), (1 << 40, most)];
        for (flight, expected) in cases {
            let stamp = meter.stamp(flight);
            assert_eq!((stamp.in_flight(), stamp.app_limited()), (expected, false), "{flight}");
            let mut bound = meter;
            bound.app_limited(0);
            let stamp = bound.stamp(flight);
            assert_eq!((stamp.in_flight(), stamp.app_limited()), (expected, true), "{flight}");
        }
        // Losses since are counted also where the lower half goes round.
        meter.lose(u64::from(u32::MAX));
        let stamp = meter.stamp(1);
        meter.lose(7);
        assert_eq!(meter.lost_since(&stamp), 7);
    }

    /// The rate counts as application-limited until more bytes have arrived than were in flight, and at least one.
    #[test]
    fn app_limitation_lasts_until_that_flight_is_delivered() {
        for (pipe, until) in [(0, 1), (1, 1), (5000, 5000)] {
            let mut meter = RateMeter::default();
            let stamp = meter.stamp(0);
            meter.delivered(Time(MS), 300, stamp, Time::ZERO);
            meter.app_limited(pipe);
            meter.delivered(Time(2 * MS), until, stamp, Time::ZERO);
            meter.sample(Span::ZERO);
            assert!(meter.is_app_limited(), "{pipe}: just {until} bytes have come");
            meter.delivered(Time(3 * MS), 1, stamp, Time::ZERO);
            meter.sample(Span::ZERO);
            assert!(!meter.is_app_limited(), "{pipe}: one more");
            assert_eq!(meter.total(), 301 + until);
        }
    }

    /// The sample is that of the segment before which most bytes were delivered; of equal ones, the latest.
    #[test]
    fn the_most_recently_sent_delivered_segment_is_sampled() {
        let stamp = |delivered, flight| Stamp { delivered, flight, ..Stamp::default() };
        let cases = [
            ([(100, 5), (200, 4)], 1),
            ([(200, 4), (100, 5)], 0),
            ([(100, 4), (100, 5)], 1),
            ([(100, 5), (100, 4)], 0),
            ([(100, 5), (100, 5)], 0),
        ];
        for (segments, newest) in cases {
            let mut meter = RateMeter::default();
            for ((delivered, sent), flight) in segments.into_iter().zip(1..) {
                meter.delivered(Time(9 * MS), 1000, stamp(delivered, flight), Time(sent * MS));
            }
            let sample = meter.sample(Span::ZERO).unwrap();
            assert_eq!(sample.in_flight, newest as u64 + 1, "{segments:?}");
            assert_eq!(sample.prior, segments[newest].0, "{segments:?}");
            assert_eq!(meter.sample(Span::ZERO), None, "it is reported once");
        }
    }
}
