//! The sequence numbers of one sender that have crossed a point of the path.

use lasthop_proto::wire::Seq;

/// Gaps stored for each sender. Bytes in other gaps count as seen. A window of a fast connection that lost each second
/// segment has about so many.
const GAPS: usize = 256;

/// Room for the gaps of all senders, so that hostile ones cannot take more memory.
#[derive(Clone, Debug)]
pub(super) struct Room(u32);

impl Room {
    pub(super) fn new(gaps: u32) -> Room {
        Room(gaps)
    }
}

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
#[derive(Clone, Debug, Default)]
pub(super) struct Crossed {
    next: Option<Seq>,
    /// In the order of the numbers; they do not overlap.
    gaps: Vec<(Seq, Seq)>,
}

impl Crossed {
    /// Records that `seq` is the first number of the stream.
    pub(super) fn begin(&mut self, seq: Seq) {
        self.next = Some(seq);
    }

    /// One past the highest number.
    pub(super) fn next(&self) -> Option<Seq> {
        self.next
    }

    /// Adds a segment with payload `seq..seq + len`.
    pub(super) fn add(&mut self, seq: Seq, len: u32, room: &mut Room) -> Split {
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
            self.insert(self.gaps.len(), (next, seq), room);
        }
        if next.lt(end) {
            self.next = Some(end);
        }
        // A gap that is older than half the number space would be larger.
        let missing = if below > 0 { self.fill(seq, seq + below, room).min(below) } else { 0 };
        Split { new: len - below, missing, again: below - missing }
    }

    /// Removes the gaps below `acked`: the receiver has these bytes.
    pub(super) fn release(&mut self, acked: Seq, room: &mut Room) {
        let count = self.gaps.partition_point(|(_, high)| high.le(acked));
        self.remove(0, count, room);
    }

    /// Removes all gaps.
    pub(super) fn clear(&mut self, room: &mut Room) {
        self.remove(0, self.gaps.len(), room);
    }

    fn insert(&mut self, at: usize, gap: (Seq, Seq), room: &mut Room) {
        if self.gaps.len() < GAPS && room.0 > 0 {
            room.0 -= 1;
            self.gaps.insert(at, gap);
        }
    }

    fn remove(&mut self, from: usize, count: usize, room: &mut Room) {
        if count == 0 {
            return;
        }
        room.0 += count as u32;
        self.gaps.drain(from..from + count);
        // Each of many connections may have had many gaps once.
        if self.gaps.len() * 4 < self.gaps.capacity() {
            self.gaps.shrink_to(self.gaps.len() * 2);
        }
    }

    /// Removes `from..to` from the gaps. Returns the number of removed bytes.
    fn fill(&mut self, from: Seq, to: Seq, room: &mut Room) -> u32 {
        let first = self.gaps.partition_point(|(_, high)| high.le(from));
        let count = self.gaps[first..].partition_point(|(low, _)| low.lt(to));
        let Some(&(low, _)) = self.gaps.get(first).filter(|_| count > 0) else { return 0 };
        let (_, high) = self.gaps[first + count - 1];
        let mut filled = 0;
        for (low, high) in &self.gaps[first..first + count] {
            let start = if low.lt(from) { from } else { *low };
            let end = if high.lt(to) { *high } else { to };
            filled += (end - start).clamp(0, 1 << 20) as u32;
        }
        self.remove(first, count, room);
        if to.lt(high) {
            self.insert(first, (to, high), room);
        }
        if low.lt(from) {
            self.insert(first, (low, from), room);
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
            let (mut crossed, mut room) = (Crossed::default(), Room::new(9));
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
            for ((seq, len), expected) in steps {
                assert_eq!(crossed.add(at(seq), len, &mut room), expected, "{seq} from {first}");
            }
            assert_eq!((crossed.next(), room.0), (Some(at(3500)), 9));
        }
    }

    #[test]
    fn the_gaps_are_bounded() {
        let (mut crossed, mut room) = (Crossed::default(), Room::new(300));
        for n in 0..1000 {
            crossed.add(Seq(2000 * n), 1000, &mut room);
        }
        assert_eq!((crossed.gaps.len(), room.0), (GAPS, 300 - GAPS as u32));
        assert_eq!(crossed.add(Seq(1000), 1000, &mut room), split(0, 1000, 0));
        let last = Seq(2000 * 900 + 1000);
        assert_eq!(crossed.add(last, 1000, &mut room), split(0, 0, 1000), "it was not stored");
        // A piece of the middle makes two gaps of one.
        assert_eq!(crossed.add(Seq(3400), 200, &mut room), split(0, 200, 0));
        assert_eq!(crossed.gaps[..2], [(Seq(3000), Seq(3400)), (Seq(3600), Seq(4000))]);
        assert_eq!(crossed.add(Seq(3000), 3000, &mut room), split(0, 1800, 1200));
        crossed.release(Seq(7500), &mut room);
        assert_eq!(crossed.gaps[0], (Seq(7000), Seq(8000)));
        assert_eq!(crossed.gaps.len() as u32 + room.0, 300);
        // A second sender can store gaps up to the common limit.
        let mut other = Crossed::default();
        for n in 0..1000 {
            other.add(Seq(2000 * n), 1000, &mut room);
        }
        assert_eq!((other.gaps.len() + crossed.gaps.len(), room.0), (300, 0));
        crossed.clear(&mut room);
        other.clear(&mut room);
        assert_eq!(room.0, 300);
    }

    proptest::proptest! {
        /// Not even numbers that no host accepts make the sums wrong.
        #[test]
        fn each_byte_is_of_one_kind(
            steps in proptest::collection::vec((proptest::num::u32::ANY, 0u32..70_000, 0u8..4), 1..300),
        ) {
            let (mut crossed, mut room) = (Crossed::default(), Room::new(50));
            for (seq, len, kind) in steps {
                let seq = Seq(if kind < 2 { seq % 200_000 } else { seq });
                if kind == 3 {
                    crossed.release(seq, &mut room);
                    continue;
                }
                let Split { new, missing, again } = crossed.add(seq, len, &mut room);
                proptest::prop_assert_eq!(new + missing + again, len);
                proptest::prop_assert_eq!(crossed.gaps.len() as u32 + room.0, 50);
            }
        }
    }

    #[test]
    fn payload_is_acknowledged_once_and_a_fin_is_none() {
        let mut acked = Acked::default();
        assert_eq!(acked.advance(Seq(500)), 0, "the bytes before the first ACK are unknown");
        acked.begin(Seq(u32::MAX - 99));
        let acks = [(100, 100), (100, 0), (50, 0), (300, 200)];
        for (ack, expected) in acks {
            assert_eq!(acked.advance(Seq(u32::MAX - 99) + ack), expected, "{ack}");
        }
        acked.end(Seq(u32::MAX - 99) + 400);
        assert_eq!(acked.advance(Seq(u32::MAX - 99) + 401), 100);
        assert_eq!(acked.advance(Seq(u32::MAX - 99) + 401), 0);
    }
}
