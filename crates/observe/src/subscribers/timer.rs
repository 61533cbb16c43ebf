//! Round trips of one connection on one side of the station, one at a time.

use lasthop_proto::units::{Span, Time};
use lasthop_proto::wire::{Seq, Timestamps};

/// A round trip above this is none: the hosts have paused, or the answer was not seen.
const LONGEST: Span = Span::secs(60);

/// Round trip from a segment to the acknowledgement that covers it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckTimer {
    /// One past the highest number sent; SYN and FIN count.
    end: Option<Seq>,
    /// One past the last number of the timed segment, and its time.
    timed: Option<(Seq, Time)>,
}

impl AckTimer {
    /// A segment with numbers `seq..seq + len` crosses; SYN and FIN count.
    pub(super) fn sent(&mut self, now: Time, seq: Seq, len: u32) {
        if len == 0 {
            return;
        }
        let end = seq + len;
        let is_new = self.end.is_none_or(|highest| highest.le(seq));
        if self.end.is_none_or(|highest| highest.lt(end)) {
            self.end = Some(end);
        }
        if !is_new {
            //= rfc6298#section-3: no samples from segments that were retransmitted (Karn's algorithm)
            // The ACK of a segment behind a repaired one waits for the repair, so it is no sample either.
            self.timed = self.timed.filter(|(timed, _)| timed.le(seq));
            return;
        }
        if self.timed.is_none_or(|(_, at)| now.since(at) > LONGEST) {
            self.timed = Some((end, now));
        }
    }

    /// An acknowledgement crosses in the other direction. Returns the round trip if it covers the timed segment.
    pub(super) fn acked(&mut self, now: Time, ack: Seq) -> Option<Span> {
        let (_, at) = self.timed.take_if(|(end, _)| end.le(ack))?;
        Some(now.since(at)).filter(|trip| *trip <= LONGEST)
    }
}

/// Round trip from a timestamp of one end to its echo by the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EchoTimer {
    /// The latest timestamp.
    last: Option<u32>,
    timed: Option<(u32, Time)>,
}

impl EchoTimer {
    /// A segment with `stamps` crosses. `prompt` is whether the other end is expected to answer at once; if not, its
    /// next answer may be late, and the measurement ends.
    pub(super) fn sent(&mut self, now: Time, stamps: Timestamps, prompt: bool) {
        let value = stamps.value;
        self.timed = self.timed.filter(|_| prompt);
        // The first segment with a timestamp is timed, or none: later ones would be too short.
        if self.last.is_some_and(|last| !Timestamps::is_older(last, value)) {
            return;
        }
        self.last = Some(value);
        let is_free = self.timed.is_none_or(|(_, at)| now.since(at) > LONGEST);
        if prompt && is_free {
            self.timed = Some((value, now));
        }
    }

    /// A segment with `stamps` crosses in the other direction. Returns the round trip if it echoes the timed timestamp.
    pub(super) fn echoed(&mut self, now: Time, stamps: Timestamps) -> Option<Span> {
        let (value, at) = self.timed?;
        if Timestamps::is_older(stamps.echo, value) {
            return None;
        }
        self.timed = None;
        // With a later echo the time of the first answer is unknown.
        Some(now.since(at)).filter(|trip| value == stamps.echo && *trip <= LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::millis(millis)
    }

    fn stamps(value: u32, echo: u32) -> Timestamps {
        Timestamps { value, echo }
    }

    #[test]
    fn one_segment_is_timed_until_its_ack() {
        for first in [0, u32::MAX - 1500] {
            let seq = |n: u32| Seq(first) + n;
            let mut timer = AckTimer::default();
            timer.sent(at(0), seq(0), 1000);
            timer.sent(at(5), seq(1000), 1000);
            assert_eq!(timer.acked(at(10), seq(500)), None, "it covers half of it");
            assert_eq!(timer.acked(at(20), seq(2000)), Some(Span::millis(20)));
            assert_eq!(timer.acked(at(30), seq(2000)), None, "once");
            timer.sent(at(40), seq(2000), 1000);
            assert_eq!(timer.acked(at(47), seq(3000)), Some(Span::millis(7)));
        }
    }

    //= rfc6298#section-3: no samples from segments that were retransmitted (Karn's algorithm)
    #[test]
    fn a_retransmission_ends_the_measurement() {
        let mut timer = AckTimer::default();
        timer.sent(at(0), Seq(0), 1000);
        timer.sent(at(200), Seq(0), 1000);
        assert_eq!(timer.acked(at(220), Seq(1000)), None, "of which copy is it?");

        // The first is lost. Its repair delays the ACK of the second, which is timed.
        timer.sent(at(300), Seq(1000), 1000);
        assert_eq!(timer.acked(at(310), Seq(2000)), Some(Span::millis(10)));
        timer.sent(at(400), Seq(2000), 1000);
        timer.sent(at(401), Seq(2000), 1000);
        timer.sent(at(402), Seq(3000), 1000);
        timer.sent(at(500), Seq(2000), 1000);
        assert_eq!(timer.acked(at(520), Seq(4000)), None);

        // Only a repair at or below the timed segment counts.
        timer.sent(at(600), Seq(4000), 1000);
        timer.sent(at(601), Seq(5000), 1000);
        timer.sent(at(602), Seq(5000), 1000);
        assert_eq!(timer.acked(at(612), Seq(5000)), Some(Span::millis(12)));
        timer.sent(at(620), Seq(6000), 1000);
        timer.sent(at(621), Seq(4000), 1000);
        assert_eq!(timer.acked(at(630), Seq(7000)), None, "it may wait for the repair");
    }

    #[test]
    fn an_answer_after_a_minute_is_no_round_trip() {
        let mut timer = AckTimer::default();
        timer.sent(at(0), Seq(0), 1000);
        assert_eq!(timer.acked(at(60_001), Seq(1000)), None);
        timer.sent(at(70_000), Seq(1000), 1000);
        // Its ACK was not seen, so another segment is timed.
        timer.sent(at(140_000), Seq(2000), 1000);
        assert_eq!(timer.acked(at(140_050), Seq(3000)), Some(Span::millis(50)));
    }

    #[test]
    fn the_first_segment_with_a_timestamp_is_timed() {
        for first in [100, u32::MAX] {
            let value = |n: u32| first.wrapping_add(n);
            let mut timer = EchoTimer::default();
            timer.sent(at(0), stamps(value(0), 7), true);
            timer.sent(at(1), stamps(value(0), 7), true);
            assert_eq!(timer.echoed(at(10), stamps(7, value(0).wrapping_sub(1))), None, "older");
            assert_eq!(timer.echoed(at(20), stamps(7, value(0))), Some(Span::millis(20)));
            // The same timestamp again is not timed: it was sent before.
            timer.sent(at(30), stamps(value(0), 8), true);
            assert_eq!(timer.echoed(at(31), stamps(8, value(0))), None);
            // One that needs no answer is not timed, nor is its repetition.
            timer.sent(at(40), stamps(value(1), 8), false);
            timer.sent(at(41), stamps(value(1), 8), true);
            assert_eq!(timer.echoed(at(45), stamps(9, value(1))), None);
            timer.sent(at(46), stamps(value(2), 8), true);
            timer.sent(at(47), stamps(value(2), 8), false);
            assert_eq!(timer.echoed(at(48), stamps(9, value(2))), None, "the answer may be late");
            timer.sent(at(50), stamps(value(3), 8), true);
            assert_eq!(timer.echoed(at(60), stamps(9, value(4))), None, "a later one is echoed");
            assert_eq!(timer.echoed(at(61), stamps(9, value(3))), None);
        }
    }
}
