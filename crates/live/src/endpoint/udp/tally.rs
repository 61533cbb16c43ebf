//! Counters of received datagrams.

use lasthop_proto::units::{Span, Time};

use crate::endpoint::role::Report;

/// Numbers below the highest one for which duplicates are recognised. An older datagram counts as reordered.
const WINDOW: u64 = 1024;

/// Words of the window.
const WORDS: usize = (WINDOW / 64) as usize;

/// Counters of one sender; the memory is constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Payload bytes, headers included.
    bytes: u64,
    /// Different datagrams.
    datagrams: u64,
    reordered: u64,
    duplicates: u64,
    /// Highest number plus one; zero before the first datagram.
    next: u64,
    /// Whether a number of the window has arrived, at the number modulo the window.
    seen: [u64; WORDS],
    /// Interarrival jitter in nanoseconds, times 16 (RFC 3550 appendix A.8).
    jitter: u64,
    /// Relative transit time of the previous datagram, nanoseconds.
    transit: Option<u64>,
}

impl Tally {
    /// Counts a datagram of `length` bytes. `sent` and `now` may belong to different clocks.
    pub fn count(&mut self, number: u64, sent: Time, now: Time, length: usize) {
        if number >= self.next {
            let first = self.next.max(number.saturating_add(1).saturating_sub(WINDOW));
            (first..=number).for_each(|old| self.set(old, false));
            self.next = number.saturating_add(1);
        } else if self.next - number <= WINDOW {
            if self.is_set(number) {
                self.duplicates += 1;
                return;
            }
            self.reordered += 1;
        } else {
            // The window has no bit of it.
            self.reordered += 1;
            self.add(sent, now, length);
            return;
        }
        self.set(number, true);
        self.add(sent, now, length);
    }

    /// Counts a datagram that is no duplicate.
    fn add(&mut self, sent: Time, now: Time, length: usize) {
        self.datagrams += 1;
        self.bytes += length as u64;
        //= rfc3550#section-6.4.1
        let transit = now.0.wrapping_sub(sent.0);
        if let Some(last) = self.transit.replace(transit) {
            let difference = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            self.jitter = self.jitter - (self.jitter + 8) / 16 + difference.min(u64::MAX / 32);
        }
    }

    /// Adds the counters to a report.
    pub fn report(&self, report: Report) -> Report {
        let Tally { bytes, datagrams, reordered, duplicates, jitter, .. } = *self;
        Report { bytes, datagrams, reordered, duplicates, jitter: Span(jitter / 16), ..report }
    }

    fn position(number: u64) -> (usize, u64) {
        let at = number % WINDOW;
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn is_set(&self, number: u64) -> bool {
        let (word, bit) = Tally::position(number);
        self.seen[word] & bit != 0
    }

    fn set(&mut self, number: u64, value: bool) {
        let (word, bit) = Tally::position(number);
        if value {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(numbers: &[u64]) -> Report {
        let mut tally = Tally::default();
        for number in numbers {
            tally.count(*number, Time(*number), Time(number.wrapping_add(5)), 100);
        }
        tally.report(Report::default())
    }

    #[test]
    fn order_and_duplicates() {
        let report = counted(&[0, 1, 2, 4, 3, 3, 9, 1]);
        assert_eq!((report.datagrams, report.reordered, report.duplicates), (6, 1, 2));
        assert_eq!((report.bytes, report.jitter), (600, Span::ZERO));
        // A jump over the whole window forgets the old numbers.
        let report = counted(&[0, 5000, 4999, 4999, 0]);
        assert_eq!((report.datagrams, report.reordered, report.duplicates), (4, 2, 1));
        // An old number does not mark a missing one of the window.
        let report = counted(&[1, 1025, 0, 1024]);
        assert_eq!((report.datagrams, report.reordered, report.duplicates), (4, 2, 0));
        let report = counted(&[u64::MAX, u64::MAX - 1]);
        assert_eq!((report.datagrams, report.reordered), (2, 1));
    }

    /// A transit time that alternates by 16 ms converges to a jitter of 16 ms.
    #[test]
    fn jitter_follows_rfc_3550() {
        let mut tally = Tally::default();
        for number in 0..1000 {
            let sent = Time::ZERO + Span::millis(20 * number);
            tally.count(number, sent, sent + Span::millis(if number % 2 == 0 { 1 } else { 17 }), 1);
        }
        let jitter = tally.report(Report::default()).jitter.as_secs_f64();
        assert!((jitter - 0.016).abs() < 1e-4, "{jitter}");
    }
}
