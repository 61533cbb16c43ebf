//! Compact storage of gaps between signs of progress.

use lasthop_proto::units::{Span, Time};

/// Gaps with start and end, the oldest first. A flow may have dozens, and a run a hundred thousand flows. So
/// each gap is stored as the time since the previous one and its length, with seven bits per byte: eight or
/// nine bytes for gaps of a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    bytes: Vec<u8>,
    count: usize,
    /// End of the last gap.
    end: Time,
}

impl Gaps {
    /// Number of gaps.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a gap that begins at or after the end of the last one.
    pub(crate) fn push(&mut self, from: Time, to: Time) {
        /// Bytes for two numbers of any length.
        const ROOM: usize = 20;
        if self.bytes.capacity() < self.bytes.len() + ROOM {
            self.bytes.reserve_exact(ROOM + self.bytes.len() / 2);
        }
        self.put(from.since(self.end));
        self.put(to.since(from));
        self.count += 1;
        self.end = to;
    }

    fn put(&mut self, span: Span) {
        let mut left = span.0;
        while left > 0x7f {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
    }

    /// All gaps, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, Time)> + '_ {
        let mut bytes = self.bytes.iter();
        let mut next = move || {
            let mut span = 0;
            for (i, byte) in bytes.by_ref().enumerate() {
                span |= u64::from(byte & 0x7f) << (7 * i);
                if byte & 0x80 == 0 {
                    break;
                }
            }
            Span(span)
        };
        let mut end = Time::ZERO;
        (0..self.count).map(move |_| {
            let from = end + next();
            end = from + next();
            (from, end)
        })
    }

    /// Removes gaps that are not longer than `length`.
    pub(crate) fn retain_longer(&mut self, length: Span) {
        let mut retained = Gaps { bytes: Vec::with_capacity(self.bytes.len()), ..Gaps::default() };
        let longer = self.iter().filter(|(from, to)| to.since(*from) > length);
        longer.for_each(|(from, to)| retained.push(from, to));
        *self = retained;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_come_out_as_they_went_in(
            spans in prop::collection::vec((0..1_u64 << 40, 0..1_u64 << 40), 0..60),
            most in 0..1_u64 << 40,
            shift in 0..40,
        ) {
            let mut at = Time::ZERO;
            let mut all = Vec::new();
            let mut gaps = Gaps::default();
            for (wait, length) in spans {
                let from = at + Span(wait >> shift);
                at = from + Span(length >> shift);
                all.push((from, at));
                gaps.push(from, at);
            }
            prop_assert_eq!((gaps.len(), gaps.iter().collect::<Vec<_>>()), (all.len(), all.clone()));
            let most = Span(most >> shift);
            gaps.retain_longer(most);
            all.retain(|(from, to)| to.since(*from) > most);
            prop_assert_eq!((gaps.len(), gaps.iter().collect::<Vec<_>>()), (all.len(), all));
        }
    }

    #[test]
    fn the_longest_has_room() {
        let mut gaps = Gaps::default();
        gaps.push(Time(1), Time(u64::MAX));
        assert_eq!(gaps.iter().collect::<Vec<_>>(), [(Time(1), Time(u64::MAX))]);
    }
}
