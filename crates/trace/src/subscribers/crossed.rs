//! The sequence numbers of one sender that have crossed a point of the path.

use lasthop_proto::wire::Seq;

/// Gaps stored for each sender. Beyond, the lowest is removed, and its bytes count as seen.
const GAPS: usize = 4;

/// The bytes of a segment, by earlier crossings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Split {
    /// Beyond the highest number.
    pub new: u32,
    /// Below it, but never seen here: lost or overtaken before this point.
    pub missing: u32,
    /// Seen before: a retransmission, or a copy made by the network.
    pub again: u32,
}

/// Highest number, and the gaps below it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossed {
    next: Option<Seq>,
    gaps: [(Seq, Seq); GAPS],
    count: u8,
}

impl Crossed {
    /// Records that `seq` is the first number of the stream.
    pub(super) fn begin(&mut self, seq: Seq) {
        *self = Crossed { next: Some(seq), ..Crossed::default() };
    }

    /// One past the highest number.
    pub(super) fn next(&self) -> Option<Seq> {
        self.next
    }

    /// Adds a segment with payload `seq..seq + len`.
    pub(super) fn add(&mut self, seq: Seq, len: u32) -> Split {
        let end = seq + len;
        if len == 0 {
            return Split::default();
        }
        let Some(next) = self.next else {
            self.next = Some(end);
            return Split { new: len, ..Split::default() };
        };
        let below = (next - seq).clamp(0, len as i32) as u32;
        if next.lt(seq) {
            self.push((next, seq));
        }
        if next.lt(end) {
            self.next = Some(end);
        }
        let missing = if below > 0 { self.fill(seq, seq + below) } else { 0 };
        Split { new: len - below, missing, again: below - missing }
    }

    fn push(&mut self, gap: (Seq, Seq)) {
        if usize::from(self.count) == GAPS {
            self.gaps.rotate_left(1);
            self.count -= 1;
        }
        self.gaps[usize::from(self.count)] = gap;
        self.count += 1;
    }

    /// Removes `from..to` from the gaps. Returns the number of removed bytes.
    fn fill(&mut self, from: Seq, to: Seq) -> u32 {
        let (gaps, count) = (self.gaps, usize::from(self.count));
        self.count = 0;
        let mut filled = 0;
        for (low, high) in gaps.into_iter().take(count) {
            let start = if low.lt(from) { from } else { low };
            let end = if high.lt(to) { high } else { to };
            if end.le(start) {
                self.push((low, high));
                continue;
            }
            filled += (end - start) as u32;
            if low.lt(start) {
                self.push((low, start));
            }
            if end.lt(high) {
                self.push((end, high));
            }
        }
        filled
    }
}

/// The bytes of one sender that its receiver has acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    acked: Option<Seq>,
    /// The number of the sender's FIN.
    fin: Option<Seq>,
}

impl Acked {
    /// Records that `seq` is the first number of the stream.
    pub(super) fn begin(&mut self, seq: Seq) {
        *self = Acked { acked: Some(seq), fin: None };
    }

    /// Records the number of the sender's FIN, which is no payload.
    pub(super) fn end(&mut self, fin: Seq) {
        self.fin = Some(fin);
    }

    /// The acknowledgement so far.
    pub(super) fn acked(&self) -> Option<Seq> {
        self.acked
    }

    /// Adds an acknowledgement. Returns the bytes of payload that it is the first to cover.
    pub(super) fn advance(&mut self, ack: Seq) -> u32 {
        let Some(before) = self.acked else {
            self.acked = Some(ack);
            return 0;
        };
        if ack.le(before) {
            return 0;
        }
        self.acked = Some(ack);
        let covers_fin = self.fin.is_some_and(|fin| before.le(fin) && fin.lt(ack));
        (ack - before) as u32 - u32::from(covers_fin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(new: u32, missing: u32, again: u32) -> Split {
        Split { new, missing, again }
    }

    /// All numbers are shifted, so that each step is once at the wraparound.
    #[test]
    fn bytes_are_new_missing_or_seen_before() {
        for first in [0, u32::MAX - 1500, u32::MAX - 3500, 0x7fff_ff00] {
            let at = |n: u32| Seq(first) + n;
            let mut crossed = Crossed::default();
            crossed.begin(at(0));
            let steps = [
                ((0, 1000), split(1000, 0, 0)),
                ((2000, 1000), split(1000, 0, 0)),
                ((0, 1000), split(0, 0, 1000)),
                // The gap, from both ends and over it.
                ((900, 200), split(0, 100, 100)),
                ((1900, 200), split(0, 100, 100)),
                ((1000, 1000), split(0, 800, 200)),
                ((1000, 1000), split(0, 0, 1000)),
                ((2500, 1000), split(500, 0, 500)),
            ];
            for ((seq, len), wanted) in steps {
                assert_eq!(crossed.add(at(seq), len), wanted, "{seq} from {first}");
            }
            assert_eq!(crossed.next(), Some(at(3500)));
        }
    }

    #[test]
    fn the_gaps_are_bounded() {
        let mut crossed = Crossed::default();
        for n in 0..100 {
            crossed.add(Seq(2000 * n), 1000);
            assert!(usize::from(crossed.count) <= GAPS);
        }
        // Only the latest gaps are stored.
        assert_eq!(crossed.add(Seq(1000), 1000), split(0, 0, 1000));
        assert_eq!(crossed.add(Seq(2000 * 98 + 1000), 1000), split(0, 1000, 0));
        // A piece of the middle splits each of the four gaps, and the array has no room for all.
        for n in 95..98 {
            crossed.add(Seq(2000 * n + 1400), 200);
        }
        assert!(usize::from(crossed.count) <= GAPS);
    }

    #[test]
    fn payload_is_acknowledged_once_and_a_fin_is_none() {
        let mut acked = Acked::default();
        assert_eq!(acked.advance(Seq(500)), 0, "the bytes before the first ACK are unknown");
        acked.begin(Seq(u32::MAX - 99));
        let acks = [(100, 100), (100, 0), (50, 0), (300, 200)];
        for (ack, wanted) in acks {
            assert_eq!(acked.advance(Seq(u32::MAX - 99) + ack), wanted, "{ack}");
        }
        acked.end(Seq(u32::MAX - 99) + 400);
        assert_eq!(acked.advance(Seq(u32::MAX - 99) + 401), 100);
        assert_eq!(acked.advance(Seq(u32::MAX - 99) + 401), 0);
    }
}
