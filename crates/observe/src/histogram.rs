//! Durations in classes, in constant memory.

use lasthop_proto::units::Span;

/// Classes of a quarter octave from about a microsecond to about an hour. Only the range from the lowest to
/// the highest class in use is allocated, since the delays of a flow are in few classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Box<[u32]>,
    /// Class of the first count.
    first: u8,
    /// Number of buffered durations.
    waiting: u8,
    /// Classes of the latest durations, which are not in `counts` yet. That memory is elsewhere, so it is
    /// accessed once for several of them.
    recent: [u8; WAITING],
}

const FIRST_OCTAVE: usize = 10;
const LAST_OCTAVE: usize = 42;
const WAITING: usize = 6;

impl Histogram {
    /// Adds a duration.
    #[inline]
    pub(crate) fn add(&mut self, gap: Span) {
        let nanos = gap.0.clamp(1 << FIRST_OCTAVE, (1 << (LAST_OCTAVE + 1)) - 1);
        let octave = nanos.ilog2() as usize;
        let quarter = (nanos >> (octave - 2)) as usize & 3;
        if usize::from(self.waiting) == WAITING {
            self.count();
        }
        self.recent[usize::from(self.waiting)] = ((octave - FIRST_OCTAVE) * 4 + quarter) as u8;
        self.waiting += 1;
    }

    /// Counts the buffered durations.
    #[inline(never)]
    fn count(&mut self) {
        let waiting = usize::from(core::mem::take(&mut self.waiting));
        for at in 0..waiting.min(WAITING) {
            let class = self.recent[at];
            // A class below the first one wraps to an index beyond the last.
            match self.counts.get_mut(usize::from(class.wrapping_sub(self.first))) {
                Some(n) => *n = n.saturating_add(1),
                None => self.widen(class),
            }
        }
    }

    /// Extends the counts to `class` and counts its first duration.
    #[cold]
    fn widen(&mut self, class: u8) {
        if self.counts.is_empty() {
            self.first = class;
        }
        let below = usize::from(self.first.saturating_sub(class));
        self.first = self.first.min(class);
        let place = usize::from(class - self.first);
        let room = (place + 1).max(self.counts.len() + below);
        let mut counts = vec![0; room].into_boxed_slice();
        counts[below..below + self.counts.len()].copy_from_slice(&self.counts);
        counts[place] = 1;
        self.counts = counts;
    }

    /// Middle of the class that contains the quantile `q` from 0 to 1; accurate to 12.5 %.
    pub(crate) fn quantile(&self, q: f64) -> Span {
        self.quantile_above(q, 0)
    }

    /// The same with `below` further durations that are shorter than all others; zero if the quantile is among them.
    pub(crate) fn quantile_above(&self, q: f64, mut below: u64) -> Span {
        let mut all = self.clone();
        all.count();
        let total: u64 = below + all.counts.iter().map(|n| u64::from(*n)).sum::<u64>();
        let rank = q * total as f64;
        if below > 0 && below as f64 >= rank {
            return Span::ZERO;
        }
        for (i, n) in (usize::from(all.first)..).zip(&all.counts) {
            below += u64::from(*n);
            if below as f64 >= rank && below > 0 {
                let quarter = 1u64 << (i / 4 + FIRST_OCTAVE - 2);
                let low = quarter * (4 + i as u64 % 4);
                return Span(low + quarter / 2);
            }
        }
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_the_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Span::ZERO);
        (1..=10_000).for_each(|i| histogram.add(Span::micros(i * 100)));
        for (q, want) in [(0.5, 0.5), (0.95, 0.95), (0.99, 0.99)] {
            let got = histogram.quantile(q).as_secs_f64();
            assert!((got / want - 1.0_f64).abs() <= 0.125, "{q}: {got}");
        }
        // More than the buffer holds, upwards and downwards.
        let mut mixed = Histogram::default();
        for ms in [8, 8, 8, 64, 64, 1, 1, 1, 1, 8] {
            mixed.add(Span::millis(ms));
        }
        for (q, want) in [(0.3, 1.0), (0.7, 8.0), (0.9, 64.0)] {
            let got = mixed.quantile(q).as_secs_f64() * 1e3;
            assert!((got / want - 1.0_f64).abs() <= 0.125, "{q}: {got}");
        }
        let mut one = Histogram::default();
        one.add(Span::millis(540));
        let got = one.quantile(0.99).as_secs_f64();
        assert!((got / 0.54 - 1.0).abs() <= 0.125, "{got}");
    }
}
